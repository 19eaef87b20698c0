//! The modern era: the question is handed back with a state (mcp.md §5); `retry` takes what comes back with it.

use handraise_core::words::{Outcome, Provenance, Rail};

use crate::Now;
use crate::envelope::open::{Call, tool};
use crate::envelope::refused::Subject;
use crate::envelope::{Caller, Envelope, Out, Route};
use crate::frame::reply::{self, INVALID_PARAMS};
use crate::frame::splice::quoted;
use crate::frame::{ClientFrame, Id, Quoted, Scanner, ServerFrame, member_named};
use crate::question::input_requests;
use crate::record::Record;
use crate::seal::{self, Bound, Expiry, Keyring, Offered, RefusalState};

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
        if !seal::is_ours(&state) || self.room.has_passed_on(&state) {
            return Carried::Nothing;
        }
        if method != "tools/call" {
            return Carried::Refused("state-other-method");
        }
        let config = &self.process.config;
        match RefusalState::open(&state, keyring, bound(caller), config.upstream.as_str(), now, config.clock)
        {
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
        let record = Record::of(&party, tool(frame), Rail::Form, Outcome::Invalid, Provenance::Client);
        out.push(Out::Record(Record { reason: Some(reason), ..record }));
        out.push(invalid_state(id));
        Route::Consumed
    }

    /// Hands the question back. The refusal travels in the state, and nothing is kept here.
    pub(super) fn hand_back(
        &mut self,
        call: &Call,
        subject: &Subject,
        result: &str,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        self.progress.forget(call.progress_token());
        let Some(id) = call.id() else { return Route::Forward };
        let config = &self.process.config;
        let state = RefusalState {
            upstream: config.upstream.as_str().to_owned(),
            refusal: subject.ambiguity.rule.name().to_owned(),
            tool: subject.tool.clone(),
            arguments_sha256: subject.arguments_sha256,
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

    /// Takes note of a question of another handraise that goes through this one.
    pub(super) fn note_passed_on(&mut self, frame: &ServerFrame<'_>) {
        if !frame.looks.question {
            return;
        }
        if frame.is_input_required() {
            self.handshake.discovered();
        }
        let state = frame.result().and_then(|result| member_named(result, "requestState")).and_then(string);
        if let Some(state) = state.filter(|state| seal::is_ours(state)) {
            self.room.pass_on(&state);
        }
    }
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

pub(super) fn invalid_state(id: Id<'_>) -> Out {
    let frame = reply::error(
        id.raw(),
        INVALID_PARAMS,
        "Invalid or expired requestState",
        Some("{\"reason\":\"invalid_request_state\"}"),
    );
    Out::ToClient { for_call: Some(id.to_owned()), frame }
}
