//! Counters for `GET /metrics`, with labels from closed sets only (S39).

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

use handraise_api::frame::DECLINE_REASONS;
use handraise_core::{Outcome, Source};

/// What was refused because of a bound, or for who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Connections,
    Strangers,
    TokenConnections,
    EventStreams,
    TokenEventStreams,
    HolderAsks,
    HolderRate,
    HolderRecords,
    TokenAsks,
    TokenBytes,
    TokenSessions,
    TokenInstances,
    Answerers,
    HolderFrames,
    NotOwner,
    ContentChanged,
    StaleEpoch,
    StrayResponses,
}

impl Refused {
    const ALL: [Self; 18] = [
        Self::Connections,
        Self::Strangers,
        Self::TokenConnections,
        Self::EventStreams,
        Self::TokenEventStreams,
        Self::HolderAsks,
        Self::HolderRate,
        Self::HolderRecords,
        Self::TokenAsks,
        Self::TokenBytes,
        Self::TokenSessions,
        Self::TokenInstances,
        Self::Answerers,
        Self::HolderFrames,
        Self::NotOwner,
        Self::ContentChanged,
        Self::StaleEpoch,
        Self::StrayResponses,
    ];

    /// What it is in words, where [`audit`](crate::audit) says it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::NotOwner => "a holder spoke of something that is another's",
            Self::ContentChanged => "an open ask was announced with other content",
            Self::StaleEpoch => "an earlier connection of a holder still speaks; it is closed",
            Self::StrayResponses => "a holder answers what it was not asked",
            Self::Answerers => "somebody answered whose answer does not count",
            _ => self.word(),
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Strangers => "strangers",
            Self::TokenConnections => "token_connections",
            Self::EventStreams => "event_streams",
            Self::TokenEventStreams => "token_event_streams",
            Self::HolderAsks => "holder_asks",
            Self::HolderRate => "holder_rate",
            Self::HolderRecords => "holder_records",
            Self::TokenAsks => "token_asks",
            Self::TokenBytes => "token_bytes",
            Self::TokenSessions => "token_sessions",
            Self::TokenInstances => "token_instances",
            Self::Answerers => "answerers",
            Self::HolderFrames => "holder_frames",
            Self::NotOwner => "not_owner",
            Self::ContentChanged => "content_changed",
            Self::StaleEpoch => "stale_epoch",
            Self::StrayResponses => "stray_responses",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Metrics {
    opened: Vec<AtomicU64>,
    settled: Vec<AtomicU64>,
    refused: Vec<AtomicU64>,
    /// By reason; the last counts those that this inbox has no word for.
    declined: Vec<AtomicU64>,
    submissions: AtomicU64,
    records: AtomicU64,
    records_dropped: AtomicU64,
}

/// The label of asks that a holder declined for a reason that this inbox does not know.
const OTHER: &str = "other";

impl Default for Metrics {
    fn default() -> Self {
        let counters = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            opened: counters(Source::ALL.len()),
            settled: counters(Outcome::ALL.len()),
            refused: counters(Refused::ALL.len()),
            declined: counters(DECLINE_REASONS.len() + 1),
            submissions: AtomicU64::new(0),
            records: AtomicU64::new(0),
            records_dropped: AtomicU64::new(0),
        }
    }
}

fn count<T: PartialEq>(counters: &[AtomicU64], all: &[T], what: &T) {
    let at = all.iter().position(|known| known == what);
    if let Some(counter) = at.and_then(|at| counters.get(at)) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn opened(&self, source: Source) {
        count(&self.opened, Source::ALL, &source);
    }

    pub(crate) fn settled(&self, outcome: Outcome) {
        count(&self.settled, Outcome::ALL, &outcome);
    }

    pub(crate) fn refused(&self, what: Refused) {
        count(&self.refused, &Refused::ALL, &what);
    }

    /// Counts asks that a holder declined without showing them to anyone.
    pub(crate) fn declined(&self, reason: &str, count: u64) {
        let at = DECLINE_REASONS.iter().position(|known| *known == reason).unwrap_or(DECLINE_REASONS.len());
        if let Some(counter) = self.declined.get(at) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn submitted(&self) {
        self.submissions.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts records that are kept.
    pub(crate) fn records(&self, count: u64) {
        self.records.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts records that are not: no room at their holder, or no sense in them.
    pub(crate) fn records_dropped(&self, count: u64) {
        self.records_dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// The text that Prometheus reads. `open`, `holders` and `streams` are counted by those who know.
    pub(crate) fn render(&self, open: u64, holders: usize, streams: usize) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: Vec<(String, u64)>| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        let read = |counters: &[AtomicU64], label: &str, words: Vec<&str>| {
            words
                .into_iter()
                .zip(counters)
                .map(|(word, counter)| (format!("{{{label}=\"{word}\"}}"), counter.load(Ordering::Relaxed)))
                .collect()
        };
        let one = |value| vec![(String::new(), value)];
        let size = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        family("handraise_asks_open", "gauge", "Asks that have not ended.", one(open));
        family("handraise_holders_connected", "gauge", "Holder connections.", one(size(holders)));
        family("handraise_event_streams", "gauge", "Event streams.", one(size(streams)));
        family(
            "handraise_asks_opened_total",
            "counter",
            "Asks opened since start.",
            read(&self.opened, "source", Source::ALL.iter().map(|word| word.as_str()).collect()),
        );
        family(
            "handraise_asks_settled_total",
            "counter",
            "Asks ended since start.",
            read(&self.settled, "outcome", Outcome::ALL.iter().map(|word| word.as_str()).collect()),
        );
        family(
            "handraise_asks_declined_total",
            "counter",
            "Asks that their holders declined without showing them to anyone, since start.",
            read(&self.declined, "reason", DECLINE_REASONS.iter().copied().chain([OTHER]).collect()),
        );
        family(
            "handraise_submissions_total",
            "counter",
            "Answers and skips taken since start.",
            one(self.submissions.load(Ordering::Relaxed)),
        );
        family(
            "handraise_records_total",
            "counter",
            "Records of rails that holders tried, taken since start.",
            one(self.records.load(Ordering::Relaxed)),
        );
        family(
            "handraise_records_dropped_total",
            "counter",
            "Records that holders had no room for, that came too fast or that could not be read, since start.",
            one(self.records_dropped.load(Ordering::Relaxed)),
        );
        family(
            "handraise_refused_total",
            "counter",
            "What a bound or an owner check refused since start.",
            read(&self.refused, "what", Refused::ALL.iter().map(|what| what.word()).collect()),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s39_every_label_is_there_from_the_start() {
        let metrics = Metrics::default();
        metrics.settled(Outcome::Timeout);
        metrics.declined("rate", 7);
        metrics.declined("a reason of a later version\n", 2);
        let text = metrics.render(3, 2, 1);
        assert!(text.contains("handraise_asks_open 3\n"), "{text}");
        assert!(text.contains("handraise_asks_settled_total{outcome=\"timeout\"} 1\n"), "{text}");
        assert!(text.contains("handraise_asks_settled_total{outcome=\"accept\"} 0\n"), "{text}");
        assert!(text.contains("handraise_asks_declined_total{reason=\"rate\"} 7\n"), "{text}");
        assert!(text.contains("handraise_asks_declined_total{reason=\"url_mode\"} 0\n"), "{text}");
        assert!(text.contains("handraise_asks_declined_total{reason=\"other\"} 2\n"), "{text}");
        assert!(!text.contains("later version"), "{text}");
        assert!(text.contains("handraise_refused_total{what=\"not_owner\"} 0\n"), "{text}");
    }
}
