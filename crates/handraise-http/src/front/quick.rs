//! A connection without TLS, which can be written to wherever that saves a way through its task.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::StatusCode;
use rustix::net::Shutdown;
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};

use super::{Front, door::Place, handover::Kind, plain, reply, waiting};

/// What is copied behind its head rather than sent beside it, in bytes.
const COPIED: usize = 2 * 1024;

/// The way around the task of a connection.
#[derive(Debug)]
pub(crate) struct Quick {
    stream: Arc<TcpStream>,
    place: Arc<Place>,
    front: Arc<Front>,
}

/// How far an answer has gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Went {
    Whole,
    /// This is left of its head, and so much of the frame is done.
    Partly {
        head: Vec<u8>,
        done: usize,
    },
    /// Nothing was written.
    Not,
}

impl Quick {
    pub(crate) fn new(front: &Arc<Front>, stream: &Arc<TcpStream>, place: &Arc<Place>) -> Self {
        Self { stream: Arc::clone(stream), place: Arc::clone(place), front: Arc::clone(front) }
    }

    /// Whether the connection has to leave once it is at rest.
    pub(crate) fn is_leaving(&self) -> bool {
        self.place.leaving.is_cancelled()
    }

    /// Writes an answer of one frame, of these parts in a row, as far as it goes at once.
    pub(crate) fn send(&self, kind: Kind, parts: [&[u8]; 3]) -> Went {
        let status = match kind {
            Kind::Session => StatusCode::OK,
            Kind::Modern { is_whole } => waiting::status(parts, is_whole),
        };
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut head = Vec::with_capacity(256 + length.min(COPIED));
        let begin = plain::Beginning { status, headers: reply::Kind::Json.headers(), also: None };
        plain::write_head(&begin, &self.front.date.text(), Some(length as u64), &mut head);
        let all = if length <= COPIED {
            for part in parts {
                head.extend_from_slice(part);
            }
            [&head[..], b"", b"", b""]
        } else {
            [&head[..], parts[0], parts[1], parts[2]]
        };
        let written = match all {
            [one, b"", b"", b""] => self.stream.try_write(one),
            several => self.stream.try_write_vectored(&several.map(IoSlice::new)),
        };
        let Ok(written) = written else { return Went::Not };
        if written == all.iter().map(|part| part.len()).sum::<usize>() {
            return Went::Whole;
        }
        let done = if length <= COPIED { length } else { written.saturating_sub(head.len()) };
        Went::Partly { head: head.split_off(written.min(head.len())), done }
    }
}

/// A stream that is shared with its [`Quick`].
#[derive(Debug)]
pub(crate) struct Shared(pub(crate) Arc<TcpStream>);

impl AsyncRead for Shared {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining();
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.0.try_read_buf(buffer) {
                Ok(count) => {
                    if (1..room).contains(&count) {
                        // There is no more now, and no need to ask for it.
                        let none = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                        let _ = self.0.try_io(Interest::READABLE, none);
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Shared {
    fn poll_written(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match write(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

impl AsyncWrite for Shared {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_written(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_written(context, |stream| stream.try_write_vectored(pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(rustix::net::shutdown(&*self.0, Shutdown::Write).map_err(io::Error::from))
    }
}
