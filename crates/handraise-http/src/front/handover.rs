//! The beginning of an answer, from those who write it to the connection that it goes to.
//!
//! Where the connection can be written to at once, an answer that is one frame goes out where it is given: its bytes are
//! written from where they were read into, and the task of the connection need not be woken for it. It learns of that with
//! whatever wakes it next, which is the client's next request.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

use super::{
    door::Busy,
    events::Events,
    pieces::Pieces,
    quick::{Quick, Went},
};

/// What the answer to a POST begins with.
#[derive(Debug)]
pub(crate) enum First {
    /// It is one frame.
    Answer(Pieces),
    /// It is one frame, and says that the request went nowhere.
    Refused(Bytes),
    /// It is a stream.
    Events(Arc<Events>),
    /// There is none.
    Nothing,
    /// It was one frame, and all of it has been written.
    Sent,
    /// It is one frame of which so many bytes have been written, and what is left of its head goes before the others.
    Rest { head: Bytes, frame: Pieces, done: usize },
}

/// How an answer of one frame is written at once.
#[derive(Debug)]
pub(crate) struct AtOnce {
    /// It is gone with the connection.
    pub(crate) quick: Weak<Quick>,
    pub(crate) status: StatusRule,
}

/// What decides about the status of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusRule {
    /// The request belongs to a session: whatever the frame says, it is an answer.
    Session,
    /// It describes itself. `is_whole`: with all that it must say.
    Modern { is_whole: bool },
}

#[derive(Debug, Default)]
struct Slot(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    first: Option<First>,
    is_given: bool,
    has_left: bool,
    /// Something has been read behind the request.
    has_more: bool,
    waker: Option<Waker>,
    /// The connection is at work until the answer is there.
    busy: Option<Busy>,
}

/// Where the beginning is given.
#[derive(Debug)]
pub(crate) struct Giver {
    slot: Arc<Slot>,
    at_once: Option<AtOnce>,
}

/// Where it is taken.
#[derive(Debug)]
pub(crate) struct Taker(Arc<Slot>);

/// Both ends. With `at_once`, an answer of one frame may be written where it is given.
pub(crate) fn handover(at_once: Option<AtOnce>) -> (Giver, Taker) {
    let slot = Arc::new(Slot::default());
    (Giver { slot: Arc::clone(&slot), at_once }, Taker(slot))
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives, and wakes whoever waits; false: nobody is there any more.
    fn give(&self, first: Option<First>) -> bool {
        let mut inner = self.lock();
        if inner.is_given {
            return false;
        }
        inner.is_given = true;
        inner.first = first;
        let waker = inner.waker.take();
        let is_there = !inner.has_left;
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
        is_there
    }
}

impl Giver {
    /// Gives the beginning; false: nobody is there any more.
    pub(crate) fn give(self, first: First) -> bool {
        self.slot.give(Some(first))
    }

    /// Gives an answer that is one frame, of these parts in a row.
    pub(crate) fn answer(self, parts: [&[u8]; 3], pieces: impl FnOnce() -> Pieces) {
        let at_once = self.at_once.as_ref().filter(|_| !self.is_closed());
        let at_once = at_once.and_then(|AtOnce { quick, status }| Some((quick.upgrade()?, *status)));
        let Some((quick, status)) = at_once else {
            self.slot.give(Some(First::Answer(pieces())));
            return;
        };
        match quick.send(status, parts) {
            Went::Whole => self.has_sent(&quick),
            Went::Partly { head, done } => {
                self.slot.give(Some(First::Rest { head: head.into(), frame: pieces(), done }));
            }
            Went::Not => {
                self.slot.give(Some(First::Answer(pieces())));
            }
        }
    }

    /// All has been written. Only a connection that has something to do needs to know now: it has to leave, or the next
    /// request has been read.
    fn has_sent(&self, quick: &Quick) {
        let mut inner = self.slot.lock();
        if inner.has_more || quick.is_leaving() {
            drop(inner);
            self.slot.give(Some(First::Sent));
            return;
        }
        (inner.is_given, inner.first) = (true, Some(First::Sent));
        let busy = inner.busy.take();
        drop(inner);
        drop(busy);
    }

    /// Whether nobody is there any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.slot.lock().has_left
    }
}

impl Drop for Giver {
    fn drop(&mut self) {
        self.slot.give(None);
    }
}

impl Taker {
    /// The beginning; `None`: there will be none.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<First>> {
        let mut inner = self.0.lock();
        if inner.is_given {
            return Poll::Ready(inner.first.take());
        }
        let waker = context.waker();
        if !inner.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            inner.waker = Some(waker.clone());
        }
        Poll::Pending
    }

    /// Something has been read behind the request: whatever is given wakes who waits. True: the beginning has been given.
    pub(crate) fn note_more(&self) -> bool {
        let mut inner = self.0.lock();
        inner.has_more = true;
        inner.is_given
    }

    /// The connection is at work until the answer is there, or this is gone.
    pub(crate) fn keep(&self, busy: Busy) {
        let mut inner = self.0.lock();
        if !inner.is_given {
            inner.busy = Some(busy);
        }
    }

    /// The connection is still at work, if it was.
    pub(crate) fn busy(&self) -> Option<Busy> {
        self.0.lock().busy.take()
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.has_left = true;
        inner.waker = None;
        let (first, busy) = (inner.first.take(), inner.busy.take());
        drop(inner);
        drop((first, busy));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_is_given_wakes_who_waits_and_is_taken_once() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);
        let (giver, mut taker) = handover(None);
        assert!(taker.poll(&mut context).is_pending() && !giver.is_closed());
        giver.answer([b"{", b"", b"}"], || b"{}".to_vec().into());
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        let Poll::Ready(Some(First::Answer(frame))) = taker.poll(&mut context) else { panic!() };
        assert_eq!(frame.whole(), "{}");
    }

    #[test]
    fn who_waits_for_what_is_never_given_is_told_and_who_gives_to_nobody_too() {
        let mut context = Context::from_waker(Waker::noop());
        let (giver, mut taker) = handover(None);
        drop(giver);
        assert!(matches!(taker.poll(&mut context), Poll::Ready(None)));
        let (giver, taker) = handover(None);
        drop(taker);
        assert!(giver.is_closed() && !giver.give(First::Nothing));
    }
}
