//! One ask from its opening to its end, for the commands that hold one themselves.

use std::time::Duration;

use anyhow::{Context as _, bail};
use handraise_api::{
    record::Record,
    words::{Declared, Era, Rail},
};
use handraise_config::duration;
use handraise_core::{Outcome, Provenance, form::Content};
use handraise_holder::{Delivery, EndCause, Holder, InboxRefusal, NewAsk};
use tokio::{sync::oneshot, time::Instant};

/// How long an ask waits when nothing else is said (product.md).
const PATIENCE: &str = "55m";

/// How an ask ended.
#[derive(Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) provenance: Provenance,
    /// What was answered; only for accept.
    pub(crate) content: Option<Content>,
    /// Who answered.
    pub(crate) by: Option<String>,
    /// Why it was skipped, or a reason of the holder.
    pub(crate) reason: Option<String>,
    /// Why the inbox did not take it: then nobody was shown it.
    pub(crate) refused: Option<InboxRefusal>,
    /// Whether the inbox could not be reached for a part of the time.
    pub(crate) was_cut_off: bool,
}

/// Who has an ask put, as far as the inbox's record of it says so and the ask itself does not.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// What it declared that it can be asked with itself.
    pub(crate) declared: Declared,
    /// The tool that it called.
    pub(crate) tool: Option<String>,
    /// The protocol version that it speaks.
    pub(crate) protocol_version: Option<String>,
}

impl Caller {
    /// One that declares nothing: a script, a hook.
    pub(crate) const SILENT: Self = Self { declared: Declared::Unknown, tool: None, protocol_version: None };
}

/// Puts an ask and waits for its end, of which the inbox gets a record. `taken_back` completes, with the cause, when nobody wants the answer any more: then
/// the ask is withdrawn, unless it has been answered.
///
/// # Errors
/// When it cannot be asked at all.
pub(crate) async fn put(
    holder: &Holder,
    ask: NewAsk,
    caller: &Caller,
    taken_back: impl Future<Output = EndCause>,
) -> anyhow::Result<End> {
    let waits = ask.timeout.map(duration::format).unwrap_or_default();
    let client = ask.client.as_ref().map(|client| client.name.clone());
    let (sender, mut delivered) = oneshot::channel();
    let asked = Instant::now();
    let cut_off = holder.times_cut_off();
    let id = holder
        .open(ask, move |delivery| sender.send(delivery).is_ok())
        .context("the question cannot be asked")?;
    tracing::info!(ask.id = %id, "asked; waiting up to {waits} for an answer in the inbox");
    let delivery = tokio::select! {
        biased;
        delivery = &mut delivered => delivery,
        cause = taken_back => {
            holder.withdraw(&id, cause);
            delivered.await
        }
    };
    let Some(settled) = holder.settled(&id) else { bail!("ask {id} ended, and how is not known") };
    holder.record(Record {
        declared: caller.declared,
        era: Era::Local,
        rail: Rail::Inbox,
        outcome: settled.ended.outcome.into(),
        provenance: settled.provenance().into(),
        latency_ms: u64::try_from(asked.elapsed().as_millis()).ok(),
        tool: caller.tool.clone(),
        refusal: None,
        client,
        protocol_version: caller.protocol_version.clone(),
        reason: settled.ended.reason.map(|reason| reason.as_str().to_owned()),
        ask: Some(id.to_string()),
    });
    let reason = match &settled.answered {
        Some(answered) => Some(answered.reject_reason.clone()).filter(|reason| !reason.trim().is_empty()),
        None => settled.ended.reason.map(|reason| reason.as_str().to_owned()),
    };
    Ok(End {
        outcome: settled.ended.outcome,
        provenance: settled.provenance(),
        content: match delivery {
            Ok(Delivery::Accept(content)) => Some(content),
            // Nothing is delivered where nobody is left to be told.
            Ok(Delivery::Decline | Delivery::Cancel) | Err(_) => None,
        },
        by: settled.answered.map(|answered| answered.by),
        reason,
        refused: settled.refused,
        was_cut_off: holder.times_cut_off() != cut_off,
    })
}

/// How long an ask waits, by `--timeout`.
///
/// # Errors
/// When it is no duration, or none in which anybody could answer.
pub(crate) fn patience(timeout: Option<&str>) -> anyhow::Result<Duration> {
    let text = timeout.unwrap_or(PATIENCE);
    let timeout = duration::parse(text).map_err(|error| anyhow::anyhow!("{error}")).with_context(|| {
        format!("--timeout is {text:?}, but it takes a duration such as 55m, 1h30m or 90s")
    })?;
    if timeout.is_zero() {
        bail!("--timeout is {text:?}: nobody could answer in time; give it at least a few seconds");
    }
    Ok(timeout)
}
