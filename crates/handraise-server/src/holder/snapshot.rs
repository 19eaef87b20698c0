//! The snapshot with which a holder begins: its open asks and what it has not been believed yet, in parts.

use std::{collections::HashSet, sync::Arc};

use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{Frame, RefusedAsk, SnapshotPart},
};
use handraise_core::AskId;
use handraise_store::{Settled, StoreError};

use super::{payload, refused::Said, short, talk::Talk};
use crate::{answering, hub::refusal};

/// Most ids that one snapshot may name. A holder has far fewer asks, and settlements that it still tells of (S37).
const MOST_NAMED: usize = 100_000;

/// A snapshot under way: what it has named so far.
pub(super) struct Snapshot {
    next: u32,
    named: HashSet<String>,
}

impl Snapshot {
    /// Notes that asks are named. What is no id names none of ours.
    pub(super) fn name<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) -> Result<(), ErrorBody> {
        for id in ids {
            if AskId::new(id).is_err() || self.named.contains(id) {
                continue;
            }
            if self.named.len() >= MOST_NAMED {
                let message = format!("a snapshot names at most {MOST_NAMED} asks");
                return Err(refusal(ErrorCode::LimitExceeded, message));
            }
            self.named.insert(id.to_owned());
        }
        Ok(())
    }
}

impl Talk<'_> {
    /// One part of the open asks and unacknowledged settlements. Only the last part withdraws what none has named. Returns
    /// the asks that were not taken: the part as a whole is.
    pub(super) async fn snapshot(&mut self, frame: &Frame) -> Result<Vec<RefusedAsk>, Said> {
        let part: SnapshotPart = payload(frame)?;
        if part.seq == 0 {
            self.snapshot = Some(Snapshot { next: 0, named: HashSet::new() });
        }
        let Some(snapshot) = self.snapshot.as_mut().filter(|snapshot| snapshot.next == part.seq) else {
            let message = format!("part {} of the snapshot does not follow the one before", part.seq);
            return Err(refusal(ErrorCode::BadRequest, message).into());
        };
        snapshot.next += 1;
        snapshot.name(part.asks.iter().map(|ask| ask.id.as_str()))?;
        snapshot.name(part.settlements.iter().map(|ended| ended.pending_id.as_str()))?;
        for ended in &part.settlements {
            // A settlement that is not taken never will be, and its asker has its answer.
            refused_of_part(&ended.pending_id, self.note_settled(ended).await)?;
        }
        let mut refused = Vec::new();
        for ask in part.asks {
            let id = ask.id.clone();
            for said in self.announce(vec![ask]).await {
                if let Some(error) = refused_of_part(&id, said)? {
                    refused.push(RefusedAsk { pending_id: id.clone(), error });
                }
            }
        }
        if part.last {
            self.reconcile().await?;
        }
        Ok(refused)
    }

    async fn reconcile(&mut self) -> Result<(), StoreError> {
        let Some(Snapshot { named, .. }) = self.snapshot.take() else { return Ok(()) };
        let mut gone = Vec::new();
        for (id, unresolved) in self.app.store.unsettled_of(&self.connection.instance).await? {
            if named.contains(&id) {
                continue;
            }
            if unresolved {
                // Its holder may still know what became of the submission.
                gone.push(id);
                continue;
            }
            let ending = answering::withdrawn(self.app, "not_in_snapshot");
            let owner = Some(self.connection.instance.as_str());
            if let Settled::Now(ask) = self.app.store.settle(&id, owner, &ending).await? {
                self.app.tell_settled(&self.app.shown(*ask, &self.connection.instance));
            }
        }
        if self.connection.epoch > 1 {
            self.app.tell_connection(&self.connection.instance).await;
        }
        let query = answering::ask_for_verdicts(Arc::clone(self.app), Arc::clone(self.connection), gone);
        self.app.tasks.spawn(query);
        Ok(())
    }
}

/// Why one ask of a part is not taken.
fn refused_of_part(ask: &str, outcome: Result<(), Said>) -> Result<Option<ErrorBody>, StoreError> {
    match outcome {
        Ok(()) => Ok(None),
        Err(Said::Fatal(error)) => Err(error),
        Err(Said::Error(error) | Said::Ended(error, _)) => {
            tracing::warn!(ask.id = short(ask), code = ?error.code, "an ask of a snapshot is refused");
            Ok(Some(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_a_snapshot_names_a_bounded_number_of_asks() {
        let mut snapshot = Snapshot { next: 0, named: HashSet::new() };
        snapshot.name(["x".repeat(65).as_str(), "a b"]).unwrap();
        assert!(snapshot.named.is_empty(), "what is no id is not kept");
        let ids: Vec<String> = (0..MOST_NAMED).map(|n| n.to_string()).collect();
        for _ in 0..2 {
            snapshot.name(ids.iter().map(String::as_str)).unwrap();
        }
        let refused = snapshot.name(["one-more"]).unwrap_err();
        assert_eq!((refused.code, snapshot.named.len()), (ErrorCode::LimitExceeded, MOST_NAMED));
    }
}
