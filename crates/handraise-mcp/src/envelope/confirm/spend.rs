//! The store of spent nonces, and what runs once it has spoken (S5).

use handraise_core::words::{Outcome, Provenance, Rail};

use super::{About, Brought, Held, PATIENCE, Stage};
use crate::Now;
use crate::confirm::{self, Rejection, Spent, Told, claimed};
use crate::envelope::open::Open;
use crate::envelope::{Envelope, Out};
use crate::seal::Approval;

/// What the store of spent nonces is asked, or told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spend {
    /// What its answer is brought back with, to [`Envelope::spent`]; 0: nobody waits for one.
    pub ticket: u64,
    /// The nonce.
    pub nonce: [u8; 16],
    /// When what it belongs to ends, in milliseconds since 1970: it is remembered for a day longer.
    pub expires_ms: u64,
    /// Whether it is spent now, durably, or only looked for.
    pub claims: bool,
}

impl Envelope {
    /// Takes what the store says a nonce was, before it was claimed where it was.
    pub fn spent(&mut self, ticket: u64, was: Spent, now: Now, out: &mut Vec<Out>) {
        self.tick(now, out);
        if let Some(held) = self.take_held(&key(ticket)) {
            self.store_said(held, was, now, out);
        }
    }

    /// A token that passed the checks 1 to 4: whether it is spent (check 5).
    pub(super) fn look(&mut self, held: Box<Held>, now: Now, out: &mut Vec<Out>) {
        self.ask_store(held, Stage::Look, now, out);
    }

    /// Everything holds: the nonce is claimed (check 9).
    pub(super) fn claim(&mut self, held: Box<Held>, now: Now, out: &mut Vec<Out>) {
        self.ask_store(held, Stage::Claim, now, out);
    }

    fn ask_store(&mut self, held: Box<Held>, stage: Stage, now: Now, out: &mut Vec<Out>) {
        let Some((nonce, expires_ms)) = held.about.as_ref().and_then(nonce) else { return };
        self.ask_store_about(held, stage, nonce, expires_ms, now, out);
    }

    /// Asks the store about a nonce, for which a call waits.
    pub(super) fn ask_store_about(
        &mut self,
        held: Box<Held>,
        stage: Stage,
        nonce: [u8; 16],
        expires_ms: u64,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        self.guarded.tickets += 1;
        let ticket = self.guarded.tickets;
        out.push(Out::Spend(Spend { ticket, nonce, expires_ms, claims: stage == Stage::Claim }));
        self.hold(held, stage, Some((now.boot + PATIENCE, key(ticket))));
    }

    /// Spends a nonce whose question is settled, so that nothing accepts it later. Nobody waits for it.
    pub(super) fn burn(nonce: [u8; 16], expires_ms: u64) -> Out {
        Out::Spend(Spend { ticket: 0, nonce, expires_ms, claims: true })
    }

    /// What the store said, or that it said nothing in time.
    pub(super) fn store_said(&mut self, mut held: Box<Held>, was: Spent, now: Now, out: &mut Vec<Out>) {
        if let Some(state) = held.again.take() {
            return self.run_again_claimed(&held, *state, was, now, out);
        }
        if held.stage == Stage::Claim {
            return match claimed(was) {
                Ok(()) => self.run(held, now, out),
                Err(rejection) => self.reject(&held, rejection, now, out),
            };
        }
        let Some(about) = &held.about else { return };
        let (Brought::Token(claims), Some(fresh)) = (&about.brought, &about.fresh) else { return };
        let read = confirm::Fresh { revision: fresh.revision.as_deref(), hash: &fresh.hash };
        match claims.check(was, now.wall_ms, read) {
            Ok(()) => self.claim(held, now, out),
            Err(rejection) => self.reject(&held, rejection, now, out),
        }
    }

    /// An acceptance that does not let the call run.
    fn reject(&mut self, held: &Held, rejection: Rejection, now: Now, out: &mut Vec<Out>) {
        let Some(about) = &held.about else { return };
        let (rail, latency, provenance) = about.behind();
        let reason = Some(rejection.as_str());
        out.push(held.record(rail, Outcome::Invalid, provenance, latency, reason).of_ask(about.asked()));
        if rail != Rail::Token {
            return held.tell(&Told::not_accepted(&about.action, rejection), out);
        }
        let has_changed = matches!(rejection, Rejection::RevisionChanged | Rejection::PayloadChanged);
        let told = if has_changed && !about.form_was_sent {
            match self.phase1(held, now, |action, fresh| Told::rejected(action, rejection, Some(fresh))) {
                Ok(told) => told,
                Err(too_long) => return Self::too_long(held, rail, too_long, out),
            }
        } else {
            Told::rejected(&about.action, rejection, None)
        };
        held.tell(&told, out);
    }

    /// The call runs: it was confirmed, and nothing else will run with what confirmed it.
    fn run(&mut self, held: Box<Held>, now: Now, out: &mut Vec<Out>) {
        let Some(about) = &held.about else { return };
        let (rail, latency, provenance) = about.behind();
        out.push(held.record(rail, Outcome::Accept, provenance, latency, None).of_ask(about.asked()));
        let approval = Approval { strips_token: about.strips_token };
        if let Some(told) = about.told_progress {
            self.progress.goes_on_above(held.call.progress_token(), told);
        }
        let Held { id, mut call, .. } = *held;
        // What the server answers to it is a new question's beginning.
        call.approval = Some(approval);
        call.arrived = now.boot;
        call.upstream_asks = self.upstream_asks;
        out.push(Out::ToUpstream(call.bytes().to_vec()));
        self.open.insert(id.borrow(), Open::Called(Box::new(call)));
    }
}

impl About {
    /// The key under which the inbox was asked about what was accepted.
    fn asked(&self) -> Option<&str> {
        if let Brought::Accepted(accepted) = &self.brought { accepted.ask.as_deref() } else { None }
    }

    /// On which rail something was brought, how long that took, and who stands behind it.
    fn behind(&self) -> (Rail, Option<u64>, Provenance) {
        match &self.brought {
            Brought::Accepted(accepted) => (self.rail, Some(accepted.latency_ms), accepted.provenance),
            Brought::Token(_) | Brought::Nothing => (Rail::Token, None, Provenance::Client),
        }
    }
}

/// The nonce of what was brought.
fn nonce(about: &About) -> Option<([u8; 16], u64)> {
    match &about.brought {
        Brought::Token(claims) => Some((claims.nonce, claims.expires_ms)),
        Brought::Accepted(accepted) => Some((accepted.nonce, accepted.expires_ms)),
        Brought::Nothing => None,
    }
}

fn key(ticket: u64) -> String {
    format!("spend-{ticket}")
}
