//! Records that the inbox has not acknowledged: a bounded queue beside the holder's lock.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use handraise_api::record::{AppendRecords, MAX_RECORDS, NumberedRecord, Record};
use serde_json::value::to_raw_value;

use crate::wire;

/// Records that wait for the inbox, at most; further ones are dropped and counted.
const MOST: usize = 4_096;

/// The queue. Its lock is held for moments only: whoever adds a record waits for nobody.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// How many of the first are on their way.
    sent: usize,
    /// Of the latest.
    seq: u64,
    /// How many were dropped, in all and as far as the inbox has not been told.
    dropped: u64,
    untold: u64,
    /// What the frame on its way tells of them.
    telling: u64,
    /// The inbox does not know what records are: it is of an earlier version.
    is_unwanted: bool,
}

#[derive(Debug)]
struct Waiting {
    seq: u64,
    /// On our boot clock.
    at: u64,
    record: Record,
}

impl Records {
    /// Adds a record, or drops it where there is no room.
    pub(crate) fn push(&self, record: Record, now: u64) {
        let mut queue = self.queue();
        if queue.is_unwanted || queue.waiting.len() >= MOST {
            queue.drop_some(1);
            return;
        }
        queue.seq += 1;
        let seq = queue.seq;
        queue.waiting.push_back(Waiting { seq, at: now, record: record.bounded() });
    }

    /// A connection begins: what was on its way on the one before is not known to have come.
    pub(crate) fn connected(&self) {
        let mut queue = self.queue();
        queue.sent = 0;
        queue.telling = 0;
        queue.is_unwanted = false;
    }

    /// Whether there is something to send. One frame is on its way at a time.
    pub(crate) fn has_unsent(&self) -> bool {
        let queue = self.queue();
        queue.sent == 0 && !queue.waiting.is_empty()
    }

    /// Whether the inbox has acknowledged all of them.
    pub(crate) fn is_told(&self) -> bool {
        self.queue().waiting.is_empty()
    }

    /// How many were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue().dropped
    }

    /// The payload of the next frame.
    pub(crate) fn next(&self, now: u64) -> Option<String> {
        let mut queue = self.queue();
        if queue.sent > 0 || queue.waiting.is_empty() {
            return None;
        }
        let batch = queue.waiting.iter().take(MAX_RECORDS);
        let records: Vec<_> = batch
            .map(|Waiting { seq, at, record }| NumberedRecord {
                seq: *seq,
                ago_ms: now.saturating_sub(*at),
                record: record.clone(),
            })
            .collect();
        queue.sent = records.len();
        queue.telling = queue.untold;
        let dropped = queue.telling;
        drop(queue);
        // Our own types always have a text.
        let records = records.iter().filter_map(|record| to_raw_value(record).ok()).collect();
        Some(wire::json(&AppendRecords { records, dropped }))
    }

    /// The inbox has taken what was on its way.
    pub(crate) fn acknowledged(&self) {
        let mut queue = self.queue();
        let sent = std::mem::take(&mut queue.sent);
        queue.waiting.drain(..sent);
        queue.untold -= std::mem::take(&mut queue.telling);
    }

    /// The inbox will never take what was on its way: it is counted, and gone. An inbox that does not know what records
    /// are gets no others on this connection.
    pub(crate) fn refused(&self, is_unknown: bool) {
        let mut queue = self.queue();
        queue.telling = 0;
        queue.is_unwanted = is_unknown;
        let gone = if is_unknown { queue.waiting.len() } else { queue.sent };
        queue.sent = 0;
        queue.waiting.drain(..gone);
        queue.drop_some(gone as u64);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn drop_some(&mut self, count: u64) {
        self.dropped += count;
        self.untold += count;
    }
}

#[cfg(test)]
mod tests {
    use handraise_api::words::{Declared, Era, Outcome, Provenance, Rail};

    use super::*;

    fn record(tool: &str) -> Record {
        Record {
            declared: Declared::Form,
            era: Era::Push,
            rail: Rail::Form,
            outcome: Outcome::Accept,
            provenance: Provenance::Client,
            latency_ms: Some(7),
            tool: Some(tool.to_owned()),
            refusal: None,
            client: None,
            protocol_version: None,
            reason: None,
            ask: None,
        }
    }

    /// The numbers of the next frame, and how many it says were dropped.
    fn next(records: &Records) -> Option<(Vec<u64>, u64)> {
        let frame: AppendRecords = serde_json::from_str(&records.next(1_000)?).unwrap();
        let read = |text: &str| serde_json::from_str::<NumberedRecord>(text).unwrap().seq;
        Some((frame.records.iter().map(|text| read(text.get())).collect(), frame.dropped))
    }

    #[test]
    fn records_go_in_frames_one_at_a_time_and_again_until_they_are_acknowledged() {
        let records = Records::default();
        for _ in 0..100 {
            records.push(record("tap"), 400);
        }
        let first: Vec<u64> = (1..=64).collect();
        assert_eq!(next(&records), Some((first.clone(), 0)));
        assert_eq!((next(&records), records.has_unsent(), records.is_told()), (None, false, false));
        records.connected();
        assert_eq!(next(&records), Some((first, 0)), "the same numbers on the next connection");
        records.acknowledged();
        assert_eq!(next(&records), Some(((65..=100).collect(), 0)));
        records.acknowledged();
        assert!(records.is_told() && !records.has_unsent());
        records.push(record("tap"), 400);
        let text = records.next(1_000).unwrap();
        assert!(text.contains(r#"{"seq":101,"ago_ms":600,"declared":"form""#), "{text}");
    }

    #[test]
    fn s37_what_finds_no_room_is_dropped_and_told_once() {
        let records = Records::default();
        for _ in 0..MOST + 3 {
            records.push(record(&"x".repeat(1_000)), 0);
        }
        assert_eq!((records.dropped(), records.queue().waiting.len()), (3, MOST));
        assert_eq!(records.queue().waiting[0].record.tool.as_ref().unwrap().len(), 128);
        assert_eq!(next(&records).unwrap().1, 3);
        records.push(record("one more"), 0);
        records.acknowledged();
        assert_eq!(next(&records).unwrap().1, 1);
        records.connected();
        assert_eq!(next(&records).unwrap().1, 1, "nobody has acknowledged it");
        records.acknowledged();
        assert_eq!(next(&records).unwrap().1, 0);
    }

    #[test]
    fn an_inbox_that_knows_no_records_gets_no_others_until_the_next_connection() {
        let records = Records::default();
        for _ in 0..100 {
            records.push(record("tap"), 0);
        }
        next(&records).unwrap();
        records.refused(true);
        records.push(record("tap"), 0);
        assert!(records.is_told() && !records.has_unsent());
        assert_eq!(records.dropped(), 101);
        records.connected();
        records.push(record("tap"), 0);
        assert_eq!(next(&records).unwrap(), (vec![101], 101));
        records.refused(false);
        assert_eq!(records.dropped(), 102);
    }
}
