//! An ambiguous refusal: whether it becomes a question, and what is recorded when it does not (mcp.md §3).

use std::sync::Arc;

use handraise_core::words::{Era, Outcome, Provenance, Rail};

use crate::Now;
use crate::canonical::{self, Dialect};
use crate::declared::Party;
use crate::envelope::inbox::ToPut;
use crate::envelope::mrtr::string;
use crate::envelope::open::{Call, Plain, carries, tool};
use crate::envelope::room::Kept;
use crate::envelope::way::Way;
use crate::envelope::{Envelope, Out, Route};
use crate::frame::{ClientFrame, ServerFrame, member_named};
use crate::record::Record;
use crate::refusal::{Ambiguity, Refusal, Rule};
use crate::visible;

/// The longest name of a tool that a question names, in bytes.
const LONGEST_TOOL: usize = 1024;

/// What a refusal's question would be about.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) party: Party,
    pub(super) tool: String,
    pub(super) ambiguity: Ambiguity,
    /// Of the canonical arguments without the one that the choice fills (S4).
    pub(super) arguments_sha256: [u8; 32],
}

impl Subject {
    /// A record about this refusal.
    pub(super) fn record(
        &self,
        rail: Rail,
        outcome: Outcome,
        provenance: Provenance,
        latency_ms: Option<u64>,
        reason: Option<&'static str>,
    ) -> Out {
        Out::Record(self.record_of(rail, outcome, provenance, latency_ms, reason))
    }

    /// The same, not yet to be logged.
    pub(super) fn record_of(
        &self,
        rail: Rail,
        outcome: Outcome,
        provenance: Provenance,
        latency_ms: Option<u64>,
        reason: Option<&'static str>,
    ) -> Record {
        let refusal = Some(self.ambiguity.rule.name().to_owned());
        let record = Record::of(&self.party, self.tool.clone(), rail, outcome, provenance);
        Record { latency_ms, refusal, reason, ..record }
    }

    /// The tool's name as a human reads it: what does something else than appear is made visible (S26).
    pub(super) fn visible_tool(&self) -> String {
        visible::text(&self.tool)
    }

    /// A record that a rail was next, and why it was not taken.
    pub(super) fn not_offered(&self, rail: Rail, reason: &'static str) -> Out {
        self.record(rail, Outcome::NotOffered, Provenance::System, None, Some(reason))
    }

    /// A record that the refusal passed without a question.
    pub(super) fn passed(&self, outcome: Outcome, reason: Option<&'static str>) -> Out {
        self.record(Rail::Refuse, outcome, Provenance::System, None, reason)
    }
}

/// Why a refusal passes.
#[derive(Debug)]
pub(super) struct Bar {
    /// The rail that would have been next; mostly there is none.
    pub(super) rail: Rail,
    outcome: Outcome,
    pub(super) reason: Option<&'static str>,
}

impl Bar {
    pub(super) fn not_offered(reason: Option<&'static str>) -> Self {
        Self::of(Outcome::NotOffered, reason)
    }

    /// The inbox was next, and why it was not taken.
    pub(super) fn of_inbox(reason: &'static str) -> Self {
        Self { rail: Rail::Inbox, ..Self::not_offered(Some(reason)) }
    }

    fn of(outcome: Outcome, reason: Option<&'static str>) -> Self {
        Self { rail: Rail::Refuse, outcome, reason }
    }
}

impl Envelope {
    /// Takes a call's result that looks as if it mattered.
    pub(super) fn call_result(
        &mut self,
        call: Call,
        frame: &ServerFrame<'_>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        // What was kept has been read before.
        let Ok(request) = ClientFrame::read(call.bytes()) else { return Route::Forward };
        let party = self.party(&request);
        self.note_passed_on(frame);
        if call.approval.is_some()
            && let Some(state) = frame.result().and_then(|result| member_named(result, "requestState"))
            && let Some(state) = string(state)
        {
            self.note_confirmed(&call, &state, now);
        }
        let result = if frame.looks.refusal { frame.result() } else { None };
        let refusal = result.and_then(|result| {
            self.process.config.rules.read(result, |argument| carries(&request, argument))
        });
        let (Some(result), Some(refusal)) = (result, refusal) else {
            self.progress.forget(call.progress_token());
            return Route::Forward;
        };
        let (tool, rule) = (tool(&request), Arc::clone(refusal.rule()));
        let arguments = request.param(|params| params.arguments.as_ref());
        let asked = match (self.bar_of_call(&call, &party, &tool), refusal) {
            (Some(bar), _) => Err(bar),
            (None, Refusal::Beyond(_, beyond)) => Err(Bar::not_offered(Some(beyond.as_str()))),
            (None, Refusal::Ambiguous(ambiguity)) => {
                let asked = self.bar(&call, &party, &ambiguity, arguments, now);
                asked.map(|(digest, way)| (digest, way, ambiguity))
            }
        };
        let (digest, way, ambiguity) = match asked {
            Ok(asked) => asked,
            Err(bar) => {
                out.push(passed(&party, tool, &rule, &bar));
                self.progress.forget(call.progress_token());
                return Route::Forward;
            }
        };
        let subject = Subject { party, tool, ambiguity, arguments_sha256: digest };
        if way == Way::Form && subject.party.era == Era::Mrtr {
            return self.hand_back(&call, &subject, result, now, out);
        }
        let Some(refusal) = self.keep_refusal(&subject, frame.bytes(), 0) else {
            out.push(subject.passed(Outcome::NotOffered, Some("bytes-in-flight")));
            self.progress.forget(call.progress_token());
            return Route::Forward;
        };
        match way {
            Way::Form => self.push(call, subject, refusal, now, out),
            Way::Inbox(until) => {
                let asked = ToPut { call, subject, refusal, retry: None };
                self.put(asked, until, None, now, out);
            }
        }
        Route::Consumed
    }

    /// Keeps a refusal while somebody is asked about it, if there is room, also for so many bytes beside it.
    pub(super) fn keep_refusal(&self, subject: &Subject, frame: &[u8], beside: usize) -> Option<Kept> {
        let candidates = subject.ambiguity.candidates.iter();
        let parsed: usize =
            candidates.map(|candidate| size_of_val(candidate) + candidate.whole.get().len() * 2).sum();
        Kept::new(&self.room, frame, parsed + beside)
    }

    /// Why no refusal of a call is asked about, whatever it offers.
    fn bar_of_call(&self, call: &Call, party: &Party, tool: &str) -> Option<Bar> {
        if !self.process.elicitation() {
            return Some(Bar::of(Outcome::Disabled, None));
        }
        if !self.has_way(party) {
            return Some(Bar::not_offered(None));
        }
        if call.bar.is_some() {
            return Some(Bar::not_offered(call.bar));
        }
        if self.client_is_closed {
            return Some(Bar::not_offered(Some("client-closed")));
        }
        if call.upstream_asks != self.upstream_asks {
            return Some(Bar::not_offered(Some("server-asked")));
        }
        (tool.len() > LONGEST_TOOL).then(|| Bar::not_offered(Some("tool-name-too-long")))
    }

    /// Whether this very question may be asked; then the digest of the arguments that it is about (S4).
    fn bar(
        &mut self,
        call: &Call,
        party: &Party,
        ambiguity: &Ambiguity,
        arguments: Option<&str>,
        now: Now,
    ) -> Result<([u8; 32], Way), Bar> {
        let argument = ambiguity.rule.argument();
        let arguments = arguments.filter(|arguments| *arguments != "null").unwrap_or("{}");
        let canonical = canonical::canonical(arguments.as_bytes(), Some(argument), Dialect::Plain)
            .map_err(|unbindable| Bar::not_offered(Some(unbindable.as_str())))?;
        if party.era == Era::Push && self.declined.remembers(ambiguity) {
            return Err(Bar::of(Outcome::Remembered, None));
        }
        let way = self.way(call, party, None, now)?;
        Ok((canonical.sha256(), way))
    }

    /// Takes the result of a call that did not fit into memory: it is recorded, and never asked about.
    pub(super) fn unkept_result(&self, plain: Plain, frame: &ServerFrame<'_>, out: &mut Vec<Out>) {
        let (Some(unkept), true) = (plain.unkept, frame.looks.refusal) else { return };
        let Some(result) = frame.result() else { return };
        let rules = &self.process.config.rules;
        let Some(refusal) = rules.read(result, |argument| unkept.carries(argument)) else { return };
        let bar = if self.process.elicitation() {
            Bar::not_offered(Some("bytes-in-flight"))
        } else {
            Bar::of(Outcome::Disabled, None)
        };
        out.push(passed(&unkept.party, unkept.tool, refusal.rule(), &bar));
    }
}

/// A record that a refusal passed without a question.
fn passed(party: &Party, tool: String, rule: &Rule, bar: &Bar) -> Out {
    let record = Record::of(party, tool, bar.rail, bar.outcome, Provenance::System);
    Out::Record(Record { refusal: Some(rule.name().to_owned()), reason: bar.reason, ..record })
}
