//! What became of a question in the inbox.

use handraise_core::words::{Outcome, Rail};

use super::put::ToPut;
use super::{InInbox, InboxEnd, InboxSaid};
use crate::Now;
use crate::envelope::open::{Asking, Surface};
use crate::envelope::push::millis;
use crate::envelope::retry::Retry;
use crate::envelope::{Envelope, Out};
use crate::frame::{ClientFrame, Id};
use crate::question::{Answer, Chosen};

impl Envelope {
    /// Takes what became of a question for the inbox. Under a key for which nothing waits it means nothing.
    pub fn inbox_said(&mut self, key: &str, said: &InboxSaid, now: Now, out: &mut Vec<Out>) {
        // Before the deadlines: whoever holds the ask has judged it in time.
        self.patience.at(now.boot);
        match self.take_asking(key) {
            Some(asking) => self.refusal_answered(*asking, said, now, out),
            None => self.guarded_said(key, said, now, out),
        }
        self.tick(now, out);
    }

    fn refusal_answered(&mut self, asking: Asking, said: &InboxSaid, now: Now, out: &mut Vec<Out>) {
        let latency = asking.asked.until(now.boot);
        let rule = std::sync::Arc::clone(&asking.subject.ambiguity.rule);
        let offered = asking.subject.ambiguity.candidates.iter().map(|candidate| candidate.value.as_str());
        let mut chosen: Option<Chosen> = None;
        let (outcome, reason) = match &said.end {
            InboxEnd::Accepted(content) => match Answer::of_content(content, rule.argument(), offered) {
                Answer::Accept(value) => {
                    chosen = Some(value);
                    (Outcome::Accept, None)
                }
                Answer::Invalid(reason) => (Outcome::Invalid, Some(reason.as_str())),
                Answer::Decline | Answer::Cancel => (Outcome::Invalid, None),
            },
            InboxEnd::Declined => (Outcome::Decline, None),
            InboxEnd::Cancelled => (Outcome::Cancel, None),
            InboxEnd::TimedOut => (Outcome::Timeout, None),
            InboxEnd::NotOpened(why) => (Outcome::Error, Some(*why)),
        };
        match &said.end {
            InboxEnd::Accepted(_) | InboxEnd::Declined => self.patience.answered(),
            InboxEnd::TimedOut if !asking.is_cut() => self.patience.unanswered(),
            InboxEnd::TimedOut | InboxEnd::Cancelled | InboxEnd::NotOpened(_) => {}
        }
        self.note_decline(&asking.subject, outcome, said.provenance);
        let Asking { call, ask, subject, refusal, surface, .. } = asking;
        let Surface::Inbox(InInbox { retry, .. }) = surface else { return };
        let record = subject.record(Rail::Inbox, outcome, said.provenance, Some(millis(latency)), reason);
        match (chosen, retry) {
            (Some(chosen), Some(state)) => {
                // What was kept has been read before.
                let Ok(frame) = ClientFrame::read(call.bytes()) else { return };
                let Some(id) = call.id() else { return };
                let told = call.progress_token().map(Id::to_owned);
                let retry = Retry {
                    party: subject.party,
                    tool: subject.tool,
                    state: *state,
                    latency,
                    rail: Rail::Inbox,
                    provenance: said.provenance,
                    ask: Some(ask),
                    told: told.clone().map(Box::new),
                };
                // It was said what becomes of it: nothing goes on as it is.
                let _ = self.accepted(&frame, id, retry, rule, &chosen, now, out);
                if self.open.get(id).is_none() {
                    self.forget_told(told.as_ref());
                }
            }
            (Some(chosen), None) => {
                out.push(record.of_ask(Some(&ask)));
                self.run_again(call, &subject, &refusal, chosen.as_str(), out);
            }
            (None, retry) => {
                out.push(record.of_ask(Some(&ask)));
                if let InboxEnd::NotOpened(_) = said.end {
                    self.go_down(ToPut { call, subject, refusal, retry }, Rail::Inbox, None, now, out);
                } else {
                    self.end_with_refusal(&call, &refusal, out);
                }
            }
        }
    }
}
