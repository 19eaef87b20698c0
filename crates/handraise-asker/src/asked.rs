//! A question as the holder takes it, and its end as the envelope does.

use handraise_api::{
    ask::{Confirm, Implementation},
    record as api,
    words::Who,
};
use handraise_core::{
    Mode, OnDeadline, Outcome, Provenance, Source,
    form::{self, AnswerRules, FormProfile, FormRequest},
};
use handraise_holder::{Delivery, Demands, NewAsk, Refused, Settled};
use handraise_mcp::{
    confirm::Answerers,
    envelope::{InboxAsk, InboxEnd, InboxSaid},
    record::Record,
};

/// Why nobody was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotOpened {
    /// For records.
    pub(crate) reason: &'static str,
    /// For a log.
    pub(crate) words: String,
}

impl NotOpened {
    /// There is no connection to the inbox.
    pub(crate) fn not_there() -> Self {
        Self { reason: "inbox-gone", words: "it is not there".to_owned() }
    }

    /// What is asked is no form.
    fn no_form(error: &impl ToString) -> Self {
        Self { reason: "not-a-form", words: error.to_string() }
    }

    /// It cannot be told whose answer counts.
    fn nobody(words: &str) -> Self {
        Self { reason: "nobody-may-answer", words: words.to_owned() }
    }
}

impl From<Refused> for NotOpened {
    fn from(refused: Refused) -> Self {
        let reason = match refused {
            Refused::NoInbox | Refused::ShuttingDown => "inbox-gone",
            Refused::OpenAsks
            | Refused::OpenBytes
            | Refused::SessionOpenAsks
            | Refused::SessionParkedAsks => "inbox-full",
            Refused::Rate => "inbox-rate",
            Refused::TooLarge => "ask-too-large",
            Refused::KnownId => "not-opened",
        };
        Self { reason, words: refused.to_string() }
    }
}

/// Nobody was asked, for this reason.
pub(crate) fn not_opened(reason: &'static str) -> InboxSaid {
    InboxSaid { end: InboxEnd::NotOpened(reason), provenance: Provenance::System }
}

/// The ask that a question is. `Err`: it cannot be shown, and why. Where callers have names, a sentence of ours says whose call it
/// is: the gateway has checked that, and operators see it nowhere else.
pub(crate) fn to_ask(ask: &InboxAsk, names_callers: bool) -> Result<NewAsk, NotOpened> {
    let schema = serde_json::from_str(&ask.schema).map_err(|error| NotOpened::no_form(&error))?;
    let request = FormRequest { message: &ask.message, schema: &schema };
    let mapped =
        form::map(&request, &FormProfile::declared()).map_err(|refusal| NotOpened::no_form(&refusal))?;
    Ok(NewAsk {
        source: ask.source,
        mode: Mode::Form,
        session_id: None,
        tool_call_id: None,
        message: if names_callers {
            format!("{}\n\nThe caller is {}, by its token.", ask.message, ask.principal)
        } else {
            ask.message.clone()
        },
        url: None,
        confirm: ask.confirm.as_ref().map(|confirm| Confirm {
            tool: ask.tool.clone(),
            account: confirm.account.clone(),
            target: confirm.target.clone(),
            action: Some(confirm.action.clone()),
            arguments: confirm.arguments.clone(),
            preview: confirm.preview.clone(),
        }),
        on_deadline: Some(OnDeadline::Refuse),
        form: mapped.form,
        rules: AnswerRules::for_source(ask.source),
        single_use: Vec::new(),
        client: ask.client.clone().map(|name| Implementation { name, version: None }),
        server: ask.server.clone(),
        timeout: Some(ask.timeout),
    })
}

/// Who may answer. `Err`: it cannot be told whose answer counts, and why.
///
/// Whose the caller is says the owner of the gateway's own token: of callers that have names of their own, it says nothing.
pub(crate) fn demands(ask: &InboxAsk, names_callers: bool) -> Result<Demands, NotOpened> {
    let Some(demand) = ask.confirm.as_ref().map(|confirm| confirm.demand) else {
        return Ok(Demands::default());
    };
    let who = match demand.who {
        Answerers::Operator => Who::Operator,
        Answerers::Nobody => return Err(NotOpened::nobody("nobody's answer would count: who says so twice")),
        Answerers::Caller | Answerers::NotTheCaller if names_callers => {
            return Err(NotOpened::nobody(
                "who the operator behind a caller with a name is, is not known here",
            ));
        }
        Answerers::Caller => Who::Caller,
        Answerers::NotTheCaller => Who::NotTheCaller,
    };
    Ok(Demands { who: Some(who), human: demand.human })
}

/// What an envelope is told of an end. Without knowing how it ended, nothing that was delivered counts.
pub(crate) fn to_said(delivery: Delivery, settled: Option<&Settled>) -> InboxSaid {
    let Some(settled) = settled else {
        return InboxSaid { end: InboxEnd::Cancelled, provenance: Provenance::System };
    };
    if settled.refused.is_some() {
        return not_opened("inbox-refused");
    }
    let provenance = settled.provenance();
    let end = match (delivery, settled.ended.outcome) {
        (Delivery::Accept(content), Outcome::Accept) => {
            InboxEnd::Accepted(serde_json::Value::Object(content).to_string())
        }
        (Delivery::Decline, Outcome::Timeout) => InboxEnd::TimedOut,
        (Delivery::Decline, _) if settled.answered.is_some() => InboxEnd::Declined,
        // Whoever did not answer has not declined.
        (Delivery::Accept(_) | Delivery::Decline | Delivery::Cancel, _) => InboxEnd::Cancelled,
    };
    InboxSaid { end, provenance }
}

/// A record as the inbox keeps it.
pub(crate) fn to_record(record: &Record, ask: Option<String>) -> api::Record {
    let record = record.clone();
    api::Record {
        declared: record.declared.into(),
        era: record.era.into(),
        rail: record.rail.into(),
        outcome: record.outcome.into(),
        provenance: record.provenance.into(),
        latency_ms: record.waited_ms(),
        tool: Some(record.tool),
        refusal: record.refusal,
        client: record.client,
        protocol_version: record.protocol_version,
        reason: record.reason.map(str::to_owned),
        ask,
    }
}

/// How an operator had answered it before it was taken back, and who that was; `None` when nobody had.
pub(crate) fn answered(settled: &Settled) -> Option<(Outcome, Provenance)> {
    let outcome = settled.ended.outcome;
    let is_answer = settled.answered.is_some() && matches!(outcome, Outcome::Accept | Outcome::Decline);
    is_answer.then(|| (outcome, settled.provenance()))
}

/// What a question is about, for a log.
pub(crate) fn words(source: Source) -> &'static str {
    match source {
        Source::Confirm => "a confirmation",
        _ => "a question",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use handraise_core::{Moment, WireAction, holder::Ended};
    use handraise_holder::{Answered, EndCause, InboxRefusal};
    use handraise_mcp::{confirm::Demand, envelope::InboxConfirm};

    use super::*;

    fn settled(outcome: Outcome, answered: Option<Provenance>, refused: bool) -> Settled {
        let ended = Ended {
            outcome,
            provenance: if answered.is_some() { Provenance::Client } else { Provenance::System },
            wire: Some(WireAction::Decline),
            reason: answered.is_none().then(|| EndCause::Deadline.reason()),
            submission: None,
            at: Moment::from_millis(1),
        };
        let answered = answered.map(|provenance| Answered {
            by: "Ada".to_owned(),
            provenance,
            reject_reason: String::new(),
        });
        let refusal =
            || InboxRefusal { code: handraise_api::error::ErrorCode::LimitExceeded, message: String::new() };
        Settled { ended, answered, refused: refused.then(refusal) }
    }

    #[test]
    fn nobody_declined_who_did_not_answer() {
        let content = || Delivery::Accept([("x".to_owned(), "y".into())].into_iter().collect());
        let human = Some(Provenance::Human);
        for (delivery, settled, end, provenance) in [
            (
                content(),
                settled(Outcome::Accept, human, false),
                InboxEnd::Accepted(r#"{"x":"y"}"#.into()),
                Provenance::Human,
            ),
            (
                Delivery::Decline,
                settled(Outcome::Decline, human, false),
                InboxEnd::Declined,
                Provenance::Human,
            ),
            (
                Delivery::Decline,
                settled(Outcome::Timeout, None, false),
                InboxEnd::TimedOut,
                Provenance::System,
            ),
            (
                Delivery::Decline,
                settled(Outcome::Decline, None, true),
                InboxEnd::NotOpened("inbox-refused"),
                Provenance::System,
            ),
            (
                Delivery::Decline,
                settled(Outcome::Decline, None, false),
                InboxEnd::Cancelled,
                Provenance::System,
            ),
            (
                Delivery::Cancel,
                settled(Outcome::Cancel, None, false),
                InboxEnd::Cancelled,
                Provenance::System,
            ),
            (content(), settled(Outcome::Withdrawn, None, false), InboxEnd::Cancelled, Provenance::System),
        ] {
            assert_eq!(to_said(delivery, Some(&settled)), InboxSaid { end, provenance }, "{settled:?}");
        }
        // What is not known to have been answered counts for nothing.
        assert_eq!(to_said(content(), None).end, InboxEnd::Cancelled);
    }

    fn confirm(who: Answerers) -> InboxAsk {
        InboxAsk {
            key: "k".into(),
            source: Source::Confirm,
            message: "Send?".into(),
            schema: r#"{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}"#
                .into(),
            tool: "send".into(),
            principal: "ada".into(),
            client: None,
            server: Some("mail".into()),
            timeout: Duration::from_secs(1),
            confirm: Some(InboxConfirm {
                account: None,
                target: None,
                action: "Send".into(),
                arguments: "{}".into(),
                preview: None,
                demand: Demand { human: true, who },
            }),
        }
    }

    #[test]
    fn who_is_behind_a_caller_with_a_name_is_not_known() {
        for (who, alone, among_callers) in [
            (Answerers::Operator, Some(Who::Operator), Some(Who::Operator)),
            (Answerers::Caller, Some(Who::Caller), None),
            (Answerers::NotTheCaller, Some(Who::NotTheCaller), None),
            (Answerers::Nobody, None, None),
        ] {
            let demanded = |names_callers| demands(&confirm(who), names_callers).ok();
            let expected = |who: Option<Who>| who.map(|who| Demands { who: Some(who), human: true });
            assert_eq!((demanded(false), demanded(true)), (expected(alone), expected(among_callers)));
        }
        let refusal = InboxAsk { confirm: None, ..confirm(Answerers::Operator) };
        assert_eq!(demands(&refusal, true), Ok(Demands::default()));
    }

    #[test]
    fn an_answer_that_came_before_its_question_was_taken_back_is_not_lost() {
        let human = Some(Provenance::Human);
        for (settled, expected) in [
            (settled(Outcome::Accept, human, false), Some((Outcome::Accept, Provenance::Human))),
            (settled(Outcome::Decline, human, false), Some((Outcome::Decline, Provenance::Human))),
            (settled(Outcome::Withdrawn, None, false), None),
            (settled(Outcome::Timeout, None, false), None),
            (settled(Outcome::Decline, None, true), None),
        ] {
            assert_eq!(answered(&settled), expected, "{settled:?}");
        }
    }

    #[test]
    fn every_reason_for_which_nobody_is_asked_has_its_word() {
        for (refused, reason) in [
            (Refused::NoInbox, "inbox-gone"),
            (Refused::OpenAsks, "inbox-full"),
            (Refused::Rate, "inbox-rate"),
            (Refused::TooLarge, "ask-too-large"),
        ] {
            assert_eq!(NotOpened::from(refused).reason, reason);
        }
    }

    #[test]
    fn what_is_no_form_is_not_asked() {
        let asked = to_ask(&confirm(Answerers::Operator), false).unwrap();
        assert_eq!(asked.message, "Send?");
        let named = to_ask(&confirm(Answerers::Operator), true).unwrap();
        assert_eq!(named.message, "Send?\n\nThe caller is ada, by its token.");
        assert_eq!(asked.server.as_deref(), Some("mail"));
        for schema in ["", "{}", "[]", r#"{"properties":{}}"#] {
            assert!(
                to_ask(&InboxAsk { schema: schema.into(), ..confirm(Answerers::Operator) }, false).is_err()
            );
        }
    }
}
