//! What happened in sessions and the inbox does not know yet: numbered, bounded, resent until acknowledged.

use std::collections::{BTreeMap, VecDeque};

use handraise_api::{
    Timestamp,
    frame::SessionMessage,
    session::{Author, Message, MessageKind},
};
use serde_json::Map;

use crate::{NewMessage, wire};

/// Bytes of unacknowledged entries of one session, as JSON text (acp.md, "Agent life").
const SESSION_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of one entry's words; longer ones are cut.
const TEXT_BYTES: usize = 1024 * 1024;
/// Bytes of one entry's metadata as JSON; larger ones are left out.
const METADATA_BYTES: usize = 256 * 1024;
/// What may go before an ask that was opened later: so many unsent entries, of so many bytes of JSON.
const SHORT_ENTRIES: usize = 16;
const SHORT_BYTES: usize = 64 * 1024;
/// Sessions with unacknowledged entries (S37).
const SESSIONS: usize = 256;
/// Sessions whose next number is remembered after they fell quiet.
const QUIET_SESSIONS: usize = 10_000;

/// The transcripts of a holder's sessions.
#[derive(Debug, Default)]
pub(crate) struct Transcripts {
    sessions: BTreeMap<String, Transcript>,
    /// Where the numbers of quiet sessions go on.
    quiet: BTreeMap<String, u64>,
}

/// An entry on its way: what to hand to [`Transcripts::acknowledged`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryReceipt {
    session: String,
    seq: u64,
}

#[derive(Debug)]
struct Transcript {
    next_seq: u64,
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Entries that gave way, as one notice in their place.
    gap: Option<Gap>,
    /// The first entry that this connection has not carried.
    unsent: u64,
}

#[derive(Debug)]
struct Entry {
    seq: u64,
    payload: String,
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    dropped: u64,
    last_seq: u64,
    at: Timestamp,
}

impl Default for Transcript {
    fn default() -> Self {
        Self { next_seq: 1, entries: VecDeque::new(), bytes: 0, gap: None, unsent: 1 }
    }
}

impl Transcripts {
    /// Appends an entry; says whether there was room for its session.
    pub(crate) fn push(&mut self, message: NewMessage, at: Timestamp) -> bool {
        if !self.sessions.contains_key(&message.session_id) && self.sessions.len() >= SESSIONS {
            let quiet = self.sessions.iter().find(|(_, transcript)| transcript.is_acknowledged());
            let Some(quiet) = quiet.map(|(session, _)| session.clone()) else { return false };
            if let Some(transcript) = self.sessions.remove(&quiet)
                && self.quiet.len() < QUIET_SESSIONS
            {
                self.quiet.insert(quiet, transcript.next_seq);
            }
        }
        let transcript = self.sessions.entry(message.session_id.clone()).or_default();
        if let Some(next_seq) = self.quiet.remove(&message.session_id) {
            transcript.next_seq = next_seq;
        }
        transcript.push(message, at);
        true
    }

    /// Begins a connection: everything unacknowledged is to be sent again.
    pub(crate) fn connected(&mut self) {
        for transcript in self.sessions.values_mut() {
            transcript.unsent = 0;
        }
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.sessions.values().any(Transcript::has_unsent)
    }

    /// Whether what is unsent is so little that an ask can wait for it.
    pub(crate) fn is_short(&self) -> bool {
        let unsent = || self.sessions.values().flat_map(Transcript::unsent);
        unsent().nth(SHORT_ENTRIES).is_none()
            && unsent().map(|entry| entry.payload.len()).sum::<usize>() <= SHORT_BYTES
    }

    /// The payload of the next entry to send.
    pub(crate) fn next(&mut self) -> Option<(EntryReceipt, String)> {
        let (session, transcript) =
            self.sessions.iter_mut().find(|(_, transcript)| transcript.has_unsent())?;
        let (seq, payload) = transcript.next(session)?;
        Some((EntryReceipt { session: session.clone(), seq }, payload))
    }

    pub(crate) fn acknowledged(&mut self, receipt: &EntryReceipt) {
        if let Some(transcript) = self.sessions.get_mut(&receipt.session) {
            transcript.acknowledged(receipt.seq);
        }
    }

    pub(crate) fn is_acknowledged(&self) -> bool {
        self.sessions.values().all(Transcript::is_acknowledged)
    }
}

impl Transcript {
    fn push(&mut self, message: NewMessage, at: Timestamp) {
        let seq = self.next_seq;
        self.next_seq += 1;
        let payload = payload(message, seq, at);
        self.bytes += payload.len();
        self.entries.push_back(Entry { seq, payload });
        while self.bytes > SESSION_BYTES
            && let Some(entry) = self.entries.pop_front()
        {
            self.bytes -= entry.payload.len();
            let dropped = self.gap.map_or(0, |gap| gap.dropped) + 1;
            self.gap = Some(Gap { dropped, last_seq: entry.seq, at });
        }
    }

    fn has_unsent(&self) -> bool {
        let last = self.entries.back().map(|entry| entry.seq).or(self.gap.map(|gap| gap.last_seq));
        last.is_some_and(|last| last >= self.unsent)
    }

    fn unsent(&self) -> impl Iterator<Item = &Entry> {
        // The latest entries are the unsent ones.
        self.entries.iter().rev().take_while(|entry| entry.seq >= self.unsent)
    }

    fn next(&mut self, session: &str) -> Option<(u64, String)> {
        if let Some(gap) = self.gap.filter(|gap| gap.last_seq >= self.unsent) {
            self.unsent = gap.last_seq + 1;
            return Some((gap.last_seq, payload(gap.notice(session), gap.last_seq, gap.at)));
        }
        // Numbers are consecutive, so the place of an entry is known.
        let first = self.entries.front()?.seq;
        let entry = self.entries.get(usize::try_from(self.unsent.saturating_sub(first)).ok()?)?;
        self.unsent = entry.seq + 1;
        Some((entry.seq, entry.payload.clone()))
    }

    /// The inbox takes entries in order: it has everything up to `seq`.
    fn acknowledged(&mut self, seq: u64) {
        if self.gap.is_some_and(|gap| gap.last_seq <= seq) {
            self.gap = None;
        }
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.seq <= seq) {
            self.bytes -= entry.payload.len();
        }
    }

    fn is_acknowledged(&self) -> bool {
        self.entries.is_empty() && self.gap.is_none()
    }
}

impl Gap {
    fn notice(self, session: &str) -> NewMessage {
        NewMessage {
            session_id: session.into(),
            kind: MessageKind::Notice,
            author: Author::System,
            text: format!("{} older entries were dropped while the inbox was away", self.dropped),
            continues: false,
            requests_input: false,
            metadata: Map::new(),
        }
    }
}

fn payload(message: NewMessage, seq: u64, at: Timestamp) -> String {
    let NewMessage { session_id, kind, author, mut text, continues, requests_input, mut metadata } = message;
    if text.len() > TEXT_BYTES {
        let end = (0..=TEXT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    if wire::json(&metadata).len() > METADATA_BYTES {
        metadata.clear();
    }
    let message = Message { seq, session_id, at, kind, author, text, continues, requests_input, metadata };
    wire::json(&SessionMessage { message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: impl Into<String>) -> NewMessage {
        NewMessage {
            session_id: "s".into(),
            kind: MessageKind::AgentText,
            author: Author::Agent,
            text: text.into(),
            continues: true,
            requests_input: false,
            metadata: Map::new(),
        }
    }

    fn drain(transcripts: &mut Transcripts) -> Vec<(EntryReceipt, Message)> {
        std::iter::from_fn(|| transcripts.next())
            .map(|(receipt, payload)| {
                (receipt, serde_json::from_str::<SessionMessage>(&payload).unwrap().message)
            })
            .collect()
    }

    #[test]
    fn entries_are_numbered_from_one_and_resent_until_acknowledged() {
        let mut transcripts = Transcripts::default();
        for text in ["a", "b", "c"] {
            assert!(transcripts.push(message(text), Timestamp::UNIX_EPOCH));
        }
        let sent = drain(&mut transcripts);
        assert_eq!(
            sent.iter().map(|(_, m)| (m.seq, m.text.as_str())).collect::<Vec<_>>(),
            [(1, "a"), (2, "b"), (3, "c")]
        );
        assert!(drain(&mut transcripts).is_empty(), "once per connection");
        transcripts.acknowledged(&sent[0].0);

        transcripts.connected();
        transcripts.push(message("d"), Timestamp::UNIX_EPOCH);
        let again = drain(&mut transcripts);
        assert_eq!(again.iter().map(|(_, m)| m.seq).collect::<Vec<_>>(), [2, 3, 4]);
        transcripts.acknowledged(&again[2].0);
        assert!(transcripts.is_acknowledged() && !transcripts.has_unsent());
    }

    #[test]
    fn an_ask_waits_for_a_few_words_and_not_for_many() {
        let mut transcripts = Transcripts::default();
        assert!(transcripts.is_short());
        for n in 0..SHORT_ENTRIES {
            assert!(transcripts.is_short());
            let session_id = (n % 3).to_string();
            transcripts.push(NewMessage { session_id, ..message("a") }, Timestamp::UNIX_EPOCH);
        }
        assert!(transcripts.is_short());
        transcripts.push(message("b"), Timestamp::UNIX_EPOCH);
        assert!(!transcripts.is_short(), "too many, whatever their session");
        drain(&mut transcripts);
        assert!(transcripts.is_short(), "what is sent is not counted, acknowledged or not");
        transcripts.push(message("x".repeat(SHORT_BYTES)), Timestamp::UNIX_EPOCH);
        assert!(!transcripts.is_short(), "too long");
    }

    #[test]
    fn beyond_16_mib_the_oldest_give_way_to_a_notice_in_their_place() {
        let mut transcripts = Transcripts::default();
        let large = "x".repeat(1024 * 1024 - 300);
        for _ in 0..20 {
            transcripts.push(message(large.clone()), Timestamp::UNIX_EPOCH);
        }
        let transcript = &transcripts.sessions["s"];
        assert!(transcript.bytes <= SESSION_BYTES);
        let sent = drain(&mut transcripts);
        assert_eq!(sent[0].1.kind, MessageKind::Notice);
        assert!(sent[0].1.text.starts_with("4 older entries"), "{}", sent[0].1.text);
        assert_eq!(sent.iter().map(|(_, m)| m.seq).collect::<Vec<_>>(), (4..=20).collect::<Vec<_>>());

        // More give way after the notice was sent: it is told again, with the new count.
        transcripts.push(message(large), Timestamp::UNIX_EPOCH);
        transcripts.acknowledged(&sent[0].0);
        let more = drain(&mut transcripts);
        assert_eq!(more.iter().map(|(_, m)| m.seq).collect::<Vec<_>>(), [21]);
        transcripts.connected();
        let again = drain(&mut transcripts);
        assert!(again[0].1.text.starts_with("5 older entries"), "{}", again[0].1.text);
        assert_eq!(again.last().unwrap().1.seq, 21);
        transcripts.acknowledged(&again.last().unwrap().0);
        assert!(transcripts.is_acknowledged());
    }

    #[test]
    fn s37_an_oversized_entry_is_cut_and_sessions_are_counted() {
        let mut transcripts = Transcripts::default();
        transcripts.push(message("é".repeat(2 * TEXT_BYTES)), Timestamp::UNIX_EPOCH);
        let (_, cut) = drain(&mut transcripts).remove(0);
        assert!(cut.text.len() <= TEXT_BYTES + 3 && cut.text.ends_with('…'));

        for n in 1..SESSIONS {
            assert!(
                transcripts
                    .push(NewMessage { session_id: n.to_string(), ..message("x") }, Timestamp::UNIX_EPOCH)
            );
        }
        let late = NewMessage { session_id: "late".into(), ..message("x") };
        assert!(!transcripts.push(late.clone(), Timestamp::UNIX_EPOCH), "all others are unacknowledged");
        transcripts.acknowledged(&EntryReceipt { session: "s".into(), seq: 1 });
        assert!(transcripts.push(late, Timestamp::UNIX_EPOCH));
    }
}
