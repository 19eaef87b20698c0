//! A relay between holders and the inbox's socket, which cuts streams where a disturbance says.

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What the action of every frame that carries an answer ends with. The inbox does not mask its frames.
const ANSWER: &[u8] = b".respond\"";

/// What becomes of what passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Everything passes.
    Everything,
    /// The next answer is lost, and its stream with it.
    LoseTheAnswer,
    /// The next answer passes, and nothing that its holder says from then on.
    LoseTheVerdict,
    /// Nobody gets through.
    Nothing,
}

/// A relay on a socket of its own. Its threads end with the program.
#[derive(Clone)]
pub(super) struct Relay {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    inbox: PathBuf,
    now: Mutex<Now>,
}

struct Now {
    pass: Pass,
    streams: Vec<Arc<Stream>>,
}

struct Stream {
    holder: UnixStream,
    inbox: UnixStream,
    is_mute: Mutex<bool>,
}

impl Stream {
    fn cut(&self) {
        let _ = self.holder.shutdown(Shutdown::Both);
        let _ = self.inbox.shutdown(Shutdown::Both);
    }
}

impl Relay {
    pub(super) fn start(path: PathBuf, inbox: PathBuf) -> anyhow::Result<Self> {
        let listener = UnixListener::bind(&path)?;
        let now = Mutex::new(Now { pass: Pass::Everything, streams: Vec::new() });
        let shared = Arc::new(Shared { path, inbox, now });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                accepting.connect(stream);
            }
        });
        Ok(Self { shared })
    }

    pub(super) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Says what becomes of what passes from now on, and cuts what has been made mute.
    pub(super) fn set(&self, pass: Pass) {
        let mut now = self.shared.now();
        now.pass = pass;
        if pass == Pass::Nothing {
            now.streams.iter().for_each(|stream| stream.cut());
        }
        for stream in &now.streams {
            if std::mem::take(&mut *stream.is_mute.lock().unwrap_or_else(PoisonError::into_inner)) {
                stream.cut();
            }
        }
    }
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Failing to connect closes the holder's side, as an inbox that is gone does.
    fn connect(self: &Arc<Self>, holder: UnixStream) {
        let mut now = self.now();
        if now.pass == Pass::Nothing {
            return;
        }
        let Ok(inbox) = UnixStream::connect(&self.inbox) else { return };
        let stream = Arc::new(Stream { holder, inbox, is_mute: Mutex::new(false) });
        now.streams.push(Arc::clone(&stream));
        drop(now);
        for is_from_holder in [true, false] {
            let (shared, stream) = (Arc::clone(self), Arc::clone(&stream));
            std::thread::spawn(move || {
                shared.pump(&stream, is_from_holder);
                stream.cut();
                shared.now().streams.retain(|other| !Arc::ptr_eq(other, &stream));
            });
        }
    }

    fn pump(&self, stream: &Arc<Stream>, is_from_holder: bool) {
        let (mut from, mut to) =
            if is_from_holder { (&stream.holder, &stream.inbox) } else { (&stream.inbox, &stream.holder) };
        let mut piece = vec![0; 64 * 1024];
        while let Ok(count) = from.read(&mut piece)
            && let Some(read @ [_, ..]) = piece.get(..count)
        {
            let may_go = if is_from_holder { !is_mute(stream) } else { self.may_go_down(stream, read) };
            if may_go && to.write_all(read).is_err() {
                break;
            }
        }
    }

    /// An answer is one small write of the inbox, and so one piece here.
    fn may_go_down(&self, stream: &Stream, piece: &[u8]) -> bool {
        if memchr::memmem::find(piece, ANSWER).is_none() {
            return true;
        }
        let mut now = self.now();
        match now.pass {
            Pass::LoseTheAnswer => {
                now.pass = Pass::Everything;
                stream.cut();
                false
            }
            Pass::LoseTheVerdict => {
                now.pass = Pass::Everything;
                *stream.is_mute.lock().unwrap_or_else(PoisonError::into_inner) = true;
                true
            }
            Pass::Everything | Pass::Nothing => true,
        }
    }
}

fn is_mute(stream: &Stream) -> bool {
    *stream.is_mute.lock().unwrap_or_else(PoisonError::into_inner)
}
