//! Several confirms or permissions, answered by one key: all of them or none (S44).

use handraise_api::words::Source;

use super::{
    card::CUT,
    state::{Effect, Picker},
    view::is_cut,
};

impl Picker {
    /// Marks the ask on screen or the selected one, or takes the mark back. It must have been looked at and answered on
    /// its card (S40).
    pub(super) fn mark(&mut self) {
        let on_card = self.card.as_ref().map(|card| &card.ask.id);
        let Some(id) = on_card.or(self.selected.as_ref()).cloned() else { return };
        if self.marked.remove(&id) {
            return;
        }
        let Some(ask) = self.asks.iter().find(|ask| ask.id == id) else { return };
        let drafts = match &self.card {
            Some(card) => Some(&card.drafts),
            None => self.drafts.get(&id),
        };
        let is_answered =
            drafts.is_some_and(|drafts| (0..ask.content.questions.len()).all(|at| drafts.is_answered(at)));
        if !matches!(ask.content.source, Source::Confirm | Source::Permission) {
            self.say("Only confirms and permissions are answered together.");
        } else if is_cut(ask) {
            self.say(CUT);
        } else if is_answered && self.seen.contains(&id) {
            self.marked.insert(id);
        } else {
            self.say("Choose on its card first, then mark it.");
        }
    }

    /// Sends what is entered for all that are marked.
    pub(super) fn answer_together(&mut self) -> Vec<Effect> {
        if self.marked.is_empty() || !self.guard.allows().sending {
            return Vec::new();
        }
        let marked = self.asks.iter().filter(|ask| self.marked.contains(&ask.id));
        let requests = marked
            .filter_map(|ask| Some((ask.id.clone(), self.drafts.get(&ask.id)?.request(ask))))
            .collect::<Vec<_>>();
        self.note = Some("Sent together. Nothing is settled yet.".to_owned());
        vec![Effect::SendTogether(requests)]
    }

    /// What became of that.
    pub(super) fn answered_together(&mut self, asks: Result<Vec<handraise_api::ask::Ask>, String>) {
        self.guard.changed();
        self.note = Some(match asks {
            Ok(asks) => {
                for ask in &asks {
                    self.changed(ask);
                }
                format!("{} were answered together, and delivered.", asks.len())
            }
            Err(error) => format!("{error}. None counts as answered before whoever asks says so."),
        });
    }
}
