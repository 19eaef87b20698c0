//! Both ways of a plain connection: what was read and not taken yet, and what is being sent.

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{
    super::{body::Body, reply::Reply},
    Rest, response,
};

/// How much is read at once.
const ROOM: usize = 16 * 1024;
/// The least room that is made for a read.
const LEAST: usize = 4 * 1024;
/// What is copied behind its head rather than sent beside it, in bytes.
const COPIED: usize = 2 * 1024;
/// How much is gathered before it is sent, in bytes.
const MOST_OUT: usize = 64 * 1024;
/// The largest buffer that is used again, in bytes.
const MOST_KEPT: usize = 2 * ROOM;
/// How many buffers are kept for connections to come.
const MOST_SPARE: usize = 32;

/// The other side has closed the connection, or it is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// Buffers that nobody uses: a connection at rest has none.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<BytesMut>>);

impl Spare {
    fn lend(&self) -> BytesMut {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| BytesMut::with_capacity(ROOM))
    }

    /// Takes a buffer back. One that is still being sent from, or has grown, is let go.
    fn take_back(&self, mut buffer: BytesMut) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < MOST_SPARE && buffer.try_reclaim(ROOM) && buffer.capacity() < MOST_KEPT {
            spare.push(buffer);
        }
    }
}

/// A connection.
pub(super) struct Wire<'a, S> {
    stream: S,
    spare: &'a Spare,
    read: BytesMut,
    /// What goes out next.
    out: Vec<u8>,
}

impl<'a, S> Wire<'a, S> {
    pub(super) fn new(stream: S, spare: &'a Spare) -> Self {
        Self { stream, spare, read: BytesMut::new(), out: Vec::new() }
    }

    /// What has been read and not taken.
    pub(super) fn read(&self) -> &[u8] {
        &self.read
    }

    /// Takes all of it.
    pub(super) fn take(&mut self) -> Bytes {
        self.read.split().freeze()
    }

    /// Takes back what was taken, but for its first `done` bytes.
    pub(super) fn give_back(&mut self, read: Bytes, done: usize) {
        if done == 0 {
            // Nobody else holds the rest of the buffer then, and nothing is copied.
            drop(std::mem::take(&mut self.read));
            self.read = read.try_into_mut().unwrap_or_else(|read| BytesMut::from(&read[..]));
        } else if read.len() > MOST_KEPT {
            // The rest would hold all of it for as long as it is not taken, and nobody counts that.
            self.read = BytesMut::from(&read[done..]);
        } else {
            self.read.extend_from_slice(&read[done..]);
        }
    }

    /// Gives the connection away. What was read of it is held for as long as it is there, so it is no more than that.
    pub(super) fn into_rest(self) -> Rest<S> {
        Rest { stream: self.stream, read: Bytes::copy_from_slice(&self.read) }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<'_, S> {
    /// Reads once.
    pub(super) async fn fill(&mut self) -> Result<(), Gone> {
        poll_fn(|context| self.poll_fill(context)).await
    }

    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        if self.read.is_empty() && !self.read.try_reclaim(ROOM) {
            self.read = self.spare.lend();
        }
        let read = self.poll_fill_to(self.read.len() + LEAST, context);
        if self.read.is_empty() {
            self.spare.take_back(std::mem::take(&mut self.read));
        }
        read
    }

    /// Reads once, with room for a request that ends at `end`.
    pub(super) fn poll_fill_to(&mut self, end: usize, context: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        self.read.reserve(end.saturating_sub(self.read.len()));
        match ready!(pin!(self.stream.read_buf(&mut self.read)).poll(context)) {
            Ok(1..) => Poll::Ready(Ok(())),
            Ok(0) | Err(_) => Poll::Ready(Err(Gone)),
        }
    }

    /// Completes when the other side has closed the connection. What it sends meanwhile is kept; it is not looked behind.
    pub(super) async fn gone(&mut self) {
        poll_fn(|context| self.poll_gone(context)).await;
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.read.is_empty() {
            if ready!(self.poll_fill(context)).is_err() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Sends an answer, whole or in chunks.
    pub(super) async fn send(&mut self, reply: Reply, date: &str) -> Result<(), Gone> {
        self.out.clear();
        response::head(&reply, date, &mut self.out);
        let is_whole = reply.body.length().is_some();
        let mut body = reply.body;
        while let Some(piece) = self.next(&mut body).await? {
            if !is_whole {
                response::chunk(piece.len(), &mut self.out);
            }
            if piece.len() > COPIED {
                let mut both = Buf::chain(&self.out[..], piece);
                self.stream.write_all_buf(&mut both).await.map_err(|_| Gone)?;
                self.out.clear();
            } else {
                self.out.extend_from_slice(&piece);
            }
            if !is_whole {
                self.out.extend_from_slice(b"\r\n");
            }
            if self.out.len() > MOST_OUT {
                self.flush().await?;
            }
        }
        if !is_whole {
            self.out.extend_from_slice(response::LAST_CHUNK);
        }
        self.flush().await
    }

    /// The next piece of a body. What stands before it is sent while there is none.
    async fn next(&mut self, body: &mut Body) -> Result<Option<Bytes>, Gone> {
        if !self.out.is_empty() {
            match poll_fn(|context| Poll::Ready(body.poll_next(context))).await {
                Poll::Ready(piece) => return Ok(piece),
                Poll::Pending => self.flush().await?,
            }
        }
        tokio::select! {
            biased;
            piece = poll_fn(|context| body.poll_next(context)) => Ok(piece),
            () = self.gone() => Err(Gone),
        }
    }

    async fn flush(&mut self) -> Result<(), Gone> {
        if !self.out.is_empty() {
            self.stream.write_all(&self.out).await.map_err(|_| Gone)?;
            self.out.clear();
            self.out.shrink_to(2 * COPIED);
        }
        self.stream.flush().await.map_err(|_| Gone)
    }

    /// Says that nothing more comes.
    pub(super) async fn end(&mut self) {
        // The other side may have left before.
        let _ = self.stream.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use tokio::io::{DuplexStream, duplex};

    use super::*;
    use crate::{
        budget::Budget,
        front::{
            events::Events,
            pieces::Pieces,
            reply::{json, stream},
        },
    };

    async fn sent(reply: Reply) -> String {
        let (near, mut far) = duplex(100);
        let spare = Spare::default();
        let sending = async {
            Wire::new(near, &spare).send(reply, "now").await.unwrap();
        };
        let mut read = String::new();
        tokio::join!(sending, async { far.read_to_string(&mut read).await.unwrap() });
        read
    }

    #[tokio::test]
    async fn an_answer_comes_whole_however_large_it_is() {
        for length in [0, 1, COPIED, COPIED + 1, 100_000] {
            let body = "x".repeat(length);
            let text = sent(json(StatusCode::OK, Body::whole(body.clone().into_bytes().into()))).await;
            let (head, read) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("\r\ncontent-length: {length}")), "{head}");
            assert_eq!(read, body);
        }
        let pieces = Pieces::join(b"before", Bytes::from("y".repeat(50_000)), b"after");
        let text = sent(json(StatusCode::OK, Body::whole(pieces))).await;
        let expected = format!("\r\ncontent-length: 50011\r\n\r\nbefore{}after", "y".repeat(50_000));
        assert!(text.ends_with(&expected));
    }

    #[tokio::test]
    async fn a_stream_comes_in_chunks_as_they_come() {
        let (near, mut far) = duplex(100_000);
        let spare = Spare::default();
        let events = Events::new(&Budget::new(1 << 20));
        let body = Body::events(events.clone(), None);
        let sending = async {
            Wire::new(near, &spare).send(stream(body), "now").await.unwrap();
        };
        let large = "z".repeat(COPIED + 1);
        let reading = async {
            let mut head = vec![0; 1000];
            let count = far.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..count]).into_owned();
            assert!(head.ends_with("\r\ntransfer-encoding: chunked\r\n\r\n"), "{head}");
            events.push(b"one".to_vec().into()).unwrap();
            let mut chunk = [0; 8];
            far.read_exact(&mut chunk).await.unwrap();
            assert_eq!(&chunk, b"3\r\none\r\n");
            events.push(b"two".to_vec().into()).unwrap();
            events.push(large.clone().into_bytes().into()).unwrap();
            events.close();
            let mut rest = String::new();
            far.read_to_string(&mut rest).await.unwrap();
            rest
        };
        let ((), rest) = tokio::join!(sending, reading);
        assert_eq!(rest, format!("3\r\ntwo\r\n801\r\n{large}\r\n0\r\n\r\n"));
    }

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(std::task::Waker::noop()))
    }

    async fn wire(spare: &Spare) -> (Wire<'_, DuplexStream>, DuplexStream) {
        let (near, mut far) = duplex(100_000);
        far.write_all(b"{1}{2}").await.unwrap();
        let mut wire = Wire::new(near, spare);
        wire.fill().await.unwrap();
        (wire, far)
    }

    #[tokio::test]
    async fn what_is_given_back_is_read_again_and_a_connection_at_rest_holds_no_buffer() {
        let spare = Spare::default();
        let (mut wire, mut far) = wire(&spare).await;
        for (done, left) in [(0, &b"{1}{2}"[..]), (3, b"{2}"), (3, b"")] {
            let read = wire.take();
            wire.give_back(read, done);
            assert_eq!(wire.read(), left);
        }
        assert!(poll(wire.fill()).is_pending());
        assert_eq!((wire.read.capacity(), spare.0.lock().unwrap().len()), (0, 1));
        far.write_all(b"{3}").await.unwrap();
        wire.fill().await.unwrap();
        assert_eq!((wire.read(), spare.0.lock().unwrap().len()), (&b"{3}"[..], 0));
        let held = wire.take();
        far.write_all(b"{4}").await.unwrap();
        wire.fill().await.unwrap();
        assert_eq!((&held[..], wire.read()), (&b"{3}"[..], &b"{4}"[..]));
    }

    #[tokio::test]
    async fn s37_what_is_left_of_a_large_buffer_does_not_hold_it() {
        let spare = Spare::default();
        let (near, mut far) = duplex(1_000_000);
        far.write_all("x".repeat(500_003).as_bytes()).await.unwrap();
        let mut large = Wire::new(near, &spare);
        while large.read().len() < 500_003 {
            poll_fn(|context| large.poll_fill_to(1_000_000, context)).await.unwrap();
        }
        let read = large.take();
        large.give_back(read, 500_000);
        assert_eq!(large.read(), b"xxx");
        assert!(large.read.capacity() < ROOM, "{}", large.read.capacity());
        let (given_away, _far) = wire(&spare).await;
        let rest = given_away.into_rest().read;
        assert_eq!(rest, "{1}{2}");
        let held = rest.try_into_mut().unwrap().capacity();
        assert!(held < 100, "{held}");
    }

    #[tokio::test]
    async fn a_client_has_left_when_its_side_is_closed_and_not_when_it_says_more() {
        let spare = Spare::default();
        let (mut wire, mut far) = wire(&spare).await;
        let read = wire.take();
        wire.give_back(read, 6);
        assert!(poll(wire.gone()).is_pending());
        far.write_all(b"more").await.unwrap();
        assert!(poll(wire.gone()).is_pending());
        assert_eq!(wire.read(), b"more");
        let read = wire.take();
        wire.give_back(read, 4);
        drop(far);
        assert!(poll(wire.gone()).is_ready());
    }
}
