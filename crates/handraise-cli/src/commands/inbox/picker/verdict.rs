//! What the inbox said to an answer, shown on its card, or in a note where that is not on screen any more.

use handraise_api::{ask::Ask, words::AskState};

use super::{
    super::{client::Verdict, words},
    card::Sending,
    state::Picker,
};

impl Picker {
    /// What the inbox said to an answer of ours.
    pub(super) fn verdict(&mut self, id: &str, verdict: Result<Verdict, String>) {
        self.guard.changed();
        if let Ok(Verdict::Delivered(ask)) = &verdict {
            self.changed(ask);
        }
        let Some(card) = self.card.as_mut().filter(|card| card.ask.id == id) else {
            self.note = elsewhere(&verdict);
            return;
        };
        card.sending = Sending::No;
        match verdict {
            Ok(Verdict::Delivered(_)) => card.is_mine = true,
            Ok(Verdict::Invalid(error)) => {
                let first = card.ask.content.questions.iter().position(|question| {
                    error.details.iter().any(|detail| detail.question_id == question.id)
                });
                card.note = Some(if error.details.is_empty() {
                    words::brief(&error.message, 500)
                } else {
                    let count = error.details.len();
                    let were = if count == 1 {
                        "One answer was".to_owned()
                    } else {
                        format!("{count} answers were")
                    };
                    format!("{were} refused. Nothing was sent on, the ask is still open.")
                });
                card.errors = error.details;
                if let Some(first) = first {
                    card.go_to_question(first);
                }
            }
            Ok(Verdict::Ended(ended)) => {
                if let Some(settlement) = ended.settlement {
                    let ask =
                        Ask { state: AskState::Settled, settlement: Some(settlement), ..card.ask.clone() };
                    card.update(ask);
                    card.note = Some(if ended.recorded {
                        "Kept as what you chose, and not delivered.".to_owned()
                    } else {
                        "Your answer was not sent.".to_owned()
                    });
                } else {
                    card.note = Some("There is no such ask any more. Your answer was not sent.".to_owned());
                }
                self.remove(id);
            }
            Ok(Verdict::NotConnected) => {
                card.note = Some(
                    "Your answer did not reach it: its connection is down. Nothing was queued.".to_owned(),
                );
            }
            Ok(Verdict::Unknown) => card.sending = Sending::Unknown,
            Err(error) => {
                card.note = Some(format!("{error}. Look at the ask again before you answer once more."));
            }
        }
    }
}

/// What is said of a verdict whose card is not on screen any more.
fn elsewhere(verdict: &Result<Verdict, String>) -> Option<String> {
    match verdict {
        Ok(Verdict::Delivered(_)) => None,
        Ok(Verdict::Invalid(_)) => Some("An answer was refused; its ask is still open.".to_owned()),
        Ok(Verdict::Ended(_)) => Some("An answer came too late; its ask had ended.".to_owned()),
        Ok(Verdict::NotConnected) => Some("An answer did not arrive; its ask is still open.".to_owned()),
        Ok(Verdict::Unknown) => Some("An answer was sent; whether it counted is not known yet.".to_owned()),
        Err(error) => Some(error.clone()),
    }
}
