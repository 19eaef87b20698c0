//! What comes from the client: its requests, its answers, its cancellations.

use std::ops::Range;
use std::sync::Arc;

use handraise_core::words::{Outcome, Provenance};

use super::ends::ended_message;
use super::mrtr::Carried;
use super::open::{Call, Open, Opens, Plain, Unkept};
use super::{Caller, Envelope, Out, Route, failed};
use crate::Now;
use crate::declared::{self, Party};
use crate::frame::reply::{INTERNAL, INVALID_REQUEST};
use crate::frame::splice::{Splice, quoted};
use crate::frame::{ClientFrame, Id, member_at};

pub(super) const ID_IN_USE: &str = "an open request has this id";

impl Envelope {
    /// Takes a frame of the client.
    pub fn client_frame(
        &mut self,
        frame: &ClientFrame<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        self.tick(now, out);
        match (frame.method(), frame.id()) {
            (Some(_), Some(id)) if frame.answer.is_some() && self.names_ask(id) => {
                self.client_response(frame, id, now, out)
            }
            (Some(method), Some(id)) => self.request(frame, method, id, caller, now, out),
            (Some("notifications/cancelled"), None) => self.client_cancelled(frame, now, out),
            (None, Some(id)) => self.client_response(frame, id, now, out),
            (Some("tools/call"), None) => self.guard_unanswerable(frame, out),
            _ => Route::Forward,
        }
    }

    fn request(
        &mut self,
        frame: &ClientFrame<'_>,
        method: &str,
        id: Id<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        if let Some(refused) = self.refusal_to_forward(id) {
            out.push(refused);
            return Route::Consumed;
        }
        if method == "tools/call"
            && let Some(route) = self.guard(frame, id, caller, now, out)
        {
            return route;
        }
        self.unguarded(frame, method, id, caller, now, out)
    }

    /// A request that nothing guards, or whose guard has let it go.
    pub(super) fn unguarded(
        &mut self,
        frame: &ClientFrame<'_>,
        method: &str,
        id: Id<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        let is_modern = declared::is_modern(frame);
        match self.carried_state(frame, method, is_modern, caller, now) {
            Carried::Nothing => {}
            Carried::Ours(_) if self.open.get(id).is_some() => {
                out.push(failed(id.to_owned(), INVALID_REQUEST, ID_IN_USE));
                return Route::Consumed;
            }
            Carried::Ours(state) => return self.retry(frame, id, *state, caller, now, out),
            Carried::Refused(reason) => return self.refuse_state(frame, id, reason, out),
        }
        if self.open.is_empty() {
            self.progress.clear();
        }
        let plain = || Plain { is_legacy: !is_modern, ..Plain::new(id.to_owned()) };
        let open = match method {
            // A client that uses an id twice gets both answers, and no question: whose is the first one?
            _ if self.open.get(id).is_some() => Open::Plain(plain()),
            "tools/call" => {
                let call = Call::keep(&self.room, frame, caller, now.boot, self.upstream_asks);
                call.map_or_else(|| self.unkept(frame, plain()), |call| Open::Called(Box::new(call)))
            }
            "initialize" => {
                self.handshake.requested(frame);
                Open::Plain(Plain { opens: Opens::Session, ..plain() })
            }
            "tools/list" => Open::Plain(Plain { lists: self.lists(frame), ..plain() }),
            "server/discover" => Open::Plain(Plain { opens: Opens::Discovery, ..plain() }),
            _ => Open::Plain(plain()),
        };
        if let Some(Open::Called(call)) = self.open.insert(id, open) {
            self.progress.forget(call.progress_token());
        }
        Route::Forward
    }

    /// Why a request goes no further, as an answer to it.
    fn refusal_to_forward(&self, id: Id<'_>) -> Option<Out> {
        if let Some(status) = &self.ended {
            return Some(failed(id.to_owned(), INTERNAL, &ended_message(status)));
        }
        if let Some(Open::Asking(_) | Open::Rerun(_) | Open::Checking(_) | Open::Guarded(_)) =
            self.open.get(id)
        {
            return Some(failed(id.to_owned(), INVALID_REQUEST, ID_IN_USE));
        }
        if self.open.len() >= self.process.config.limits.open_requests {
            self.process.count_refused_request();
            return Some(failed(id.to_owned(), INTERNAL, "too many requests of this client are open"));
        }
        None
    }

    fn unkept(&self, frame: &ClientFrame<'_>, plain: Plain) -> Open {
        let unkept = Unkept::new(frame, self.party(frame), &self.process.config.rules);
        Open::Plain(Plain { unkept: Some(Box::new(unkept)), ..plain })
    }

    /// Who is behind a request: what it says itself, else what its connection said.
    pub(super) fn party(&self, frame: &ClientFrame<'_>) -> Party {
        declared::modern(frame).unwrap_or_else(|| self.handshake.party())
    }

    /// Takes a cancellation. One that names no open request is late, and means nothing to us.
    fn client_cancelled(&mut self, frame: &ClientFrame<'_>, now: Now, out: &mut Vec<Out>) -> Route {
        let params = frame.params.as_ref().map_or(0..0, |params| params.at.clone());
        let text = frame.text(params.clone());
        let Some(at) = member_at(text, "requestId") else { return Route::Forward };
        let Some(id) = Id::parse(&text[at.clone()]) else { return Route::Forward };
        let at = params.start + at.start..params.start + at.end;
        if id.text().is_some_and(|id| self.ids.is_private(&id)) {
            // Our ids are nobody's to cancel, and the upstream learns none of the client's side.
            return Route::Consumed;
        }
        match self.open.remove(id) {
            Some(Open::Asking(asking)) => {
                self.withdraw(
                    &asking,
                    "the call was cancelled",
                    "call-cancelled",
                    Provenance::Client,
                    now,
                    out,
                );
                Route::Consumed
            }
            Some(Open::Rerun(rerun)) => {
                self.progress.ran_again(rerun.call.progress_token());
                self.cancel_ours(frame, at, &rerun.id, out)
            }
            Some(Open::Checking(checking)) => {
                self.deadlines.remove(&(checking.deadline, checking.ours.clone()));
                self.forget_told(checking.retry.told.as_deref());
                out.push(checking.retry.record(Outcome::Withdrawn, Some("call-cancelled")));
                self.cancel_ours(frame, at, &checking.ours, out)
            }
            Some(Open::Called(call)) => {
                self.progress.forget(call.progress_token());
                Route::Forward
            }
            Some(Open::Guarded(mut held)) => {
                self.guarded_cancelled(&mut held, "the call was cancelled", now, out);
                Route::Consumed
            }
            Some(Open::Plain(plain)) => {
                self.forget_told(plain.told.as_deref());
                Route::Forward
            }
            None => Route::Forward,
        }
    }

    /// The client's cancellation, of the request that stands for its call at the upstream.
    fn cancel_ours(
        &mut self,
        frame: &ClientFrame<'_>,
        at: Range<usize>,
        ours: &str,
        out: &mut Vec<Out>,
    ) -> Route {
        self.ours.remove(ours);
        let mut splice = Splice::default();
        splice.replace(at, quoted(ours));
        out.push(Out::ToUpstream(splice.apply(frame.bytes())));
        Route::Consumed
    }
}
