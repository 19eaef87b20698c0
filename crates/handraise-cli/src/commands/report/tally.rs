//! How records are counted: what a human did, what a client reports, and what nobody ever saw are never added up.

use std::collections::BTreeMap;

use handraise_api::{
    record::Record,
    words::{Outcome, Provenance},
};

/// How a try ended, as a report tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    HumanAccept,
    ClientAccept,
    HumanDecline,
    ClientDecline,
    NeverShown,
    TimedOut,
    Cancelled,
    NotAsked,
    HandedBack,
    Other,
}

impl End {
    /// In the order of the columns.
    pub(crate) const ALL: [Self; 10] = [
        Self::HumanAccept,
        Self::ClientAccept,
        Self::HumanDecline,
        Self::ClientDecline,
        Self::NeverShown,
        Self::TimedOut,
        Self::Cancelled,
        Self::NotAsked,
        Self::HandedBack,
        Self::Other,
    ];

    /// What stands above its column.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::HumanAccept => "human accept",
            Self::ClientAccept => "client accept",
            Self::HumanDecline => "human decline",
            Self::ClientDecline => "client decline",
            Self::NeverShown => "never shown",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::NotAsked => "not asked",
            Self::HandedBack => "handed back",
            Self::Other => "other",
        }
    }

    /// Of a record. That nothing was shown counts before everything that a client says about it.
    fn of(record: &Record) -> Self {
        match (record.outcome, record.provenance) {
            (_, Provenance::NotShown) => Self::NeverShown,
            (Outcome::Accept, Provenance::Human) => Self::HumanAccept,
            (Outcome::Accept, Provenance::Client) => Self::ClientAccept,
            (Outcome::Decline, Provenance::Human) => Self::HumanDecline,
            (Outcome::Decline, Provenance::Client) => Self::ClientDecline,
            (Outcome::Timeout, _) => Self::TimedOut,
            (Outcome::Cancel | Outcome::Withdrawn, _) => Self::Cancelled,
            (Outcome::NotOffered | Outcome::Disabled | Outcome::Remembered, _) => Self::NotAsked,
            (Outcome::Asked, _) => Self::HandedBack,
            (Outcome::Accept | Outcome::Decline, Provenance::System)
            | (Outcome::Invalid | Outcome::Error, _) => Self::Other,
        }
    }
}

/// The counts of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    ends: [u64; End::ALL.len()],
    /// In milliseconds, of those in which somebody was waited for.
    latencies: Vec<u64>,
}

impl Counts {
    fn add(&mut self, record: &Record) {
        let end = End::of(record);
        for (known, count) in End::ALL.iter().zip(&mut self.ends) {
            *count += u64::from(*known == end);
        }
        self.latencies.extend(record.latency_ms);
    }

    pub(crate) fn tried(&self) -> u64 {
        self.ends.iter().sum()
    }

    pub(crate) fn ends(&self) -> impl Iterator<Item = (End, u64)> {
        End::ALL.into_iter().zip(self.ends)
    }

    /// The latency below which so many of a hundred are, in milliseconds.
    pub(crate) fn percentile(&self, percent: usize) -> Option<u64> {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }

    /// How long calls stood and waited, all together, in milliseconds.
    pub(crate) fn waited(&self) -> u64 {
        self.latencies.iter().fold(0, |sum, latency| sum.saturating_add(*latency))
    }
}

/// Counts by group, and all together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    groups: BTreeMap<Option<String>, Counts>,
    pub(crate) total: Counts,
}

impl Tally {
    /// Counts a record in its group; `None`: it says nothing of what is grouped by.
    pub(crate) fn add(&mut self, group: Option<&str>, record: &Record) {
        self.groups.entry(group.map(str::to_owned)).or_default().add(record);
        self.total.add(record);
    }

    /// The groups, the largest first.
    pub(crate) fn groups(&self) -> Vec<(Option<&str>, &Counts)> {
        let mut groups: Vec<_> = self.groups.iter().map(|(name, counts)| (name.as_deref(), counts)).collect();
        groups.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.tried()));
        groups
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use handraise_api::words::{Declared, Era, Rail};

    use super::*;

    pub(crate) fn record(outcome: Outcome, provenance: Provenance, latency_ms: Option<u64>) -> Record {
        Record {
            declared: Declared::Form,
            era: Era::Push,
            rail: Rail::Form,
            outcome,
            provenance,
            latency_ms,
            tool: None,
            refusal: None,
            client: None,
            protocol_version: None,
            reason: None,
            ask: None,
        }
    }

    #[test]
    fn declined_and_never_shown_are_never_one() {
        for (outcome, provenance, end) in [
            (Outcome::Decline, Provenance::Human, End::HumanDecline),
            (Outcome::Decline, Provenance::Client, End::ClientDecline),
            (Outcome::Decline, Provenance::NotShown, End::NeverShown),
            (Outcome::Decline, Provenance::System, End::Other),
            (Outcome::Accept, Provenance::NotShown, End::NeverShown),
            (Outcome::Cancel, Provenance::NotShown, End::NeverShown),
            (Outcome::Cancel, Provenance::Client, End::Cancelled),
            (Outcome::Withdrawn, Provenance::System, End::Cancelled),
            (Outcome::Timeout, Provenance::System, End::TimedOut),
            (Outcome::NotOffered, Provenance::System, End::NotAsked),
            (Outcome::Asked, Provenance::System, End::HandedBack),
            (Outcome::Error, Provenance::System, End::Other),
        ] {
            assert_eq!(End::of(&record(outcome, provenance, None)), end, "{outcome:?} {provenance:?}");
        }
    }

    #[test]
    fn latencies_are_of_those_that_were_waited_for() {
        let mut counts = Counts::default();
        assert_eq!((counts.percentile(50), counts.waited()), (None, 0));
        counts.add(&record(Outcome::NotOffered, Provenance::System, None));
        for latency in 1..=200 {
            counts.add(&record(Outcome::Accept, Provenance::Human, Some(latency)));
        }
        assert_eq!((counts.tried(), counts.waited()), (201, 20_100));
        assert_eq!((counts.percentile(50), counts.percentile(99)), (Some(100), Some(198)));
    }
}
