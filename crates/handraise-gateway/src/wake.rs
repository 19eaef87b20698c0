//! What wakes the main thread: signals, and the other threads.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM},
    low_level::pipe,
};

/// Wakes the main thread.
pub(crate) struct Waker(UnixStream);

impl Waker {
    /// Wakes it now, or at once when it waits next.
    pub(crate) fn wake(&self) {
        // A full pipe wakes it as well.
        let _ = (&self.0).write(&[0]);
    }
}

/// The main thread's place to wait.
pub(crate) struct Wakeups {
    end: UnixStream,
    reload: UnixStream,
    /// Children that end, and the other threads.
    other: UnixStream,
}

/// What has come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Woken {
    /// How many signals asked for the end.
    pub(crate) ends: usize,
    /// Whether SIGHUP came.
    pub(crate) reload: bool,
    /// Whether the pipe that is watched has no reader any more.
    pub(crate) unread: bool,
}

impl Wakeups {
    /// Takes the signals over.
    pub(crate) fn register() -> io::Result<(Self, Waker)> {
        let pair = || -> io::Result<(UnixStream, UnixStream)> {
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            write.set_nonblocking(true)?;
            Ok((read, write))
        };
        let (end, end_writer) = pair()?;
        let (reload, reload_writer) = pair()?;
        let (other, waker) = pair()?;
        for signal in [SIGTERM, SIGINT] {
            pipe::register(signal, end_writer.try_clone()?)?;
        }
        pipe::register(SIGHUP, reload_writer)?;
        pipe::register(SIGCHLD, waker.try_clone()?)?;
        Ok((Self { end, reload, other }, Waker(waker)))
    }

    /// Waits for one of them, or for the end of the reader of `pipe`, at most so long.
    pub(crate) fn wait(&mut self, pipe: Option<&File>, timeout: Option<Duration>) -> Woken {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let [end, reload, other] =
            [&self.end, &self.reload, &self.other].map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let unread = if let Some(pipe) = pipe {
            // Of a pipe that is written to, that is the one thing that comes unasked.
            let mut watched = [end, reload, other, PollFd::new(pipe, PollFlags::empty())];
            let _ = poll(&mut watched, timeout.as_ref());
            watched[3].revents().contains(PollFlags::ERR)
        } else {
            let _ = poll(&mut [end, reload, other], timeout.as_ref());
            false
        };
        // An interrupted or failed wait is looked at like a wake-up: the caller checks everything anyway.
        drain(&mut self.other);
        Woken { ends: drain(&mut self.end), reload: drain(&mut self.reload) > 0, unread }
    }
}

/// Empties a pipe; how many bytes were in it.
fn drain(pipe: &mut UnixStream) -> usize {
    let mut bytes = [0; 64];
    let mut all = 0;
    while let Ok(count @ 1..) = pipe.read(&mut bytes) {
        all += count;
    }
    all
}
