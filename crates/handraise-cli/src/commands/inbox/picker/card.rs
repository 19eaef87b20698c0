//! One ask on the screen: where the focus is, what is entered, what was said about it.

use std::collections::BTreeSet;

use handraise_api::{
    ask::{AnswerRequest, Ask},
    error::ErrorDetail,
    words::{AskState, Source},
};

use super::{super::words, draft::Drafts, field::Field, guard::Allowed, keys::Key, view::is_cut};

/// What can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The message.
    Heading,
    /// A choice of a question.
    Choice(usize, usize),
    /// The words for a question.
    Words(usize),
    /// The skip control.
    Skip,
    /// The submit control.
    Submit,
}

/// How far an answer of ours is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// Nothing is under way.
    No,
    /// It waits for the verdict.
    Waiting,
    /// It was sent, and nobody knows whether it counted.
    Unknown,
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// Something on the card, or nothing.
    Stay,
    /// Back to the list.
    Close,
    /// To the next ask, or the one before.
    Step(isize),
    /// This is to be sent.
    Send(AnswerRequest),
}

/// The card.
#[derive(Debug, Clone)]
pub(super) struct Card {
    pub(super) ask: Ask,
    pub(super) drafts: Drafts,
    pub(super) stops: Vec<Stop>,
    /// The place of the focus among the stops.
    pub(super) focus: usize,
    /// The first line on screen, and whether it follows the focus.
    pub(super) top: usize,
    pub(super) follows: bool,
    /// Whether keys go into the words that have the focus.
    pub(super) is_typing: bool,
    /// The reason of a skip, while it is typed.
    pub(super) why: Option<Field>,
    /// What is looked for among the choices, while it is typed.
    pub(super) find: Option<Field>,
    pub(super) sending: Sending,
    /// Whether the answer that won is ours.
    pub(super) is_mine: bool,
    pub(super) errors: Vec<ErrorDetail>,
    pub(super) note: Option<String>,
    /// The questions that were on screen.
    pub(super) painted: BTreeSet<usize>,
    /// How many lines a page has, as painted last.
    pub(super) page: usize,
}

const TOO_SOON: &str = "That was pressed before the question stood still. Nothing was sent.";
pub(super) const CUT: &str =
    "This call is not shown whole here, so that it is not accepted here. The page can show it.";

impl Card {
    pub(super) fn new(ask: Ask, drafts: Drafts) -> Self {
        let stops = stops(&ask);
        Self {
            ask,
            drafts,
            stops,
            focus: 0,
            top: 0,
            follows: true,
            is_typing: false,
            why: None,
            find: None,
            sending: Sending::No,
            is_mine: false,
            errors: Vec::new(),
            note: None,
            painted: BTreeSet::new(),
            page: 10,
        }
    }

    pub(super) fn stop(&self) -> Stop {
        self.stops.get(self.focus).copied().unwrap_or(Stop::Heading)
    }

    /// Whether it can be answered from here.
    pub(super) fn is_open(&self) -> bool {
        self.ask.state != AskState::Settled && self.sending == Sending::No
    }

    /// Whether every question was on screen.
    pub(super) fn was_seen(&self) -> bool {
        (0..self.ask.content.questions.len()).all(|question| self.painted.contains(&question))
    }

    /// Digits and `s` are off where an act is confirmed (design.md).
    fn has_shortcuts(&self) -> bool {
        self.ask.content.source != Source::Confirm
    }

    /// Takes over what became of the ask; says whether what the card says has changed.
    pub(super) fn update(&mut self, ask: Ask) -> bool {
        let is_same = self.ask.state == ask.state
            && self.ask.settlement == ask.settlement
            && self.ask.holder_connected == ask.holder_connected
            && self.ask.parked_until == ask.parked_until;
        if !is_same {
            self.ask = ask;
            if self.ask.state == AskState::Settled {
                (self.why, self.find, self.is_typing, self.note) = (None, None, false, None);
                self.errors.clear();
                self.go(0);
            }
            if self.ask.state == AskState::Open && self.sending == Sending::Unknown {
                self.sending = Sending::No;
                self.note = Some(
                    "Your answer did not arrive. Nothing was sent on, the ask is still open.".to_owned(),
                );
            }
            self.stops = stops(&self.ask);
        }
        !is_same
    }

    /// Takes a key. `allowed` says what it may do (S40).
    pub(super) fn key(&mut self, key: &Key, allowed: Allowed) -> Act {
        self.note = None;
        if self.find.is_some() {
            self.key_in_find(key);
            return Act::Stay;
        }
        if self.why.is_some() {
            return self.key_in_why(key, allowed);
        }
        if self.is_typing && self.key_in_words(key) {
            return Act::Stay;
        }
        match key {
            Key::Char('u' | 'q') | Key::Escape => Act::Close,
            Key::Char('j') => Act::Step(1),
            Key::Char('k') => Act::Step(-1),
            Key::Down => self.stay(|card| card.go(card.focus + 1)),
            Key::Up => self.stay(|card| card.go(card.focus.saturating_sub(1))),
            Key::Tab => self.stay(|card| card.go_to_group(true)),
            Key::BackTab => self.stay(|card| card.go_to_group(false)),
            Key::Home => self.stay(|card| card.go(0)),
            Key::End => self.stay(|card| card.go(usize::MAX)),
            Key::PageDown => self.stay(|card| card.scroll(true)),
            Key::PageUp => self.stay(|card| card.scroll(false)),
            Key::Enter | Key::Char(' ') => self.press(allowed),
            Key::CtrlEnter | Key::Ctrl('s') => {
                if self.has_shortcuts() || self.stop() == Stop::Submit {
                    self.submit(allowed)
                } else {
                    Act::Stay
                }
            }
            Key::Char('s') if self.has_shortcuts() => self.stay(Self::ask_why),
            Key::Char('/') => self.stay(|card| card.find = Some(Field::default())),
            Key::Char(digit @ '1'..='9') if self.has_shortcuts() => {
                let choice = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
                if let Some(question) = self.question() {
                    self.toggle(question, choice, allowed);
                }
                Act::Stay
            }
            Key::Char(_)
            | Key::Ctrl(_)
            | Key::Backspace
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::Paste(_) => Act::Stay,
        }
    }

    fn stay(&mut self, change: impl FnOnce(&mut Self)) -> Act {
        change(self);
        Act::Stay
    }

    /// The question in focus; the first one while the message has it.
    fn question(&self) -> Option<usize> {
        match self.stop() {
            Stop::Choice(question, _) | Stop::Words(question) => Some(question),
            Stop::Heading => Some(0),
            Stop::Skip | Stop::Submit => None,
        }
    }

    /// Moves the focus. Where it comes to words, keys go into them.
    pub(super) fn go(&mut self, to: usize) {
        self.focus = to.min(self.stops.len().saturating_sub(1));
        self.follows = true;
        self.is_typing = matches!(self.stop(), Stop::Words(_)) && self.is_open();
    }

    /// To the next question, or the one before.
    fn go_to_group(&mut self, is_forward: bool) {
        let group = |stop: &Stop| match stop {
            Stop::Heading => (0, 0),
            Stop::Choice(question, _) => (1, *question),
            Stop::Words(question) => (2, *question),
            Stop::Skip => (3, 0),
            Stop::Submit => (4, 0),
        };
        let here = group(&self.stop());
        let differs = |at: &usize| self.stops.get(*at).is_some_and(|stop| group(stop) != here);
        let found = if is_forward {
            (self.focus..self.stops.len()).find(differs)
        } else {
            // The first stop of the group before.
            (0..self.focus).rev().find(differs).and_then(|at| {
                let before = self.stops.get(at).map(group);
                (0..=at).find(|start| self.stops.get(*start).map(group) == before)
            })
        };
        self.go(found.unwrap_or(self.focus));
    }

    fn scroll(&mut self, is_forward: bool) {
        let page = self.page.saturating_sub(1).max(1);
        self.top = if is_forward { self.top + page } else { self.top.saturating_sub(page) };
        self.follows = false;
        self.is_typing = false;
    }

    fn press(&mut self, allowed: Allowed) -> Act {
        match self.stop() {
            Stop::Heading => Act::Stay,
            Stop::Choice(question, choice) => self.stay(|card| card.toggle(question, choice, allowed)),
            Stop::Words(_) => self.stay(|card| card.is_typing = card.is_open()),
            Stop::Skip => self.stay(Self::ask_why),
            Stop::Submit => self.submit(allowed),
        }
    }

    fn toggle(&mut self, question: usize, choice: usize, allowed: Allowed) {
        let known = self.ask.content.questions.get(question).map_or(0, |known| words::choices(known).len());
        if !self.is_open() || choice >= known {
            return;
        }
        if allowed.choosing {
            self.drafts.toggle(question, choice);
        } else {
            self.note = Some(TOO_SOON.to_owned());
        }
    }

    fn ask_why(&mut self) {
        if self.is_open() {
            self.is_typing = false;
            self.why = Some(Field::default());
        }
    }

    fn key_in_why(&mut self, key: &Key, allowed: Allowed) -> Act {
        let is_open = self.is_open();
        let Some(why) = &mut self.why else { return Act::Stay };
        match key {
            Key::Enter if is_open && allowed.sending => {
                let reject_reason = why.text();
                self.why = None;
                self.sending = Sending::Waiting;
                return Act::Send(AnswerRequest {
                    rejected: true,
                    reject_reason,
                    ..AnswerRequest::default()
                });
            }
            Key::Enter if is_open => self.note = Some(TOO_SOON.to_owned()),
            Key::Enter | Key::Escape => self.why = None,
            other => {
                why.key(other);
            }
        }
        Act::Stay
    }

    /// Says whether the key is done with.
    fn key_in_words(&mut self, key: &Key) -> bool {
        let Stop::Words(question) = self.stop() else { return false };
        match key {
            Key::Escape | Key::Enter => {
                self.is_typing = false;
                true
            }
            other => {
                let Some(draft) = self.drafts.questions.get_mut(question) else { return false };
                // The ends of the form are reached from outside of a field.
                let is_typed = draft.words.key(other);
                if is_typed {
                    self.drafts.typed(question);
                }
                is_typed
            }
        }
    }

    fn key_in_find(&mut self, key: &Key) {
        let Some(find) = &mut self.find else { return };
        if matches!(key, Key::Escape | Key::Enter) {
            self.find = None;
            return;
        }
        if !find.key(key) {
            return;
        }
        let wanted = find.text().to_lowercase();
        let fits = |stop: &Stop| match stop {
            Stop::Choice(question, choice) => {
                let question = self.ask.content.questions.get(*question);
                let choices = question.map(words::choices).unwrap_or_default();
                choices.get(*choice).is_some_and(|choice| {
                    choice.label.to_lowercase().contains(&wanted)
                        || choice.value.to_lowercase().contains(&wanted)
                })
            }
            Stop::Heading | Stop::Words(_) | Stop::Skip | Stop::Submit => false,
        };
        match self.stops.iter().position(fits) {
            Some(at) => self.go(at),
            None => self.note = Some("No choice matches.".to_owned()),
        }
    }

    fn submit(&mut self, allowed: Allowed) -> Act {
        if !self.is_open() {
            return Act::Stay;
        }
        self.is_typing = false;
        if !allowed.sending {
            self.note = Some(TOO_SOON.to_owned());
            return Act::Stay;
        }
        let questions = 0..self.ask.content.questions.len();
        if let Some(unseen) = questions.clone().find(|question| !self.painted.contains(question)) {
            self.go_to_question(unseen);
            self.note = Some("You have not seen every question yet.".to_owned());
            return Act::Stay;
        }
        if let Some(open) = questions.clone().find(|question| self.lacks(*question)) {
            self.go_to_question(open);
            let words = match (questions.len(), self.ask.content.allows_partial) {
                (1, _) => "Answer it first.",
                (_, true) => "Answer what is needed first.",
                (_, false) => "Answer every question first.",
            };
            self.note = Some(words.to_owned());
            return Act::Stay;
        }
        if is_cut(&self.ask) {
            self.note = Some(CUT.to_owned());
            return Act::Stay;
        }
        self.errors.clear();
        self.sending = Sending::Waiting;
        Act::Send(self.drafts.request(&self.ask))
    }

    /// Whether the holder would refuse the whole for want of this question's answer.
    fn lacks(&self, question: usize) -> bool {
        let is_needed = !self.ask.content.allows_partial
            || self.ask.content.questions.get(question).is_some_and(|known| known.required);
        is_needed && !self.drafts.is_answered(question)
    }

    /// To the first stop of a question.
    pub(super) fn go_to_question(&mut self, wanted: usize) {
        let is_of = |stop: &Stop| match stop {
            Stop::Choice(question, _) | Stop::Words(question) => *question == wanted,
            Stop::Heading | Stop::Skip | Stop::Submit => false,
        };
        if let Some(at) = self.stops.iter().position(is_of) {
            self.go(at);
        }
    }
}

fn stops(ask: &Ask) -> Vec<Stop> {
    let mut stops = vec![Stop::Heading];
    if ask.state == AskState::Settled {
        return stops;
    }
    for (at, question) in ask.content.questions.iter().enumerate() {
        stops.extend((0..words::choices(question).len()).map(|choice| Stop::Choice(at, choice)));
        if words::takes_words(question) {
            stops.push(Stop::Words(at));
        }
    }
    stops.extend([Stop::Skip, Stop::Submit]);
    stops
}
