//! What all connections of one process share: settings, the switch, and the bytes in flight.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memchr::memchr2;
use memchr::memmem::Finder;

use crate::confirm::ConfirmConfig;
use crate::envelope::inbox::{Attached, Waits};
use crate::envelope::ledger::Harmful;
use crate::envelope::room::Rooms;
use crate::frame::{INPUT_REQUIRED, Looks, NoFrame, ServerFrame};
use crate::rails::{Asked, Ladder};
use crate::refusal::{LARGEST_WHOLE, Rules, ends};
use crate::seal::{ClockId, Keyring};
use crate::spelled::Characters;

/// What states say that they are about (S22). Most connections never seal one, so it is found once it is needed.
pub struct Upstream(LazyLock<String, Box<dyn FnOnce() -> String + Send>>);

impl Upstream {
    /// What `name` returns, which is called at most once.
    pub fn named_by(name: impl FnOnce() -> String + Send + 'static) -> Self {
        Self(LazyLock::new(Box::new(name)))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Upstream {
    fn from(name: String) -> Self {
        Self::named_by(|| name)
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Upstream").field(&self.as_str()).finish()
    }
}

/// Settings of the envelope.
#[derive(Debug)]
pub struct EnvelopeConfig {
    /// What states say that they are about (S22): the same for the same upstream in every replica and after a restart.
    pub upstream: Upstream,
    /// What states are sealed with.
    pub keyring: Keyring,
    /// Which clock [`Now::boot`](crate::Now::boot) is from.
    pub clock: ClockId,
    /// Which refusals become questions.
    pub rules: Rules,
    /// How guarded calls are confirmed; nothing is guarded without it.
    pub confirm: Option<ConfirmConfig>,
    /// How long a pushed question may wait, counted from the arrival of its call (`HANDRAISE_ASK_TIMEOUT_MS`).
    pub ask_timeout: Duration,
    /// What is answered faster was not shown to a human (`HANDRAISE_ASK_MIN_HUMAN_MS`).
    pub min_human: Duration,
    /// In which order a refusal's question is tried.
    pub refusal_rails: Ladder,
    /// In which order a guarded call's question is tried.
    pub confirm_rails: Ladder,
    /// How long calls wait for the inbox.
    pub waits: Waits,
    /// Bounds.
    pub limits: Limits,
    /// Callers with these names have shares of the bytes in flight, so that nobody keeps another one's calls from being asked
    /// about. One alone, and whoever comes while nobody is named, may have them all.
    pub callers: BTreeSet<String>,
}

impl EnvelopeConfig {
    /// The contract's defaults: the preset refusals, 20 s, 400 ms.
    pub fn new(upstream: impl Into<Upstream>, keyring: Keyring, clock: ClockId) -> Self {
        Self {
            upstream: upstream.into(),
            keyring,
            clock,
            rules: Rules::presets(),
            confirm: None,
            ask_timeout: Duration::from_secs(20),
            min_human: Duration::from_millis(400),
            refusal_rails: Ladder::usual(Asked::Refusal),
            confirm_rails: Ladder::usual(Asked::Confirm),
            waits: Waits::default(),
            limits: Limits::default(),
            callers: BTreeSet::new(),
        }
    }
}

/// Bounds of the envelope (S37).
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that one client may have open. One more is answered with an error.
    pub open_requests: usize,
    /// Bytes that calls and withheld results may occupy in this process. A call that does not fit is forwarded, and
    /// never asked about.
    pub bytes_in_flight: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { open_requests: 65_536, bytes_in_flight: 256 << 20 }
    }
}

/// How often a bound was reached, since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// Requests that were answered with an error, because too many of their client were open.
    pub open_requests: u64,
    /// Calls and refusals that were not kept, and so not asked about.
    pub bytes_in_flight: u64,
    /// Acceptances that were refused, because no more spent states can be remembered.
    pub spent_states: u64,
}

/// What all connections of one process share.
#[derive(Debug)]
pub struct Process {
    pub(super) config: EnvelopeConfig,
    question: Finder<'static>,
    /// Of which characters an escape can be part of a question's word.
    question_hides: Characters,
    /// Whether all words that are looked for have an underscore: what has none, and no escape, has none of them. That is
    /// one fast pass instead of three.
    has_underscores: bool,
    asks: AtomicBool,
    pub(super) rooms: Rooms,
    requests_refused: AtomicU64,
    harmful: Mutex<Harmful>,
    inbox: Attached,
}

impl Process {
    /// A process without connections, which asks.
    pub fn new(config: EnvelopeConfig) -> Self {
        let has_underscores = config.rules.iter().all(|rule| is_word_with_underscore(rule.code()));
        let rooms = Rooms::new(config.limits.bytes_in_flight, &config.callers);
        Self {
            config,
            question: Finder::new(INPUT_REQUIRED),
            question_hides: Characters::of(INPUT_REQUIRED.bytes()),
            has_underscores,
            asks: AtomicBool::new(true),
            rooms,
            requests_refused: AtomicU64::new(0),
            harmful: Mutex::default(),
            inbox: Attached::default(),
        }
    }

    /// Switches the questions that handraise adds on or off. Calls read it when their result arrives.
    pub fn set_elicitation(&self, is_on: bool) {
        self.asks.store(is_on, Ordering::Relaxed);
    }

    /// Whether handraise adds questions.
    pub fn elicitation(&self) -> bool {
        self.asks.load(Ordering::Relaxed) && self.inbox.is_switched_on()
    }

    /// There may be an inbox. `seen` says how long ago an operator could last be asked there, and nothing while it cannot
    /// be reached; it is called with every question that the inbox might serve, and must not wait.
    pub fn attach_inbox(&self, seen: impl Fn() -> Option<Duration> + Send + Sync + 'static) {
        self.inbox.set(Box::new(seen));
    }

    /// The inbox has a switch as well: off in either place wins. `is_on` is called with every refusal, and must not wait.
    pub fn attach_switch(&self, is_on: impl Fn() -> bool + Send + Sync + 'static) {
        self.inbox.set_switch(Box::new(is_on));
    }

    /// Whether there may ever be an inbox.
    pub(super) fn may_have_inbox(&self) -> bool {
        self.inbox.is_set()
    }

    /// Whether somebody in the inbox could answer now.
    pub(super) fn inbox_is_usable(&self) -> bool {
        self.inbox.is_usable()
    }

    /// Bytes that calls and withheld results occupy now.
    pub fn bytes_in_flight(&self) -> u64 {
        self.rooms.kept()
    }

    /// How often each bound was reached (S37).
    pub fn reached(&self) -> Reached {
        Reached {
            open_requests: self.requests_refused.load(Ordering::Relaxed),
            bytes_in_flight: self.rooms.refused(),
            spent_states: self.rooms.states_turned_away(),
        }
    }

    /// One request more than a client may have open.
    pub(super) fn count_refused_request(&self) {
        self.requests_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads a frame of the upstream, and tests whether it may be a refusal. It needs no envelope, and so no lock.
    ///
    /// # Errors
    /// [`NoFrame`]: the line is noise.
    pub fn read_server_frame<'a>(&self, bytes: &'a [u8]) -> Result<ServerFrame<'a>, NoFrame> {
        ServerFrame::read(bytes, |bytes| self.look(bytes))
    }

    /// The tests that every result passes: they decide what is read, and must cost less than moving it.
    fn look(&self, bytes: &[u8]) -> Looks {
        if bytes.len() <= LARGEST_WHOLE {
            return self.look_through(bytes);
        }
        Looks {
            refusal: self.config.rules.may_match(bytes),
            question: ends(bytes).iter().any(|end| self.may_say_question(end)),
            is_large: true,
        }
    }

    fn look_through(&self, bytes: &[u8]) -> Looks {
        if self.has_underscores && memchr2(b'_', b'\\', bytes).is_none() {
            return Looks::default();
        }
        let rules = &self.config.rules;
        // Mostly there is none, and one pass says so for both.
        let is_hidden = self.question_hides.and(rules.hides()).are_escaped_in(bytes);
        let is_hidden = |hides: Characters| is_hidden && hides.are_escaped_in(bytes);
        Looks {
            refusal: rules.has_plain(bytes) || is_hidden(rules.hides()),
            question: self.question.find(bytes).is_some() || is_hidden(self.question_hides),
            is_large: false,
        }
    }

    /// Whether a response may be a question, wherever in a large one it says so. Only the push era asks: there no question
    /// may go on, and to everybody else it costs nothing.
    pub(super) fn may_be_question(&self, frame: &ServerFrame<'_>) -> bool {
        frame.looks.question || frame.looks.is_large && self.may_say_question(frame.bytes())
    }

    /// Whether the word of a question stands in there, however it is spelled. False is certain.
    pub(super) fn may_say_question(&self, bytes: &[u8]) -> bool {
        // Before the first underscore or escape there is at most the beginning of the word.
        let Some(at) = memchr2(b'_', b'\\', bytes) else { return false };
        let rest = &bytes[at.saturating_sub(INPUT_REQUIRED.len())..];
        self.question.find(rest).is_some() || self.question_hides.are_escaped_in(rest)
    }

    /// Takes note of tools that were listed as such that may do harm.
    pub(super) fn note_harmful(&self, names: Vec<String>) {
        lock(&self.harmful).note(names);
    }

    /// Whether a tool was ever listed as one that may do harm.
    pub(super) fn is_harmful(&self, name: &str) -> bool {
        lock(&self.harmful).contains(name)
    }
}

/// Whether a code stands in JSON as it is, or with an escape.
fn is_word_with_underscore(code: &str) -> bool {
    code.contains('_') && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Ledgers are whole after every step, so a panic elsewhere leaves nothing half done.
fn lock<T>(ledger: &Mutex<T>) -> MutexGuard<'_, T> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::{Entry, Rule, RuleSource};

    fn process(code: &str) -> Process {
        let rule = Rule::new(RuleSource {
            name: "other".into(),
            code: code.into(),
            code_at: vec!["/code".into()],
            candidates_at: vec!["/candidates".into()],
            value: String::new(),
            title: "{x}".into(),
            argument: "x".into(),
            message: "Which?".into(),
            candidates_tool: None,
        });
        let rules = Rules::configured([Entry::Rule(Box::new(rule.unwrap()))]);
        let config = EnvelopeConfig::new("u".to_owned(), Keyring::single(&[1; 32]), ClockId([0; 16]));
        Process::new(EnvelopeConfig { rules, ..config })
    }

    #[test]
    fn no_word_is_missed_however_it_is_spelled() {
        for code in ["other_code", "othercode", "other-code", "oth/er_code"] {
            let process = process(code);
            let escaped = code.replace('/', "\\/");
            for (text, refusal, question) in [
                (escaped.as_str(), true, false),
                ("ambiguous_device_target", true, false),
                ("ambiguous_de\\u0076ice_target", true, false),
                ("ambiguous_de\\\\u0076ice_target", true, false),
                // An escape of a letter that both words have: worth reading for both.
                ("ambiguous\\u005fdevice\\u005Ftarget", true, true),
                ("ambiguous\\\\u005fdevice\\\\u005ftarget", true, true),
                ("input_required", false, true),
                ("input\\u005frequired", true, true),
                ("\\u006eput", false, true),
                ("plain text, no word at all", false, false),
                ("a_b \\n c", false, false),
            ] {
                let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{text}"}}}}"#);
                let looks = process.look(frame.as_bytes());
                assert_eq!(looks.question, question, "{code}: {text}");
                assert_eq!(looks.refusal, refusal, "{code}: {text}");
            }
        }
    }

    #[test]
    fn large_results_are_looked_at_by_their_ends() {
        let process = process("other_code");
        let filling = "x".repeat(LARGEST_WHOLE);
        for (text, refusal, question) in [
            (format!("input_required{filling}"), false, true),
            (format!("{filling}input_re\\u0071uired"), false, true),
            (format!("{filling}ambiguous_device_target"), true, false),
            (format!("ambiguous_de\\u0076ice_target{filling}"), true, false),
            (format!("{filling}ambiguous_device_target,input_required{filling}"), false, false),
            (format!("ambiguous_device_target{}", filling.repeat(4)), false, false),
        ] {
            assert_eq!(process.look(text.as_bytes()), Looks { refusal, question, is_large: true });
            let is_in_there = question || text.contains("required");
            assert_eq!(process.may_say_question(text.as_bytes()), is_in_there);
        }
    }

    #[test]
    fn the_word_of_a_question_is_found_at_every_place_however_it_is_spelled() {
        let process = process("other_code");
        for word in
            ["input_required", "\\u0069nput_required", "input\\u005Frequired", "input_required\\u0000"]
        {
            for before in ["", "_", "\\", "_____________", "______________", "x\\nx_x\\u00e9", "inputinput"] {
                assert!(process.may_say_question(format!("{before}{word}").as_bytes()), "{before}{word}");
            }
        }
        for text in ["", "_", "\\u005", "input_require", "inputrequired", "\\u00e9_\\n"] {
            assert!(!process.may_say_question(text.as_bytes()), "{text}");
        }
    }
}
