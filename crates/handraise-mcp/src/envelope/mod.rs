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
//! - So is a modern request with a state of the upstream's, when the upstream is legacy: it has opened a session, or has
//!   answered `server/discover` with an error, and has shown nothing modern since. It would run the call and not look at
//!   the state. While nothing is known of it, the request goes on.
//! - A modern retry runs under its own id; a private id is for a call that the upstream has answered already.
//! - With a `candidates_tool`, an accepted retry first asks the upstream for the candidates of now, as the same client, for
//!   at most the ask's timeout; the chosen one must be among them, unchanged.
//! - A late cancellation goes on to the upstream as it would without us.
//! - `input_required` in a legacy session becomes an error: nobody there can answer it. It is one when some reader of JSON
//!   takes it for one; see `frame/input_required.rs`.
//! - A refusal that offers a choice beyond a bound passes with a record that names the bound. One candidate too many, or
//!   one value too long, is enough: without it the others would look like all there is.
//! - A second request under an open id is forwarded, and neither is asked about; under the id of a call that is asked
//!   about or runs again it is refused.

mod check;
mod confirm;
mod ends;
mod from_client;
mod from_upstream;
mod ids;
mod inbox;
mod ledger;
mod mrtr;
mod open;
mod process;
mod progress;
mod push;
mod refused;
mod retry;
mod room;
mod way;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use handraise_core::Moment;

use crate::Now;
use crate::declared::Handshake;
use crate::envelope::confirm::Guarded;
use crate::envelope::ids::PrivateIds;
use crate::envelope::inbox::Patience;
use crate::envelope::open::Open;
use crate::envelope::progress::Progress;
use crate::envelope::room::Room;
use crate::frame::reply;
use crate::frame::{ById, Id, RequestId};
use crate::memory::DeclineMemory;
use crate::record::Record;

pub use confirm::Spend;
pub use inbox::{
    AGAIN_AFTER, GIVEN_UP, InboxAsk, InboxConfirm, InboxEnd, InboxSaid, LEAST_WAIT, ON_ITS_WAY,
    OPERATOR_GONE, PROGRESS_EVERY, Waits, Withdrawal,
};
pub use process::{EnvelopeConfig, Limits, Process, Reached, Upstream};

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
    /// Ask the inbox, and bring what becomes of it with [`Envelope::inbox_said`]. An owner without one says that it could
    /// not be opened.
    Ask(Box<InboxAsk>),
    /// Take back what the inbox was asked under that key, and log the record then: where an operator has answered before,
    /// [with that](Record::answered), and as it is otherwise.
    Withdraw {
        /// The key of an [`InboxAsk`].
        key: String,
        /// Why.
        why: Withdrawal,
        /// How it ended, if nobody has answered by now.
        record: Box<Record>,
    },
    /// Ask the store of spent nonces, and bring its answer with [`Envelope::spent`]. It takes its time on disk: not under
    /// the lock under which frames are judged. An owner without a store says that nothing is known, and nothing runs.
    Spend(Spend),
}

impl Out {
    /// Takes a question back; the record belongs to it.
    fn withdraw(key: &str, why: Withdrawal, record: Record) -> Self {
        let record = Record { ask: Some(key.to_owned()), ..record };
        Self::Withdraw { key: key.to_owned(), why, record: Box::new(record) }
    }

    /// A record that belongs to what the inbox was asked under a key.
    fn of_ask(self, key: Option<&str>) -> Self {
        match self {
            Self::Record(record) => Self::Record(Record { ask: key.map(str::to_owned), ..record }),
            other => other,
        }
    }
}

/// The state of one client connection in front of one upstream.
#[derive(Debug)]
pub struct Envelope {
    process: Arc<Process>,
    /// Where its caller's calls are kept.
    room: Arc<Room>,
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
    patience: Patience,
    guarded: Guarded,
    /// Questions that the upstream asked the client by itself.
    upstream_asks: u64,
    client_is_closed: bool,
    /// How the upstream ended.
    ended: Option<String>,
}

impl Envelope {
    /// A connection on which nothing has happened, of somebody whom [`EnvelopeConfig::callers`] does not name. `seed` is fresh
    /// randomness: ids are derived from it.
    pub fn new(process: Arc<Process>, seed: [u8; 32]) -> Self {
        let room = Arc::clone(process.rooms.others());
        Self::within(process, room, seed)
    }

    /// The same, of a principal.
    pub fn of(process: Arc<Process>, principal: &str, seed: [u8; 32]) -> Self {
        let room = Arc::clone(process.rooms.of(principal));
        Self::within(process, room, seed)
    }

    fn within(process: Arc<Process>, room: Arc<Room>, seed: [u8; 32]) -> Self {
        Self {
            process,
            room,
            ids: PrivateIds::new(seed),
            handshake: Handshake::default(),
            open: ById::default(),
            asks: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            ours: BTreeMap::new(),
            declined: DeclineMemory::default(),
            progress: Progress::default(),
            patience: Patience::default(),
            guarded: Guarded::default(),
            upstream_asks: 0,
            client_is_closed: false,
            ended: None,
        }
    }

    /// Takes the time: settles what has waited long enough.
    pub fn tick(&mut self, now: Now, out: &mut Vec<Out>) {
        self.patience.at(now.boot);
        while self.deadlines.first().is_some_and(|(deadline, _)| *deadline <= now.boot) {
            let Some((due, ask)) = self.deadlines.pop_first() else { return };
            if !self.beat(&ask, due, out) && !self.guarded_timed_out(&ask, now, out) {
                self.timed_out(&ask, now, out);
            }
        }
    }

    /// The client's call that a request of ours to the upstream runs again, by that request's id.
    pub fn runs_again(&self, id: Id<'_>) -> Option<&RequestId> {
        let call = self.ours.get(&*id.text()?)?;
        matches!(self.open.get(call.borrow()), Some(Open::Rerun(_))).then_some(call)
    }

    /// When [`Self::tick`] is due. It may change with every input.
    pub fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// How many requests of the client have no answer yet.
    pub fn open_requests(&self) -> usize {
        self.open.len()
    }
}

fn failed(id: RequestId, code: i32, message: &str) -> Out {
    let frame = reply::error(id.raw(), code, message, None);
    Out::ToClient { for_call: Some(id), frame }
}

#[cfg(test)]
mod tests;
