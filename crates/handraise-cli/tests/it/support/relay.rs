//! A relay between a holder and the inbox's socket, which cuts the stream where a test says.

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// What the action of every frame that carries an answer ends with. The inbox does not mask its frames.
const ANSWER: &[u8] = b".respond\"";

/// What becomes of what passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Everything passes.
    Everything,
    /// The next answer is lost, and the stream with it.
    LoseTheAnswer,
    /// The next answer passes, and nothing that the holder says from then on.
    LoseTheVerdict,
    /// The holder says nothing more.
    HolderIsMute,
    /// Nobody gets through.
    Nothing,
}

/// A relay on a socket of its own.
pub(crate) struct Relay {
    path: PathBuf,
    shared: Arc<Shared>,
}

struct Shared {
    inbox: PathBuf,
    now: Mutex<Now>,
}

struct Now {
    pass: Pass,
    open: Vec<UnixStream>,
    /// What the inbox has said, as it passed.
    said: Vec<u8>,
}

impl Relay {
    pub(crate) fn start(path: PathBuf, inbox: PathBuf) -> Self {
        let listener = UnixListener::bind(&path).unwrap();
        let now = Mutex::new(Now { pass: Pass::Everything, open: Vec::new(), said: Vec::new() });
        let shared = Arc::new(Shared { inbox, now });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                accepting.connect(stream);
            }
        });
        Self { path, shared }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Says what becomes of what passes from now on.
    pub(crate) fn set(&self, pass: Pass) {
        self.shared.now.lock().unwrap().pass = pass;
    }

    /// How often the inbox has said this on the stream, lost or not.
    pub(crate) fn count(&self, words: &str) -> usize {
        String::from_utf8_lossy(&self.shared.now.lock().unwrap().said).matches(words).count()
    }

    /// Cuts every stream and lets nobody through.
    pub(crate) fn cut(&self) {
        cut(&mut self.shared.now.lock().unwrap());
    }
}

fn cut(now: &mut Now) {
    now.pass = Pass::Nothing;
    for stream in now.open.drain(..) {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, holder: UnixStream) {
        let mut now = self.now.lock().unwrap();
        if now.pass == Pass::Nothing {
            return;
        }
        let Ok(inbox) = UnixStream::connect(&self.inbox) else { return };
        now.open.extend([holder.try_clone().unwrap(), inbox.try_clone().unwrap()]);
        drop(now);
        let (from_holder, to_inbox) = (holder.try_clone().unwrap(), inbox.try_clone().unwrap());
        let (up, down) = (Arc::clone(self), Arc::clone(self));
        std::thread::spawn(move || up.pump(from_holder, to_inbox, Self::may_go_up));
        std::thread::spawn(move || down.pump(inbox, holder, Self::may_go_down));
    }

    fn pump(&self, mut from: UnixStream, mut to: UnixStream, may_go: fn(&Self, &[u8]) -> bool) {
        let mut piece = vec![0; 64 * 1024];
        while let Ok(count) = from.read(&mut piece)
            && count > 0
        {
            if may_go(self, &piece[..count]) && to.write_all(&piece[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    }

    fn may_go_up(&self, _: &[u8]) -> bool {
        self.now.lock().unwrap().pass != Pass::HolderIsMute
    }

    /// An answer is one small write of the inbox, and so one piece here.
    fn may_go_down(&self, piece: &[u8]) -> bool {
        let mut now = self.now.lock().unwrap();
        now.said.extend(piece);
        let is_answer = piece.windows(ANSWER.len()).any(|window| window == ANSWER);
        match now.pass {
            Pass::LoseTheAnswer if is_answer => {
                cut(&mut now);
                false
            }
            Pass::LoseTheVerdict if is_answer => {
                now.pass = Pass::HolderIsMute;
                true
            }
            _ => true,
        }
    }
}
