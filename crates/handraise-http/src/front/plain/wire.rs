//! Both ways of a plain connection: what was read and not taken yet, and what is being sent.

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BufMut as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{
    super::{body::Body, reply::Reply, spare::Spare},
    Rest, response,
};

/// How much is read at once, in bytes.
pub(crate) const ROOM: usize = 32 * 1024;
/// What is copied behind its head rather than sent beside it, in bytes.
pub(crate) const COPIED: usize = 2 * 1024;
/// How much is gathered before it is sent, in bytes.
const MOST_OUT: usize = 64 * 1024;
/// How much is read at most of what a client sends before its answer is there, in bytes, beside what came with the request in
/// one read of [`ROOM`]: behind that it is not seen that it has left.
const MOST_AHEAD: usize = 16 * 1024;
/// What is left of a buffer that is larger is copied, in bytes, so that it does not hold all of it.
const MOST_KEPT: usize = 32 * 1024;

/// The other side has closed the connection, or it is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// A connection. What it is read into is lent for the reading: one at rest holds no buffer.
pub(super) struct Wire<'a, S> {
    stream: S,
    spare: &'a Spare,
    /// What has been read and not taken.
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
        if done == read.len() {
            self.read = BytesMut::new();
            return;
        }
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
    /// Reads once while nothing is left from before, and lets `look` take what it wants of that: it returns how much.
    pub(super) fn poll_look<T>(
        &mut self,
        context: &mut Context<'_>,
        look: impl FnOnce(&[u8]) -> (T, usize),
    ) -> Poll<Result<T, Gone>> {
        self.poll_look_within(ROOM, context, look)
    }

    /// See [`poll_look`](Self::poll_look); reads so many bytes at most.
    fn poll_look_within<T>(
        &mut self,
        most: usize,
        context: &mut Context<'_>,
        look: impl FnOnce(&[u8]) -> (T, usize),
    ) -> Poll<Result<T, Gone>> {
        let mut lent = self.spare.lend();
        let read = pin!(self.stream.read_buf(&mut (&mut *lent).limit(most))).poll(context);
        match ready!(read) {
            Ok(1..) => {
                let (seen, taken) = look(&lent);
                self.read.extend_from_slice(&lent[taken..]);
                Poll::Ready(Ok(seen))
            }
            Ok(0) | Err(_) => Poll::Ready(Err(Gone)),
        }
    }

    /// Reads once, so many bytes at most, behind what is there.
    fn poll_more(&mut self, most: usize, context: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        self.poll_look_within(most, context, |_| ((), 0))
    }

    /// Reads once, with room for a request that ends at `end`.
    pub(super) fn poll_fill_to(&mut self, end: usize, context: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        self.read.reserve(end.saturating_sub(self.read.len()));
        match ready!(pin!(self.stream.read_buf(&mut self.read)).poll(context)) {
            Ok(1..) => Poll::Ready(Ok(())),
            Ok(0) | Err(_) => Poll::Ready(Err(Gone)),
        }
    }

    /// Completes when the other side has closed the connection. What it sends meanwhile is kept; behind so much of it that
    /// it must not be more, nothing is seen.
    pub(super) async fn gone(&mut self) {
        poll_fn(|context| self.poll_gone(context)).await;
    }

    /// See [`gone`](Self::gone).
    pub(super) fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let left @ 1.. = MOST_AHEAD.saturating_sub(self.read.len()) {
            if ready!(self.poll_more(left, context)).is_err() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Sends what is left of an answer: of its head, and of its body all but the first `done` bytes.
    pub(super) async fn send_rest(
        &mut self,
        mut head: Bytes,
        mut body: Body,
        mut done: usize,
    ) -> Result<(), Gone> {
        self.stream.write_all_buf(&mut head).await.map_err(|_| Gone)?;
        while let Some(mut piece) = self.next(&mut body).await? {
            let skipped = done.min(piece.len());
            piece.advance(skipped);
            done -= skipped;
            self.stream.write_all_buf(&mut piece).await.map_err(|_| Gone)?;
        }
        self.flush().await
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

    /// Reads what still comes, which nobody looks at.
    pub(super) async fn skip_rest(&mut self) {
        while poll_fn(|context| self.poll_look(context, |read| ((), read.len()))).await.is_ok() {}
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
        let spare = Spare::new(ROOM);
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
    async fn what_is_left_of_an_answer_is_sent_wherever_it_was_cut() {
        let body = || {
            let pieces = Pieces::join(b"before", Bytes::from("y".repeat(20_000)), b"after");
            (pieces.whole(), Body::whole(pieces))
        };
        let (text, _) = body();
        for done in [0, 3, 6, 7, 20_006, 20_010, text.len()] {
            let (near, mut far) = duplex(100);
            let spare = Spare::new(ROOM);
            let sending = async {
                Wire::new(near, &spare).send_rest(Bytes::from_static(b"\r\n"), body().1, done).await.unwrap();
            };
            let mut read = Vec::new();
            tokio::join!(sending, async { far.read_to_end(&mut read).await.unwrap() });
            assert_eq!(read, [b"\r\n", &text[done..]].concat());
        }
    }

    #[tokio::test]
    async fn a_stream_comes_in_chunks_as_they_come() {
        let (near, mut far) = duplex(100_000);
        let spare = Spare::new(ROOM);
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
        poll_fn(|context| wire.poll_more(ROOM, context)).await.unwrap();
        (wire, far)
    }

    #[tokio::test]
    async fn what_is_given_back_is_read_again_and_a_connection_at_rest_holds_no_buffer() {
        let spare = Spare::new(ROOM);
        let (mut wire, mut far) = wire(&spare).await;
        for (done, left) in [(0, &b"{1}{2}"[..]), (3, b"{2}"), (3, b"")] {
            let read = wire.take();
            wire.give_back(read, done);
            assert_eq!(wire.read(), left);
        }
        let mut more = pin!(poll_fn(|context| wire.poll_look(context, |read| (read.to_vec(), read.len()))));
        assert!(poll(more.as_mut()).is_pending());
        far.write_all(b"{3}").await.unwrap();
        assert_eq!(more.await.unwrap(), b"{3}");
        assert_eq!((wire.read(), wire.read.capacity(), spare.count()), (&b""[..], 0, 1));
        far.write_all(b"{4}{5}").await.unwrap();
        poll_fn(|context| wire.poll_look(context, |_| ((), 3))).await.unwrap();
        assert_eq!(wire.read(), b"{5}");
        let held = wire.take();
        far.write_all(b"{6}").await.unwrap();
        poll_fn(|context| wire.poll_more(ROOM, context)).await.unwrap();
        assert_eq!((&held[..], wire.read()), (&b"{5}"[..], &b"{6}"[..]));
    }

    #[tokio::test]
    async fn s37_what_is_left_of_a_large_buffer_does_not_hold_it() {
        let spare = Spare::new(ROOM);
        let (near, mut far) = duplex(1_000_000);
        far.write_all("x".repeat(500_003).as_bytes()).await.unwrap();
        let mut large = Wire::new(near, &spare);
        while large.read().len() < 500_003 {
            poll_fn(|context| large.poll_fill_to(1_000_000, context)).await.unwrap();
        }
        let read = large.take();
        large.give_back(read, 500_000);
        assert_eq!(large.read(), b"xxx");
        assert!(large.read.capacity() < 16 * 1024, "{}", large.read.capacity());
        let (given_away, _far) = wire(&spare).await;
        let rest = given_away.into_rest().read;
        assert_eq!(rest, "{1}{2}");
        let held = rest.try_into_mut().unwrap().capacity();
        assert!(held < 100, "{held}");
    }

    #[tokio::test]
    async fn a_client_has_left_when_its_side_is_closed_whatever_it_said_before() {
        let spare = Spare::new(ROOM);
        let (mut wire, mut far) = wire(&spare).await;
        let read = wire.take();
        wire.give_back(read, 6);
        assert!(poll(wire.gone()).is_pending());
        far.write_all(b"more").await.unwrap();
        assert!(poll(wire.gone()).is_pending());
        assert_eq!(wire.read(), b"more");
        drop(far);
        assert!(poll(wire.gone()).is_ready());
    }

    #[tokio::test]
    async fn s37_who_sends_without_end_before_its_answer_is_read_no_further() {
        let spare = Spare::new(ROOM);
        let (near, mut far) = duplex(1_000_000);
        far.write_all(&vec![b'x'; 900_000]).await.unwrap();
        let mut wire = Wire::new(near, &spare);
        assert!(poll(wire.gone()).is_pending());
        assert_eq!(wire.read().len(), MOST_AHEAD);
        // What came with the request itself was read before, in one read.
        let read = wire.take();
        wire.give_back(read, MOST_AHEAD);
        poll_fn(|context| wire.poll_look(context, |_| ((), 100))).await.unwrap();
        assert!(poll(wire.gone()).is_pending());
        assert_eq!(wire.read().len(), ROOM - 100);
    }
}
