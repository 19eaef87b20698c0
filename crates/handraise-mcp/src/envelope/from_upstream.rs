//! What comes from the upstream: its answers, its own requests, its notifications.

use std::ops::Range;

use super::mrtr::string;
use super::open::{Call, Open, Opens};
use super::{Envelope, Out, Route, failed};
use crate::Now;
use crate::frame::reply::{self, INTERNAL, INVALID_REQUEST};
use crate::frame::splice::Splice;
use crate::frame::{Id, RequestId, ServerFrame, Shape, member_at, member_named};

impl Envelope {
    /// Takes a frame of the upstream. Once [`Self::upstream_ended`] has answered for it, nothing of it counts.
    pub fn upstream_frame(&mut self, frame: &ServerFrame<'_>, now: Now, out: &mut Vec<Out>) -> Route {
        if self.ended.is_some() {
            return Route::Consumed;
        }
        self.tick(now, out);
        match &frame.shape {
            Shape::Response { id, id_at } => match self.open.remove(*id) {
                Some(open) => self.upstream_response(frame, *id, open, now, out),
                None => self.private_response(frame, *id, id_at.clone(), now, out),
            },
            Shape::Request { id, method } => {
                if id.text().is_some_and(|id| self.ids.is_ask(&id)) {
                    let message = "the id is in a name space that is not the server's";
                    out.push(Out::ToUpstream(reply::error(id.raw(), INVALID_REQUEST, message, None)));
                    return Route::Consumed;
                }
                if method == "elicitation/create" {
                    self.upstream_asks += 1;
                    if let Some(route) = self.asked_by_preview(*id, out) {
                        return route;
                    }
                }
                Route::Forward
            }
            Shape::Notification { method, params } => match &**method {
                "notifications/progress" if !self.progress.passes(frame.text(params.clone())) => {
                    Route::Consumed
                }
                "notifications/cancelled" => self.upstream_cancelled(frame, params.clone(), out),
                "notifications/tools/list_changed" => {
                    self.tools_changed();
                    Route::Forward
                }
                _ => Route::Forward,
            },
            // Some parsers may take it for a response.
            Shape::Other if self.is_legacy_question(frame) => Route::Consumed,
            Shape::Other => Route::Forward,
        }
    }

    /// Takes the upstream's answer to a request that is open.
    fn upstream_response(
        &mut self,
        frame: &ServerFrame<'_>,
        id: Id<'_>,
        open: Open,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        match open {
            Open::Called(call) => {
                if call.is_legacy && self.is_question(frame) {
                    self.progress.forget(call.progress_token());
                    out.push(unasked_question(call.id().unwrap_or(id).to_owned()));
                    return Route::Consumed;
                }
                if !frame.looks.refusal && !frame.looks.question {
                    self.progress.forget(call.progress_token());
                    return Route::Forward;
                }
                self.call_result(*call, frame, now, out)
            }
            Open::Plain(plain) => {
                self.forget_told(plain.told.as_deref());
                match plain.opens {
                    Opens::Nothing => {}
                    Opens::Session => self.handshake.answered(frame.result()),
                    Opens::Discovery => self.handshake.was_asked_to_discover(frame),
                }
                if plain.is_legacy && self.is_question(frame) {
                    out.push(unasked_question(plain.id));
                    return Route::Consumed;
                }
                self.note_passed_on(frame);
                if let Some(lists) = &plain.lists
                    && let Some(frame) = self.listed(frame, lists, now)
                {
                    out.push(Out::ToClient { for_call: Some(plain.id), frame });
                    return Route::Consumed;
                }
                self.unkept_result(plain, frame, out);
                Route::Forward
            }
            // The answer has been here already: the client gets one.
            held @ (Open::Asking(_) | Open::Rerun(_) | Open::Checking(_) | Open::Guarded(_)) => {
                self.open.insert(id, held);
                Route::Consumed
            }
        }
    }

    /// Takes an answer that belongs to none of the client's requests: to a call that we ran again, or to one that was
    /// cancelled meanwhile.
    fn private_response(
        &mut self,
        frame: &ServerFrame<'_>,
        id: Id<'_>,
        id_at: Range<usize>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        let Some(private) = id.text().filter(|id| self.ids.is_request(id)) else {
            // A second answer, or a late one: nobody says that its client takes no notice.
            if self.is_legacy_question(frame) {
                out.push(unasked_question(id.to_owned()));
                return Route::Consumed;
            }
            return Route::Forward;
        };
        let Some(call) = self.ours.remove(&*private) else {
            self.guarded_response(&private, frame, now, out);
            return Route::Consumed;
        };
        match self.open.remove(call.borrow()) {
            Some(Open::Rerun(rerun)) => {
                self.progress.ran_again(rerun.call.progress_token());
                if rerun.call.is_legacy && self.is_question(frame) {
                    out.push(unasked_question(call));
                } else {
                    self.note_rerun(&rerun.call, frame, now);
                    let mut splice = Splice::default();
                    splice.replace(id_at, call.raw());
                    out.push(Out::ToClient { for_call: Some(call), frame: splice.apply(frame.bytes()) });
                }
            }
            Some(Open::Checking(mut checking)) => self.checked(&mut checking, frame.result(), out),
            Some(Open::Plain(_) | Open::Called(_) | Open::Asking(_) | Open::Guarded(_)) | None => {}
        }
        Route::Consumed
    }

    /// A modern call that ran again may be answered with a question of the upstream's own, which goes on as it is.
    fn note_rerun(&mut self, call: &Call, frame: &ServerFrame<'_>, now: Now) {
        if call.is_legacy {
            return;
        }
        self.note_passed_on(frame);
        let state = frame.result().and_then(|result| member_named(result, "requestState")).and_then(string);
        if let Some(state) = state.filter(|_| call.approval.is_some()) {
            self.note_confirmed(call, &state, now);
        }
    }

    /// Whether some reader takes a response for `input_required`, which no session of the push era understands.
    pub(super) fn is_question(&self, frame: &ServerFrame<'_>) -> bool {
        self.process.may_be_question(frame) && frame.is_input_required_to_somebody()
    }

    /// The same, of a frame that belongs to no open request, for the client of a session.
    fn is_legacy_question(&self, frame: &ServerFrame<'_>) -> bool {
        let may_be_one = || match frame.shape {
            Shape::Response { .. } => self.process.may_be_question(frame),
            _ => self.process.may_say_question(frame.bytes()),
        };
        self.handshake.is_opened() && may_be_one() && frame.is_input_required_to_somebody()
    }

    /// Takes a cancellation by the upstream: of a question of its own, or, in the modern era, of a subscription.
    fn upstream_cancelled(
        &mut self,
        frame: &ServerFrame<'_>,
        params: Range<usize>,
        out: &mut Vec<Out>,
    ) -> Route {
        let text = frame.text(params.clone());
        let Some(at) = member_at(text, "requestId") else { return Route::Forward };
        let Some(id) = Id::parse(&text[at.clone()]).and_then(Id::text) else { return Route::Forward };
        if let Some(call) = self.ours.get(&*id) {
            let mut splice = Splice::default();
            splice.replace(params.start + at.start..params.start + at.end, call.raw());
            out.push(Out::ToClient { for_call: Some(call.clone()), frame: splice.apply(frame.bytes()) });
            return Route::Consumed;
        }
        if self.ids.is_private(&id) { Route::Consumed } else { Route::Forward }
    }
}

/// What the client gets instead: several clients show `input_required` as an empty result.
pub(super) fn unasked_question(id: RequestId) -> Out {
    failed(id, INTERNAL, "the server asked in a way that this session does not know (input_required)")
}
