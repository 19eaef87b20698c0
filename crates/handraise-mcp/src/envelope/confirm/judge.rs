//! A call comes in: whether it is guarded, and what it brought.

use std::sync::Arc;

use handraise_core::Moment;
use handraise_core::words::{Era, Outcome, Provenance, Rail};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{About, Accepted, Brought, Held, Stage, rail, record, told};
use crate::Now;
use crate::canonical::{self, Dialect, canonical};
use crate::confirm::{
    self, ARGUMENT, ConfirmAnswer, ConfirmConfig, Guarding, MAX_TOKEN_PREVIEW_BYTES, REQUEST, Rejection, Told,
};
use crate::declared::{self, Party};
use crate::envelope::mrtr::{Carried, bound, string};
use crate::envelope::open::{Call, Open, tool};
use crate::envelope::{Caller, Envelope, ID_IN_USE, Out, Route, failed};
use crate::frame::reply::{self, INVALID_PARAMS, INVALID_REQUEST};
use crate::frame::splice::Splice;
use crate::frame::{ClientFrame, Id};
use crate::pointer::{self, sole};
use crate::seal::{self, Approval, ConfirmState, Fault, Purpose, TTL};

/// The most states of the upstream that are remembered as those of confirmed calls; the oldest goes first.
const MAX_CONFIRMED: usize = 1024;

/// A state of the upstream, with which a call that was confirmed goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Confirmed {
    state: [u8; 32],
    tool: String,
    arguments: [u8; 32],
    caller: Arc<Caller>,
    until: Moment,
}

/// A call as it came, and what is known about it.
struct Arrival<'a, 'b> {
    frame: &'a ClientFrame<'b>,
    id: Id<'a>,
    caller: &'a Arc<Caller>,
    tool: String,
    party: Party,
    guarding: Guarding,
    action: String,
    arguments: canonical::Canonical,
    /// The arguments as they stand in the frame.
    raw: &'a RawValue,
    strips_token: bool,
    now: Now,
}

impl Arrival<'_, '_> {
    fn record(
        &self,
        rail: Rail,
        outcome: Outcome,
        provenance: Provenance,
        reason: Option<&'static str>,
    ) -> Out {
        record(&self.party, self.tool.clone(), rail, outcome, provenance, None, reason)
    }

    fn told(&self, what: &Told) -> Out {
        told(self.id, self.party.era, what)
    }

    /// As the upstream gets it: without what is ours.
    fn stripped(&self) -> Vec<u8> {
        stripped(self.frame, self.strips_token)
    }

    fn account(&self) -> Option<String> {
        self.guarding.guard.account(self.raw)
    }

    fn target(&self) -> String {
        self.guarding.guard.target(self.raw)
    }
}

/// What a state that a call brought means for it.
enum Carries {
    /// Nothing: it is asked about like any other.
    Nothing,
    /// It was asked about with a form before, and is asked about anew.
    Anew,
    /// Its form was accepted.
    Accepted(Box<ConfirmState>, u64),
}

impl Envelope {
    /// Takes a tool call that has an id. `None`: it is not guarded, and goes the way of all others.
    pub(in crate::envelope) fn guard(
        &mut self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Option<Route> {
        let process = Arc::clone(&self.process);
        let config = process.config.confirm.as_ref()?;
        let Some(name) = exact_name(frame) else {
            out.push(failed(id.to_owned(), INVALID_PARAMS, "a tool call names its tool in a string"));
            return Some(Route::Consumed);
        };
        if !config.guards.concern(&name) {
            return None;
        }
        if self.open.get(id).is_some() {
            out.push(failed(id.to_owned(), INVALID_REQUEST, ID_IN_USE));
            return Some(Route::Consumed);
        }
        if self.guarded.list_until.is_some_and(|until| until <= now.boot) {
            self.guarded.list = None;
        }
        if self.guarded.list.is_none() {
            let Some(call) = Call::keep(&process, frame, caller, now.boot, self.upstream_asks) else {
                out.push(Self::no_room(id));
                return Some(Route::Consumed);
            };
            let party = self.party(frame);
            let held =
                Held { id: id.to_owned(), call, party, about: None, stage: Stage::Listing, wait: None };
            self.await_listing(Box::new(held), now, out);
            return Some(Route::Consumed);
        }
        self.judge(config, name, frame, id, caller, now, out)
    }

    /// Takes a tool call that nobody could answer: nothing runs of what may be guarded.
    pub(in crate::envelope) fn guard_unanswerable(
        &self,
        frame: &ClientFrame<'_>,
        out: &mut Vec<Out>,
    ) -> Route {
        let Some(config) = &self.process.config.confirm else { return Route::Forward };
        if exact_name(frame).is_some_and(|name| !config.guards.concern(&name)) {
            return Route::Forward;
        }
        let party = declared::modern(frame).unwrap_or_else(|| self.handshake.party());
        let outcome = Outcome::NotOffered;
        out.push(record(&party, tool(frame), Rail::Refuse, outcome, Provenance::System, None, Some("no-id")));
        if !frame.id_at.is_empty() {
            let message = "a tool call that needs a confirmation has an id that is a string or a number";
            let frame = reply::error("null", INVALID_REQUEST, message, None);
            out.push(Out::ToClient { for_call: None, frame });
        }
        Route::Consumed
    }

    /// Judges a call once the server's tools are known. `None`: it is not guarded.
    #[expect(clippy::too_many_arguments, reason = "a call, whose it is, when, and what follows")]
    pub(super) fn judge(
        &mut self,
        config: &ConfirmConfig,
        tool: String,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Option<Route> {
        let listed = self.guarded.list.as_ref().and_then(|list| list.tool(&tool));
        let is_harmless = listed.is_some_and(|tool| tool.is_harmless) && !self.process.is_harmful(&tool);
        let guarding = config.guards.of(&tool, is_harmless)?;
        let strips_token = !listed.is_some_and(|tool| tool.has_own_token);
        let party = self.party(frame);
        let action = guarding.guard.action(&tool);
        let text = arguments(frame);
        let omitted = strips_token.then_some(ARGUMENT);
        let bindable = canonical(text.as_bytes(), omitted, Dialect::DoubledDollar)
            .and_then(|canonical| Ok((canonical, raw(text)?)));
        let (arguments, raw) = match bindable {
            Ok(bindable) => bindable,
            Err(why) => {
                let (outcome, reason) = (Outcome::NotOffered, Some(why.as_str()));
                out.push(record(&party, tool, Rail::Refuse, outcome, Provenance::System, None, reason));
                out.push(told(id, party.era, &Told::unbindable(&action, why)));
                return Some(Route::Consumed);
            }
        };
        // No surface shows that much, and nothing of it is kept.
        if arguments.as_str().len() > MAX_TOKEN_PREVIEW_BYTES {
            let hidden = arguments.as_str().len() - MAX_TOKEN_PREVIEW_BYTES;
            let (outcome, reason) = (Outcome::NotOffered, Some("too-long"));
            out.push(record(&party, tool, Rail::Refuse, outcome, Provenance::System, None, reason));
            out.push(told(id, party.era, &Told::too_long(&action, hidden)));
            return Some(Route::Consumed);
        }
        let arrival =
            Arrival { frame, id, caller, tool, party, guarding, action, arguments, raw, strips_token, now };
        let carries = match self.carried(config, &arrival, out) {
            Ok(carries) => carries,
            Err(route) => return Some(route),
        };
        self.admit(config, arrival, carries, out);
        Some(Route::Consumed)
    }

    /// Reads the state that a call brought. `Err`: the call has been dealt with.
    fn carried(
        &mut self,
        config: &ConfirmConfig,
        arrival: &Arrival<'_, '_>,
        out: &mut Vec<Out>,
    ) -> Result<Carries, Route> {
        let Arrival { frame, id, caller, now, .. } = arrival;
        let (id, now) = (*id, *now);
        let Some(raw) = frame.param(|params| params.request_state.as_ref()) else {
            if frame.param(|params| params.input_responses.as_ref()).is_some() {
                let (outcome, reason) = (Outcome::Invalid, Some("state-missing"));
                out.push(arrival.record(Rail::Form, outcome, Provenance::Client, reason));
                out.push(arrival.told(&Told::state_missing(&arrival.action)));
                return Err(Route::Consumed);
            }
            return Ok(Carries::Nothing);
        };
        let Some(state) = string(raw) else {
            return Err(self.refuse_state(frame, id, Fault::Malformed.as_str(), out));
        };
        if arrival.party.era != Era::Mrtr {
            return Err(self.refuse_state(frame, id, "state-in-push-era", out));
        }
        if !seal::is_ours(&state) || self.process.has_passed_on(&state) {
            if !self.was_confirmed(arrival, &state) {
                return Err(self.refuse_state(frame, id, "state-not-confirmed", out));
            }
            self.go_on(arrival, out);
            return Err(Route::Consumed);
        }
        if seal::purpose_said(&state) != Some(Purpose::Confirm) {
            return Err(self.refusal_retry(arrival, out));
        }
        let upstream = &self.process.config.upstream;
        let clock = self.process.config.clock;
        match ConfirmState::open(&state, &config.keyring, bound(caller), upstream, now, clock) {
            Ok(state) => self.form_answer(arrival, state, out),
            // Its time is over: it is asked anew, unless the answer was no.
            Err(Fault::Expired) => match answer(frame) {
                Some(ConfirmAnswer::Decline) => {
                    out.push(arrival.record(
                        Rail::Form,
                        Outcome::Decline,
                        Provenance::Client,
                        Some("state-expired"),
                    ));
                    out.push(arrival.told(&Told::declined(&arrival.action)));
                    Err(Route::Consumed)
                }
                _ => Ok(Carries::Anew),
            },
            Err(fault) => Err(self.refuse_state(frame, id, fault.as_str(), out)),
        }
    }

    /// A retry of a refusal's question about a call that is guarded: it runs again under the approval that it has, if any.
    fn refusal_retry(&mut self, arrival: &Arrival<'_, '_>, out: &mut Vec<Out>) -> Route {
        let Arrival { frame, id, caller, now, .. } = *arrival;
        match self.carried_state(frame, "tools/call", true, caller, now) {
            Carried::Ours(state) => match state.approval {
                Some(Approval { strips_token }) => {
                    let bytes = without_token(frame, strips_token);
                    let Ok(frame) = ClientFrame::read(&bytes) else { return Route::Consumed };
                    self.retry(&frame, id, *state, now, out)
                }
                None => self.refuse_state(frame, id, "state-not-confirmed", out),
            },
            Carried::Refused(reason) => self.refuse_state(frame, id, reason, out),
            Carried::Nothing => self.refuse_state(frame, id, "state-not-confirmed", out),
        }
    }

    /// The answer to a form that was handed back. Whatever it is, it settles the question.
    fn form_answer(
        &self,
        arrival: &Arrival<'_, '_>,
        state: ConfirmState,
        out: &mut Vec<Out>,
    ) -> Result<Carries, Route> {
        let clock = self.process.config.clock;
        let latency = super::super::mrtr::since(state.expiry, arrival.now, clock == state.expiry.clock);
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX).min(TTL.as_millis() as u64);
        let Some(answer) = answer(arrival.frame) else { return Ok(Carries::Anew) };
        let is_same = state.tool == arrival.tool && state.arguments_sha256 == arrival.arguments.sha256();
        let is_shown = latency >= self.process.config.min_human;
        if !is_same && answer != ConfirmAnswer::Decline {
            // An answer to another call is none to this one.
            return Ok(Carries::Anew);
        }
        if answer == ConfirmAnswer::Confirmed && is_shown {
            return Ok(Carries::Accepted(Box::new(state), latency_ms));
        }
        let provenance = if is_shown { Provenance::Client } else { Provenance::NotShown };
        let (outcome, reason, what) = super::answer::ending(answer, is_shown, &arrival.action);
        out.push(Self::burn(state.nonce, state.expiry.wall_ms));
        let (party, tool) = (&arrival.party, arrival.tool.clone());
        out.push(record(party, tool, Rail::Form, outcome, provenance, Some(latency_ms), reason));
        out.push(arrival.told(&what));
        Err(Route::Consumed)
    }

    /// Lets a judged call go on to its rail, or ends it where it has none.
    fn admit(
        &mut self,
        config: &ConfirmConfig,
        arrival: Arrival<'_, '_>,
        carries: Carries,
        out: &mut Vec<Out>,
    ) {
        let refused =
            |reason| arrival.record(Rail::Refuse, Outcome::NotOffered, Provenance::System, Some(reason));
        if arrival.guarding.needs_inbox {
            out.push(refused("needs-inbox"));
            out.push(arrival.told(&Told::needs_inbox(&arrival.action)));
            return;
        }
        let form_was_sent = !matches!(carries, Carries::Nothing);
        let rail = match rail(config, arrival.party.declared, form_was_sent, arrival.strips_token) {
            Ok(rail) => rail,
            Err(remedy) => {
                out.push(refused("no-rail"));
                out.push(arrival.told(&Told::unsupported(&arrival.action, remedy, config.forms)));
                return;
            }
        };
        let (account, target) = (arrival.account(), arrival.target());
        let mut was_asked_again = false;
        let brought = match carries {
            Carries::Accepted(state, latency_ms) => {
                was_asked_again = state.was_asked_again;
                Brought::Accepted(Accepted {
                    hash: state.hash,
                    revision: state.revision,
                    nonce: state.nonce,
                    expires_ms: state.expiry.wall_ms,
                    latency_ms,
                })
            }
            Carries::Nothing | Carries::Anew if rail == Rail::Token => {
                let of = confirm::Call { tool: &arrival.tool, account: account.as_deref(), target: &target };
                match brought_token(config, arrival.raw, of) {
                    Ok(brought) => brought,
                    Err(rejection) => {
                        let reason = Some(rejection.as_str());
                        out.push(arrival.record(Rail::Token, Outcome::Invalid, Provenance::Client, reason));
                        out.push(arrival.told(&Told::rejected(&arrival.action, rejection, None)));
                        return;
                    }
                }
            }
            Carries::Nothing | Carries::Anew => Brought::Nothing,
        };
        let bytes = arrival.stripped();
        let kept = ClientFrame::read(&bytes).ok().and_then(|frame| {
            Call::keep(&self.process, &frame, arrival.caller, arrival.now.boot, self.upstream_asks)
        });
        let Some(call) = kept else {
            out.push(Self::no_room(arrival.id));
            return;
        };
        let about = About {
            tool: arrival.tool,
            guard: arrival.guarding.guard,
            action: arrival.action,
            account,
            target,
            arguments: arrival.arguments,
            strips_token: arrival.strips_token,
            brought,
            form_was_sent,
            was_asked_again,
            rail,
            tool_digest: String::new(),
            fresh: None,
        };
        let (id, now) = (arrival.id.to_owned(), arrival.now);
        let held =
            Held { id, call, party: arrival.party, about: Some(about), stage: Stage::Listing, wait: None };
        self.read_fresh(Box::new(held), now, out);
    }

    /// Remembers a state of the upstream with which a call goes on that was confirmed.
    pub(in crate::envelope) fn note_confirmed(&mut self, call: &Call, state: &str, now: Now) {
        let Some(approval) = call.approval else { return };
        let Ok(frame) = ClientFrame::read(call.bytes()) else { return };
        let omitted = approval.strips_token.then_some(ARGUMENT);
        let Ok(canonical) = canonical(arguments(&frame).as_bytes(), omitted, Dialect::DoubledDollar) else {
            return;
        };
        self.guarded.confirmed.push_back(Confirmed {
            state: Sha256::digest(state.as_bytes()).into(),
            tool: tool(&frame),
            arguments: canonical.sha256(),
            caller: Arc::clone(&call.caller),
            until: now.boot + TTL,
        });
        if self.guarded.confirmed.len() > MAX_CONFIRMED {
            self.guarded.confirmed.pop_front();
        }
    }

    /// Whether a state of the upstream came from a confirmed run of this very call. It counts once.
    fn was_confirmed(&mut self, arrival: &Arrival<'_, '_>, state: &str) -> bool {
        let state: [u8; 32] = Sha256::digest(state.as_bytes()).into();
        let arguments = arrival.arguments.sha256();
        let confirmed = &mut self.guarded.confirmed;
        confirmed.retain(|one| one.until > arrival.now.boot);
        let at = confirmed.iter().position(|one| {
            one.state == state
                && one.tool == arrival.tool
                && one.arguments == arguments
                && *one.caller == **arrival.caller
        });
        at.and_then(|at| confirmed.remove(at)).is_some()
    }

    /// A call that was confirmed goes on with its answer to the upstream's own question.
    fn go_on(&mut self, arrival: &Arrival<'_, '_>, out: &mut Vec<Out>) {
        let bytes = without_token(arrival.frame, arrival.strips_token);
        let kept = ClientFrame::read(&bytes).ok().and_then(|frame| {
            Call::keep(&self.process, &frame, arrival.caller, arrival.now.boot, self.upstream_asks)
        });
        let Some(mut call) = kept else {
            out.push(Self::no_room(arrival.id));
            return;
        };
        call.approval = Some(Approval { strips_token: arrival.strips_token });
        out.push(Out::ToUpstream(bytes));
        self.open.insert(arrival.id, Open::Called(call));
    }
}

/// The tool's name, where every reader reads the same.
fn exact_name(frame: &ClientFrame<'_>) -> Option<String> {
    let name = frame.param(|params| params.name.as_ref())?;
    canonical(name.as_bytes(), None, Dialect::Plain).ok()?;
    string(name)
}

/// The arguments of a call; none is as good as an empty object.
fn arguments<'a>(frame: &ClientFrame<'a>) -> &'a str {
    let arguments = frame.param(|params| params.arguments.as_ref());
    arguments.filter(|arguments| *arguments != "null").unwrap_or("{}")
}

fn raw(json: &str) -> Result<&RawValue, canonical::Unbindable> {
    serde_json::from_str(json).map_err(|_| canonical::Unbindable::Malformed)
}

/// The answer to our form, where there is one.
fn answer(frame: &ClientFrame<'_>) -> Option<ConfirmAnswer> {
    let responses = frame.param(|params| params.input_responses.as_ref())?;
    let Ok(responses) = serde_json::from_str::<&RawValue>(responses) else {
        return Some(ConfirmAnswer::Malformed);
    };
    match sole(responses, REQUEST) {
        Ok(None) => None,
        Ok(Some(answer)) => Some(ConfirmAnswer::read(answer.get())),
        Err(_) => Some(ConfirmAnswer::Malformed),
    }
}

/// The token that a call brings, after the checks 1 to 4. Models fill in what is optional: nothing and no text are none.
fn brought_token(
    config: &ConfirmConfig,
    arguments: &RawValue,
    call: confirm::Call<'_>,
) -> Result<Brought, Rejection> {
    let Ok(Some(token)) = sole(arguments, ARGUMENT) else { return Ok(Brought::Nothing) };
    if matches!(token.get(), "null" | "\"\"") {
        return Ok(Brought::Nothing);
    }
    let (Some(token), Ok(tokens)) = (pointer::string(token), &config.tokens) else {
        return Err(Rejection::Malformed);
    };
    confirm::verify(&token, &tokens.key, call).map(Brought::Token)
}

/// A call without what belongs to us: our state, the answers to our question, and the token.
fn stripped(frame: &ClientFrame<'_>, strips_token: bool) -> Vec<u8> {
    let mut splice = Splice::default();
    strip_token(&mut splice, frame, strips_token);
    if let Some(params) = &frame.params {
        splice.remove_members(frame.bytes(), params.at.clone(), |key| {
            matches!(key, "requestState" | "inputResponses")
        });
    }
    splice.apply(frame.bytes())
}

/// A call without our token, and with all else that it has.
fn without_token(frame: &ClientFrame<'_>, strips_token: bool) -> Vec<u8> {
    let mut splice = Splice::default();
    strip_token(&mut splice, frame, strips_token);
    splice.apply(frame.bytes())
}

fn strip_token(splice: &mut Splice, frame: &ClientFrame<'_>, strips_token: bool) {
    let arguments = frame.params.as_ref().and_then(|params| params.arguments.clone());
    if let Some(arguments) = arguments.filter(|_| strips_token) {
        splice.remove_members(frame.bytes(), arguments, |key| key == ARGUMENT);
    }
}
