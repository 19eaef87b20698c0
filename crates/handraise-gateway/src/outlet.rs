//! One way out: what waits to be written, and a descriptor that takes it without making us wait.

use std::{collections::VecDeque, fs::File, io::IoSlice, ops::Range};

use handraise_transport::pipes;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::FileType,
    io::Errno,
    net::{SendAncillaryBuffer, SendFlags},
};

use crate::{anew, waiter::Until};

/// How many pieces go into one write.
const MOST_PIECES: usize = 64;
/// What any pipe that is ready takes at once.
const PIPE_BUF: usize = 512;

/// A descriptor, and what is still to be written to it, in the order in which it was decided on.
pub(crate) struct Outlet {
    to: To,
    pieces: VecDeque<Piece>,
    /// How much of the first piece has been written.
    written: usize,
    /// How many bytes of ours are in the pieces.
    made: usize,
    /// How many bytes have been written at all.
    taken: u64,
    /// Whether it matters that the reader goes while nothing waits to be written.
    watches_reader: bool,
}

/// What is written: places in the buffer that was read into, and frames that were made.
#[derive(Debug)]
enum Piece {
    Read(Range<usize>),
    Made(Vec<u8>),
}

enum To {
    Open(File, Way),
    /// We have closed it: what is written is nobody's.
    Closed,
    /// The other side has closed it.
    Gone,
}

/// How a descriptor is written to so that nobody waits. Its flags may be shared with other processes, and with our own
/// log: they stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is our own and does not block.
    NonBlocking,
    /// A socket is asked not to wait.
    Socket,
    /// A pipe that we could not open anew takes a little whenever it is ready.
    Careful,
    /// A file is always ready, and a terminal as good as.
    Blocking,
}

/// The other side reads no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

impl Outlet {
    /// Writes to a pipe of our own.
    pub(crate) fn to_pipe(file: File) -> std::io::Result<Self> {
        rustix::io::ioctl_fionbio(&file, true)?;
        Ok(Self::new(file, Way::NonBlocking, true))
    }

    /// Writes to our stdout.
    pub(crate) fn to_stdout() -> std::io::Result<Self> {
        let stdout = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
        let kind = anew::kind(&stdout)?;
        Ok(match kind {
            FileType::Socket => Self::new(stdout, Way::Socket, true),
            FileType::Fifo => {
                // A pipe with a name may get another reader.
                let watches_reader = !pipes::has_name(pipes::STDOUT);
                match anew::stdout() {
                    Some(pipe) => Self::new(pipe, Way::NonBlocking, watches_reader),
                    None => Self::new(stdout, Way::Careful, watches_reader),
                }
            }
            _ => Self::new(stdout, Way::Blocking, false),
        })
    }

    fn new(file: File, way: Way, watches_reader: bool) -> Self {
        let to = To::Open(file, way);
        Self { to, pieces: VecDeque::new(), written: 0, made: 0, taken: 0, watches_reader }
    }

    /// What it is waited for.
    pub(crate) fn until(&self) -> Option<Until> {
        if self.is_empty() { self.watches_reader.then_some(Until::Deaf) } else { Some(Until::Room) }
    }

    /// The descriptor, while it is open.
    pub(crate) fn file(&self) -> Option<&File> {
        if let To::Open(file, _) = &self.to { Some(file) } else { None }
    }

    /// Whether everything has been written.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How many bytes of our own wait.
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// How many bytes the other side has taken at all.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// A line as it came. Lines that follow each other become one piece.
    pub(crate) fn forward(&mut self, line: Range<usize>) {
        match self.pieces.back_mut() {
            Some(Piece::Read(last)) if last.end == line.start => last.end = line.end,
            _ => self.pieces.push_back(Piece::Read(line)),
        }
    }

    /// Bytes of our own. What follows each other becomes one piece.
    pub(crate) fn add(&mut self, bytes: Vec<u8>) {
        self.made += bytes.len();
        match self.pieces.back_mut() {
            _ if bytes.is_empty() => {}
            Some(Piece::Made(last)) => last.extend_from_slice(&bytes),
            _ => self.pieces.push_back(Piece::Made(bytes)),
        }
    }

    /// Writes what the other side takes now. `bytes` gives the bytes at a place that was forwarded.
    pub(crate) fn flush<'a>(&mut self, bytes: impl Fn(Range<usize>) -> &'a [u8]) -> Result<(), Gone> {
        while !self.pieces.is_empty() {
            let (file, way) = match &self.to {
                To::Open(file, way) => (file, *way),
                To::Closed => {
                    self.clear();
                    return Ok(());
                }
                To::Gone => {
                    self.clear();
                    return Err(Gone);
                }
            };
            let slices = self.pieces.iter().take(MOST_PIECES).enumerate().map(|(index, piece)| {
                let all = match piece {
                    Piece::Read(place) => bytes(place.clone()),
                    Piece::Made(made) => made,
                };
                IoSlice::new(&all[if index == 0 { self.written } else { 0 }..])
            });
            let written = if self.pieces.len() == 1 {
                slices.map(|slice| way.write(file, &[slice])).next().unwrap_or(Ok(0))
            } else {
                way.write(file, &slices.collect::<Vec<_>>())
            };
            match written {
                Ok(count) => self.advance(count, &bytes),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(_) => self.to = To::Gone,
            }
        }
        Ok(())
    }

    fn advance<'a>(&mut self, count: usize, bytes: &impl Fn(Range<usize>) -> &'a [u8]) {
        self.taken += count as u64;
        let mut written = self.written + count;
        while let Some(piece) = self.pieces.front() {
            let (length, made) = match piece {
                Piece::Read(place) => (bytes(place.clone()).len(), 0),
                Piece::Made(made) => (made.len(), made.len()),
            };
            if written < length {
                break;
            }
            written -= length;
            self.made -= made;
            self.pieces.pop_front();
        }
        self.written = written;
    }

    fn clear(&mut self) {
        self.pieces.clear();
        (self.written, self.made) = (0, 0);
    }

    /// Nothing more will be written; the other side sees the end.
    pub(crate) fn close(&mut self) {
        self.to = To::Closed;
        self.clear();
    }

    /// The reader has gone, which is told once. Whether the pipe holds what it has not read.
    pub(crate) fn note_deaf(&mut self) -> bool {
        self.watches_reader = false;
        self.file().is_some_and(|pipe| rustix::io::ioctl_fionread(pipe).is_ok_and(|bytes| bytes > 0))
    }
}

impl Way {
    fn write(self, file: &File, slices: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        match (self, slices) {
            (Self::NonBlocking | Self::Blocking, [one]) => rustix::io::write(file, one),
            (Self::NonBlocking | Self::Blocking, several) => rustix::io::writev(file, several),
            (Self::Socket, several) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                rustix::net::sendmsg(file, several, &mut SendAncillaryBuffer::default(), flags)
            }
            (Self::Careful, several) => {
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                if poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&now))? == 0 {
                    return Err(Errno::AGAIN);
                }
                let first = several.iter().find(|slice| !slice.is_empty()).map_or(&[][..], |slice| slice);
                rustix::io::write(file, &first[..first.len().min(PIPE_BUF)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::net::UnixStream};

    use super::*;

    fn pipe(way: Way) -> (File, Outlet) {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let write = File::from(write);
        rustix::io::ioctl_fionbio(&write, way == Way::NonBlocking).unwrap();
        (read.into(), Outlet::new(write, way, true))
    }

    fn socket() -> (File, Outlet) {
        let (read, write) = UnixStream::pair().unwrap();
        let [read, write] = [read, write].map(|end| File::from(std::os::fd::OwnedFd::from(end)));
        (read, Outlet::new(write, Way::Socket, true))
    }

    /// Writes all, and reads whatever makes it wait.
    #[track_caller]
    fn check((mut read, mut outlet): (File, Outlet), piece: usize) {
        let buffer: Vec<u8> = (0..200 * piece).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut expected = Vec::new();
        for (round, lines) in buffer.chunks(piece).enumerate() {
            let made = vec![b'-'; if round % 3 == 0 { round % 7 } else { 0 }];
            outlet.forward(round * piece..(round + 1) * piece);
            outlet.add(made.clone());
            expected.extend_from_slice(lines);
            expected.extend(made);
        }
        let mut found = Vec::new();
        let mut chunk = [0; 10_000];
        loop {
            outlet.flush(|place| &buffer[place]).unwrap();
            if outlet.is_empty() {
                break;
            }
            let count = read.read(&mut chunk).unwrap();
            found.extend_from_slice(&chunk[..count]);
        }
        assert_eq!(outlet.made(), 0);
        outlet.close();
        read.read_to_end(&mut found).unwrap();
        assert!(found == expected, "{} of {}", found.len(), expected.len());
    }

    #[test]
    fn pieces_are_written_in_order_however_many_there_are_and_however_slowly_they_are_read() {
        for piece in [1, 3000] {
            for way in [Way::NonBlocking, Way::Careful] {
                check(pipe(way), piece);
            }
            check(socket(), piece);
        }
    }

    #[test]
    fn lines_that_follow_each_other_are_one_piece() {
        let (_read, mut outlet) = pipe(Way::NonBlocking);
        outlet.forward(0..10);
        outlet.forward(10..20);
        outlet.forward(23..30);
        assert_eq!(outlet.pieces.len(), 2);
        outlet.add(vec![1]);
        outlet.add(vec![2, 3]);
        assert_eq!((outlet.pieces.len(), outlet.made()), (3, 3));
    }

    #[test]
    fn a_reader_that_is_gone_is_noticed_once_and_for_all() {
        let (read, mut outlet) = pipe(Way::NonBlocking);
        drop(read);
        for _ in 0..2 {
            outlet.add(b"x".to_vec());
            assert_eq!(outlet.flush(|_| &[]), Err(Gone));
            assert!(outlet.is_empty());
        }
    }

    #[test]
    fn what_is_written_after_our_own_end_is_nobodys() {
        let (mut read, mut outlet) = pipe(Way::NonBlocking);
        outlet.close();
        outlet.add(b"x".to_vec());
        assert_eq!(outlet.flush(|_| &[]), Ok(()));
        assert!(outlet.is_empty() && read.read(&mut [0]).unwrap() == 0);
    }
}
