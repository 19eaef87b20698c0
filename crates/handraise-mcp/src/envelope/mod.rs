//! The envelope: one client connection in front of one upstream.
//!
//! # The contract: one input, then drain
//!
//! The owner of an [`Envelope`] brings it one input at a time: a frame of either side, the end of either side, or the
//! time. Every input may append [`Out`] values, which the owner carries out **in order** before it brings the next
//! input. A frame's input also says with a [`Route`] what becomes of that very frame: it goes on as it is, **after**
//! the outputs, or it goes nowhere. The envelope never writes a frame anew that may go on as it is.
//!
//! ```text
//!   client ── ClientFrame::read ──▶ client_frame ──▶ Route + Out* ──▶ upstream, client
//!   upstream ── Process::read_server_frame ──▶ upstream_frame ──▶ Route + Out* ──▶ client, upstream
//!   timer ── next_deadline() ──▶ tick ──▶ Out*
//! ```
//!
//! Reading a frame needs no envelope, so an owner that shares one among threads reads outside its lock, and holds the
//! lock from the input until its outputs are queued in order. After every input, [`Envelope::next_deadline`] may have
//! changed.
//!
//! There is no clock and no randomness in here: [`Now`] comes with every input, and unguessable ids are derived from
//! the seed that the owner draws once. What is no [`ClientFrame`] goes to [`Envelope::client_malformed`].
//!
//! # What it does
//!
//! - It knows which requests of the client are open, so that each is answered once, also when the upstream dies.
//! - A call's result that is an ambiguous refusal becomes one question (mcp.md §3): pushed to a client that opened its
//!   connection with `initialize` (§4), or handed back as `input_required` to a request that describes itself (§5). An
//!   acceptance of an offered candidate runs the call again, once; everything else ends with the refusal, byte for byte.
//! - No answer but the one to an open question of this connection runs anything. A cancelled call runs nothing more.
//!
//! # Decided here
//!
//! - Asks are `hr-ask-<16 hex>-<32 hex>`, requests of ours to the upstream `hr-run-<16 hex>-<n>`. The first part is drawn
//!   per connection, so that gateways in a row tell their ids apart.
//! - A call is not asked about when the upstream has asked the client anything itself while the call was open: two
//!   gateways in a row ask once.
//! - When the client's input ends, its open questions are withdrawn and the calls end with their refusals: a client that
//!   wrote its calls and closed its side still reads their answers.
//! - When the upstream dies, also a call whose question is open ends with the error: what was refused cannot run again.
//! - Arguments that cannot be bound (S4) are not asked about in either era: the same call is the same question.
//! - `-32600` answers every frame of a client that is not let through, also one that is no JSON.
//! - A request of the push era that carries a `requestState` is refused: no session of that era was given one.
//! - So is a modern request with a state of the upstream's, when the upstream is legacy: it has opened a session and has
//!   neither answered `server/discover` nor handed back a question. It would run the call and not look at the state.
//! - A modern retry runs under its own id; a private id is for a call that the upstream has answered already.
//! - With a `candidates_tool`, an accepted retry first asks the upstream for the candidates of now, as the same client, for
//!   at most the ask's timeout; the chosen one must be among them, unchanged.
//! - A late cancellation goes on to the upstream as it would without us.
//! - `input_required` in a legacy session becomes an error: nobody there can answer it.
//! - A second request under an open id is forwarded, and neither is asked about; under the id of a call that is asked
//!   about or runs again it is refused.

mod confirm;
mod ids;
mod ledger;
mod mrtr;
mod open;
mod process;
mod progress;
mod push;
mod refused;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use handraise_core::Moment;
use handraise_core::words::{Outcome, Provenance};

use crate::Now;
use crate::declared::{self, Handshake, Party};
use crate::envelope::confirm::Guarded;
use crate::envelope::ids::PrivateIds;
use crate::envelope::mrtr::Carried;
use crate::envelope::open::{Call, Open, Opens, Plain, Unkept};
use crate::envelope::progress::Progress;
use crate::frame::reply::{self, INTERNAL, INVALID_REQUEST};
use crate::frame::splice::{Splice, quoted};
use crate::frame::{
    ById, ClientFrame, Id, Looks, RequestId, Scanner, ServerFrame, Shape, member_at, member_named,
};
use crate::memory::DeclineMemory;
use crate::record::Record;

pub use confirm::Spend;
pub use process::{EnvelopeConfig, Limits, Process, Reached};

/// Who sent a frame: what states are bound to (S10). Never taken from the frame itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The caller's configured name, or the connection.
    pub principal: String,
    /// The session header of an HTTP request; stdio has none.
    pub session: Option<String>,
}

/// What becomes of the frame that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Route {
    /// It goes to the other side, byte for byte, after the outputs.
    Forward,
    /// It goes nowhere: the envelope has dealt with it.
    Consumed,
}

/// What the owner does next. Frames are complete JSON texts without a line end.
#[derive(Debug, Clone, PartialEq)]
pub enum Out {
    /// Send a frame to the client.
    ToClient {
        /// The call that the frame belongs to: its response, or a question on its behalf. An HTTP owner sends it on
        /// the stream of that call.
        for_call: Option<RequestId>,
        /// The frame.
        frame: Vec<u8>,
    },
    /// Send a frame to the upstream.
    ToUpstream(Vec<u8>),
    /// Log the record, and tell the inbox.
    Record(Record),
    /// Ask the store of spent nonces, and bring its answer with [`Envelope::spent`]. It takes its time on disk: not under
    /// the lock under which frames are judged. An owner without a store says that nothing is known, and nothing runs.
    Spend(Spend),
}

/// The state of one client connection in front of one upstream.
#[derive(Debug)]
pub struct Envelope {
    process: Arc<Process>,
    ids: PrivateIds,
    handshake: Handshake,
    open: ById<Open>,
    /// Our open questions: which call each belongs to.
    asks: BTreeMap<String, RequestId>,
    deadlines: BTreeSet<(Moment, String)>,
    /// Our requests to the upstream: which call each belongs to.
    ours: BTreeMap<String, RequestId>,
    declined: DeclineMemory,
    progress: Progress,
    guarded: Guarded,
    /// Questions that the upstream asked the client by itself.
    upstream_asks: u64,
    client_is_closed: bool,
    /// How the upstream ended.
    ended: Option<String>,
}

impl Envelope {
    /// A connection on which nothing has happened. `seed` is fresh randomness: ids are derived from it.
    pub fn new(process: Arc<Process>, seed: [u8; 32]) -> Self {
        Self {
            process,
            ids: PrivateIds::new(seed),
            handshake: Handshake::default(),
            open: ById::default(),
            asks: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            ours: BTreeMap::new(),
            declined: DeclineMemory::default(),
            progress: Progress::default(),
            guarded: Guarded::default(),
            upstream_asks: 0,
            client_is_closed: false,
            ended: None,
        }
    }

    /// Takes a frame of the client.
    pub fn client_frame(
        &mut self,
        frame: &ClientFrame<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        self.tick(now, out);
        match (frame.method(), frame.id()) {
            (Some(_), Some(id)) if frame.answer.is_some() && self.names_ask(id) => {
                self.client_response(frame, id, now, out)
            }
            (Some(method), Some(id)) => self.request(frame, method, id, caller, now, out),
            (Some("notifications/cancelled"), None) => self.client_cancelled(frame, now, out),
            (None, Some(id)) => self.client_response(frame, id, now, out),
            (Some("tools/call"), None) => self.guard_unanswerable(frame, out),
            _ => Route::Forward,
        }
    }

    fn request(
        &mut self,
        frame: &ClientFrame<'_>,
        method: &str,
        id: Id<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        if let Some(refused) = self.refusal_to_forward(id) {
            out.push(refused);
            return Route::Consumed;
        }
        if method == "tools/call"
            && let Some(route) = self.guard(frame, id, caller, now, out)
        {
            return route;
        }
        self.unguarded(frame, method, id, caller, now, out)
    }

    /// A request that nothing guards, or whose guard has let it go.
    fn unguarded(
        &mut self,
        frame: &ClientFrame<'_>,
        method: &str,
        id: Id<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        let is_modern = declared::is_modern(frame);
        match self.carried_state(frame, method, is_modern, caller, now) {
            Carried::Nothing => {}
            Carried::Ours(_) if self.open.get(id).is_some() => {
                out.push(failed(id.to_owned(), INVALID_REQUEST, ID_IN_USE));
                return Route::Consumed;
            }
            Carried::Ours(state) => return self.retry(frame, id, *state, now, out),
            Carried::Refused(reason) => return self.refuse_state(frame, id, reason, out),
        }
        if self.open.is_empty() {
            self.progress.clear();
        }
        let plain = || Plain { is_legacy: !is_modern, ..Plain::new(id.to_owned()) };
        let open = match method {
            // A client that uses an id twice gets both answers, and no question: whose is the first one?
            _ if self.open.get(id).is_some() => Open::Plain(plain()),
            "tools/call" => {
                let call = Call::keep(&self.process, frame, caller, now.boot, self.upstream_asks);
                call.map_or_else(|| self.unkept(frame, plain()), Open::Called)
            }
            "initialize" => {
                self.handshake.requested(frame);
                Open::Plain(Plain { opens: Opens::Session, ..plain() })
            }
            "tools/list" => Open::Plain(Plain { lists: self.lists(frame), ..plain() }),
            "server/discover" => Open::Plain(Plain { opens: Opens::Discovery, ..plain() }),
            _ => Open::Plain(plain()),
        };
        if let Some(Open::Called(call)) = self.open.insert(id, open) {
            self.progress.forget(call.progress_token());
        }
        Route::Forward
    }

    /// Why a request goes no further, as an answer to it.
    fn refusal_to_forward(&self, id: Id<'_>) -> Option<Out> {
        if let Some(status) = &self.ended {
            return Some(failed(id.to_owned(), INTERNAL, &ended_message(status)));
        }
        if let Some(Open::Asking(_) | Open::Rerun(_) | Open::Checking(_) | Open::Guarded(_)) =
            self.open.get(id)
        {
            return Some(failed(id.to_owned(), INVALID_REQUEST, ID_IN_USE));
        }
        if self.open.len() >= self.process.config.limits.open_requests {
            self.process.count_refused_request();
            return Some(failed(id.to_owned(), INTERNAL, "too many requests of this client are open"));
        }
        None
    }

    fn unkept(&self, frame: &ClientFrame<'_>, plain: Plain) -> Open {
        let unkept = Unkept::new(frame, self.party(frame), &self.process.config.rules);
        Open::Plain(Plain { unkept: Some(Box::new(unkept)), ..plain })
    }

    /// Who is behind a request: what it says itself, else what its connection said.
    fn party(&self, frame: &ClientFrame<'_>) -> Party {
        declared::modern(frame).unwrap_or_else(|| self.handshake.party())
    }

    /// Takes a cancellation. One that names no open request is late, and means nothing to us.
    fn client_cancelled(&mut self, frame: &ClientFrame<'_>, now: Now, out: &mut Vec<Out>) -> Route {
        let params = frame.params.as_ref().map_or(0..0, |params| params.at.clone());
        let text = frame.text(params.clone());
        let Some(at) = member_at(text, "requestId") else { return Route::Forward };
        let Some(id) = Id::parse(&text[at.clone()]) else { return Route::Forward };
        if id.text().is_some_and(|id| self.ids.is_private(&id)) {
            // Our ids are nobody's to cancel, and the upstream learns none of the client's side.
            return Route::Consumed;
        }
        match self.open.remove(id) {
            Some(Open::Asking(asking)) => {
                self.withdraw(
                    &asking,
                    "the call was cancelled",
                    "call-cancelled",
                    Provenance::Client,
                    now,
                    out,
                );
                Route::Consumed
            }
            Some(Open::Rerun(rerun)) => {
                self.progress.ran_again(rerun.call.progress_token());
                self.cancel_ours(frame, params.start + at.start..params.start + at.end, &rerun.id, out)
            }
            Some(Open::Checking(checking)) => {
                self.deadlines.remove(&(checking.deadline, checking.ours.clone()));
                out.push(checking.retry.record(Outcome::Withdrawn, Some("call-cancelled")));
                self.cancel_ours(frame, params.start + at.start..params.start + at.end, &checking.ours, out)
            }
            Some(Open::Called(call)) => {
                self.progress.forget(call.progress_token());
                Route::Forward
            }
            Some(Open::Guarded(held)) => {
                self.guarded_cancelled(&held, "the call was cancelled", now, out);
                Route::Consumed
            }
            Some(Open::Plain(_)) | None => Route::Forward,
        }
    }

    /// The client's cancellation, of the request that stands for its call at the upstream.
    fn cancel_ours(
        &mut self,
        frame: &ClientFrame<'_>,
        at: Range<usize>,
        ours: &str,
        out: &mut Vec<Out>,
    ) -> Route {
        self.ours.remove(ours);
        let mut splice = Splice::default();
        splice.replace(at, quoted(ours));
        out.push(Out::ToUpstream(splice.apply(frame.bytes())));
        Route::Consumed
    }

    /// Takes a frame of the upstream. Once [`Self::upstream_ended`] has answered for it, nothing of it counts.
    pub fn upstream_frame(&mut self, frame: &ServerFrame<'_>, now: Now, out: &mut Vec<Out>) -> Route {
        if self.ended.is_some() {
            return Route::Consumed;
        }
        self.tick(now, out);
        match &frame.shape {
            Shape::Response { id, id_at } => match self.open.remove(*id) {
                Some(open) => self.upstream_response(frame, *id, open, now, out),
                None => self.private_response(frame, *id, id_at.clone(), now, out),
            },
            Shape::Request { id, method } => {
                if id.text().is_some_and(|id| self.ids.is_ask(&id)) {
                    let message = "the id is in a name space that is not the server's";
                    out.push(Out::ToUpstream(reply::error(id.raw(), INVALID_REQUEST, message, None)));
                    return Route::Consumed;
                }
                if method == "elicitation/create" {
                    self.upstream_asks += 1;
                    if let Some(route) = self.asked_by_preview(*id, out) {
                        return route;
                    }
                }
                Route::Forward
            }
            Shape::Notification { method, params } => match &**method {
                "notifications/progress" if !self.progress.passes(frame.text(params.clone())) => {
                    Route::Consumed
                }
                "notifications/cancelled" => self.upstream_cancelled(frame, params.clone(), out),
                "notifications/tools/list_changed" => {
                    self.tools_changed();
                    Route::Forward
                }
                _ => Route::Forward,
            },
            Shape::Other => Route::Forward,
        }
    }

    /// Takes the upstream's answer to a request that is open.
    fn upstream_response(
        &mut self,
        frame: &ServerFrame<'_>,
        id: Id<'_>,
        open: Open,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        match open {
            Open::Called(call) => {
                if frame.looks == Looks::default() {
                    self.progress.forget(call.progress_token());
                    return Route::Forward;
                }
                self.call_result(call, frame, now, out)
            }
            Open::Plain(plain) => {
                match (plain.opens, frame.result()) {
                    (Opens::Session, Some(result)) => self.handshake.negotiated(result),
                    (Opens::Discovery, Some(_)) => self.handshake.discovered(),
                    (Opens::Nothing | Opens::Session | Opens::Discovery, _) => {}
                }
                if plain.is_legacy && is_question(frame) {
                    out.push(unasked_question(plain.id));
                    return Route::Consumed;
                }
                self.note_passed_on(frame);
                if let Some(lists) = &plain.lists
                    && let Some(frame) = self.listed(frame, lists, now)
                {
                    out.push(Out::ToClient { for_call: Some(plain.id), frame });
                    return Route::Consumed;
                }
                self.unkept_result(plain, frame, out);
                Route::Forward
            }
            // The answer has been here already: the client gets one.
            held @ (Open::Asking(_) | Open::Rerun(_) | Open::Checking(_) | Open::Guarded(_)) => {
                self.open.insert(id, held);
                Route::Consumed
            }
        }
    }

    /// Takes an answer that belongs to none of the client's requests: to a call that we ran again, or to one that was
    /// cancelled meanwhile.
    fn private_response(
        &mut self,
        frame: &ServerFrame<'_>,
        id: Id<'_>,
        id_at: Range<usize>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        let Some(private) = id.text().filter(|id| self.ids.is_request(id)) else { return Route::Forward };
        let Some(call) = self.ours.remove(&*private) else {
            self.guarded_response(&private, frame, now, out);
            return Route::Consumed;
        };
        match self.open.remove(call.borrow()) {
            Some(Open::Rerun(rerun)) => {
                self.progress.ran_again(rerun.call.progress_token());
                if is_question(frame) {
                    out.push(unasked_question(call));
                } else {
                    let mut splice = Splice::default();
                    splice.replace(id_at, call.raw());
                    out.push(Out::ToClient { for_call: Some(call), frame: splice.apply(frame.bytes()) });
                }
            }
            Some(Open::Checking(checking)) => self.checked(&checking, frame.result(), out),
            Some(Open::Plain(_) | Open::Called(_) | Open::Asking(_) | Open::Guarded(_)) | None => {}
        }
        Route::Consumed
    }

    /// Takes a cancellation by the upstream: of a question of its own, or, in the modern era, of a subscription.
    fn upstream_cancelled(
        &mut self,
        frame: &ServerFrame<'_>,
        params: Range<usize>,
        out: &mut Vec<Out>,
    ) -> Route {
        let text = frame.text(params.clone());
        let Some(at) = member_at(text, "requestId") else { return Route::Forward };
        let Some(id) = Id::parse(&text[at.clone()]).and_then(Id::text) else { return Route::Forward };
        if let Some(call) = self.ours.get(&*id) {
            let mut splice = Splice::default();
            splice.replace(params.start + at.start..params.start + at.end, call.raw());
            out.push(Out::ToClient { for_call: Some(call.clone()), frame: splice.apply(frame.bytes()) });
            return Route::Consumed;
        }
        if self.ids.is_private(&id) { Route::Consumed } else { Route::Forward }
    }

    /// Takes the time: settles what has waited long enough.
    pub fn tick(&mut self, now: Now, out: &mut Vec<Out>) {
        while self.deadlines.first().is_some_and(|(deadline, _)| *deadline <= now.boot) {
            let Some((_, ask)) = self.deadlines.pop_first() else { return };
            if !self.guarded_timed_out(&ask, now, out) {
                self.timed_out(&ask, now, out);
            }
        }
    }

    /// When [`Self::tick`] is due. It may change with every input.
    pub fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The client sends nothing more, and the upstream may get nothing more. Nobody can answer our questions, and what was
    /// accepted and waits for the candidates of now can no longer run: such calls end with the refusal. Other open
    /// requests stay open, because their answers may still be delivered.
    pub fn client_closed(&mut self, now: Now, out: &mut Vec<Out>) {
        self.client_is_closed = true;
        self.guarded_client_closed(now, out);
        let asks: Vec<RequestId> = self.asks.values().cloned().collect();
        for call in asks {
            if let Some(Open::Asking(asking)) = self.open.remove(call.borrow()) {
                self.withdraw(&asking, "the client is gone", "client-closed", Provenance::System, now, out);
                let frame = asking.refusal.bytes().to_vec();
                out.push(Out::ToClient { for_call: Some(call), frame });
            }
        }
        let checks: Vec<String> = self.ours.keys().cloned().collect();
        for ours in checks {
            self.end_check(&ours, "the client is gone", Outcome::Withdrawn, "client-closed", out);
        }
    }

    /// The upstream is gone: every open request is answered with an error that names `status`, and so is every later
    /// one. `status` is shown to the client: it says how the process ended, and nothing that the process wrote (S33).
    pub fn upstream_ended(&mut self, status: &str, now: Now, out: &mut Vec<Out>) {
        let message = ended_message(status);
        let open: Vec<Open> = self.open.take().collect();
        for open in open {
            match &open {
                Open::Asking(asking) => {
                    self.withdraw(asking, "the server ended", "server-ended", Provenance::System, now, out);
                }
                Open::Checking(checking) => {
                    out.push(checking.retry.given_up(Outcome::Withdrawn, "server-ended"));
                }
                Open::Guarded(held) => {
                    held.withdraw("the server ended", "server-ended", Provenance::System, now, out);
                }
                Open::Plain(_) | Open::Called(_) | Open::Rerun(_) => {}
            }
            out.extend(open.id().map(|id| failed(id.to_owned(), INTERNAL, &message)));
        }
        self.ours.clear();
        self.guarded_upstream_ended();
        self.deadlines.clear();
        self.progress.clear();
        self.ended = Some(status.to_owned());
    }

    /// How many requests of the client have no answer yet.
    pub fn open_requests(&self) -> usize {
        self.open.len()
    }
}

const ID_IN_USE: &str = "an open request has this id";

fn ended_message(status: &str) -> String {
    format!("the MCP server ended: {status}")
}

fn failed(id: RequestId, code: i32, message: &str) -> Out {
    let frame = reply::error(id.raw(), code, message, None);
    Out::ToClient { for_call: Some(id), frame }
}

/// Whether a response is `input_required`, which no session of the push era understands.
fn is_question(frame: &ServerFrame<'_>) -> bool {
    let kind = || {
        member_named(frame.result()?, "resultType")
            .and_then(|kind| Scanner::new(kind.as_bytes()).string().ok())
    };
    frame.looks.question && kind().is_some_and(|kind| kind.is("input_required"))
}

/// What the client gets instead: several clients show `input_required` as an empty result.
fn unasked_question(id: RequestId) -> Out {
    failed(id, INTERNAL, "the server asked in a way that this session does not know (input_required)")
}

#[cfg(test)]
mod tests;
