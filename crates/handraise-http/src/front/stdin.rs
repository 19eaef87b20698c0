//! The way into a server: written to at once where the pipe has room, and queued where it has none.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    sync::Arc,
};

use bytes::{Buf as _, Bytes};
use tokio::net::unix::pipe;

use crate::{
    budget::Charge,
    upstream::{self, Beside},
};

/// The longest rest of a frame that is copied when it has to wait, in bytes.
const MOST_COPIED: usize = 16 * 1024;

/// A server's stdin. It is used under the lock of its link, so that frames go out in the order of the decisions.
#[derive(Debug)]
pub(crate) struct Stdin {
    /// The way to a server at a URL, which has no pipe.
    remote: Option<upstream::Link>,
    pipe: Option<Arc<pipe::Sender>>,
    queue: VecDeque<(Bytes, Option<Charge>)>,
    /// Somebody waits for room, and writes what is queued.
    is_served: bool,
}

/// What is to be done after a frame was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Next {
    /// Nothing.
    Nothing,
    /// Somebody has to wait for room, and write the rest.
    Serve,
}

impl Stdin {
    pub(crate) fn new(pipe: pipe::Sender) -> Self {
        Self { remote: None, pipe: Some(Arc::new(pipe)), queue: VecDeque::new(), is_served: false }
    }

    /// The way to a server at a URL.
    pub(crate) fn remote(way: upstream::Link) -> Self {
        Self { remote: Some(way), pipe: None, queue: VecDeque::new(), is_served: false }
    }

    /// Whether it leads to a server at a URL.
    pub(crate) fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Writes a frame and its line end. A server that takes nothing more is noticed by its end.
    pub(crate) fn send(&mut self, mut frame: Bytes, beside: Beside) -> Next {
        if let Some(way) = &self.remote {
            way.send_with(frame, beside);
            return Next::Nothing;
        }
        let charge = beside.charge;
        let Some(pipe) = &self.pipe else { return Next::Nothing };
        let line_end = Bytes::from_static(b"\n");
        if self.queue.is_empty() {
            let written = pipe.try_write_vectored(&[IoSlice::new(&frame), IoSlice::new(&line_end)]);
            let mut written = match written {
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(_) => {
                    self.close();
                    return Next::Nothing;
                }
            };
            if written > frame.len() {
                return Next::Nothing;
            }
            written = written.min(frame.len());
            frame.advance(written);
        }
        if frame.len() <= MOST_COPIED {
            // A small part of the buffer that a connection is read into would hold all of that until it is written.
            self.queue.push_back(([&frame[..], b"\n"].concat().into(), charge));
        } else {
            self.queue.push_back((frame, charge));
            self.queue.push_back((line_end, None));
        }
        if std::mem::replace(&mut self.is_served, true) { Next::Nothing } else { Next::Serve }
    }

    /// Writes what is queued; returns the pipe when it has to have room first.
    pub(crate) fn flush(&mut self) -> Option<Arc<pipe::Sender>> {
        let pipe = self.pipe.clone()?;
        while let Some((piece, _)) = self.queue.front_mut() {
            match pipe.try_write(piece) {
                Ok(written) if written == piece.len() => {
                    self.queue.pop_front();
                }
                Ok(written) => piece.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(pipe),
                Err(_) => {
                    self.close();
                    return None;
                }
            }
        }
        self.is_served = false;
        None
    }

    /// Closes it: the server reads its end, and what is queued is not sent.
    pub(crate) fn close(&mut self) {
        self.remote = None;
        self.pipe = None;
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn s37_a_small_frame_that_waits_holds_no_more_than_itself() {
        let (sender, receiver) = pipe::pipe().unwrap();
        sender.writable().await.unwrap();
        while sender.try_write(&[b'x'; 4096]).is_ok() {}
        let mut stdin = Stdin::new(sender);
        let read = Bytes::from(vec![b'y'; 100_000]);
        assert_eq!(stdin.send(read.slice(..10), Beside::default()), Next::Serve);
        assert_eq!(stdin.send(read.slice(10..20), Beside::default()), Next::Nothing);
        assert!(read.is_unique());
        let mut taken = Vec::new();
        let mut room = vec![0; 4096];
        while !taken.ends_with(b"y\n") {
            receiver.readable().await.unwrap();
            while let Ok(length) = receiver.try_read(&mut room) {
                taken.extend_from_slice(&room[..length]);
            }
            while let Some(waits) = stdin.flush() {
                waits.writable().await.unwrap();
            }
        }
        let line = [&[b'y'; 10][..], b"\n"].concat();
        assert!(taken.ends_with(&[line.clone(), line].concat()), "{}", taken.len());
    }
}
