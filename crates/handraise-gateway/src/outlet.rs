//! One way out, for several threads: in the order of the decisions, and without a thread that waits for the other
//! direction.
//!
//! Each direction has one thread of its own, which reads and writes. It holds the outlet's [`Pen`] from before its
//! first decision about what it has read until all of it is written. What other threads decide to send there goes to
//! the direction's backlog, under the lock under which they decide, and never blocks them. Whoever holds the pen takes
//! the backlog along before it decides anything itself, so that frames leave in the order in which they were decided
//! on: a cancel never overtakes its call.

use std::{
    fs::File,
    io::IoSlice,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use handraise_transport::frames::wait_for;
use rustix::{event::PollFlags, io::Errno};

/// How many pieces go into one write.
const MOST_PIECES: usize = 64;

/// A descriptor that one thread at a time writes to.
pub(crate) struct Outlet {
    pen: Mutex<Pen>,
    /// The same, for as long as the pen has it.
    file: Weak<File>,
}

/// The right to write.
pub(crate) struct Pen {
    to: To,
}

enum To {
    Open(Arc<File>),
    /// We have closed it: what is written is nobody's.
    Closed,
    /// The other side has closed it.
    Gone,
}

/// The other side reads no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

impl Outlet {
    pub(crate) fn new(file: File) -> Self {
        let file = Arc::new(file);
        Self { file: Arc::downgrade(&file), pen: Mutex::new(Pen { to: To::Open(file) }) }
    }

    /// Waits for the right to write.
    pub(crate) fn pen(&self) -> MutexGuard<'_, Pen> {
        self.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outlet {
    /// The descriptor, to be watched for its reader's end. It stays open for as long as this is held, also when the pen has
    /// closed it.
    pub(crate) fn watch(&self) -> Option<Arc<File>> {
        self.file.upgrade()
    }
}

/// Whether a pipe holds what its reader, who has closed it, has not read.
pub(crate) fn holds_unread(pipe: &File) -> bool {
    rustix::io::ioctl_fionread(pipe).is_ok_and(|bytes| bytes > 0)
}

impl Pen {
    /// Writes all, waiting as long as it takes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.write_all(&mut [IoSlice::new(bytes)])
    }

    fn write_all(&mut self, mut pieces: &mut [IoSlice<'_>]) -> Result<(), Gone> {
        let file = match &self.to {
            To::Open(file) => file,
            To::Closed => return Ok(()),
            To::Gone => return Err(Gone),
        };
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            let written = match &*pieces {
                [one] => rustix::io::write(file, one),
                several => rustix::io::writev(file, &several[..several.len().min(MOST_PIECES)]),
            };
            match written {
                Ok(count) => IoSlice::advance_slices(&mut pieces, count),
                Err(Errno::INTR) => {}
                // Somebody who shares the descriptor has made it non-blocking.
                Err(Errno::AGAIN) => wait_for(file, PollFlags::OUT),
                Err(_) => {
                    self.to = To::Gone;
                    return Err(Gone);
                }
            }
        }
        Ok(())
    }

    /// Nothing more will be written; the other side sees the end.
    pub(crate) fn close(&mut self) {
        self.to = To::Closed;
    }
}

/// What is written together: places in the buffer that was read into, and frames that were made.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Read(Range<usize>),
    Made(Vec<u8>),
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// A line as it came. Lines that follow each other become one piece.
    pub(crate) fn forward(&mut self, line: Range<usize>) {
        match self.pieces.last_mut() {
            Some(Piece::Read(last)) if last.end == line.start => last.end = line.end,
            _ => self.pieces.push(Piece::Read(line)),
        }
    }

    /// Bytes of our own. What follows each other becomes one piece.
    pub(crate) fn add(&mut self, bytes: Vec<u8>) {
        match self.pieces.last_mut() {
            _ if bytes.is_empty() => {}
            Some(Piece::Made(last)) => last.extend_from_slice(&bytes),
            _ => self.pieces.push(Piece::Made(bytes)),
        }
    }

    /// Writes everything and empties the batch. `bytes` gives the bytes at a place that was forwarded.
    pub(crate) fn write<'a>(
        &mut self,
        pen: &mut Pen,
        bytes: impl Fn(Range<usize>) -> &'a [u8],
    ) -> Result<(), Gone> {
        let outcome = match self.pieces.as_slice() {
            [] => Ok(()),
            [Piece::Read(place)] => pen.write(bytes(place.clone())),
            pieces => {
                let mut slices: Vec<IoSlice<'_>> = pieces
                    .iter()
                    .map(|piece| match piece {
                        Piece::Read(place) => IoSlice::new(bytes(place.clone())),
                        Piece::Made(made) => IoSlice::new(made),
                    })
                    .collect();
                pen.write_all(&mut slices)
            }
        };
        self.pieces.clear();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn pipe() -> (File, Pen) {
        let (read, write) = rustix::pipe::pipe().unwrap();
        (read.into(), Pen { to: To::Open(Arc::new(write.into())) })
    }

    #[test]
    fn pieces_are_written_in_order_however_many_there_are() {
        let (mut read, mut pen) = pipe();
        let buffer: Vec<u8> = (0..200).collect();
        let mut batch = Batch::default();
        let mut expected = Vec::new();
        for (round, byte) in buffer.iter().enumerate() {
            let made = vec![b'-'; if round % 3 == 0 { round % 7 } else { 0 }];
            batch.forward(round..round + 1);
            batch.add(made.clone());
            expected.push(*byte);
            expected.extend(made);
        }
        batch.write(&mut pen, |place| &buffer[place]).unwrap();
        pen.close();
        let mut found = Vec::new();
        read.read_to_end(&mut found).unwrap();
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_that_follow_each_other_are_one_piece() {
        let mut batch = Batch::default();
        batch.forward(0..10);
        batch.forward(10..20);
        batch.forward(23..30);
        assert_eq!(batch.pieces.len(), 2);
    }

    #[test]
    fn a_reader_that_is_gone_is_noticed_once_and_for_all() {
        let (read, mut pen) = pipe();
        drop(read);
        assert_eq!(pen.write(b"x"), Err(Gone));
        assert_eq!(pen.write(b"x"), Err(Gone));
    }
}
