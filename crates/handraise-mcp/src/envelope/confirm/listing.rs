//! The server's tools: as the client lists them, and as we list them ourselves where nobody has.

use handraise_core::Moment;
use handraise_core::words::{Outcome, Provenance, Rail};

use super::{Held, PATIENCE, Stage};
use crate::Now;
use crate::confirm::{Gathered, Gathering, Offer, Told, ToolList, harmful_on, listed_as_guarded};
use crate::envelope::check::meta_without_progress;
use crate::envelope::mrtr::string;
use crate::envelope::open::Open;
use crate::envelope::{Envelope, Out, Route};
use crate::frame::reply;
use crate::frame::splice::quoted;
use crate::frame::{ClientFrame, RequestId, ServerFrame, member_named};

/// The server's tools, as we list them.
#[derive(Debug)]
pub(super) struct Listing {
    /// The id of our request.
    ours: String,
    deadline: Moment,
    gathering: Gathering,
    /// The call's `_meta`, as a member: who lists, and in which era.
    meta: String,
    waiting: Vec<RequestId>,
    /// They have changed since we began: what comes serves those who wait, and nobody later.
    is_stale: bool,
}

/// What a client's `tools/list` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::envelope) struct Lists {
    cursor: Option<String>,
    /// How often the tools had changed when it asked.
    changes: u64,
}

impl Envelope {
    /// A client's `tools/list`.
    pub(in crate::envelope) fn lists(&self, frame: &ClientFrame<'_>) -> Option<Box<Lists>> {
        self.process.config.confirm.as_ref()?;
        let cursor = frame.param_named("cursor").filter(|cursor| *cursor != "null");
        // A cursor that is no text names no page that we know of.
        let cursor = cursor.map(|cursor| string(cursor).unwrap_or_default());
        Some(Box::new(Lists { cursor, changes: self.guarded.changes }))
    }

    /// A page for the client. What it says of tools is noted; those that are guarded are listed as such.
    pub(in crate::envelope) fn listed(
        &mut self,
        frame: &ServerFrame<'_>,
        lists: &Lists,
        now: Now,
    ) -> Option<Vec<u8>> {
        let result = frame.result()?;
        self.note_page(result);
        if lists.cursor.is_none() {
            self.guarded.gathering = Gathering::default();
        }
        let is_next = lists.cursor.is_none() || self.guarded.gathering.awaits(lists.cursor.as_deref());
        if is_next && lists.changes == self.guarded.changes {
            match self.guarded.gathering.page(result) {
                Ok(Gathered::More(_)) => {}
                Ok(Gathered::All(list)) => self.keep_list(list, result, now),
                Err(_) => self.guarded.gathering = Gathering::default(),
            }
        }
        let config = self.process.config.confirm.as_ref()?;
        let at = frame.result_at()?;
        let offer = |name: &str, is_harmless| {
            let guarding = config.guards.of(name, is_harmless && !self.process.is_harmful(name))?;
            let rails = &self.process.config.confirm_rails;
            let inbox = config.is_open && rails.has(Rail::Inbox) && self.process.may_have_inbox();
            let form = config.forms && config.is_open && rails.has(Rail::Form);
            let token = config.tokens.is_ok() && rails.has(Rail::Token);
            Some(if guarding.demand.needs_inbox() {
                Offer::Inbox
            } else {
                Offer::Caller { form, token, inbox }
            })
        };
        listed_as_guarded(frame.bytes(), at, offer)
    }

    /// Notes which tools may do harm: what was listed so once stays so.
    fn note_page(&self, result: &str) {
        self.process.note_harmful(harmful_on(result));
    }

    fn keep_list(&mut self, list: ToolList, result: &str, now: Now) {
        let ttl = member_named(result, "ttlMs").and_then(|ttl| ttl.parse::<u64>().ok());
        self.guarded.list_until = ttl.map(|ttl| now.boot + std::time::Duration::from_millis(ttl));
        self.guarded.list = Some(list);
    }

    /// The server says that its tools have changed.
    pub(in crate::envelope) fn tools_changed(&mut self) {
        if self.process.config.confirm.is_none() {
            return;
        }
        self.guarded.changes += 1;
        self.guarded.list = None;
        self.guarded.gathering = Gathering::default();
        if let Some(listing) = &mut self.guarded.listing {
            listing.is_stale = true;
        }
    }

    /// A call waits until the server's tools are known.
    pub(super) fn await_listing(&mut self, held: Box<Held>, now: Now, out: &mut Vec<Out>) {
        let id = held.id.clone();
        if self.guarded.listing.is_none() {
            let meta =
                ClientFrame::read(held.call.bytes()).ok().and_then(|frame| meta_without_progress(&frame));
            let deadline = now.boot + PATIENCE;
            self.guarded.listing = Some(Listing {
                ours: String::new(),
                deadline,
                gathering: Gathering::default(),
                meta: meta.unwrap_or_default(),
                waiting: Vec::new(),
                is_stale: false,
            });
            self.list(None, out);
        }
        if let Some(listing) = &mut self.guarded.listing {
            listing.waiting.push(id);
        }
        self.hold(held, Stage::Listing, None);
    }

    /// Asks for a page.
    fn list(&mut self, cursor: Option<&str>, out: &mut Vec<Out>) {
        let ours = self.ids.request();
        let Some(listing) = &mut self.guarded.listing else { return };
        self.deadlines.remove(&(listing.deadline, listing.ours.clone()));
        self.deadlines.insert((listing.deadline, ours.clone()));
        let cursor = cursor.map(|cursor| format!("\"cursor\":{}", quoted(cursor)));
        let members: Vec<&str> = cursor.as_deref().into_iter().chain(Some(&*listing.meta)).collect();
        let members: Vec<&str> = members.into_iter().filter(|member| !member.is_empty()).collect();
        let params = format!("{{{}}}", members.join(","));
        out.push(Out::ToUpstream(reply::request(&quoted(&ours), "tools/list", &params)));
        listing.ours = ours;
    }

    /// Takes an answer to a request of ours, if it was for the server's tools or a preview.
    pub(in crate::envelope) fn guarded_response(
        &mut self,
        ours: &str,
        frame: &ServerFrame<'_>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> bool {
        if self.guarded.listing.as_ref().is_none_or(|listing| listing.ours != ours) {
            return self.preview_came(ours, frame, now, out);
        }
        let result = frame.result();
        if let Some(result) = result {
            self.note_page(result);
        }
        let gathered = self.guarded.listing.as_mut().and_then(|listing| listing.gathering.page(result?).ok());
        match gathered {
            Some(Gathered::More(cursor)) => self.list(Some(&cursor), out),
            Some(Gathered::All(list)) => {
                self.keep_list(list, result.unwrap_or_default(), now);
                self.listing_ended(true, now, out);
            }
            None => self.listing_ended(false, now, out),
        }
        true
    }

    /// The server took too long to list its tools.
    pub(super) fn listing_timed_out(&mut self, key: &str, now: Now, out: &mut Vec<Out>) -> bool {
        if self.guarded.listing.as_ref().is_none_or(|listing| listing.ours != key) {
            return false;
        }
        out.push(Out::ToUpstream(reply::cancelled(&quoted(key), "no answer in time")));
        self.listing_ended(false, now, out);
        true
    }

    /// Those who waited for the tools go on, or end where there are none.
    fn listing_ended(&mut self, is_listed: bool, now: Now, out: &mut Vec<Out>) {
        let Some(listing) = self.guarded.listing.take() else { return };
        self.deadlines.remove(&(listing.deadline, listing.ours.clone()));
        for id in listing.waiting {
            match self.open.remove(id.borrow()) {
                Some(Open::Guarded(mut held)) if held.stage == Stage::Listing => {
                    self.unhold(&mut held);
                    self.tools_known(held, is_listed, now, out);
                }
                Some(other) => drop(self.open.insert(id.borrow(), other)),
                None => {}
            }
        }
        if listing.is_stale {
            self.guarded.list = None;
        }
    }

    fn tools_known(&mut self, held: Box<Held>, is_listed: bool, now: Now, out: &mut Vec<Out>) {
        if !is_listed {
            let (outcome, provenance) = (Outcome::Error, Provenance::System);
            out.push(held.record(Rail::Refuse, outcome, provenance, None, Some("tools-not-listed")));
            let note = "The server did not list its tools, so that nobody can say what this one is.";
            held.tell(&Told::unreadable(held.action(), "tools-not-listed", note), out);
            return;
        }
        if held.about.is_some() {
            self.read_fresh(held, now, out);
            return;
        }
        let process = std::sync::Arc::clone(&self.process);
        let Held { id, call, .. } = *held;
        let caller = std::sync::Arc::clone(&call.caller);
        // What was kept has been read before.
        let (Ok(frame), Some(config)) = (ClientFrame::read(call.bytes()), &process.config.confirm) else {
            return;
        };
        let tool = crate::envelope::open::tool(&frame);
        if self.judge(config, tool, &frame, id.borrow(), &caller, now, out).is_none()
            && self.unguarded(&frame, "tools/call", id.borrow(), &caller, now, out) == Route::Forward
        {
            out.push(Out::ToUpstream(call.bytes().to_vec()));
        }
    }
}
