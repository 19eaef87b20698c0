//! A guarded call in the inbox: what operators are shown, and what their word does.

use handraise_core::Moment;
use handraise_core::words::{Outcome, Provenance, Rail, Source};

use super::offer::{millis, shown};
use super::{Footing, Guarded, Held, Stage};
use crate::Now;
use crate::confirm::{ConfirmAnswer, Shown, Told, TooLong, confirm_schema, lines};
use crate::envelope::inbox::{
    InboxAsk, InboxConfirm, InboxEnd, InboxSaid, ON_ITS_WAY, PROGRESS_EVERY, Unshown, Withdrawal,
    watched_token,
};
use crate::envelope::open::Call;
use crate::envelope::{Envelope, Out};
use crate::frame::RequestId;

impl Guarded {
    /// The call that waits for that.
    pub(in crate::envelope) fn awaited_by(&self, key: &str) -> Option<&RequestId> {
        self.waits.get(key)
    }
}

impl Held {
    /// When the client of a call in the inbox next hears of it, until when it waits, and which call it is.
    pub(in crate::envelope) fn in_inbox(&mut self) -> Option<(&mut Option<Moment>, Moment, &Call)> {
        let Stage::Inbox(_, beat) = &mut self.stage else { return None };
        Some((beat, self.wait.as_ref()?.0, &self.call))
    }
}

impl Envelope {
    /// Puts a call to the inbox.
    pub(super) fn put_guarded(&mut self, mut held: Box<Held>, now: Now, out: &mut Vec<Out>) {
        let not_offered =
            |reason| held.record(Rail::Inbox, Outcome::NotOffered, Provenance::System, None, Some(reason));
        let until = match self.inbox_until(&held.call, now) {
            _ if self.client_is_closed => Err("client-closed"),
            until => until,
        };
        let until = match until {
            Ok(until) => until,
            Err(reason) => {
                out.push(not_offered(reason));
                held.tell(&Told::not_shown(held.action()), out);
                return;
            }
        };
        // All of it, as where a client shows it: nobody confirms what is left out.
        let fits = shown(&held).map_or(Err(TooLong { hidden: 0 }), |shown| shown.message());
        if let Err(too_long) = fits {
            return Self::too_long(&held, Rail::Inbox, too_long, out);
        }
        let key = self.ids.inbox();
        let timeout = now.boot.until(until);
        let Some(ask) = shown(&held).and_then(|shown| to_ask(&held, &shown, key.clone(), timeout)) else {
            return;
        };
        let server = self.handshake.server().map(str::to_owned);
        out.push(Out::Ask(Box::new(InboxAsk { server, ..ask })));
        held.waiting = Some(self.begin_to_wait(&held.call, until, now));
        let beat = watched_token(&held.call).is_some().then(|| now.boot + PROGRESS_EVERY);
        if let Some(beat) = beat {
            self.progress.waits(held.call.progress_token());
            self.deadlines.insert((beat, key.clone()));
        }
        self.hold(held, Stage::Inbox(now.boot, beat), Some((until + ON_ITS_WAY, key)));
    }

    /// A form that nobody was shown: the call goes on to the inbox, if somebody is there.
    pub(super) fn guarded_unshown(
        &mut self,
        held: Box<Held>,
        unshown: Unshown,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        self.guarded_down(held, Rail::Form, Some(unshown), now, out);
    }

    /// A call takes the next rail, if one is left.
    fn guarded_down(
        &mut self,
        mut held: Box<Held>,
        tried: Rail,
        unshown: Option<Unshown>,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        let process = std::sync::Arc::clone(&self.process);
        let next = process.config.confirm.as_ref().zip(held.about.as_ref()).and_then(|(config, about)| {
            let footing = Footing {
                declared: held.party.declared,
                demand: about.demand,
                form_was_sent: about.form_was_sent,
                takes_token: about.strips_token,
            };
            self.rail(config, footing, Some(tried)).ok()
        });
        let (Some(rail), Some(about), false) = (next, &mut held.about, self.client_is_closed) else {
            held.tell(&Told::not_shown(held.action()), out);
            return;
        };
        about.rail = rail;
        about.unshown = unshown.or(about.unshown);
        self.offer(held, now, out);
    }

    /// Takes what became of a guarded call in the inbox.
    pub(in crate::envelope) fn guarded_said(
        &mut self,
        key: &str,
        said: &InboxSaid,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        let Some(mut held) = self.take_held(key) else { return };
        let Stage::Inbox(since, _) = held.stage else { return };
        let is_cut = held.waiting.take().is_some_and(|waiting| waiting.is_cut);
        let latency_ms = millis(since, now);
        let provenance = said.provenance;
        let needs_human = held.about.as_ref().is_none_or(|about| about.demand.human);
        let (outcome, reason, told) = match &said.end {
            InboxEnd::Accepted(content) => {
                self.patience.answered();
                let is_confirmed = ConfirmAnswer::of_content(content) == ConfirmAnswer::Confirmed;
                let is_somebody = match provenance {
                    Provenance::Human => true,
                    Provenance::Client => !needs_human,
                    Provenance::NotShown | Provenance::System => false,
                };
                if is_confirmed && is_somebody {
                    self.was_accepted(&mut held, (provenance, Some(key)), latency_ms, now);
                    return self.read_fresh(held, now, out);
                }
                if is_confirmed {
                    (Outcome::Invalid, Some("not-human"), Told::not_human(held.action()))
                } else {
                    (Outcome::Invalid, Some("not-confirmed"), Told::not_confirmed(held.action()))
                }
            }
            InboxEnd::Declined => {
                self.patience.answered();
                (Outcome::Decline, None, Told::declined(held.action()))
            }
            InboxEnd::Cancelled => (Outcome::Cancel, None, Told::cancelled(held.action())),
            InboxEnd::TimedOut => {
                if !is_cut {
                    self.patience.unanswered();
                }
                (Outcome::Timeout, None, Told::timed_out(held.action()))
            }
            InboxEnd::NotOpened(why) => {
                let (outcome, reason) = (Outcome::Error, Some(*why));
                let record = held.record(Rail::Inbox, outcome, provenance, Some(latency_ms), reason);
                out.push(record.of_ask(Some(key)));
                return self.guarded_down(held, Rail::Inbox, None, now, out);
            }
        };
        let record = held.record(Rail::Inbox, outcome, provenance, Some(latency_ms), reason);
        out.push(record.of_ask(Some(key)));
        held.tell(&told, out);
    }

    /// Whoever holds the ask has not told of its end.
    pub(super) fn inbox_is_silent(
        &mut self,
        held: &Held,
        key: &str,
        since: Moment,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        if held.waiting.as_ref().is_none_or(|waiting| !waiting.is_cut) {
            self.patience.unanswered();
        }
        let latency = Some(millis(since, now));
        let record = held.record_of(Rail::Inbox, Outcome::Timeout, Provenance::System, latency, None);
        out.push(Out::withdraw(key, Withdrawal::TimedOut, record));
        held.tell(&Told::timed_out(held.action()), out);
    }
}

/// What operators are asked about a call.
fn to_ask(held: &Held, shown: &Shown<'_>, key: String, timeout: std::time::Duration) -> Option<InboxAsk> {
    let about = held.about.as_ref()?;
    let mut message = shown.headline();
    if let Some(unshown) = about.unshown {
        message.push_str("\n\n");
        message.push_str(&unshown.sentence());
    }
    Some(InboxAsk {
        key,
        source: Source::Confirm,
        message,
        schema: confirm_schema(&about.action),
        tool: about.tool.clone(),
        principal: held.call.caller.principal.clone(),
        client: held.party.client.clone(),
        server: None,
        timeout,
        confirm: Some(InboxConfirm {
            account: about.account.clone(),
            target: Some(about.target.clone()).filter(|target| !target.is_empty()),
            action: about.action.clone(),
            arguments: lines(&about.arguments).join("\n"),
            preview: shown.server_says(),
            demand: about.demand,
        }),
    })
}
