//! How asks ended: kept for verdicts, and until the inbox has acknowledged it.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{ask::AskId, holder::Ended, time::Moment};

/// Ended asks of the past.
///
/// It keeps at least the last [`MIN_KEPT`](Self::MIN_KEPT), and all of the last hour, as long as they fit
/// [`MAX_BYTES`](Self::MAX_BYTES); that bound wins, also over what is unacknowledged: an inbox that was away for so
/// long finds those asks in neither list of the snapshot and withdraws them.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: BTreeMap<AskId, Entry>,
    /// Ids in the order of their ends.
    order: VecDeque<AskId>,
    /// What no inbox has acknowledged, in the order of the ends.
    unacknowledged: BTreeMap<u64, AskId>,
    ends: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    ended: Ended,
    end: u64,
    bytes: usize,
}

impl Ledger {
    pub(super) const MIN_KEPT: usize = 10_000;
    pub(super) const MIN_AGE: Duration = Duration::from_secs(3600);
    pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;
    /// What an entry costs beside its ids: the maps' nodes and the settlement.
    const ENTRY_BYTES: usize = 384;

    pub(super) fn get(&self, ask: &AskId) -> Option<&Ended> {
        self.entries.get(ask).map(|entry| &entry.ended)
    }

    /// Records an end. The id must not be here yet.
    pub(super) fn insert(&mut self, ask: AskId, ended: Ended) {
        let now = ended.at;
        let submission = ended.submission.as_ref().map_or(0, |id| id.as_str().len());
        let bytes = Self::ENTRY_BYTES + 3 * ask.as_str().len() + submission;
        self.bytes += bytes;
        self.ends += 1;
        self.unacknowledged.insert(self.ends, ask.clone());
        self.order.push_back(ask.clone());
        self.entries.insert(ask, Entry { ended, end: self.ends, bytes });
        self.forget_old(now);
    }

    /// Notes that the inbox knows how an ask ended.
    pub(super) fn acknowledge(&mut self, ask: &AskId) {
        if let Some(entry) = self.entries.get(ask) {
            self.unacknowledged.remove(&entry.end);
        }
    }

    /// What no inbox has acknowledged, oldest first.
    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = &AskId> {
        self.unacknowledged.values()
    }

    pub(super) fn is_acknowledged(&self) -> bool {
        self.unacknowledged.is_empty()
    }

    fn forget_old(&mut self, now: Moment) {
        while let Some(oldest) = self.order.front() {
            let Some(entry) = self.entries.get(oldest) else { return };
            let is_old = self.entries.len() > Self::MIN_KEPT && entry.ended.at + Self::MIN_AGE <= now;
            if !is_old && self.bytes <= Self::MAX_BYTES {
                return;
            }
            self.bytes -= entry.bytes;
            self.unacknowledged.remove(&entry.end);
            self.entries.remove(oldest);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{Outcome, Provenance};

    fn id(n: usize) -> AskId {
        AskId::new(format!("ask-{n}")).unwrap()
    }

    fn ended(at: u64) -> Ended {
        Ended {
            outcome: Outcome::Timeout,
            provenance: Provenance::System,
            wire: None,
            reason: None,
            submission: None,
            at: Moment::from_millis(at),
        }
    }

    #[test]
    fn verdicts_are_kept_for_the_last_ten_thousand_and_for_an_hour() {
        let mut ledger = Ledger::default();
        for n in 0..20_000 {
            ledger.insert(id(n), ended(n as u64));
        }
        assert!(ledger.get(&id(0)).is_some(), "all are younger than an hour");

        ledger.insert(id(20_000), ended(3_600_000 + 15_000));
        assert!(ledger.get(&id(10_000)).is_none(), "old, and not among the last 10,000");
        assert!(ledger.get(&id(10_001)).is_some(), "among the last 10,000");
        assert_eq!(ledger.entries.len(), Ledger::MIN_KEPT);
    }

    #[test]
    fn s37_the_ledger_is_bounded_in_bytes_whatever_happens() {
        let mut ledger = Ledger::default();
        for n in 0..200_000 {
            ledger.insert(id(n), ended(0));
        }
        assert!(ledger.bytes <= Ledger::MAX_BYTES, "{}", ledger.bytes);
        assert_eq!(ledger.entries.len(), ledger.order.len());
        assert_eq!(ledger.entries.len(), ledger.unacknowledged.len());
        assert!(ledger.get(&id(199_999)).is_some());
        assert!(ledger.get(&id(0)).is_none());
    }
}
