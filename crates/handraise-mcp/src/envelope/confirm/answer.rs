//! The answer to a form, and what follows from it.

use handraise_core::Moment;
use handraise_core::words::{Outcome, Provenance, Rail};

use super::{Accepted, Brought, Held, Stage, offer};
use crate::Now;
use crate::confirm::{ConfirmAnswer, Rejection, Told};
use crate::envelope::inbox::Unshown;
use crate::envelope::{Envelope, Out};
use crate::frame::reply;
use crate::frame::splice::quoted;
use crate::frame::{Answered, ClientFrame};
use crate::seal::TTL;

/// How a form ended that accepted nothing: outcome, reason, and what the caller is told.
///
/// Whatever was answered faster than a human reads was not shown to one, and no text says that somebody declined.
pub(super) fn ending(
    answer: ConfirmAnswer,
    is_shown: bool,
    action: &str,
) -> (Outcome, Option<&'static str>, Told) {
    let (outcome, reason, told) = match answer {
        // An acceptance gets here only where it came too fast.
        ConfirmAnswer::Confirmed => (Outcome::Accept, Some("too-fast"), Told::not_shown(action)),
        ConfirmAnswer::NotConfirmed => (Outcome::Invalid, Some("not-confirmed"), Told::not_confirmed(action)),
        ConfirmAnswer::Decline => (Outcome::Decline, None, Told::declined(action)),
        ConfirmAnswer::Cancel => (Outcome::Cancel, None, Told::cancelled(action)),
        ConfirmAnswer::Malformed => (Outcome::Invalid, Some("answer-malformed"), Told::cancelled(action)),
    };
    let tells_of_nobody =
        matches!(answer, ConfirmAnswer::Decline | ConfirmAnswer::Cancel | ConfirmAnswer::Malformed);
    if !is_shown && tells_of_nobody {
        return (outcome, reason, Told::not_shown(action));
    }
    (outcome, reason, told)
}

impl Envelope {
    /// Takes a response of the client, if it is for a form about a guarded call; `None` when that cannot be read.
    pub(in crate::envelope) fn guarded_answer(
        &mut self,
        ask: &str,
        frame: Option<&ClientFrame<'_>>,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        let Some(mut held) = self.take_held(ask) else { return };
        let Stage::Asking(since) = held.stage else { return };
        let latency_ms = offer::millis(since, now);
        let mut is_shown = since.until(now.boot) >= self.process.config.min_human;
        let answer = frame.and_then(|frame| frame.answer.as_ref().map(|answer| (frame, answer)));
        let answer = match answer {
            // Whoever sends a method as well has not answered.
            Some((frame, _)) if frame.method().is_some() => ConfirmAnswer::Malformed,
            Some((frame, Answered::Result(result))) => ConfirmAnswer::read(frame.text(result.clone())),
            Some((frame, Answered::Error(error))) => {
                let says_so = crate::envelope::push::says_not_shown(frame.text(error.clone()));
                is_shown &= !says_so;
                let provenance = if is_shown { Provenance::Client } else { Provenance::NotShown };
                let (outcome, reason) = (Outcome::Error, Some("client-error"));
                out.push(held.record(Rail::Form, outcome, provenance, Some(latency_ms), reason));
                if is_shown {
                    held.tell(&Told::cancelled(held.action()), out);
                } else {
                    let after = since.until(now.boot);
                    let unshown = Unshown { word: outcome.as_str(), after, says_so };
                    self.guarded_unshown(held, unshown, now, out);
                }
                return;
            }
            Some((_, Answered::Both)) | None => ConfirmAnswer::Malformed,
        };
        if answer != ConfirmAnswer::Confirmed || !is_shown {
            let provenance = if is_shown { Provenance::Client } else { Provenance::NotShown };
            let (outcome, reason, what) = ending(answer, is_shown, held.action());
            out.push(held.record(Rail::Form, outcome, provenance, Some(latency_ms), reason));
            if !is_shown && matches!(answer, ConfirmAnswer::Decline | ConfirmAnswer::Cancel) {
                let unshown =
                    Unshown { word: outcome.as_str(), after: since.until(now.boot), says_so: false };
                self.guarded_unshown(held, unshown, now, out);
            } else {
                held.tell(&what, out);
            }
            return;
        }
        self.was_accepted(&mut held, (Provenance::Client, None), latency_ms, now);
        self.read_fresh(held, now, out);
    }

    /// What was shown last was accepted.
    pub(super) fn was_accepted(
        &mut self,
        held: &mut Held,
        (provenance, ask): (Provenance, Option<&str>),
        latency_ms: u64,
        now: Now,
    ) {
        let nonce = self.ids.nonce();
        let ttl_ms = u64::try_from(TTL.as_millis()).unwrap_or(u64::MAX);
        if let Some(about) = &mut held.about
            && let Some(fresh) = &about.fresh
        {
            about.brought = Brought::Accepted(Accepted {
                hash: fresh.hash.clone(),
                revision: fresh.revision.clone(),
                nonce,
                expires_ms: now.wall_ms.saturating_add(ttl_ms),
                latency_ms,
                provenance,
                ask: ask.map(str::to_owned),
            });
        }
    }

    /// A form was accepted, and what would happen was read again: it must be what was shown.
    pub(super) fn compare(&mut self, mut held: Box<Held>, now: Now, out: &mut Vec<Out>) {
        let Some(about) = &mut held.about else { return };
        let (Brought::Accepted(accepted), Some(fresh)) = (&about.brought, &about.fresh) else { return };
        let moved = if accepted.revision == fresh.revision {
            (accepted.hash != fresh.hash).then_some(Rejection::PayloadChanged)
        } else {
            Some(Rejection::RevisionChanged)
        };
        let Some(moved) = moved else { return self.claim(held, now, out) };
        let (latency, reason) = (Some(accepted.latency_ms), Some(moved.as_str()));
        let (rail, provenance, ask) = (about.rail, accepted.provenance, accepted.ask.clone());
        let is_last = about.was_asked_again;
        about.was_asked_again = true;
        let nonce = (accepted.nonce, accepted.expires_ms);
        about.brought = Brought::Nothing;
        out.push(held.record(rail, Outcome::Invalid, provenance, latency, reason).of_ask(ask.as_deref()));
        // The acceptance of what is no longer there is settled.
        out.push(Self::burn(nonce.0, nonce.1));
        if is_last {
            held.tell(&Told::not_accepted(held.action(), moved), out);
        } else {
            self.offer(held, now, out);
        }
    }

    /// Nobody answered in time.
    pub(super) fn form_timed_out(held: &Held, ask: &str, since: Moment, now: Now, out: &mut Vec<Out>) {
        let frame = reply::cancelled(&quoted(ask), "nobody answered in time");
        out.push(Out::ToClient { for_call: Some(held.id.clone()), frame });
        let latency = Some(offer::millis(since, now));
        out.push(held.record(Rail::Form, Outcome::Timeout, Provenance::System, latency, None));
        held.tell(&Told::timed_out(held.action()), out);
    }
}
