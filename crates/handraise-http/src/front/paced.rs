//! The way out to a client, and whether it takes what it is sent (S37).
//!
//! While a client takes nothing, its answer is held. It has half a minute from then on, and a second more for every 64 KiB
//! that it takes after all; then its connection is closed, and what was held for it is free.
//!
//! A client may say that it sends no more, and still wait for an answer (RFC 9112 §9.6). That looks like one that has left,
//! until something is written to it: who has left resets the connection then. So, where a disconnect is no cancel, its end
//! is read once the answer is written, or once the connection is reset.

use std::{
    fmt, io,
    io::IoSlice,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use handraise_transport::clock::{Clock as _, SystemClock};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};

use super::door::Place;

/// How long a client may take nothing, in milliseconds.
const PATIENCE: u64 = 30_000;
/// How many bytes a second it has to take after that.
const SLOWEST: u64 = 64 * 1024;

/// A connection that tells its place when its client has to have taken what waits for it.
pub(crate) struct Paced<S> {
    stream: S,
    place: Arc<Place>,
    untaken: Option<Untaken>,
    /// What tells that it was reset; nothing where the end of what is read is the end of all.
    socket: Option<Arc<TcpStream>>,
    /// The end was read, and will be read once more.
    has_yielded: bool,
    /// Completes with a reset, once it is waited for.
    reset: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S> fmt::Debug for Paced<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paced").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Bytes wait for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Untaken {
    /// Since when, in milliseconds of the boot clock.
    since: u64,
    /// How many it has taken since.
    taken: u64,
}

impl Untaken {
    fn until(self) -> u64 {
        self.since.saturating_add(PATIENCE).saturating_add(self.taken.saturating_mul(1000) / SLOWEST)
    }
}

impl<S> Paced<S> {
    /// A stream of `place`, and its socket where both are one.
    pub(crate) fn new(stream: S, place: &Arc<Place>, socket: Option<Arc<TcpStream>>) -> Self {
        Self { stream, place: Arc::clone(place), untaken: None, socket, has_yielded: false, reset: None }
    }

    /// The client sends no more.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(socket) = &self.socket else { return Poll::Ready(Ok(())) };
        if !self.place.half_closes(context.waker()) {
            // Who reads may not have got to the request before it.
            if std::mem::replace(&mut self.has_yielded, true) {
                return Poll::Ready(Ok(()));
            }
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.has_yielded = false;
        let reset = self.reset.get_or_insert_with(|| {
            let socket = Arc::clone(socket);
            Box::pin(async move { drop(socket.ready(Interest::ERROR).await) })
        });
        ready!(reset.as_mut().poll(context));
        self.reset = None;
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }

    /// Takes note of how a write went.
    fn note(&mut self, written: &Poll<io::Result<usize>>) {
        match (written, &mut self.untaken) {
            (Poll::Pending, None) => {
                self.untaken = Some(Untaken { since: SystemClock.boot_millis(), taken: 0 });
            }
            (Poll::Ready(Ok(count)), Some(untaken)) => untaken.taken += *count as u64,
            _ => return,
        }
        self.place.expect_taken(self.untaken.map(Untaken::until));
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called once everything was written: then nothing waits.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        match &flushed {
            Poll::Pending => self.note(&Poll::Pending),
            Poll::Ready(_) => {
                if self.untaken.take().is_some() {
                    self.place.expect_taken(None);
                }
            }
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.place.has_read();
        } else if matches!(read, Poll::Ready(Ok(()))) && buffer.remaining() > 0 {
            return self.poll_end(context);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio_util::sync::CancellationToken;

    use super::super::{door::Door, metrics::Metrics};
    use super::*;

    #[test]
    fn who_takes_something_has_a_second_more_for_every_64_kib() {
        let untaken = |taken| Untaken { since: 1000, taken };
        assert_eq!(untaken(0).until(), 31_000);
        assert_eq!(untaken(32 * 1024).until(), 31_500);
        assert_eq!(untaken(10 * SLOWEST).until(), 41_000);
        assert_eq!(untaken(u64::MAX).until(), 31_000 + u64::MAX / SLOWEST, "no wrap");
    }

    #[tokio::test]
    async fn a_place_knows_until_when_its_client_has_to_take_what_waits_and_only_then() {
        let place = Door::new(4, &CancellationToken::new()).enter(&Metrics::default()).unwrap();
        let (ours, mut theirs) = duplex(10);
        let mut ours = Paced::new(ours, &place, None);
        ours.write_all(b"0123456789").await.unwrap();
        ours.flush().await.unwrap();
        assert_eq!(place.has_to_be_taken_by(), None, "it fits");
        let writing = tokio::spawn(async move {
            ours.write_all(&[b'x'; 30]).await.unwrap();
            ours.flush().await.unwrap();
        });
        while place.has_to_be_taken_by().is_none() {
            tokio::task::yield_now().await;
        }
        let mut taken = [0; 40];
        theirs.read_exact(&mut taken).await.unwrap();
        writing.await.unwrap();
        assert_eq!(place.has_to_be_taken_by(), None, "it was taken");
    }
}
