//! What time ends by itself: deadlines of silent holders, lost holders, expired tokens, old rows.

use std::time::Duration;

use handraise_api::{
    ask::Ask,
    words::{AskState, Outcome, Provenance, Rail},
};
use handraise_core::Moment;
use handraise_store::{Ending, Now, Retention, Settled, StoreError};

use crate::inbox::{App, Inbox};

/// Asks looked at in one sweep.
const AT_ONCE: u32 = 500;
/// How often old rows are looked for.
const PRUNE_EVERY: Duration = Duration::from_secs(60 * 60);

/// Sweeps until the inbox goes down.
pub(crate) async fn run(app: App) {
    let mut ticks = tokio::time::interval(app.settings.timing.sweep);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut pruned: Option<u64> = None;
    loop {
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = sweep(&app).await {
            tracing::error!(%error, "a sweep failed");
        }
        look_again(&app).await;
        let now = app.now();
        let due = pruned.is_none_or(|last| {
            Duration::from_millis(now.boot.as_millis().saturating_sub(last)) >= PRUNE_EVERY
        });
        if due {
            match prune(&app, now).await {
                Ok(()) => pruned = Some(now.boot.as_millis()),
                Err(error) => tracing::error!(%error, "old rows could not be forgotten"),
            }
        }
    }
}

/// Ends streams of tokens that expired, within the second that S34 allows.
pub(crate) async fn expire_tokens(app: App) {
    let mut ticks = tokio::time::interval(Duration::from_millis(500));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            _ = ticks.tick() => app.access.expire(),
        }
    }
}

/// Tidies up behind whoever writes, so that they need not do it themselves.
pub(crate) async fn checkpoint(app: App) {
    let mut ticks = tokio::time::interval(Duration::from_millis(250));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = app.store.checkpoint().await {
            tracing::error!(%error, "the database's log could not be moved into its file");
        }
    }
}

/// Tries whether a database that took nothing does so again: as long as it does not, nobody may write who would find out.
async fn look_again(app: &Inbox) {
    if app.store.trouble().is_some() {
        match app.store.probe().await {
            Ok(()) if app.store.trouble().is_none() => tracing::info!("the database can be written again"),
            // What is damaged stays so.
            Ok(()) => {}
            Err(error) => tracing::error!(%error, "the inbox can take neither asks nor answers"),
        }
    }
}

async fn prune(app: &Inbox, now: Now) -> Result<(), StoreError> {
    app.store.forget_expired_tokens(now).await?;
    while app.store.prune(now, Retention::default()).await? {
        if app.shutdown.is_cancelled() {
            break;
        }
        // Answers go first: the writer is free between two batches.
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn sweep(app: &Inbox) -> Result<(), StoreError> {
    let now = app.now();
    let timing = app.settings.timing;
    for (ask, instance) in app.store.overdue(earlier(now, timing.deadline_grace), AT_ONCE).await? {
        // Its deadline passed and its holder, which alone knows what became of it, says nothing: it is gone, or
        // hangs. Nobody answered here; what the asking side was sent is not known.
        end(app, &ask, &instance, Outcome::Timeout, "holder_silent").await?;
    }
    let since = earlier(now, timing.lost_holder);
    for (ask, instance) in app.store.orphaned(since, AT_ONCE).await? {
        let outcome = if ask.state == AskState::Sent { Outcome::Error } else { Outcome::Withdrawn };
        let reason = if ask.state == AskState::Sent { "verdict_unknown" } else { "holder_lost" };
        end(app, &ask, &instance, outcome, reason).await?;
    }
    for session in app.store.end_orphaned_sessions(since, now).await? {
        app.tell_session(Some(&session));
    }
    Ok(())
}

fn earlier(now: Now, by: Duration) -> Now {
    let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    Now { boot: Moment::from_millis(now.boot.as_millis().saturating_sub(by)), ..now }
}

async fn end(
    app: &Inbox,
    ask: &Ask,
    instance: &str,
    outcome: Outcome,
    reason: &str,
) -> Result<(), StoreError> {
    let ending = Ending {
        outcome,
        provenance: Provenance::System,
        rail: Rail::Inbox,
        wire: None,
        by: None,
        at: app.now().wall,
        reason: Some(reason.into()),
        submission_id: None,
    };
    if let Settled::Now(ask) = app.store.settle(&ask.id, None, &ending).await? {
        app.tell_settled(&app.shown(*ask, instance));
    }
    Ok(())
}
