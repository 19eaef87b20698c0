//! What was turned away and what is here now, for `GET /metrics` (S37).

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{Front, lock};
use crate::upstream::Room;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Requests,
    Host,
    Origin,
    Unauthorized,
    Sessions,
    Children,
    Restarting,
    InFlight,
    Subscriptions,
    LargeBodies,
    SlowBodies,
    LongFrames,
    HeaderMismatches,
    Connections,
    Strangers,
    IdleConnections,
    SlowClients,
    IdleSessions,
    ReplayedOut,
}

/// Names of the counters, in the order of [`Count`].
const NAMES: [(&str, &str); 19] = [
    ("requests_total", ""),
    ("refused_total", "{reason=\"host\"}"),
    ("refused_total", "{reason=\"origin\"}"),
    ("refused_total", "{reason=\"unauthorized\"}"),
    ("refused_total", "{reason=\"sessions\"}"),
    ("refused_total", "{reason=\"children\"}"),
    ("refused_total", "{reason=\"restarting\"}"),
    ("refused_total", "{reason=\"bytes_in_flight\"}"),
    ("refused_total", "{reason=\"subscriptions\"}"),
    ("refused_total", "{reason=\"large_body\"}"),
    ("refused_total", "{reason=\"slow_body\"}"),
    ("refused_total", "{reason=\"long_frame\"}"),
    ("refused_total", "{reason=\"header_mismatch\"}"),
    ("refused_total", "{reason=\"connections\"}"),
    ("closed_total", "{reason=\"stranger\"}"),
    ("closed_total", "{reason=\"idle_connection\"}"),
    ("closed_total", "{reason=\"slow_client\"}"),
    ("closed_total", "{reason=\"idle_session\"}"),
    ("replay_dropped_total", ""),
];

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics([AtomicU64; NAMES.len()]);

impl Metrics {
    pub(crate) fn count(&self, what: Count) {
        self.add(what, 1);
    }

    pub(crate) fn add(&self, what: Count, number: u64) {
        if let Some(counter) = self.0.get(what as usize) {
            counter.fetch_add(number, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
impl Metrics {
    pub(crate) fn counted(&self, what: Count) -> u64 {
        self.0[what as usize].load(Ordering::Relaxed)
    }
}

/// The counters and what is here now, as Prometheus reads them.
pub(crate) fn text(front: &Front) -> String {
    let mut text = String::new();
    let mut last = "";
    for ((name, labels), value) in NAMES.iter().zip(&front.metrics.0) {
        if *name != last {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# TYPE handraise_mcp_{name} counter");
            last = name;
        }
        let _ = writeln!(text, "handraise_mcp_{name}{labels} {}", value.load(Ordering::Relaxed));
    }
    let reached = front.process.reached();
    let kept = [
        ("open_requests", reached.open_requests),
        ("kept_calls", reached.bytes_in_flight),
        ("spent_states", reached.spent_states),
    ];
    let _ = writeln!(text, "# TYPE handraise_mcp_envelope_refused_total counter");
    for (reason, value) in kept {
        let _ = writeln!(text, "handraise_mcp_envelope_refused_total{{reason=\"{reason}\"}} {value}");
    }
    let room = front.upstream.as_ref().map(|server| &*server.room);
    let refused = room.map_or(0, Room::refused);
    let _ = writeln!(
        text,
        "# TYPE handraise_mcp_answers_refused_total counter\nhandraise_mcp_answers_refused_total{{reason=\"bytes_in_flight\"}} {refused}"
    );
    let (sessions, shared) = front.counts();
    let gauges = [
        ("sessions", sessions as u64),
        ("shared_servers", shared as u64),
        ("children", lock(&front.children).count() as u64),
        ("connections", front.door.count() as u64),
        ("bytes_in_flight", front.budgets.used() as u64),
        ("answer_bytes", room.map_or(0, Room::used) as u64),
        ("kept_call_bytes", front.process.bytes_in_flight()),
    ];
    for (name, value) in gauges {
        let _ = writeln!(text, "# TYPE handraise_mcp_{name} gauge\nhandraise_mcp_{name} {value}");
    }
    text
}
