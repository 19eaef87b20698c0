//! A question as the holder takes it, and its end as the envelope does.

use handraise_api::ask::Implementation;
use handraise_core::{
    Mode, OnDeadline, Outcome, Provenance, Source,
    form::{self, AnswerRules, FormProfile, FormRequest},
};
use handraise_holder::{Delivery, NewAsk, Settled};
use handraise_mcp::envelope::{InboxAsk, InboxEnd, InboxSaid};

/// Nobody was asked.
pub(crate) const NOT_OPENED: InboxSaid =
    InboxSaid { end: InboxEnd::NotOpened, provenance: Provenance::System };

/// The ask that a question is. `Err`: it cannot be shown, and why.
pub(crate) fn to_ask(ask: &InboxAsk) -> Result<NewAsk, String> {
    let schema = serde_json::from_str(&ask.schema).map_err(|error| error.to_string())?;
    let request = FormRequest { message: &ask.message, schema: &schema };
    let mapped = form::map(&request, &FormProfile::declared()).map_err(|refusal| refusal.to_string())?;
    Ok(NewAsk {
        source: ask.source,
        mode: Mode::Form,
        session_id: None,
        tool_call_id: None,
        message: ask.message.clone(),
        url: None,
        confirm: None,
        on_deadline: Some(OnDeadline::Refuse),
        form: mapped.form,
        rules: AnswerRules::for_source(ask.source),
        single_use: Vec::new(),
        client: ask.client.clone().map(|name| Implementation { name, version: None }),
        server: None,
        timeout: Some(ask.timeout),
    })
}

/// What an envelope is told of an end. Without knowing how it ended, nothing that was delivered counts.
pub(crate) fn to_said(delivery: Delivery, settled: Option<&Settled>) -> InboxSaid {
    let Some(settled) = settled else {
        return InboxSaid { end: InboxEnd::Cancelled, provenance: Provenance::System };
    };
    if settled.refused.is_some() {
        return NOT_OPENED;
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

/// What a question is about, for a log.
pub(crate) fn words(source: Source) -> &'static str {
    match source {
        Source::Confirm => "a confirmation",
        _ => "a question",
    }
}
