//! The way into a server: written to at once where the pipe has room, and queued where it has none.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    sync::Arc,
};

use bytes::{Buf as _, Bytes};
use tokio::net::unix::pipe;

use super::{pieces::Came, spare::Spare};
use crate::{
    budget::Charge,
    upstream::{self, Beside},
};

/// The longest rest of a frame that is copied when it has to wait, in bytes.
const MOST_COPIED: usize = 16 * 1024;
/// The longest frame that is put before its line end rather than sent beside it, in bytes.
const MOST_JOINED: usize = 2 * 1024;

/// A server's stdin. It is used under the lock of its link, so that frames go out in the order of the decisions.
#[derive(Debug)]
pub(crate) struct Stdin {
    /// The way to a server at a URL, which has no pipe.
    remote: Option<upstream::Link>,
    pipe: Option<Arc<pipe::Sender>>,
    /// Frames that go out together, and what they are charged to.
    gathered: (Vec<u8>, Vec<Charge>),
    count: usize,
    /// Several went out together the last time: the first of the next ones waits for the others.
    gathers: bool,
    spare: Arc<Spare>,
    queue: VecDeque<(Bytes, Vec<Charge>)>,
    /// Somebody waits for room, and writes what is queued.
    is_served: bool,
}

/// What is to be done after a frame was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Next {
    /// Nothing.
    Nothing,
    /// Somebody has to [write](Stdin::write_gathered) what was gathered, once those have had their turn who are ready.
    Flush,
    /// Somebody has to wait for room, and write the rest.
    Serve,
}

impl Stdin {
    /// `spare` are buffers that hold what is gathered.
    pub(crate) fn new(pipe: pipe::Sender, spare: &Arc<Spare>) -> Self {
        Self { pipe: Some(Arc::new(pipe)), ..Self::none(Arc::clone(spare)) }
    }

    /// The way to a server at a URL.
    pub(crate) fn remote(way: upstream::Link) -> Self {
        Self { remote: Some(way), ..Self::none(Arc::new(Spare::new(0))) }
    }

    fn none(spare: Arc<Spare>) -> Self {
        let (gathered, queue) = Default::default();
        let (remote, pipe, count, gathers, is_served) = Default::default();
        Self { remote, pipe, gathered, count, gathers, spare, queue, is_served }
    }

    /// Whether it leads to a server at a URL.
    pub(crate) fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Writes a frame and its line end; with `others` it is gathered, as long as little is. A server that takes nothing more
    /// is noticed by its end.
    pub(crate) fn send(&mut self, frame: Came<'_>, beside: Beside, others: bool) -> Next {
        if let Some(way) = &self.remote {
            way.send_with(frame.to_bytes(), beside);
            return Next::Nothing;
        }
        if self.pipe.is_none() {
            return Next::Nothing;
        }
        let bytes = frame.bytes();
        let is_first = self.gathered.0.is_empty();
        self.gathers |= others;
        if self.queue.is_empty() && self.gathers {
            if is_first {
                self.gathered.0 = self.spare.take();
            }
            if self.gathered.0.len() + bytes.len() < self.gathered.0.capacity() {
                self.gathered.0.extend_from_slice(bytes);
                self.gathered.0.push(b'\n');
                self.gathered.1.extend(beside.charge);
                self.count += 1;
                return if is_first { Next::Flush } else { Next::Nothing };
            }
            // In the order of the decisions.
            let next = self.write_gathered();
            return match self.write(frame, beside.charge) {
                Next::Nothing => next,
                next => next,
            };
        }
        self.write(frame, beside.charge)
    }

    /// Writes what was gathered.
    pub(crate) fn write_gathered(&mut self) -> Next {
        let (gathered, charges) = std::mem::take(&mut self.gathered);
        self.gathers = std::mem::take(&mut self.count) > 1;
        if gathered.is_empty() {
            self.spare.give(gathered);
            return Next::Nothing;
        }
        let next = match self.try_write(|pipe| pipe.try_write(&gathered)) {
            Some(written) if written < gathered.len() => {
                self.queue.push_back((Bytes::copy_from_slice(&gathered[written..]), charges));
                self.serve()
            }
            Some(_) | None => Next::Nothing,
        };
        self.spare.give(gathered);
        next
    }

    fn write(&mut self, frame: Came<'_>, charge: Option<Charge>) -> Next {
        let bytes = frame.bytes();
        let mut written = 0;
        if self.queue.is_empty() {
            match self.try_write_line(bytes) {
                Some(count) if count <= bytes.len() => written = count,
                Some(_) | None => return Next::Nothing,
            }
        }
        let charges = charge.into_iter().collect();
        let rest = frame.part(written..bytes.len());
        if rest.bytes().len() <= MOST_COPIED {
            // A small part of the buffer that a connection is read into would hold all of that until it is written.
            self.queue.push_back(([rest.bytes(), b"\n"].concat().into(), charges));
        } else {
            self.queue.push_back((rest.to_bytes(), charges));
            self.queue.push_back((Bytes::from_static(b"\n"), Vec::new()));
        }
        self.serve()
    }

    /// How much of a frame and its line end the pipe has taken; `None`: it is broken, and closed.
    fn try_write_line(&mut self, frame: &[u8]) -> Option<usize> {
        if frame.len() > MOST_JOINED {
            return self
                .try_write(|pipe| pipe.try_write_vectored(&[IoSlice::new(frame), IoSlice::new(b"\n")]));
        }
        let mut line = self.spare.take();
        line.extend_from_slice(frame);
        line.push(b'\n');
        let written = self.try_write(|pipe| pipe.try_write(&line));
        self.spare.give(line);
        written
    }

    /// How much the pipe has taken; `None`: it is broken, and closed.
    fn try_write(&mut self, write: impl FnOnce(&pipe::Sender) -> io::Result<usize>) -> Option<usize> {
        match write(self.pipe.as_ref()?) {
            Ok(written) => Some(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(0),
            Err(_) => {
                self.close();
                None
            }
        }
    }

    /// Something is queued.
    fn serve(&mut self) -> Next {
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
        (self.gathered, self.count) = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    fn spare() -> Arc<Spare> {
        Arc::new(Spare::new(100_000))
    }

    /// Reads until this many bytes have come, writing what waits meanwhile.
    async fn read(stdin: &mut Stdin, receiver: &pipe::Receiver, length: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        while taken.len() < length {
            match stdin.flush() {
                Some(waits) => tokio::select! {
                    writable = waits.writable() => writable.unwrap(),
                    readable = receiver.readable() => readable.unwrap(),
                },
                None => receiver.readable().await.unwrap(),
            }
            let mut room = vec![0; 4096];
            while let Ok(length) = receiver.try_read(&mut room) {
                taken.extend_from_slice(&room[..length]);
            }
        }
        taken
    }

    /// A pipe that takes nothing more, and how much that is.
    async fn full() -> (pipe::Sender, pipe::Receiver, usize) {
        let (sender, receiver) = pipe::pipe().unwrap();
        sender.writable().await.unwrap();
        let mut length = 0;
        while let Ok(count) = sender.try_write(&[b'x'; 4096]) {
            length += count;
        }
        (sender, receiver, length)
    }

    #[tokio::test]
    async fn s37_a_small_frame_that_waits_holds_no_more_than_itself() {
        let (sender, receiver, filled) = full().await;
        let mut stdin = Stdin::new(sender, &spare());
        let frame = Bytes::from(vec![b'y'; 100_000]);
        let (one, other) = (frame.slice(..10), frame.slice(10..20));
        assert_eq!(stdin.send(Came::own(&one), Beside::default(), false), Next::Serve);
        assert_eq!(stdin.send(Came::own(&other), Beside::default(), false), Next::Nothing);
        drop((one, other));
        assert!(frame.is_unique());
        let taken = read(&mut stdin, &receiver, filled + 22).await;
        assert_eq!(&taken[filled..], b"yyyyyyyyyy\nyyyyyyyyyy\n");
    }

    #[tokio::test]
    async fn frames_that_are_gathered_go_out_in_order_and_count_until_then() {
        let (sender, receiver) = pipe::pipe().unwrap();
        sender.writable().await.unwrap();
        let (spare, budget) = (spare(), Budget::new(1000));
        let mut stdin = Stdin::new(sender, &spare);
        let counted = || Beside { charge: budget.charge(3), ..Beside::default() };
        assert_eq!(stdin.send(Came::lent(b"one"), counted(), true), Next::Flush);
        assert_eq!(stdin.send(Came::lent(b"two"), counted(), true), Next::Nothing);
        assert_eq!(stdin.send(Came::lent(b"six"), counted(), false), Next::Nothing);
        assert_eq!(budget.used(), 9);
        assert_eq!(stdin.write_gathered(), Next::Nothing);
        assert_eq!((budget.used(), spare.count()), (0, 1));
        assert_eq!(read(&mut stdin, &receiver, 12).await, b"one\ntwo\nsix\n");
        assert_eq!(stdin.write_gathered(), Next::Nothing);
    }

    #[tokio::test]
    async fn what_is_gathered_goes_before_what_is_too_large_to_be() {
        let (sender, receiver) = pipe::pipe().unwrap();
        sender.writable().await.unwrap();
        let mut stdin = Stdin::new(sender, &spare());
        assert_eq!(stdin.send(Came::lent(b"one"), Beside::default(), true), Next::Flush);
        let large = Bytes::from(vec![b'y'; 200_000]);
        assert_eq!(stdin.send(Came::own(&large), Beside::default(), true), Next::Serve);
        assert_eq!(stdin.send(Came::lent(b"two"), Beside::default(), true), Next::Nothing);
        assert_eq!(stdin.write_gathered(), Next::Nothing);
        let taken = read(&mut stdin, &receiver, 200_009).await;
        assert_eq!(taken, [b"one\n", &large[..], b"\ntwo\n"].concat());
    }

    #[tokio::test]
    async fn what_was_gathered_waits_when_the_pipe_is_full() {
        let (sender, receiver, filled) = full().await;
        let budget = Budget::new(1000);
        let mut stdin = Stdin::new(sender, &spare());
        let counted = Beside { charge: budget.charge(3), ..Beside::default() };
        assert_eq!(stdin.send(Came::lent(b"one"), counted, true), Next::Flush);
        assert_eq!((stdin.write_gathered(), budget.used()), (Next::Serve, 3));
        let taken = read(&mut stdin, &receiver, filled + 4).await;
        assert_eq!((&taken[filled..], budget.used()), (&b"one\n"[..], 0));
    }
}
