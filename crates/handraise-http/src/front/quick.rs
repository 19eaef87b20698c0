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

use super::{
    Front,
    door::Place,
    handover::StatusRule,
    plain::{self, COPIED},
    reply, waiting,
};

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

    pub(crate) fn socket(&self) -> Arc<TcpStream> {
        Arc::clone(&self.stream)
    }

    /// Whether the connection has to leave once it is at rest.
    pub(crate) fn is_leaving(&self) -> bool {
        self.place.leaving.is_cancelled()
    }

    /// Writes an answer of one frame, of these parts in a row, as far as it goes at once.
    pub(crate) fn send(&self, status: StatusRule, parts: [&[u8]; 3]) -> Went {
        let status = match status {
            StatusRule::Session => StatusCode::OK,
            StatusRule::Modern { is_whole } => waiting::status(parts, is_whole),
        };
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut head = Vec::with_capacity(256 + length.min(COPIED));
        if status == StatusCode::OK {
            plain::write_json_head(&self.front.date.text(), length, &mut head);
        } else {
            let begin = plain::Beginning { status, headers: reply::Kind::Json.headers(), also: None };
            plain::write_head(&begin, &self.front.date.text(), Some(length as u64), &mut head);
        }
        let written = if length <= COPIED {
            for part in parts {
                head.extend_from_slice(part);
            }
            self.stream.try_write(&head)
        } else {
            let all = [&head[..], parts[0], parts[1], parts[2]].map(IoSlice::new);
            // Most frames are one part: pieces that are empty cost as much as others.
            let count = if parts[1].is_empty() && parts[2].is_empty() { 2 } else { 4 };
            self.stream.try_write_vectored(&all[..count])
        };
        let whole = if length <= COPIED { head.len() } else { head.len() + length };
        let Ok(written) = written else { return Went::Not };
        if written == whole {
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
        self.poll_read_with(context, room, |stream| stream.try_read_buf(buffer)).map_ok(drop)
    }
}

impl Shared {
    /// Reads once. After less than there is room for, nothing more is there, and need not be asked for: that is noted within
    /// the same step as the reading, so that what comes right behind it, on another thread of the runtime, counts.
    fn poll_read_with(
        &self,
        context: &mut Context<'_>,
        room: usize,
        mut read: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            let mut done = None;
            let step = self.0.try_io(Interest::READABLE, || {
                let count = read(&self.0)?;
                done = Some(count);
                // What forgets that there was something to read, unless more has come since this step began.
                if (1..room).contains(&count) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match (done, step) {
                (Some(count), _) => return Poll::Ready(Ok(count)),
                (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                (None, _) => {}
            }
        }
    }

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

#[cfg(test)]
mod tests {
    use std::{io::Write as _, time::Duration};

    use tokio::net::TcpListener;

    use super::*;

    /// Reads once, and does something before that is done with.
    async fn read(shared: &Shared, mut then: impl FnMut()) -> io::Result<usize> {
        let mut read = |stream: &TcpStream| stream.try_read(&mut [0; 100]).inspect(|_| then());
        std::future::poll_fn(|context| shared.poll_read_with(context, 100, &mut read)).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_comes_right_behind_a_short_read_is_read_whichever_thread_hears_of_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let shared = Shared(Arc::new(listener.accept().await.unwrap().0));
        peer.write_all(b"one").unwrap();
        let more = || {
            peer.write_all(b"more").unwrap();
            // Until the thread that waits for events has taken note of it.
            std::thread::sleep(Duration::from_millis(100));
        };
        assert_eq!(read(&shared, more).await.unwrap(), 3);
        let rest = tokio::time::timeout(Duration::from_secs(30), read(&shared, || ())).await;
        assert_eq!(rest.expect("what came has been forgotten").unwrap(), 4);
    }
}
