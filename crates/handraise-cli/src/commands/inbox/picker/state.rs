//! The picker as a value: what happened goes in, what is to be done comes out. It knows no terminal and no clock.

use std::collections::{BTreeMap, BTreeSet};

use handraise_api::{
    ask::{AnswerRequest, Ask},
    words::AskState,
};

use super::{
    card::{Act, Card},
    draft::Drafts,
    field::Field,
    guard::Guard,
    keys::Key,
};

/// Drafts that are kept of asks that are not open on screen.
const DRAFTS: usize = 200;
/// So close to the end of the list more asks are loaded.
const NEAR: usize = 10;
/// A second key within this many milliseconds completes a pair such as `g i`.
const PAIR: u64 = 1_500;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// The end.
    Quit,
    /// The next page of asks is wanted.
    LoadMore(String),
    /// The questions of this ask were painted (S15).
    Seen {
        /// Which ask.
        id: String,
        /// What was painted.
        digest: String,
    },
    /// An answer is to be sent.
    Send {
        /// Which ask.
        id: String,
        /// What.
        request: AnswerRequest,
    },
    /// Several answers are to be sent as one (S44).
    SendTogether(Vec<(String, AnswerRequest)>),
}

/// The picker.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one thing that is so or not, and they are independent"
)]
pub(super) struct Picker {
    /// The open asks, in the inbox's order.
    pub(super) asks: Vec<Ask>,
    next_page: Option<String>,
    is_loading: bool,
    pub(super) selected: Option<String>,
    /// Asks that came and were not looked at.
    pub(super) fresh: BTreeSet<String>,
    /// Asks that are to be answered together.
    pub(super) marked: BTreeSet<String>,
    /// Until when the key after `g` is the second one of a pair.
    pair_until: u64,
    /// What is looked for, and whether it is being typed.
    pub(super) filter: Field,
    pub(super) is_finding: bool,
    pub(super) has_help: bool,
    pub(super) card: Option<Card>,
    pub(super) drafts: BTreeMap<String, Drafts>,
    pub(super) seen: BTreeSet<String>,
    pub(super) guard: Guard,
    last_key: Option<Key>,
    /// Whether the inbox cannot be reached.
    pub(super) is_lost: bool,
    /// Whether it has been heard of at all.
    pub(super) is_loaded: bool,
    pub(super) note: Option<String>,
}

impl Picker {
    /// Everything that is open replaces what is known.
    pub(super) fn snapshot(&mut self, asks: Vec<Ask>, next_page: Option<String>) {
        let known: BTreeSet<String> = self.asks.iter().map(|ask| ask.id.clone()).collect();
        if self.is_loaded {
            let fresh = asks.iter().map(|ask| &ask.id).filter(|id| !known.contains(*id));
            self.fresh.extend(fresh.cloned());
        }
        let place = self.place();
        self.asks = asks;
        self.marked.retain(|id| self.asks.iter().any(|ask| ask.id == *id));
        (self.next_page, self.is_loading, self.is_lost, self.is_loaded) = (next_page, false, false, true);
        self.keep_selection(place);
        if let Some(card) = &self.card
            && let Some(ask) = self.asks.iter().find(|ask| ask.id == card.ask.id).cloned()
        {
            self.update_card(ask);
        }
    }

    /// The next page of asks came.
    pub(super) fn more(&mut self, asks: Vec<Ask>, next_page: Option<String>) {
        for ask in asks {
            if !self.asks.iter().any(|known| known.id == ask.id) {
                self.asks.push(ask);
            }
        }
        (self.next_page, self.is_loading) = (next_page, false);
    }

    /// It did not come.
    pub(super) fn no_more(&mut self) {
        self.is_loading = false;
    }

    /// An ask opened, changed or ended.
    pub(super) fn changed(&mut self, ask: &Ask) {
        let at = self.asks.iter().position(|known| known.id == ask.id);
        match (ask.state == AskState::Settled, at) {
            (true, _) => {
                self.drafts.remove(&ask.id);
                self.remove(&ask.id);
            }
            (false, Some(at)) => {
                if let Some(known) = self.asks.get_mut(at) {
                    *known = ask.clone();
                }
            }
            (false, None) => {
                // New rows enter at their place, which is that of their deadline.
                let later = |known: &Ask| match (known.deadline, ask.deadline) {
                    (Some(known), Some(new)) => known > new,
                    (None, Some(_)) => true,
                    (_, None) => false,
                };
                let at = self.asks.iter().position(later).unwrap_or(self.asks.len());
                self.asks.insert(at, ask.clone());
                self.fresh.insert(ask.id.clone());
                if self.selected.is_none() {
                    self.selected = Some(ask.id.clone());
                }
            }
        }
        self.update_card(ask.clone());
    }

    pub(super) fn update_card(&mut self, ask: Ask) {
        if let Some(card) = &mut self.card
            && card.ask.id == ask.id
            && card.update(ask)
        {
            self.guard.changed();
        }
    }

    /// The inbox cannot be reached, or can be again.
    pub(super) fn lost(&mut self, is_lost: bool) {
        self.is_lost = is_lost;
        self.guard.changed();
    }

    /// The terminal has another size, so that everything is elsewhere.
    pub(super) fn resized(&mut self) {
        self.guard.changed();
    }

    /// What there is is on screen now: these questions of an ask, where its card is.
    pub(super) fn painted(&mut self, now: u64, card: Option<&(String, Vec<usize>)>) -> Option<Effect> {
        self.guard.painted(now);
        let (id, questions) = card?;
        let card = self.card.as_mut().filter(|card| card.ask.id == *id)?;
        card.painted.extend(questions);
        let is_open = card.ask.state != AskState::Settled;
        (is_open && card.was_seen() && self.seen.insert(id.clone()))
            .then(|| Effect::Seen { id: id.clone(), digest: card.ask.digest.clone() })
    }

    /// The report of that was not taken; it is tried again when the card is opened again.
    pub(super) fn not_seen(&mut self, id: &str) {
        self.seen.remove(id);
    }

    /// Takes a key.
    pub(super) fn key(&mut self, now: u64, key: &Key) -> Vec<Effect> {
        self.guard.key(now, self.last_key.as_ref() == Some(key));
        self.last_key = Some(key.clone());
        self.note = None;
        if *key == Key::Ctrl('c') {
            return vec![Effect::Quit];
        }
        if self.has_help {
            self.has_help = false;
            self.guard.changed();
            return Vec::new();
        }
        let in_field = self.is_finding
            || self
                .card
                .as_ref()
                .is_some_and(|card| card.is_typing || card.why.is_some() || card.find.is_some());
        let is_second = now < std::mem::take(&mut self.pair_until);
        match key {
            Key::Char('?') if !in_field => self.has_help = true,
            Key::Char('g') if !in_field => self.pair_until = now + PAIR,
            Key::Char('i') if is_second && !in_field => self.back_to_list(),
            // On the page they lead elsewhere; here they must not skip the card.
            Key::Char('s' | 'c') if is_second && !in_field => {
                self.say("Sessions and clients are on the page.");
            }
            Key::Char('x') if !in_field => self.mark(),
            _ => return self.key_of_view(key),
        }
        Vec::new()
    }

    fn key_of_view(&mut self, key: &Key) -> Vec<Effect> {
        if self.card.is_some() { self.key_on_card(key) } else { self.key_on_list(key) }
    }

    fn key_on_card(&mut self, key: &Key) -> Vec<Effect> {
        let allowed = self.guard.allows();
        let Some(card) = &mut self.card else { return Vec::new() };
        match card.key(key, allowed) {
            Act::Stay => Vec::new(),
            Act::Close => {
                self.back_to_list();
                Vec::new()
            }
            Act::Step(by) => {
                let effects = self.step(by);
                self.open();
                effects
            }
            Act::Send(request) => vec![Effect::Send { id: card.ask.id.clone(), request }],
        }
    }

    fn key_on_list(&mut self, key: &Key) -> Vec<Effect> {
        if self.is_finding {
            match key {
                Key::Enter => self.is_finding = false,
                Key::Escape => {
                    self.is_finding = false;
                    self.filter = Field::default();
                }
                Key::Down => return self.step(1),
                Key::Up => return self.step(-1),
                other => {
                    self.filter.key(other);
                }
            }
            let place = self.place();
            self.keep_selection(place);
            return Vec::new();
        }
        match key {
            Key::Char('q') => return vec![Effect::Quit],
            Key::Char('j') | Key::Down => return self.step(1),
            Key::Char('k') | Key::Up => return self.step(-1),
            Key::PageDown => return self.step(10),
            Key::PageUp => return self.step(-10),
            Key::Home => return self.step(isize::MIN),
            Key::End => return self.step(isize::MAX),
            Key::Enter => self.open(),
            Key::Char('/') => self.is_finding = true,
            Key::Ctrl('s') | Key::CtrlEnter => return self.answer_together(),
            Key::Escape => {
                self.filter = Field::default();
                self.keep_selection(None);
            }
            Key::Char(_)
            | Key::Ctrl(_)
            | Key::Tab
            | Key::BackTab
            | Key::Backspace
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::Paste(_) => {}
        }
        Vec::new()
    }

    /// The asks that the filter lets through; those for which nobody waits come last.
    pub(super) fn shown(&self) -> Vec<&Ask> {
        let wanted = self.filter.text().trim().to_lowercase();
        let mut shown: Vec<&Ask> =
            self.asks.iter().filter(|ask| wanted.is_empty() || matches(ask, &wanted)).collect();
        shown.sort_by_key(|ask| !ask.holder_connected);
        shown
    }

    /// Whether there are more asks than are known.
    pub(super) fn has_more(&self) -> bool {
        self.next_page.is_some()
    }

    fn place(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.shown().iter().position(|ask| ask.id == *selected)
    }

    /// Selects what is at a place where the selected ask is gone.
    fn keep_selection(&mut self, place: Option<usize>) {
        let shown = self.shown();
        let is_there = self.selected.as_ref().is_some_and(|id| shown.iter().any(|ask| ask.id == *id));
        if !is_there {
            let place = place.unwrap_or(0).min(shown.len().saturating_sub(1));
            self.selected = shown.get(place).map(|ask| ask.id.clone());
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        let place = self.place();
        self.asks.retain(|ask| ask.id != id);
        self.fresh.remove(id);
        self.marked.remove(id);
        self.keep_selection(place);
    }

    fn step(&mut self, by: isize) -> Vec<Effect> {
        let shown = self.shown();
        let Some(last) = shown.len().checked_sub(1) else { return Vec::new() };
        let place = self.place().map_or(0, |place| place.saturating_add_signed(by).min(last));
        self.selected = shown.get(place).map(|ask| ask.id.clone());
        let is_near = place + NEAR >= last;
        match &self.next_page {
            Some(cursor) if is_near && !self.is_loading => {
                self.is_loading = true;
                vec![Effect::LoadMore(cursor.clone())]
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn open(&mut self) {
        let Some(ask) = self.selected.as_ref().and_then(|id| self.asks.iter().find(|ask| ask.id == *id))
        else {
            return;
        };
        let ask = ask.clone();
        self.close();
        let drafts = self.drafts.remove(&ask.id).unwrap_or_else(|| Drafts::new(&ask));
        self.fresh.remove(&ask.id);
        self.card = Some(Card::new(ask, drafts));
        self.guard.changed();
    }

    /// Says something on what is on screen.
    pub(super) fn say(&mut self, words: &str) {
        let note = self.card.as_mut().map_or(&mut self.note, |card| &mut card.note);
        *note = Some(words.to_owned());
    }

    fn back_to_list(&mut self) {
        self.close();
        self.guard.changed();
    }

    /// Closes the card and keeps what is entered, secrets excepted (S33).
    fn close(&mut self) {
        let Some(Card { ask, mut drafts, .. }) = self.card.take() else { return };
        if ask.state == AskState::Settled {
            return;
        }
        drafts.forget_secrets(&ask);
        self.drafts.insert(ask.id, drafts);
        if self.drafts.len() > DRAFTS {
            self.drafts.pop_first();
        }
    }
}

/// Whether an ask says these words, in what a row of the list shows of it.
fn matches(ask: &Ask, wanted: &str) -> bool {
    let client = ask.origin.client.as_ref().map_or("", |client| client.name.as_str());
    [ask.content.message.as_str(), ask.origin.holder_token.as_str(), client, ask.id.as_str()]
        .iter()
        .any(|text| text.to_lowercase().contains(wanted))
}
