//! The modern era: the question is handed back with a state, and the retry brings the answer (mcp.md §5).

use std::sync::Arc;
use std::time::Duration;

use handraise_core::words::{Outcome, Provenance, Rail};

use crate::Now;
use crate::canonical::{self, Dialect};
use crate::declared::Party;
use crate::envelope::open::{Call, Checking, Kept, Open, Plain, tool};
use crate::envelope::refused::Subject;
use crate::envelope::{Caller, Envelope, Out, Route, is_question};
use crate::frame::reply::{self, INVALID_PARAMS};
use crate::frame::splice::{Splice, quoted};
use crate::frame::{ClientFrame, Id, Quoted, RequestId, Scanner, ServerFrame, member_named};
use crate::question::{Answer, Chosen, input_requests, response_key};
use crate::record::Record;
use crate::refusal::Rule;
use crate::seal::{self, Bound, Expiry, Keyring, Offered, RefusalState, TTL};

/// Methods whose results may be `input_required`.
const METHODS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// What a request's `requestState` is to us.
pub(super) enum Carried {
    /// None, or the upstream's: the request goes on as it is.
    Nothing,
    /// Ours.
    Ours(Box<RefusalState>),
    /// Not to be taken. The word is for the record.
    Refused(&'static str),
}

impl Envelope {
    /// Reads the state that a request carries.
    pub(super) fn carried_state(
        &self,
        frame: &ClientFrame<'_>,
        method: &str,
        is_modern: bool,
        caller: &Caller,
        now: Now,
    ) -> Carried {
        self.carried_under(&self.process.config.keyring, frame, method, is_modern, caller, now)
    }

    /// The same, of a state that is sealed with these keys.
    pub(super) fn carried_under(
        &self,
        keyring: &Keyring,
        frame: &ClientFrame<'_>,
        method: &str,
        is_modern: bool,
        caller: &Caller,
        now: Now,
    ) -> Carried {
        let state = frame.param(|params| params.request_state.as_ref()).filter(|_| METHODS.contains(&method));
        let Some(state) = state.and_then(string) else { return Carried::Nothing };
        if !is_modern {
            return Carried::Refused("state-in-push-era");
        }
        if !seal::is_ours(&state) && self.handshake.upstream_is_legacy() {
            return Carried::Refused("state-before-legacy-upstream");
        }
        if !seal::is_ours(&state) || self.process.has_passed_on(&state) {
            return Carried::Nothing;
        }
        if method != "tools/call" {
            return Carried::Refused("state-other-method");
        }
        let config = &self.process.config;
        match RefusalState::open(&state, keyring, bound(caller), &config.upstream, now, config.clock) {
            Ok(state) => Carried::Ours(Box::new(state)),
            Err(fault) => Carried::Refused(fault.as_str()),
        }
    }

    /// Refuses a request for its state, before anything runs.
    pub(super) fn refuse_state(
        &self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        reason: &'static str,
        out: &mut Vec<Out>,
    ) -> Route {
        let party = self.party(frame);
        out.push(Out::Record(Record {
            declared: party.declared,
            era: party.era,
            rail: Rail::Form,
            outcome: Outcome::Invalid,
            provenance: Provenance::Client,
            latency_ms: None,
            tool: tool(frame),
            refusal: None,
            client: party.client,
            protocol_version: party.version,
            reason: Some(reason),
        }));
        out.push(invalid_state(id));
        Route::Consumed
    }

    /// Hands the question back. The refusal travels in the state, and nothing is kept here.
    pub(super) fn hand_back(
        &mut self,
        call: &Call,
        subject: &Subject,
        arguments_sha256: [u8; 32],
        result: &str,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        self.progress.forget(call.progress_token());
        let Some(id) = call.id() else { return Route::Forward };
        let config = &self.process.config;
        let state = RefusalState {
            upstream: config.upstream.clone(),
            refusal: subject.ambiguity.rule.name().to_owned(),
            tool: subject.tool.clone(),
            arguments_sha256,
            offered: subject.ambiguity.candidates.iter().map(Offered::from).collect(),
            result: result.to_owned(),
            expiry: Expiry::from_now(now, config.clock),
            nonce: self.ids.nonce(),
            upstream_state: member_named(result, "requestState").and_then(string),
            approval: call.approval,
        };
        // Who takes up an approval knows what was spent.
        let of_approval = config.confirm.as_ref().filter(|_| call.approval.is_some());
        let keyring = of_approval.map_or(&config.keyring, |confirm| &confirm.keyring);
        let state = match state.seal(keyring, bound(&call.caller)) {
            Ok(state) => state,
            Err(too_large) => {
                out.push(subject.passed(Outcome::NotOffered, Some(too_large.as_str())));
                return Route::Forward;
            }
        };
        let requests = input_requests(&subject.ambiguity, &subject.visible_tool());
        let result = format!(
            "{{\"resultType\":\"input_required\",\"inputRequests\":{requests},\"requestState\":{}{}}}",
            quoted(&state),
            server_info(result)
        );
        out.push(subject.record(Rail::Form, Outcome::Asked, Provenance::System, None, None));
        out.push(Out::ToClient { for_call: Some(id.to_owned()), frame: reply::result(id.raw(), &result) });
        Route::Consumed
    }

    /// Takes a retry with a state of ours. It never runs the tool without the argument.
    pub(super) fn retry(
        &mut self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        state: RefusalState,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        let config = &self.process.config;
        let latency = since(state.expiry, now, config.clock == state.expiry.clock);
        let is_shown = latency >= config.min_human;
        let retry = Retry { party: self.party(frame), tool: tool(frame), state, latency, is_shown };
        let (outcome, reason) = match config.rules.named(&retry.state.refusal).cloned() {
            Some(rule) if self.process.elicitation() => match read_answer(frame, &retry.state, &rule) {
                Ok(chosen) => return self.accepted(frame, id, retry, rule, &chosen, now, out),
                Err(ending) => ending,
            },
            // Switched off since the question, altogether or this rule.
            Some(_) | None => (Outcome::Disabled, None),
        };
        out.push(retry.record(outcome, reason));
        out.push(original(id, &retry.state.result));
        Route::Consumed
    }

    /// Whether a retry accepts what was offered, and so runs the call.
    pub(super) fn accepts(&self, frame: &ClientFrame<'_>, state: &RefusalState) -> bool {
        let rule = self.process.config.rules.named(&state.refusal);
        self.process.elicitation() && rule.is_some_and(|rule| read_answer(frame, state, rule).is_ok())
    }

    /// An offered candidate was accepted: the call runs with it, unless it did already.
    #[expect(clippy::too_many_arguments, reason = "what is accepted, where, when, and what follows")]
    fn accepted(
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
            out.push(retry.record(Outcome::Invalid, Some("no-place-for-argument")));
            out.push(original(id, &retry.state.result));
            return Route::Consumed;
        };
        if !self.process.spend(retry.state.nonce, now.boot) {
            out.push(retry.record(Outcome::Invalid, Some("state-spent")));
            out.push(invalid_state(id));
            return Route::Consumed;
        }
        let Some(tool) = rule.candidates_tool() else {
            out.push(retry.record(Outcome::Accept, None));
            self.forward_again(&id.to_owned(), again, out);
            return Route::Consumed;
        };
        // Nobody has accepted a call of that tool. What its server says of it is not asked: the rule says it is read-only.
        let confirm = self.process.config.confirm.as_ref();
        if confirm.is_some_and(|confirm| confirm.guards.of(tool.name(), true).is_some()) {
            out.push(retry.given_up(Outcome::Error, "candidates-guarded"));
            out.push(original(id, &retry.state.result));
            return Route::Consumed;
        }
        let Some(again) = Kept::new(&self.process, &again, retry.state.result.len()) else {
            out.push(retry.given_up(Outcome::Error, "bytes-in-flight"));
            out.push(original(id, &retry.state.result));
            return Route::Consumed;
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
    fn forward_again(&mut self, id: &RequestId, again: Vec<u8>, out: &mut Vec<Out>) {
        out.push(Out::ToUpstream(again));
        self.open.insert(id.borrow(), Open::Plain(Plain::new(id.clone())));
    }

    /// Takes the candidates of now: the chosen one must be among them, as it was offered.
    pub(super) fn checked(&mut self, checking: &Checking, result: Option<&str>, out: &mut Vec<Out>) {
        self.deadlines.remove(&(checking.deadline, checking.ours.clone()));
        let now = result.and_then(|result| checking.rule.candidates_now(result));
        let retry = &checking.retry;
        let record = match now {
            Some(candidates) if checking.offered.is_still_in(&candidates) => {
                out.push(retry.record(Outcome::Accept, None));
                self.forward_again(&checking.id, checking.again.bytes().to_vec(), out);
                return;
            }
            Some(_) => retry.record(Outcome::Invalid, Some("candidate-changed")),
            None => retry.given_up(Outcome::Error, "candidates-unreadable"),
        };
        out.push(record);
        out.push(original(checking.id.borrow(), &retry.state.result));
    }

    /// The candidates of now did not come in time.
    pub(super) fn check_timed_out(&mut self, ours: &str, out: &mut Vec<Out>) {
        self.end_check(ours, "no answer in time", Outcome::Error, "candidates-late", out);
    }

    /// Ends a retry that waits for the candidates of now with the refusal. Under another request of ours nothing waits.
    pub(super) fn end_check(
        &mut self,
        ours: &str,
        why: &str,
        outcome: Outcome,
        reason: &'static str,
        out: &mut Vec<Out>,
    ) {
        let call = self.ours.get(ours);
        let is_checked =
            call.is_some_and(|call| matches!(self.open.get(call.borrow()), Some(Open::Checking(_))));
        if !is_checked {
            return;
        }
        let Some(call) = self.ours.remove(ours) else { return };
        let Some(Open::Checking(checking)) = self.open.remove(call.borrow()) else { return };
        self.deadlines.remove(&(checking.deadline, checking.ours.clone()));
        out.push(Out::ToUpstream(reply::cancelled(&quoted(ours), why)));
        out.push(checking.retry.given_up(outcome, reason));
        out.push(original(checking.id.borrow(), &checking.retry.state.result));
    }

    /// Takes note of a question of another handraise that goes through this one.
    pub(super) fn note_passed_on(&mut self, frame: &ServerFrame<'_>) {
        if !frame.looks.question {
            return;
        }
        if is_question(frame) {
            self.handshake.discovered();
        }
        let state = frame.result().and_then(|result| member_named(result, "requestState")).and_then(string);
        if let Some(state) = state.filter(|state| seal::is_ours(state)) {
            self.process.pass_on(&state);
        }
    }
}

/// A retry of a question of ours.
#[derive(Debug)]
pub(super) struct Retry {
    party: Party,
    tool: String,
    state: RefusalState,
    latency: Duration,
    is_shown: bool,
}

impl Retry {
    /// A record of what the client answered.
    pub(super) fn record(&self, outcome: Outcome, reason: Option<&'static str>) -> Out {
        let provenance = match (outcome, self.is_shown) {
            (Outcome::Disabled, _) => Provenance::System,
            (_, true) => Provenance::Client,
            (_, false) => Provenance::NotShown,
        };
        self.record_by(provenance, outcome, reason)
    }

    /// A record of what came of an acceptance without the client: it was accepted, and nothing ran.
    pub(super) fn given_up(&self, outcome: Outcome, reason: &'static str) -> Out {
        self.record_by(Provenance::System, outcome, Some(reason))
    }

    fn record_by(&self, provenance: Provenance, outcome: Outcome, reason: Option<&'static str>) -> Out {
        let latency = u64::try_from(self.latency.as_millis()).ok();
        Out::Record(Record {
            declared: self.party.declared,
            era: self.party.era,
            rail: if outcome == Outcome::Disabled { Rail::Refuse } else { Rail::Form },
            outcome,
            provenance,
            latency_ms: latency,
            tool: self.tool.clone(),
            refusal: Some(self.state.refusal.clone()),
            client: self.party.client.clone(),
            protocol_version: self.party.version.clone(),
            reason,
        })
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

/// A call of the read-only tool that lists candidates, as the same client in the same era.
fn list_candidates(frame: &ClientFrame<'_>, id: &str, tool: &str) -> Vec<u8> {
    let meta = meta_without_progress(frame).map(|meta| format!(",{meta}"));
    let params = format!("{{\"name\":{},\"arguments\":{{}}{}}}", quoted(tool), meta.unwrap_or_default());
    reply::request(id, "tools/call", &params)
}

/// The member `_meta` of a request's params: who asks, and in which era; its progress is not ours.
pub(super) fn meta_without_progress(frame: &ClientFrame<'_>) -> Option<String> {
    let meta = frame.params.as_ref().and_then(|params| params.meta.as_ref())?;
    let mut splice = Splice::default();
    splice.remove_members(frame.bytes(), meta.clone(), |key| key == "progressToken");
    let bytes = splice.apply(&frame.bytes()[..meta.end]);
    Some(format!("\"_meta\":{}", String::from_utf8_lossy(bytes.get(meta.start..).unwrap_or_default())))
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

pub(super) fn bound(caller: &Caller) -> Bound<'_> {
    Bound { principal: &caller.principal, session: caller.session.as_deref() }
}

/// The string that a JSON text is.
pub(super) fn string(json: &str) -> Option<String> {
    let text = Scanner::new(json.as_bytes()).string().ok().map(Quoted::text)?;
    Some(text.into_owned())
}

/// The `_meta` of a result of ours, as a further member: it names the server as the server's own result does, because to
/// the client we are that server. One that does not name itself stays without.
fn server_info(result: &str) -> String {
    const KEY: &str = "io.modelcontextprotocol/serverInfo";
    let info = member_named(result, "_meta").and_then(|meta| member_named(meta, KEY));
    info.map_or_else(String::new, |info| format!(",\"_meta\":{{{}:{info}}}", quoted(KEY)))
}

/// The refusal, byte for byte, as the answer to the retry.
fn original(id: Id<'_>, result: &str) -> Out {
    Out::ToClient { for_call: Some(id.to_owned()), frame: reply::result(id.raw(), result) }
}

fn invalid_state(id: Id<'_>) -> Out {
    let frame = reply::error(
        id.raw(),
        INVALID_PARAMS,
        "Invalid or expired requestState",
        Some("{\"reason\":\"invalid_request_state\"}"),
    );
    Out::ToClient { for_call: Some(id.to_owned()), frame }
}
