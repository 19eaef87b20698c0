//! The holder's word on submissions and on how asks ended.

use std::sync::Arc;

use handraise_api::{
    ask::{Ask, Settlement},
    error::{ErrorBody, ErrorCode},
    frame::{AskSettled, Ended, HolderSettlement, action},
    words::{AskState, Outcome, Provenance, Rail},
};
use handraise_store::{Ending, NewSubmission, Replied, Settled, StoreError, StoredSubmission, Verdict};
use jiff::SignedDuration;
use serde::Serialize;

use super::unknown;
use crate::{
    failure::Failure,
    hub::{Connection, Lost, Reply},
    inbox::{App, Inbox},
};

/// Notes what the holder said to a submission, and says it to the operator.
pub(super) async fn judged(
    app: &App,
    instance: &str,
    new: &NewSubmission,
    reply: Reply,
) -> Result<Ask, Failure> {
    let Reply { payload, error } = reply;
    let Some(error) = error else {
        return delivered(app, &new.id, &new.delivered(app.now().wall)).await;
    };
    match error.code {
        ErrorCode::NotFound => {
            let ended = payload.and_then(|payload| serde_json::from_str::<Ended>(payload.get()).ok());
            let ended = ended.and_then(|ended| ended.ended);
            let ask = not_found(app, instance, &new.id, &new.ask, ended.as_ref()).await?;
            let winner = ended.and_then(|ended| ended.submission_id);
            if let Some(winner) = winner
                && let Some(winner) = app.store.submission(&winner).await?
                && winner.token == new.token
                && winner.fingerprint == new.fingerprint
                && winner.ask == new.ask
            {
                return Ok(Ask { replayed: true, ..ask });
            }
            let recorded = was_withdrawn(ask.settlement.as_ref());
            Err(Failure::ended(error, ask.settlement, recorded))
        }
        ErrorCode::Invalid => {
            resolve(app, &new.id, Verdict::Invalid, None).await?;
            Err(Failure::invalid(error))
        }
        _ => {
            tracing::warn!(ask.id = new.ask, code = ?error.code, "a holder refused a submission");
            resolve(app, &new.id, Verdict::Refused, None).await?;
            Err(Failure::of_holder(error))
        }
    }
}

pub(super) async fn delivered(app: &App, submission: &str, ending: &Ending) -> Result<Ask, Failure> {
    match resolve(app, submission, Verdict::Delivered, Some(ending)).await? {
        Some(ask) => Ok(ask),
        None => Err(Failure::not_found("submission", submission)),
    }
}

/// The holder does not know the ask as open: its word on how it ended is taken up.
async fn not_found(
    app: &App,
    instance: &str,
    submission: &str,
    ask: &str,
    ended: Option<&AskSettled>,
) -> Result<Ask, Failure> {
    // Noted first, so that nobody takes the submission for the winner of an ask that it lost.
    if ended.and_then(|ended| ended.submission_id.as_deref()) != Some(submission) {
        resolve(app, submission, Verdict::NotFound, None).await?;
    }
    if let Some(ended) = ended.filter(|ended| ended.pending_id == ask) {
        settle_by_holder(app, instance, ended).await?;
    } else {
        let ending = withdrawn(app, "unknown_to_holder");
        if let Settled::Now(ended) = app.store.settle(ask, Some(instance), &ending).await? {
            app.tell_settled(&app.shown(*ended, instance));
        }
    }
    match app.store.ask(ask).await? {
        Some((ask, instance)) => Ok(app.shown(ask, &instance)),
        None => Err(unknown(ask)),
    }
}

/// Notes a verdict and tells what changed by it.
pub(super) async fn resolve(
    app: &App,
    submission: &str,
    verdict: Verdict,
    ending: Option<&Ending>,
) -> Result<Option<Ask>, Failure> {
    let replied = app.store.reply(app.now(), submission, verdict, ending).await?;
    let Some(Replied { ask, instance, settled_now }) = replied else { return Ok(None) };
    let ask = app.shown(ask, &instance);
    if settled_now {
        app.tell_settled(&ask);
    } else if ask.state == AskState::Open {
        app.tell_updated(&ask);
    }
    Ok(Some(ask))
}

/// An answer to an ask that ended, of a holder that is gone: kept as what the operator chose, and not delivered.
pub(super) async fn record(app: &App, new: NewSubmission, settlement: Settlement) -> Result<Ask, Failure> {
    app.store.submit(app.now(), std::slice::from_ref(&new)).await?;
    app.store.reply(app.now(), &new.id, Verdict::NotFound, None).await?;
    let recorded = was_withdrawn(Some(&settlement));
    Err(had_ended(&new.ask, settlement, recorded))
}

/// The holder says that an ask of a batch had ended: nothing was delivered, and nothing is on record.
pub(super) async fn ended(app: &Inbox, error: ErrorBody, ask: &str) -> Result<Failure, StoreError> {
    let settlement = app.store.ask(ask).await?.and_then(|(ask, _)| ask.settlement);
    Ok(Failure::ended(error, settlement, false))
}

/// The holder is gone: how the ask ended is told as it is stored.
pub(super) fn had_ended(ask: &str, settlement: Settlement, recorded: bool) -> Failure {
    let message = format!("ask {ask} had ended as {}", settlement.outcome.as_str());
    Failure::ended(ErrorBody::new(ErrorCode::NotFound, message), Some(settlement), recorded)
}

/// The stream is lost. An ask that is open is left to the holder's word; how one ended that had ended is known here.
pub(super) async fn without_verdict(app: &App, new: &NewSubmission, lost: Lost) -> Result<Ask, Failure> {
    let ask = match lost {
        Lost::NotWritten => resolve(app, &new.id, Verdict::NotDelivered, None).await?,
        Lost::Unknown => app.store.ask(&new.ask).await?.map(|(ask, instance)| app.shown(ask, &instance)),
    };
    match (ask.as_ref().and_then(|ask| ask.settlement.clone()), ask, lost) {
        // The word that it ended came before the response.
        (Some(settlement), Some(ask), _) if settlement.submission_id.as_ref() == Some(&new.id) => Ok(ask),
        (Some(settlement), _, _) => {
            let recorded = was_withdrawn(Some(&settlement));
            Err(had_ended(&new.ask, settlement, recorded))
        }
        (None, _, Lost::NotWritten) => Err(Failure::holder_not_connected()),
        (None, _, Lost::Unknown) => Err(Failure::verdict_unknown()),
    }
}

fn was_withdrawn(settlement: Option<&Settlement>) -> bool {
    settlement.is_some_and(|how| how.outcome == Outcome::Withdrawn)
}

/// How the inbox itself ends an ask whose request is known to have died.
pub(crate) fn withdrawn(app: &Inbox, reason: &str) -> Ending {
    Ending {
        outcome: Outcome::Withdrawn,
        provenance: Provenance::System,
        rail: Rail::Inbox,
        wire: None,
        by: None,
        at: app.now().wall,
        reason: Some(reason.to_owned()),
        submission_id: None,
    }
}

/// Takes up the holder's word that an ask ended (F7).
pub(crate) async fn settle_by_holder(
    app: &Inbox,
    instance: &str,
    said: &AskSettled,
) -> Result<Settled, StoreError> {
    const LONGEST: usize = 1_024;
    let HolderSettlement { outcome, provenance, rail, wire, reason, ago_ms } = &said.settlement;
    let now = app.now();
    let ago = SignedDuration::from_millis(i64::try_from(*ago_ms).unwrap_or(i64::MAX));
    let ending = Ending {
        outcome: *outcome,
        // Only the inbox says `human` (S15).
        provenance: if *provenance == Provenance::Human { Provenance::Client } else { *provenance },
        rail: *rail,
        wire: *wire,
        by: None,
        at: now.wall.saturating_sub(ago).unwrap_or(now.wall),
        reason: reason.as_ref().map(|reason| {
            let end = reason.floor_char_boundary(LONGEST);
            reason.get(..end).unwrap_or_default().to_owned()
        }),
        submission_id: said.submission_id.clone(),
    };
    let settled = app.store.settle_by(now, &said.pending_id, instance, &ending).await?;
    if let Settled::Now(ask) = &settled {
        app.tell_settled(&app.shown((**ask).clone(), instance));
    }
    Ok(settled)
}

#[derive(Serialize)]
struct VerdictQuery<'a> {
    pending_id: &'a str,
    submission_id: &'a str,
}

/// Asks a holder that came back what became of submissions whose verdict is unknown. `gone` are those of them whose
/// ask its snapshot does not have: unseen there means withdrawn.
pub(crate) async fn ask_for_verdicts(app: App, connection: Arc<Connection>, gone: Vec<String>) {
    const AT_ONCE: u32 = 10_000;
    let unresolved = match app.store.unresolved(&connection.instance, AT_ONCE).await {
        Ok(unresolved) => unresolved,
        Err(error) => {
            tracing::error!(%error, "unresolved submissions could not be read");
            return;
        }
    };
    for submission in unresolved {
        if connection.is_forwarding(&submission.id) {
            continue;
        }
        // It may have been on its way when the list was read, and seen through since: what is not forwarded any more is
        // written.
        match app.store.submission(&submission.id).await {
            Ok(Some(StoredSubmission { verdict: None, .. })) => {}
            Ok(_) => continue,
            Err(error) => {
                // The others may be readable, and nobody else asks for them before the holder comes back again.
                tracing::error!(%error, submission.id, "an unresolved submission could not be read");
                continue;
            }
        }
        let query = VerdictQuery { pending_id: &submission.ask, submission_id: &submission.id };
        let Ok(reply) = connection.request(action::VERDICT, &query).await else { return };
        if let Err(failure) = verdict_came(&app, &connection, &submission, reply, &gone).await {
            tracing::error!(?failure, submission.id, "a verdict could not be noted");
        }
    }
}

async fn verdict_came(
    app: &App,
    connection: &Connection,
    submission: &StoredSubmission,
    reply: Reply,
    gone: &[String],
) -> Result<(), Failure> {
    let Reply { payload, error } = reply;
    let code = error.map(|error| error.code);
    tracing::info!(ask.id = submission.ask, submission.id, ?code, "a verdict came after a lost stream");
    match code {
        None => {
            delivered(app, &submission.id, &Ending::delivered(submission, app.now().wall)).await?;
        }
        Some(ErrorCode::NotFound) => {
            let ended = payload.and_then(|payload| serde_json::from_str::<Ended>(payload.get()).ok());
            let ended = ended.and_then(|ended| ended.ended);
            not_found(app, &connection.instance, &submission.id, &submission.ask, ended.as_ref()).await?;
        }
        Some(ErrorCode::Invalid) => {
            resolve(app, &submission.id, Verdict::Invalid, None).await?;
        }
        Some(ErrorCode::Unseen) => {
            let ending = gone.contains(&submission.ask).then(|| withdrawn(app, "not_in_snapshot"));
            resolve(app, &submission.id, Verdict::Unseen, ending.as_ref()).await?;
        }
        Some(_) => {
            resolve(app, &submission.id, Verdict::Refused, None).await?;
        }
    }
    Ok(())
}
