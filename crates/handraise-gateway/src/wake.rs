//! What wakes us beside frames: signals, and other threads.

use std::{
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM},
    flag,
    low_level::pipe,
};

/// The signals of this process.
pub(crate) struct Wakeups {
    /// Readable once one has come.
    pub(crate) pipe: UnixStream,
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

/// Wakes us from another thread.
#[derive(Clone)]
pub(crate) struct Waker(Arc<UnixStream>);

impl Waker {
    /// Wakes us now, or at once when we wait next.
    pub(crate) fn wake(&self) {
        // A full pipe wakes as well.
        let _ = (&*self.0).write(&[0]);
    }
}

/// What has come. A child may have ended as well.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Woken {
    /// A signal asked for the end.
    pub(crate) end: bool,
    /// SIGHUP came.
    pub(crate) reload: bool,
}

impl Wakeups {
    /// Takes the signals over.
    pub(crate) fn register() -> io::Result<(Self, Waker)> {
        let (pipe, writer) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let (end, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        // What is registered first happens first: who is woken finds the flag.
        for (signal, flag) in [(SIGTERM, &end), (SIGINT, &end), (SIGHUP, &reload)] {
            flag::register(signal, Arc::clone(flag))?;
            pipe::register(signal, writer.try_clone()?)?;
        }
        pipe::register(SIGCHLD, writer.try_clone()?)?;
        Ok((Self { pipe, end, reload }, Waker(Arc::new(writer))))
    }

    /// Takes what has come.
    pub(crate) fn take(&mut self) -> Woken {
        let mut bytes = [0; 64];
        while let Ok(1..) = self.pipe.read(&mut bytes) {}
        Woken {
            end: self.end.swap(false, Ordering::Relaxed),
            reload: self.reload.swap(false, Ordering::Relaxed),
        }
    }
}
