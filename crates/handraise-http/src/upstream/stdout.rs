//! Our stdout, as the way to a client.

use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc as blocking,
    },
    thread,
};

use bytes::Bytes;
use handraise_transport::pipes;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::retry_on_intr,
};
use tokio::sync::{Notify, oneshot};

use super::stdio::own;

/// Our stdout, by a thread of its own: a client that does not read keeps nobody else.
pub(super) struct Stdout {
    queue: blocking::Sender<Bytes>,
    /// Wakes who waits for it to be written.
    pub(super) moved: Arc<Notify>,
    queued: Arc<AtomicUsize>,
    is_gone: Arc<AtomicBool>,
}

impl Stdout {
    pub(super) fn start() -> io::Result<Self> {
        let mut stdout = own(io::stdout())?;
        let (queue, frames) = blocking::channel::<Bytes>();
        let moved = Arc::new(Notify::new());
        let (queued, is_gone) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let shared = (Arc::clone(&moved), Arc::clone(&queued), Arc::clone(&is_gone));
        let write = move || {
            let (moved, queued, is_gone) = shared;
            for frame in frames {
                if stdout.write_all(&line(&frame)).is_err() {
                    is_gone.store(true, Ordering::Relaxed);
                }
                queued.fetch_sub(frame.len(), Ordering::Relaxed);
                moved.notify_one();
            }
        };
        thread::Builder::new().name("stdout".to_owned()).spawn(write)?;
        Ok(Self { queue, moved, queued, is_gone })
    }

    pub(super) fn write(&self, frame: Bytes) {
        self.queued.fetch_add(frame.len(), Ordering::Relaxed);
        // The thread lives as long as this end of the queue.
        let _ = self.queue.send(frame);
    }

    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

/// A frame as one line. What ends a line can stand between the tokens of JSON only, and is a space there.
fn line(frame: &[u8]) -> Vec<u8> {
    let frame = frame.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(frame);
    let mut line = Vec::with_capacity(frame.len() + 1);
    line.extend_from_slice(frame);
    if memchr::memchr2(b'\r', b'\n', frame).is_some() {
        for byte in &mut line {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
    }
    line.push(b'\n');
    line
}

/// Completes once nobody reads our stdout any more, also while nothing is written; never where it is a file, a terminal, or
/// a pipe with a name, which may get another reader.
pub(super) fn reader_gone() -> io::Result<impl Future<Output = ()>> {
    let (tell, told) = oneshot::channel();
    if !pipes::has_name(pipes::STDOUT) {
        let stdout = own(io::stdout())?;
        let watch = move || {
            // Nothing is asked for: that its reader is gone comes unasked.
            let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
            if retry_on_intr(|| poll(&mut watched, None)).is_ok() {
                // Who has ended meanwhile does not listen.
                let _ = tell.send(());
            }
        };
        thread::Builder::new().name("reader".to_owned()).spawn(watch)?;
    }
    Ok(async move {
        if told.await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_one_line_however_it_was_written() {
        assert_eq!(line(b"{\"a\":\"\\n\"}"), b"{\"a\":\"\\n\"}\n");
        assert_eq!(line(b"\xEF\xBB\xBF{\r\n \"a\":1\n}"), b"{   \"a\":1 }\n");
    }
}
