//! A request whose answer is waited for, and what becomes of the answer.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use handraise_mcp::{
    frame::{Id, Looks, RequestId, ServerFrame},
    http::headers::SESSION_ID,
};
use http::{HeaderName, HeaderValue, StatusCode};

use super::{
    Front,
    body::Body,
    budget::Budget,
    door::Busy,
    handover::{First, Taker},
    link::Link,
    pieces::Pieces,
    reply::{self, Refusal, Reply},
};

/// The largest answer that may be an error with a status of its own.
const LARGEST_ERROR: usize = 16 * 1024;

/// A request whose answer is waited for. Dropped before it is there, its client has left.
pub(crate) struct Waiting {
    id: RequestId,
    first: Taker,
    /// What its answer is charged to until the client has taken it.
    budget: Arc<Budget>,
    purpose: Purpose,
}

/// What a request that waits is for.
pub(crate) enum Purpose {
    /// It opens a session.
    Opens(Opening),
    /// It belongs to one.
    Session,
    /// It describes itself. `is_whole`: with all that it must say.
    Modern { guard: Guard, is_whole: bool },
}

/// What a connection has to do about an answer.
pub(crate) enum Due {
    /// To send it.
    Reply(Reply),
    /// To send what is left of it: what is left of its head, and of its body all but so many bytes.
    Rest { head: Bytes, body: Body, done: usize },
    /// Nothing: it has gone out.
    Nothing,
}

impl Waiting {
    pub(crate) fn new(id: Id<'_>, first: Taker, link: &Link, purpose: Purpose) -> Self {
        Self { id: id.to_owned(), first, budget: Arc::clone(&link.budget), purpose }
    }

    /// The connection is at work until the answer is there.
    pub(crate) fn keep(&self, mut busy: Busy) {
        self.mark(&mut busy);
        self.first.keep(busy);
    }

    /// Who disconnects has cancelled nothing in a session: there, who sends no more may still wait.
    pub(crate) fn mark(&self, busy: &mut Busy) {
        match self.purpose {
            Purpose::Opens(_) | Purpose::Session => busy.await_answer(),
            Purpose::Modern { .. } => {}
        }
    }

    /// See [`Taker::note_more`].
    pub(crate) fn note_more(&self) -> bool {
        self.first.note_more()
    }

    /// The beginning of the answer; `None`: there will be none.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<First>> {
        self.first.poll(context)
    }

    /// Waits for the beginning of the answer, and says what it is.
    pub(crate) async fn reply(mut self) -> Reply {
        let first = poll_fn(|context| self.poll(context)).await;
        match self.due(first) {
            (Due::Reply(reply), _) => reply,
            // Nothing goes out by itself without a way for it.
            (Due::Rest { body, .. }, _) => reply::json(StatusCode::OK, body),
            (Due::Nothing, _) => reply::empty(StatusCode::OK),
        }
    }

    /// What is to be done with the beginning of the answer, and whether the connection is still at work.
    pub(crate) fn due(self, first: Option<First>) -> (Due, Option<Busy>) {
        let Self { id, first: taker, budget, purpose } = self;
        let busy = taker.busy();
        let first = match first {
            Some(First::Sent) => {
                purpose.ends();
                return (Due::Nothing, busy);
            }
            Some(First::Rest { head, frame, done }) => {
                purpose.ends();
                return (Due::Rest { head, body: Body::charged(frame, &budget), done }, busy);
            }
            Some(first) => first,
            None => return (Due::Reply(Refusal::Ended.reply(Some(id.raw()))), busy),
        };
        (Due::Reply(begin(&budget, purpose, first)), busy)
    }
}

impl Purpose {
    /// The answer is there: nothing is left to be cancelled.
    fn ends(self) {
        if let Self::Modern { guard, .. } = self {
            guard.ends();
        }
    }
}

/// The answer that begins so.
fn begin(budget: &Arc<Budget>, purpose: Purpose, first: First) -> Reply {
    match purpose {
        Purpose::Session => answer(budget, first, None, |_| StatusCode::OK),
        Purpose::Modern { guard, is_whole } => {
            answer(budget, first, Some(guard), |frame| status(frame.parts(), is_whole))
        }
        Purpose::Opens(opening) => {
            let is_open = match &first {
                First::Answer(frame) => error_code(frame.parts()).is_none(),
                First::Events(_) => true,
                First::Refused(_) | First::Nothing | First::Sent | First::Rest { .. } => false,
            };
            let mut reply = answer(budget, first, None, |_| StatusCode::OK);
            // Without an answer there is no session; its server leaves with `opening`.
            if is_open && let Ok(value) = HeaderValue::try_from(opening.keep()) {
                reply.also = Some((HeaderName::from_static(SESSION_ID), value));
            }
            reply
        }
    }
}

/// What becomes of the beginning of an answer.
fn answer(
    budget: &Arc<Budget>,
    first: First,
    guard: Option<Guard>,
    status: impl FnOnce(&Pieces) -> StatusCode,
) -> Reply {
    match first {
        First::Answer(frame) => {
            if let Some(guard) = guard {
                guard.ends();
            }
            reply::json(status(&frame), Body::charged(frame, budget))
        }
        First::Refused(frame) => {
            if let Some(guard) = guard {
                guard.ends();
            }
            reply::json(StatusCode::BAD_REQUEST, Body::whole(frame.into()))
        }
        First::Events(events) => reply::stream(Body::events(events, guard)),
        First::Nothing | First::Sent | First::Rest { .. } => reply::empty(StatusCode::ACCEPTED),
    }
}

/// The status of a modern answer, which is these parts in a row.
pub(crate) fn status(frame: [&[u8]; 3], is_whole: bool) -> StatusCode {
    match error_code(frame) {
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(-32022..=-32020 | -32700 | -32600) => StatusCode::BAD_REQUEST,
        // A request that lacks what it must say about itself. Other parameters are the method's own business.
        Some(-32602) if !is_whole => StatusCode::BAD_REQUEST,
        Some(_) | None => StatusCode::OK,
    }
}

/// The code of an answer that is an error.
fn error_code(frame: [&[u8]; 3]) -> Option<i64> {
    const ERROR: &[u8] = b"\"error\"";
    if frame.iter().map(|part| part.len()).sum::<usize>() > LARGEST_ERROR {
        return None;
    }
    // What is put into a frame stands between its members, so that the word is in one part or in none.
    frame.iter().find(|part| memchr::memmem::find(part, ERROR).is_some())?;
    let frame = frame.concat();
    ServerFrame::read(&frame, |_| Looks::default()).ok()?.error_code()
}

/// A session that is being opened. It ends with this, unless it is kept.
pub(crate) struct Opening {
    front: Arc<Front>,
    principal: Arc<str>,
    session: Option<String>,
}

impl Opening {
    pub(crate) fn new(front: &Arc<Front>, principal: &Arc<str>, session: String) -> Self {
        Self { front: Arc::clone(front), principal: Arc::clone(principal), session: Some(session) }
    }

    fn keep(mut self) -> String {
        self.front.has_opened(&self.principal);
        self.session.take().unwrap_or_default()
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            self.front.end_session(session);
        }
    }
}

/// A modern request that is open. Its client has left when this goes first, and that cancels it.
#[derive(Debug)]
pub(crate) struct Guard {
    link: Arc<Link>,
    number: u64,
    is_over: bool,
}

impl Guard {
    pub(crate) fn new(link: &Arc<Link>, number: u64) -> Self {
        Self { link: Arc::clone(link), number, is_over: false }
    }

    /// The answer is there.
    fn ends(mut self) {
        self.is_over = true;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_over {
            self.link.abandoned(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_modern_era_have_their_statuses() {
        for (code, is_whole, expected) in [
            (-32601, true, 404),
            (-32020, true, 400),
            (-32021, true, 400),
            (-32022, true, 400),
            (-32602, true, 200),
            (-32602, false, 400),
            (-32603, true, 200),
        ] {
            let frame = reply::error("1", code, "no");
            assert_eq!(status([&frame, b"", b""], is_whole), expected, "{code}");
        }
        let result = reply::result("1", "{\"error\":{\"code\":-32601}}");
        assert_eq!(status([&result, b"", b""], true), 200);
    }
}
