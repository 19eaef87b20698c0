//! Bodies: those of requests, collected within bounds, and those of responses.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use handraise_transport::ends::KEPT;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::{
    budget::{Budget, Charge, held, is_large},
    door::Busy,
    events::Events,
    pieces::Pieces,
    reply::Refusal,
    waiting::Guard,
};

/// How long a body may take at least.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the beginning of a body is waited for that is not taken: it may say whose it is.
const GLANCE: Duration = Duration::from_secs(1);
/// How many bytes a second a body must bring after that.
const SLOWEST: u64 = 64 * 1024;
/// A body that was not taken, and how it begins, as far as that was seen.
#[derive(Debug)]
pub(crate) struct NotTaken {
    pub(crate) refusal: Refusal,
    pub(crate) head: Bytes,
}

/// Collects a request's body.
///
/// # Errors
/// When it is too long, too slow, breaks off, or does not fit beside what is in flight (S37).
pub(crate) async fn collect(
    body: Incoming,
    limit: usize,
    budget: &Arc<Budget>,
) -> Result<(Bytes, Charge), NotTaken> {
    let announced = body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    let is_too_large = announced.is_some_and(|length| length > limit);
    let Some(charge) = budget.charge(if is_too_large { 0 } else { announced.unwrap_or(0) }) else {
        return Err(NotTaken { refusal: Refusal::InFlight, head: Bytes::new() });
    };
    let mut collecting = Collecting { body, limit, announced, first: None, rest: BytesMut::new(), charge };
    let mut patience = Patience::new(if is_too_large { GLANCE } else { PATIENCE });
    let done = std::future::poll_fn(|context| {
        match collecting.poll(context) {
            Poll::Ready(done) => Poll::Ready(done),
            // It has come no further within its time.
            Poll::Pending => {
                let refusal = if is_too_large { Refusal::TooLarge } else { Refusal::Slow };
                patience.poll(collecting.len(), context).map(|()| Err(refusal))
            }
        }
    });
    let done = done.await;
    let Collecting { first, rest, charge, .. } = collecting;
    if let Err(refusal) = done {
        let head = first.unwrap_or_else(|| rest.freeze());
        return Err(NotTaken { refusal, head: head.slice(..head.len().min(KEPT)) });
    }
    let whole = if rest.is_empty() { first.unwrap_or_default() } else { rest.freeze() };
    Ok((whole, charge))
}

/// A body that is being collected. One that comes in one piece is not copied.
struct Collecting {
    body: Incoming,
    limit: usize,
    announced: Option<usize>,
    first: Option<Bytes>,
    rest: BytesMut,
    charge: Charge,
}

impl Collecting {
    fn len(&self) -> usize {
        self.rest.len().max(self.first.as_ref().map_or(0, Bytes::len))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                return Poll::Ready(Ok(()));
            };
            let Ok(frame) = frame else { return Poll::Ready(Err(Refusal::Broken)) };
            let Ok(data) = frame.into_data() else { continue };
            let length = self.len() + data.len();
            if self.announced.unwrap_or(length) > self.limit || length > self.limit {
                if self.len() == 0 {
                    self.first = Some(data);
                }
                return Poll::Ready(Err(Refusal::TooLarge));
            }
            if self.announced.is_none() && !self.charge.grow(data.len()) {
                return Poll::Ready(Err(Refusal::InFlight));
            }
            if self.rest.is_empty() && self.first.is_none() {
                self.first = Some(data);
                continue;
            }
            if let Some(first) = self.first.take() {
                self.rest.reserve(self.announced.unwrap_or(length).max(length));
                self.rest.extend_from_slice(&first);
            }
            self.rest.extend_from_slice(&data);
        }
    }
}

/// How long a body is waited for.
pub(super) struct Patience {
    least: Duration,
    has_looked: bool,
    since: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Default for Patience {
    fn default() -> Self {
        Self::new(PATIENCE)
    }
}

impl Patience {
    fn new(least: Duration) -> Self {
        Self { least, has_looked: false, since: None, sleep: None }
    }

    /// Ready when the time is over for a body of which so much has come.
    pub(super) fn poll(&mut self, come: usize, context: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.has_looked, true) {
            // A body that is here already comes with the next look: no need for a timer.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let deadline = since + self.least + Duration::from_secs(come as u64 / SLOWEST);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(context)
    }
}

/// The body of a response.
#[derive(Debug)]
pub(crate) struct Body {
    content: Content,
    /// The connection is at work until this is gone.
    busy: Option<Busy>,
}

#[derive(Debug)]
enum Content {
    Pieces { left: u64, pieces: std::vec::IntoIter<Bytes> },
    Piece(Option<Bytes>),
    Events { events: Arc<Events>, _guard: Option<Guard> },
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self { content: Content::Piece(None), busy: None }
    }

    /// One frame.
    pub(crate) fn whole(frame: Pieces) -> Self {
        Self { content: Content::of(frame.into_iter()), busy: None }
    }

    /// One frame, which counts until the client has it.
    pub(crate) fn charged(frame: Pieces, budget: &Arc<Budget>) -> Self {
        let charged = |piece: Bytes| {
            let charge = is_large(&piece).then(|| budget.force(piece.len()));
            held(piece, charge)
        };
        Self { content: Content::of(frame.into_iter().map(charged)), busy: None }
    }

    /// A stream. `guard` learns that the client has left.
    pub(crate) fn events(events: Arc<Events>, guard: Option<Guard>) -> Self {
        Self { content: Content::Events { events, _guard: guard }, busy: None }
    }

    /// Its client has said that it sends no more.
    pub(crate) fn note_half_closed(&self) {
        if let Content::Events { events, .. } = &self.content {
            events.note_half_closed();
        }
    }

    /// Says whose connection is at work as long as this lives.
    pub(crate) fn with(mut self, busy: Busy) -> Self {
        self.busy = Some(busy);
        self
    }
}

impl Content {
    fn of(mut pieces: impl Iterator<Item = Bytes>) -> Self {
        let first = pieces.next();
        let rest: Vec<Bytes> = pieces.collect();
        if rest.is_empty() {
            return Self::Piece(first);
        }
        let all: Vec<Bytes> = first.into_iter().chain(rest).collect();
        let left = all.iter().map(|piece| piece.len() as u64).sum();
        Self::Pieces { left, pieces: all.into_iter() }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Content::Events { events, .. } = &self.content {
            events.abandon();
        }
    }
}

impl Body {
    /// The next piece; `None` at the end.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(match &mut self.content {
            Content::Piece(piece) => piece.take(),
            Content::Pieces { left, pieces } => {
                let piece = pieces.next();
                *left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
                piece
            }
            Content::Events { events, .. } => ready!(events.poll_next(context.waker())),
        })
    }

    /// How much is left of it; `None`: a stream, whose end nobody knows.
    pub(super) fn length(&self) -> Option<u64> {
        match &self.content {
            Content::Piece(piece) => Some(piece.as_ref().map_or(0, |piece| piece.len() as u64)),
            Content::Pieces { left, .. } => Some(*left),
            Content::Events { .. } => None,
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.poll_next(context).map(|next| next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.length() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
