//! The state that a guarded call brings: of a form of ours, of a refusal's question, or of the upstream's own.

use std::sync::Arc;

use handraise_core::Moment;
use handraise_core::words::{Era, Outcome, Provenance, Rail};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::judge::{Arrival, arguments, without_token};
use super::{Held, Stage};
use crate::Now;
use crate::canonical::{Dialect, canonical};
use crate::confirm::{ARGUMENT, ConfirmAnswer, ConfirmConfig, REQUEST, Spent, Told, claimed};
use crate::envelope::inbox::Unshown;
use crate::envelope::mrtr::{Carried, bound, string};
use crate::envelope::open::{Call, Open, tool};
use crate::envelope::retry::since;
use crate::envelope::{Caller, Envelope, Out, Route};
use crate::frame::ClientFrame;
use crate::pointer::sole;
use crate::record::Record;
use crate::seal::{self, Approval, ConfirmState, Fault, Purpose, RefusalState, TTL};

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

/// What a state that a call brought means for it.
pub(super) enum Carries {
    /// Nothing: it is asked about like any other.
    Nothing,
    /// It was asked about with a form before, and is asked about anew.
    Anew,
    /// Its form was accepted.
    Accepted(Box<ConfirmState>, u64),
    /// Its form was answered faster than anybody reads.
    Unshown(Unshown),
}

impl Envelope {
    /// Reads the state that a call brought. `Err`: the call has been dealt with.
    pub(super) fn carried(
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
        if !seal::is_ours(&state) || self.room.has_passed_on(&state) {
            if !self.was_confirmed(arrival, &state) {
                return Err(self.refuse_state(frame, id, "state-not-confirmed", out));
            }
            self.go_on(arrival, out);
            return Err(Route::Consumed);
        }
        if seal::purpose_said(&state) != Some(Purpose::Confirm) {
            return Err(self.refusal_retry(config, arrival, out));
        }
        let upstream = self.process.config.upstream.as_str();
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
    fn refusal_retry(
        &mut self,
        config: &ConfirmConfig,
        arrival: &Arrival<'_, '_>,
        out: &mut Vec<Out>,
    ) -> Route {
        let Arrival { frame, id, caller, now, .. } = *arrival;
        match self.carried_under(&config.keyring, frame, "tools/call", true, caller, now) {
            Carried::Ours(state) => match state.approval {
                Some(Approval { strips_token }) => {
                    let bytes = without_token(frame, strips_token);
                    let Ok(frame) = ClientFrame::read(&bytes) else { return Route::Consumed };
                    if self.accepts(&frame, &state) {
                        return self.claim_rerun(arrival, &frame, state, out);
                    }
                    self.retry(&frame, id, *state, caller, now, out)
                }
                None => self.refuse_state(frame, id, "state-not-confirmed", out),
            },
            Carried::Refused(reason) => self.refuse_state(frame, id, reason, out),
            Carried::Nothing => self.refuse_state(frame, id, "state-not-confirmed", out),
        }
    }

    /// A confirmed call is about to run again. Its approval is for one run in all processes that know it, so that the
    /// state is claimed where the approval was.
    fn claim_rerun(
        &mut self,
        arrival: &Arrival<'_, '_>,
        frame: &ClientFrame<'_>,
        state: Box<RefusalState>,
        out: &mut Vec<Out>,
    ) -> Route {
        let Arrival { id, caller, now, .. } = *arrival;
        let Some(call) = Call::keep(&self.room, frame, caller, now.boot, self.upstream_asks) else {
            out.push(Self::no_room(id));
            return Route::Consumed;
        };
        let (nonce, expires_ms) = (state.nonce, state.expiry.wall_ms);
        let party = arrival.party.clone();
        let held = Held {
            id: id.to_owned(),
            call,
            party,
            about: None,
            again: Some(state),
            stage: Stage::Claim,
            wait: None,
            waiting: None,
        };
        self.ask_store_about(Box::new(held), Stage::Claim, nonce, expires_ms, now, out);
        Route::Consumed
    }

    /// What the store said about the state with which a confirmed call runs again.
    pub(super) fn run_again_claimed(
        &mut self,
        held: &Held,
        state: RefusalState,
        was: Spent,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        let Ok(frame) = ClientFrame::read(held.call.bytes()) else { return };
        let id = held.id.borrow();
        // It was said what becomes of it: nothing goes on as it is.
        let _ = match claimed(was) {
            Ok(()) => self.retry(&frame, id, state, &held.call.caller, now, out),
            Err(rejection) => self.refuse_state(&frame, id, rejection.as_str(), out),
        };
    }

    /// The answer to a form that was handed back. Whatever it is, it settles the question.
    fn form_answer(
        &self,
        arrival: &Arrival<'_, '_>,
        state: ConfirmState,
        out: &mut Vec<Out>,
    ) -> Result<Carries, Route> {
        let clock = self.process.config.clock;
        let latency = since(state.expiry, arrival.now, clock == state.expiry.clock);
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
        let record = Record::of(party, tool, Rail::Form, outcome, provenance);
        out.push(Out::Record(Record { latency_ms: Some(latency_ms), reason, ..record }));
        if !is_shown && matches!(answer, ConfirmAnswer::Decline | ConfirmAnswer::Cancel) && is_same {
            return Ok(Carries::Unshown(Unshown { word: outcome.as_str(), after: latency, says_so: false }));
        }
        out.push(arrival.told(&what));
        Err(Route::Consumed)
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
            Call::keep(&self.room, &frame, arrival.caller, arrival.now.boot, self.upstream_asks)
        });
        let Some(mut call) = kept else {
            out.push(Self::no_room(arrival.id));
            return;
        };
        call.approval = Some(Approval { strips_token: arrival.strips_token });
        out.push(Out::ToUpstream(bytes));
        self.open.insert(arrival.id, Open::Called(Box::new(call)));
    }
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
