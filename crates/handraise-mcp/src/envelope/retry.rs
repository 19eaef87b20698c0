//! A retry of a question that was handed back: what was answered, and the call that runs again with it.

use std::sync::Arc;
use std::time::Duration;

use handraise_core::words::{Outcome, Provenance, Rail};

use crate::Now;
use crate::canonical::{self, Dialect};
use crate::declared::Party;
use crate::envelope::check::list_candidates;
use crate::envelope::inbox::{ToPut, Unshown};
use crate::envelope::mrtr::invalid_state;
use crate::envelope::open::{Call, Checking, Open, Plain, tool};
use crate::envelope::refused::Subject;
use crate::envelope::room::Kept;
use crate::envelope::{Caller, Envelope, Out, Route};
use crate::frame::reply;
use crate::frame::splice::{Splice, quoted};
use crate::frame::{ClientFrame, Id, RequestId};
use crate::question::{Answer, Chosen, response_key};
use crate::record::Record;
use crate::refusal::{Refusal, Rule};
use crate::seal::{Expiry, RefusalState, TTL};

impl Envelope {
    /// Takes a retry with a state of ours. It never runs the tool without the argument.
    pub(super) fn retry(
        &mut self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        state: RefusalState,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        let config = &self.process.config;
        let latency = since(state.expiry, now, config.clock == state.expiry.clock);
        let is_shown = latency >= config.min_human;
        let provenance = if is_shown { Provenance::Client } else { Provenance::NotShown };
        let (party, tool, rail) = (self.party(frame), tool(frame), Rail::Form);
        let retry = Retry { party, tool, state, latency, rail, provenance, ask: None, told: None };
        let (outcome, reason) = match config.rules.named(&retry.state.refusal).cloned() {
            Some(rule) if self.process.elicitation() => match read_answer(frame, &retry.state, &rule) {
                Ok(chosen) => return self.accepted(frame, id, retry, rule, &chosen, now, out),
                Err((outcome @ (Outcome::Decline | Outcome::Cancel), _)) if !is_shown => {
                    return self.retry_unshown(frame, id, &retry, caller, outcome, now, out);
                }
                Err(ending) => ending,
            },
            // Switched off since the question, altogether or this rule.
            Some(_) | None => (Outcome::Disabled, None),
        };
        retry.end(id, retry.record(outcome, reason), out)
    }

    /// A retry says no faster than anybody reads: its question goes on to the inbox, if somebody is there, while the retry
    /// waits.
    #[expect(clippy::too_many_arguments, reason = "a retry, whose it is, when, and what follows")]
    fn retry_unshown(
        &mut self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        retry: &Retry,
        caller: &Arc<Caller>,
        outcome: Outcome,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        let record = retry.record(outcome, None);
        let asked = self.retry_to_put(frame, id, retry, caller, now);
        let Some(asked) = asked else { return retry.end(id, record, out) };
        out.push(record);
        if let Some(reason) = self.inbox_bar(&retry.state) {
            return retry.end(id, asked.subject.not_offered(Rail::Inbox, reason), out);
        }
        let unshown = Unshown { word: outcome.as_str(), after: retry.latency, says_so: false };
        self.go_down(asked, Rail::Form, Some(unshown), now, out);
        Route::Consumed
    }

    /// Why the question of a state is not put to the inbox, if so: nobody is asked what can do nothing any more, or is asked
    /// already.
    fn inbox_bar(&self, state: &RefusalState) -> Option<&'static str> {
        if self.room.is_spent(&state.nonce) {
            return Some("state-spent");
        }
        let is_asked = self.asks.values().any(|call| match self.open.get(call.borrow()) {
            Some(Open::Asking(asking)) => asking.retries(&state.nonce),
            _ => false,
        });
        is_asked.then_some("already-asked")
    }

    /// What another rail needs to know of a retry. What has an approval stays where it is: that is for one run.
    fn retry_to_put(
        &self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        retry: &Retry,
        caller: &Arc<Caller>,
        now: Now,
    ) -> Option<ToPut> {
        let state = &retry.state;
        if state.approval.is_some() || !self.process.inbox_is_usable() {
            return None;
        }
        let rule = self.process.config.rules.named(&state.refusal)?;
        let refusal =
            self.process.config.rules.read(&state.result, |argument| argument != rule.argument())?;
        let Refusal::Ambiguous(ambiguity) = refusal else { return None };
        if ambiguity.rule.name() != state.refusal {
            return None;
        }
        let call = Call::keep(&self.room, frame, caller, now.boot, self.upstream_asks)?;
        let subject = Subject {
            party: retry.party.clone(),
            tool: retry.tool.clone(),
            ambiguity,
            arguments_sha256: state.arguments_sha256,
        };
        // The state is kept beside it, with what was offered.
        let offered: usize = state.offered.iter().map(|one| one.value.len() + one.whole.len()).sum();
        let beside = size_of_val(state) + state.result.len() + offered;
        let refusal = self.keep_refusal(&subject, &reply::result(id.raw(), &state.result), beside)?;
        Some(ToPut { call, subject, refusal, retry: Some(Box::new(state.clone())) })
    }

    /// Whether a retry accepts what was offered, and so runs the call.
    pub(super) fn accepts(&self, frame: &ClientFrame<'_>, state: &RefusalState) -> bool {
        let rule = self.process.config.rules.named(&state.refusal);
        self.process.elicitation() && rule.is_some_and(|rule| read_answer(frame, state, rule).is_ok())
    }

    /// An offered candidate was accepted: the call runs with it, unless it did already.
    #[expect(clippy::too_many_arguments, reason = "what is accepted, where, when, and what follows")]
    pub(super) fn accepted(
        &mut self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        retry: Retry,
        rule: Arc<Rule>,
        chosen: &Chosen,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        let again = run_again(frame, &retry.state, &rule, chosen.as_str());
        let offered = retry.state.offered.iter().find(|offered| offered.value == chosen.as_str()).cloned();
        let (Some(again), Some(offered)) = (again, offered) else {
            return retry.end(id, retry.record(Outcome::Invalid, Some("no-place-for-argument")), out);
        };
        if !self.room.spend(retry.state.nonce, now.boot) {
            out.push(retry.record(Outcome::Invalid, Some("state-spent")));
            out.push(invalid_state(id));
            return Route::Consumed;
        }
        let Some(tool) = rule.candidates_tool() else {
            out.push(retry.record(Outcome::Accept, None));
            self.forward_again(&id.to_owned(), again, retry.told, out);
            return Route::Consumed;
        };
        // Nobody has accepted a call of that tool. What its server says of it is not asked: the rule says it is read-only.
        let confirm = self.process.config.confirm.as_ref();
        if confirm.is_some_and(|confirm| confirm.guards.of(tool.name(), true).is_some()) {
            return retry.end(id, retry.given_up(Outcome::Error, "candidates-guarded"), out);
        }
        let Some(again) = Kept::new(&self.room, &again, retry.state.result.len()) else {
            return retry.end(id, retry.given_up(Outcome::Error, "bytes-in-flight"), out);
        };
        // The server's word on the candidates, before anything runs.
        let ours = self.ids.request();
        out.push(Out::ToUpstream(list_candidates(frame, &quoted(&ours), tool.name())));
        let deadline = now.boot + self.process.config.ask_timeout;
        self.deadlines.insert((deadline, ours.clone()));
        self.ours.insert(ours.clone(), id.to_owned());
        let checking = Checking { id: id.to_owned(), ours, deadline, again, retry, offered, rule };
        self.open.insert(id, Open::Checking(Box::new(checking)));
        Route::Consumed
    }

    /// The retry goes on under its own id: the upstream has not seen it yet.
    pub(super) fn forward_again(
        &mut self,
        id: &RequestId,
        again: Vec<u8>,
        told: Option<Box<RequestId>>,
        out: &mut Vec<Out>,
    ) {
        out.push(Out::ToUpstream(again));
        self.open.insert(id.borrow(), Open::Plain(Plain { told, ..Plain::new(id.clone()) }));
    }

    /// Nothing more is told with a token.
    pub(super) fn forget_told(&mut self, told: Option<&RequestId>) {
        self.progress.forget(told.map(RequestId::borrow));
    }
}

/// A retry of a question of ours.
#[derive(Debug)]
pub(super) struct Retry {
    pub(super) party: Party,
    pub(super) tool: String,
    pub(super) state: RefusalState,
    pub(super) latency: Duration,
    /// The rail on which it was answered.
    pub(super) rail: Rail,
    pub(super) provenance: Provenance,
    /// The key under which the inbox was asked.
    pub(super) ask: Option<String>,
    /// The token with which its client was told of progress while it waited for the inbox.
    pub(super) told: Option<Box<RequestId>>,
}

impl Retry {
    /// A record of what the client answered.
    pub(super) fn record(&self, outcome: Outcome, reason: Option<&'static str>) -> Out {
        let provenance = if outcome == Outcome::Disabled { Provenance::System } else { self.provenance };
        self.record_by(provenance, outcome, reason)
    }

    /// A record of what came of an acceptance without the client: it was accepted, and nothing ran.
    pub(super) fn given_up(&self, outcome: Outcome, reason: &'static str) -> Out {
        self.record_by(Provenance::System, outcome, Some(reason))
    }

    /// Ends it with the refusal that it is about.
    fn end(&self, id: Id<'_>, record: Out, out: &mut Vec<Out>) -> Route {
        out.push(record);
        out.push(original(id, &self.state.result));
        Route::Consumed
    }

    fn record_by(&self, provenance: Provenance, outcome: Outcome, reason: Option<&'static str>) -> Out {
        let latency_ms = u64::try_from(self.latency.as_millis()).ok();
        let rail = if outcome == Outcome::Disabled { Rail::Refuse } else { self.rail };
        let refusal = Some(self.state.refusal.clone());
        let record = Record::of(&self.party, self.tool.clone(), rail, outcome, provenance);
        Out::Record(Record { latency_ms, refusal, reason, ask: self.ask.clone(), ..record })
    }
}

/// The chosen candidate, or how the question ended without one.
fn read_answer(
    frame: &ClientFrame<'_>,
    state: &RefusalState,
    rule: &Rule,
) -> Result<Chosen, (Outcome, Option<&'static str>)> {
    let arguments = frame.param(|params| params.arguments.as_ref()).filter(|arguments| *arguments != "null");
    let digest =
        canonical::canonical(arguments.unwrap_or("{}").as_bytes(), Some(rule.argument()), Dialect::Plain);
    let is_same = digest.is_ok_and(|canonical| canonical.sha256() == state.arguments_sha256);
    if !is_same || tool(frame) != state.tool {
        return Err((Outcome::Invalid, Some("other-call")));
    }
    let responses = frame.param(|params| params.input_responses.as_ref());
    let offered = state.offered.iter().map(|offered| offered.value.as_str());
    match Answer::read_responses(responses, rule.argument(), offered) {
        Answer::Accept(chosen) => Ok(chosen),
        Answer::Decline => Err((Outcome::Decline, None)),
        Answer::Cancel => Err((Outcome::Cancel, None)),
        Answer::Invalid(reason) => Err((Outcome::Invalid, Some(reason.as_str()))),
    }
}

/// The retry as the upstream gets it: with the argument, without what is ours, and with the upstream's own state where
/// there was one.
fn run_again(frame: &ClientFrame<'_>, state: &RefusalState, rule: &Rule, value: &str) -> Option<Vec<u8>> {
    let params = frame.params.as_ref()?;
    let mut splice = Splice::default();
    if !splice.set_argument(frame, rule.argument(), value) {
        return None;
    }
    let ours = response_key(rule.argument());
    let is_only_ours = params.input_responses.as_ref().is_none_or(|responses| {
        splice.remove_members(frame.bytes(), responses.clone(), |key| key == ours) == 0
    });
    if is_only_ours {
        // Nothing is left of the answers: the member goes as a whole.
        splice = Splice::default();
        if !splice.set_argument(frame, rule.argument(), value) {
            return None;
        }
    }
    if let (Some(upstream), Some(member)) = (&state.upstream_state, &params.request_state) {
        splice.replace(member.clone(), quoted(upstream));
    }
    splice.remove_members(frame.bytes(), params.at.clone(), |key| match key {
        "inputResponses" => is_only_ours,
        "requestState" => state.upstream_state.is_none(),
        _ => false,
    });
    Some(splice.apply(frame.bytes()))
}

/// How long ago the question was asked.
pub(super) fn since(expiry: Expiry, now: Now, is_same_clock: bool) -> Duration {
    let left = if is_same_clock {
        now.boot.until(expiry.boot)
    } else {
        Duration::from_millis(expiry.wall_ms.saturating_sub(now.wall_ms))
    };
    TTL.saturating_sub(left)
}

/// The refusal, byte for byte, as the answer to the retry.
pub(super) fn original(id: Id<'_>, result: &str) -> Out {
    Out::ToClient { for_call: Some(id.to_owned()), frame: reply::result(id.raw(), result) }
}
