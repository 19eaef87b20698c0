//! Guarded calls: nothing of one reaches the upstream without the acceptance that the policy names (confirm.md).
//!
//! A guarded call goes through the same stages on every rail: the server's tools are listed where they are not known, a
//! preview is read, the call is offered or what it brought is checked against what was read, its nonce is claimed, and only
//! then it is forwarded. What waits at a stage is an [`Open::Guarded`]; whatever goes wrong at one ends the call with a
//! result that says that nothing was done.
//!
//! # Decided here
//!
//! - Where the server's tools are not known (nobody has listed them, or they have changed since), they are listed first, as
//!   the same client: what is bound is the listed definition, and annotations are read from a complete list only.
//! - The first table that a tool falls under has the words and the preview; if any of them leaves only the inbox, so it is.
//! - Names are compared with patterns without regard to case, with exceptions letter by letter.
//! - A call that nobody can answer (no id, or one that is neither string nor number) of a tool that may be guarded goes
//!   nowhere; neither does one whose name is no string.
//! - Each answer to a form settles its question: after a decline, the same state accepts nothing any more.
//! - A second form, about what has changed, has a time limit of its own.
//! - What the upstream asks while a preview of ours is under way fails the preview.
//! - A confirmed call that runs again after a refusal's question claims that question's state in the store as well: one
//!   acceptance is one run for all processes that share the state's key.
//! - A guarded call that brings a state of the upstream's runs only where that state came from a confirmed run of it.

mod answer;
mod carry;
mod inbox;
mod judge;
mod listing;
mod offer;
mod read;
mod spend;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use handraise_core::Moment;
use handraise_core::words::{Declared, Era, Outcome, Provenance, Rail};
use serde_json::value::RawValue;

use crate::Now;
use crate::canonical::Canonical;
use crate::confirm::{Answerers, ConfirmConfig, Demand, Gathering, Guard, Spent, Told, ToolList};
use crate::declared::Party;
use crate::envelope::inbox::{Unshown, Waiting, Withdrawal};
use crate::envelope::open::{Call, Open, tool};
use crate::envelope::room::Reserved;
use crate::envelope::{Envelope, Out, failed};
use crate::frame::reply::{self, INTERNAL};
use crate::frame::splice::quoted;
use crate::frame::{ClientFrame, Id, RequestId};
use crate::record::Record;
use crate::seal::RefusalState;

pub(super) use listing::Lists;
pub use spend::Spend;

/// How long the server may take to list its tools, to answer a preview, and the store to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a connection knows about guarded calls.
#[derive(Debug, Default)]
pub(super) struct Guarded {
    /// The server's tools, while they are known.
    list: Option<ToolList>,
    /// Until when, where the server has said so.
    list_until: Option<Moment>,
    /// How often the server has said that its tools have changed.
    changes: u64,
    /// What the client has listed of them so far.
    gathering: Gathering,
    listing: Option<listing::Listing>,
    /// What is waited for, by its id or ticket, and by which call.
    waits: BTreeMap<String, RequestId>,
    /// How many calls wait.
    held: usize,
    tickets: u64,
    confirmed: VecDeque<carry::Confirmed>,
}

/// A guarded call that waits.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) id: RequestId,
    /// Before it is judged: as it came. After: as it will run.
    call: Call,
    party: Party,
    /// What it is about; nothing before the server's tools are known.
    about: Option<About>,
    /// It was confirmed and refused, and what was offered then is accepted: it runs again with this state.
    again: Option<Box<RefusalState>>,
    stage: Stage,
    /// What it waits for, and until when.
    wait: Option<(Moment, String)>,
    /// Its question in the inbox, while it has one.
    waiting: Option<Waiting>,
}

/// What a judged call is about.
#[derive(Debug)]
struct About {
    tool: String,
    guard: Arc<Guard>,
    action: String,
    account: Option<String>,
    target: String,
    arguments: Canonical,
    strips_token: bool,
    brought: Brought,
    /// A form was sent before: no token any more (S8).
    form_was_sent: bool,
    /// What was shown first had changed: it is asked a last time.
    was_asked_again: bool,
    /// The rail that it takes, or took last.
    rail: Rail,
    /// What is demanded of whoever accepts.
    demand: Demand,
    /// What a client answered that nobody was shown the form by.
    unshown: Option<Unshown>,
    /// The progress of which the client heard while the call waited.
    told_progress: Option<f64>,
    /// The digest of the tool's definition, as of the last reading.
    tool_digest: String,
    fresh: Option<Fresh>,
}

/// What a call brought with it, or what came for it since.
#[derive(Debug)]
enum Brought {
    Nothing,
    /// A token that passed the checks 1 to 4.
    Token(crate::confirm::Claims),
    /// A form came back accepted.
    Accepted(Accepted),
}

/// A form that was accepted.
#[derive(Debug, Clone)]
struct Accepted {
    hash: String,
    revision: Option<String>,
    nonce: [u8; 16],
    expires_ms: u64,
    latency_ms: u64,
    /// Who stands behind it.
    provenance: Provenance,
    /// The key under which the inbox was asked, where it was.
    ask: Option<String>,
}

/// What was read last.
#[derive(Debug)]
struct Fresh {
    hash: String,
    revision: Option<String>,
    preview: Option<Box<RawValue>>,
    _room: Option<Reserved>,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The server's tools.
    Listing,
    /// The preview.
    Preview,
    /// The answer to a form, since then.
    Asking(Moment),
    /// The inbox, since then, and when the client next hears that its call goes on.
    Inbox(Moment, Option<Moment>),
    /// Whether the nonce is spent.
    Look,
    /// The nonce.
    Claim,
}

impl Held {
    fn record(
        &self,
        rail: Rail,
        outcome: Outcome,
        provenance: Provenance,
        latency_ms: Option<u64>,
        reason: Option<&'static str>,
    ) -> Out {
        Out::Record(self.record_of(rail, outcome, provenance, latency_ms, reason))
    }

    /// The same, not yet to be logged.
    fn record_of(
        &self,
        rail: Rail,
        outcome: Outcome,
        provenance: Provenance,
        latency_ms: Option<u64>,
        reason: Option<&'static str>,
    ) -> Record {
        let of_call = || ClientFrame::read(self.call.bytes()).map(|frame| tool(&frame)).unwrap_or_default();
        let tool = self.about.as_ref().map_or_else(of_call, |about| about.tool.clone());
        let record = Record::of(&self.party, tool, rail, outcome, provenance);
        Record { latency_ms, reason, ..record }
    }

    fn action(&self) -> &str {
        self.about.as_ref().map_or("Run a tool", |about| &about.action)
    }

    /// Ends a call with a result that says that nothing was done.
    fn tell(&self, what: &Told, out: &mut Vec<Out>) {
        out.push(told(self.id.borrow(), self.party.era, what));
    }

    /// Takes back what a call has under way.
    pub(super) fn withdraw(
        &self,
        why: &str,
        reason: &'static str,
        provenance: Provenance,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        let key = self.wait.as_ref().map(|(_, key)| quoted(key)).unwrap_or_default();
        let rail = self.about.as_ref().map_or(Rail::Refuse, |about| about.rail);
        let record = |latency| self.record_of(rail, Outcome::Withdrawn, provenance, latency, Some(reason));
        let mut latency = None;
        match self.stage {
            Stage::Preview => out.push(Out::ToUpstream(reply::cancelled(&key, why))),
            Stage::Asking(since) => {
                latency = Some(offer::millis(since, now));
                let frame = reply::cancelled(&key, why);
                out.push(Out::ToClient { for_call: Some(self.id.clone()), frame });
            }
            Stage::Inbox(since, _) => {
                let record = record(Some(offer::millis(since, now)));
                let is_cancelled = provenance == Provenance::Client;
                let why = if is_cancelled { Withdrawal::Cancelled } else { Withdrawal::Gone };
                let key = self.wait.as_ref().map(|(_, key)| &**key).unwrap_or_default();
                out.push(Out::withdraw(key, why, record));
                return;
            }
            Stage::Listing | Stage::Look | Stage::Claim => {}
        }
        out.push(Out::Record(record(latency)));
    }
}

/// The answer to a call of which nothing was done.
fn told(id: Id<'_>, era: Era, told: &Told) -> Out {
    let mut result = told.to_result();
    if era == Era::Mrtr {
        result.insert_str(1, "\"resultType\":\"complete\",");
    }
    Out::ToClient { for_call: Some(id.to_owned()), frame: reply::result(id.raw(), &result) }
}

/// Whether a caller is asked with a form. Nothing known is never read as no.
fn takes_form(config: &ConfirmConfig, declared: Declared) -> bool {
    config.forms && (declared.takes_forms() || declared == Declared::Unknown)
}

/// What decides about the rail of a guarded call.
#[derive(Debug, Clone, Copy)]
struct Footing {
    declared: Declared,
    demand: Demand,
    form_was_sent: bool,
    takes_token: bool,
}

impl Envelope {
    /// Which rail a call takes: the first of the ladder behind one that serves it (mcp.md §7). `Err`: none, and what would
    /// change it. Once a form was sent there is no token (S8); who demands a person's word, or somebody's, has the inbox alone.
    fn rail(&self, config: &ConfirmConfig, of: Footing, tried: Option<Rail>) -> Result<Rail, &'static str> {
        let ladder = &self.process.config.confirm_rails;
        let needs_inbox = of.demand.needs_inbox();
        let serves = |rail: &Rail| match rail {
            Rail::Form => !needs_inbox && takes_form(config, of.declared),
            Rail::Inbox => self.process.inbox_is_usable() && of.demand.who != Answerers::Nobody,
            Rail::Token => !needs_inbox && !of.form_was_sent && of.takes_token && config.tokens.is_ok(),
            Rail::Url | Rail::Refuse => false,
        };
        ladder.after(tried).find(serves).ok_or_else(|| match &config.tokens {
            Ok(_) if !ladder.has(Rail::Token) => "rails.confirm leaves it no other way: add token to it",
            Ok(_) => "the tool has a confirmToken of its own, so that there is none of ours",
            Err(why) => why.remedy(),
        })
    }

    /// How many guarded calls wait for something that the upstream or the store of spent nonces has to say. Their owner
    /// keeps the upstream open for them when the client's input has ended.
    pub fn guarded_calls(&self) -> usize {
        self.guarded.held
    }

    /// Lets a call wait.
    fn hold(&mut self, mut held: Box<Held>, stage: Stage, wait: Option<(Moment, String)>) {
        if let Some((deadline, key)) = &wait {
            self.deadlines.insert((*deadline, key.clone()));
            self.guarded.waits.insert(key.clone(), held.id.clone());
        }
        held.stage = stage;
        held.wait = wait;
        self.guarded.held += 1;
        let id = held.id.clone();
        self.open.insert(id.borrow(), Open::Guarded(held));
    }

    /// Takes the call that waits for that, if one does.
    fn take_held(&mut self, key: &str) -> Option<Box<Held>> {
        let id = self.guarded.waits.get(key)?.clone();
        match self.open.remove(id.borrow()) {
            Some(Open::Guarded(mut held)) if held.wait.as_ref().is_some_and(|(_, waits)| waits == key) => {
                self.unhold(&mut held);
                Some(held)
            }
            Some(other) => {
                self.open.insert(id.borrow(), other);
                None
            }
            None => None,
        }
    }

    /// Forgets what a call waited for. It has left the open ones.
    fn unhold(&mut self, held: &mut Held) {
        self.guarded.held -= 1;
        let Some(wait) = &held.wait else { return };
        self.guarded.waits.remove(&wait.1);
        self.deadlines.remove(wait);
        if let Stage::Inbox(_, beat) = held.stage {
            self.patience.end();
            if let Some(beat) = beat {
                self.deadlines.remove(&(beat, wait.1.clone()));
            }
            let told = self.progress.rests(held.call.progress_token());
            if let Some(about) = &mut held.about {
                about.told_progress = told;
            }
        }
    }

    /// There is no room for a call.
    fn no_room(id: Id<'_>) -> Out {
        failed(id.to_owned(), INTERNAL, "too many bytes of calls are in flight; nothing was done")
    }

    /// What waited long enough: true where it was a guarded call's.
    pub(super) fn guarded_timed_out(&mut self, key: &str, now: Now, out: &mut Vec<Out>) -> bool {
        if self.listing_timed_out(key, now, out) {
            return true;
        }
        let Some(held) = self.take_held(key) else { return false };
        match held.stage {
            Stage::Listing => {}
            Stage::Preview => {
                out.push(Out::ToUpstream(reply::cancelled(&quoted(key), "no answer in time")));
                Self::no_preview(&held, crate::confirm::PreviewFault::Late, out);
            }
            Stage::Asking(since) => Self::form_timed_out(&held, key, since, now, out),
            Stage::Inbox(since, _) => self.inbox_is_silent(&held, key, since, now, out),
            Stage::Look | Stage::Claim => self.store_said(held, Spent::Unknown, now, out),
        }
        true
    }

    /// The client cancels a call: nothing of it runs, and nobody is answered.
    pub(super) fn guarded_cancelled(&mut self, held: &mut Held, why: &str, now: Now, out: &mut Vec<Out>) {
        self.unhold(held);
        if let Stage::Inbox(since, _) = held.stage {
            self.note_given_up(since, now);
        }
        held.withdraw(why, "call-cancelled", Provenance::Client, now, out);
    }

    /// The client sends nothing more: nobody answers the forms that are out.
    pub(super) fn guarded_client_closed(&mut self, now: Now, out: &mut Vec<Out>) {
        let keys: Vec<String> = self.guarded.waits.keys().cloned().collect();
        for key in keys {
            let Some(held) = self.take_held(&key) else { continue };
            if let Stage::Asking(_) | Stage::Inbox(..) = held.stage {
                held.withdraw("the client is gone", "client-closed", Provenance::System, now, out);
                held.tell(&Told::cancelled(held.action()), out);
            } else {
                let (stage, wait) = (held.stage, held.wait.clone());
                self.hold(held, stage, wait);
            }
        }
    }

    /// The upstream is gone, and the calls with it.
    pub(super) fn guarded_upstream_ended(&mut self) {
        let changes = self.guarded.changes;
        self.guarded = Guarded { changes, tickets: self.guarded.tickets, ..Guarded::default() };
    }
}
