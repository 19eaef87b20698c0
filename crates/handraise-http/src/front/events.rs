//! The stream of an answer: events on one side, a response body on the other.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use bytes::Bytes;

use super::{
    budget::{Budget, Charge, held},
    pieces::Pieces,
};

/// How much may wait for a client that does not read. One event more is taken only by an empty queue.
const MOST_QUEUED: usize = 8 * 1024 * 1024;

/// What every reader skips.
const COMMENT: &[u8] = b":\n\n";

/// Events on their way to one response.
#[derive(Debug)]
pub(crate) struct Events {
    budget: Arc<Budget>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<(Bytes, Option<Charge>)>,
    bytes: usize,
    is_closed: bool,
    /// Nobody reads any more, or too slowly.
    is_gone: bool,
    comes_back: ComesBack,
    /// For how many ticks nothing has been sent.
    quiet: u32,
    waker: Option<Waker>,
}

/// Whether a client that leaves can come back.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ComesBack {
    /// It has been sent nothing to come back to.
    #[default]
    NotYet,
    Yes,
    /// It had said that it sends no more before the stream began. If its connection breaks, it had left.
    Never,
}

/// Nobody takes events here any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

impl Events {
    pub(crate) fn new(budget: &Arc<Budget>) -> Arc<Self> {
        Arc::new(Self { budget: Arc::clone(budget), inner: Mutex::default() })
    }

    /// Events for a client that has come back, and can do so again.
    pub(crate) fn resumed(budget: &Arc<Budget>) -> Arc<Self> {
        let inner = Inner { comes_back: ComesBack::Yes, ..Inner::default() };
        Arc::new(Self { budget: Arc::clone(budget), inner: Mutex::new(inner) })
    }

    /// Queues an event.
    ///
    /// # Errors
    /// [`Gone`]: the client has left, or lets too much wait. It then gets the end of the stream.
    pub(crate) fn push(&self, event: Pieces) -> Result<(), Gone> {
        let mut inner = self.lock();
        if inner.is_gone || inner.is_closed {
            return Err(Gone);
        }
        if !inner.queue.is_empty() && inner.bytes + event.len() > MOST_QUEUED {
            inner.is_gone = true;
            inner.queue.clear();
            inner.bytes = 0;
            wake(inner);
            return Err(Gone);
        }
        inner.quiet = 0;
        inner.bytes += event.len();
        for piece in event.into_iter() {
            let charge = self.budget.force(piece.len());
            inner.queue.push_back((piece, Some(charge)));
        }
        wake(inner);
        Ok(())
    }

    /// Ends the stream once all that is queued has been read.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        wake(inner);
    }

    /// Lets a tick pass; after `patience` quiet ones a comment keeps the way open.
    pub(crate) fn tick(&self, patience: u32) {
        let mut inner = self.lock();
        inner.quiet += 1;
        if inner.quiet >= patience && inner.queue.is_empty() && !inner.is_closed && !inner.is_gone {
            inner.quiet = 0;
            inner.queue.push_back((Bytes::from_static(COMMENT), None));
            wake(inner);
        }
    }

    /// Whether somebody still reads.
    pub(crate) fn is_read(&self) -> bool {
        let inner = self.lock();
        !inner.is_gone && !inner.is_closed
    }

    /// The client of this stream, which begins, has said that it sends no more.
    pub(super) fn note_half_closed(&self) {
        self.lock().comes_back = ComesBack::Never;
    }

    /// Whether its client has left before it was sent anything to come back to.
    pub(crate) fn is_lost(&self) -> bool {
        let inner = self.lock();
        inner.is_gone && inner.comes_back != ComesBack::Yes
    }

    /// The next piece for the response; `None` at the end.
    pub(super) fn poll_next(&self, waker: &Waker) -> Poll<Option<Bytes>> {
        let mut inner = self.lock();
        if let Some((piece, charge)) = inner.queue.pop_front() {
            inner.bytes = inner.bytes.saturating_sub(piece.len());
            if inner.comes_back == ComesBack::NotYet && !piece.starts_with(COMMENT) {
                inner.comes_back = ComesBack::Yes;
            }
            return Poll::Ready(Some(held(piece, charge)));
        }
        if inner.is_closed || inner.is_gone {
            return Poll::Ready(None);
        }
        inner.waker = Some(waker.clone());
        Poll::Pending
    }

    /// The response is gone.
    pub(super) fn abandon(&self) {
        let mut inner = self.lock();
        inner.is_gone = true;
        inner.queue.clear();
        inner.bytes = 0;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the response, without the lock.
fn wake(mut inner: MutexGuard<'_, Inner>) {
    let waker = inner.waker.take();
    drop(inner);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// An event with a frame, which is one line. `id` is empty where the stream cannot be resumed.
pub(crate) fn event(id: &str, frame: &Pieces) -> Pieces {
    let mut frame = frame.whole();
    if memchr::memchr2(b'\r', b'\n', &frame).is_some() {
        // White space between tokens, which would end the line of the event.
        frame = frame.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect();
    }
    let head = if id.is_empty() {
        "event: message\ndata: ".to_owned()
    } else {
        format!("id: {id}\nevent: message\ndata: ")
    };
    Pieces::join(head.as_bytes(), frame, b"\n\n")
}

/// What a resumable stream begins with before there is anything to say: a place to come back to.
pub(crate) fn prime(id: &str) -> Pieces {
    format!("id: {id}\ndata: \n\n").into_bytes().into()
}

/// A comment, which every reader skips.
pub(crate) fn comment() -> Pieces {
    Bytes::from_static(COMMENT).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(events: &Events) -> Poll<Option<Bytes>> {
        events.poll_next(Waker::noop())
    }

    fn text(text: &'static str) -> Pieces {
        Bytes::from_static(text.as_bytes()).into()
    }

    #[test]
    fn events_come_in_order_and_then_the_end() {
        let events = Events::new(&Budget::new(1000));
        assert!(next(&events).is_pending());
        assert_eq!(events.push(event("1-2", &text("{}"))), Ok(()));
        events.close();
        assert_eq!(events.push(text("late")), Err(Gone));
        let expected = "id: 1-2\nevent: message\ndata: {}\n\n";
        assert_eq!(next(&events), Poll::Ready(Some(Bytes::from_static(expected.as_bytes()))));
        assert_eq!(next(&events), Poll::Ready(None));
    }

    #[test]
    fn line_ends_inside_a_frame_do_not_end_its_event() {
        let event = event("", &text("{\r\"a\":\n1}"));
        assert_eq!(event.whole(), "event: message\ndata: { \"a\": 1}\n\n");
    }

    #[test]
    fn s37_who_reads_too_slowly_is_cut_and_nothing_is_kept_for_them() {
        let budget = Budget::new(usize::MAX);
        let events = Events::new(&budget);
        let large = Pieces::from(vec![b'x'; MOST_QUEUED + 1]);
        assert_eq!(events.push(large.clone()), Ok(()), "an empty queue takes any one event");
        assert_eq!(budget.used(), MOST_QUEUED + 1);
        assert_eq!(events.push(text("more")), Err(Gone));
        assert_eq!((budget.used(), next(&events)), (0, Poll::Ready(None)));
        let events = Events::new(&budget);
        assert_eq!(events.push(text("x")), Ok(()));
        events.abandon();
        assert_eq!((events.push(text("y")), budget.used()), (Err(Gone), 0));
    }

    #[test]
    fn who_leaves_can_come_back_to_what_was_sent_and_to_nothing_else() {
        let lost = |is_resumed: bool, is_half_closed: bool, said: &[Pieces], sent: usize| {
            let budget = Budget::new(1000);
            let events = if is_resumed { Events::resumed(&budget) } else { Events::new(&budget) };
            if is_half_closed {
                events.note_half_closed();
            }
            for said in said {
                events.push(said.clone()).unwrap();
            }
            for _ in 0..sent {
                assert!(next(&events).is_ready());
            }
            assert!(!events.is_lost(), "it is there");
            events.abandon();
            events.is_lost()
        };
        let question = [event("1-1", &text("{}"))];
        assert!(lost(false, false, &[], 0) && lost(false, false, &question, 0));
        assert!(!lost(false, false, &question, 1), "it may have read it");
        let both = [comment(), event("1-1", &text("{}"))];
        assert!(
            lost(false, false, &both, 1) && !lost(false, false, &both, 2),
            "nobody comes back to a comment"
        );
        assert!(!lost(true, false, &[], 0));
        assert!(lost(false, true, &question, 1), "it had left before");
    }

    #[test]
    fn a_quiet_stream_gets_a_comment_now_and_then() {
        let events = Events::new(&Budget::new(1000));
        for _ in 0..14 {
            events.tick(15);
            assert!(next(&events).is_pending());
        }
        events.tick(15);
        assert_eq!(next(&events), Poll::Ready(Some(Bytes::from_static(b":\n\n"))));
        assert!(next(&events).is_pending());
    }
}
