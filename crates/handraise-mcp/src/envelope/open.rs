//! A request of the client that has no answer yet.

use std::ops::Range;
use std::sync::Arc;

use handraise_core::Moment;
use handraise_core::words::Rail;

use crate::declared::{Party, is_modern};
use crate::envelope::Caller;
use crate::envelope::confirm::{Held, Lists};
use crate::envelope::inbox::InInbox;
use crate::envelope::refused::Subject;
use crate::envelope::retry::Retry;
use crate::envelope::room::{Kept, Room};
use crate::frame::{ClientFrame, Id, Quoted, RequestId, Scanner, member_at, member_named};
use crate::record::MAX_NAME_BYTES;
use crate::refusal::{Rule, Rules};
use crate::seal::{Approval, Offered};

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) enum Open {
    /// Forwarded, and nothing will be asked about it.
    Plain(Plain),
    /// A tool call that the upstream works on. Boxed, so that the map of open requests stays small: most of the time it is
    /// made for one call, and goes with it.
    Called(Box<Call>),
    /// The upstream refused, and the client is asked, or the inbox.
    Asking(Box<Asking>),
    /// The upstream runs the call again, with the argument that was chosen.
    Rerun(Box<Rerun>),
    /// It waits for what the policy names, before it runs.
    Guarded(Box<Held>),
    /// A candidate was accepted in a retry, and the upstream is asked whether it is still there.
    Checking(Box<Checking>),
}

/// What a request's success tells about the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opens {
    /// Nothing.
    Nothing,
    /// `initialize`: a session of the push era.
    Session,
    /// `server/discover`: the upstream is modern.
    Discovery,
}

/// A request of which only the answer matters.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) id: RequestId,
    pub(super) opens: Opens,
    /// The request does not describe itself: it belongs to a session that `initialize` opened.
    pub(super) is_legacy: bool,
    /// The token with which its client was told of progress before it ran: what is said next is above that.
    pub(super) told: Option<Box<RequestId>>,
    /// A call that did not fit into memory.
    pub(super) unkept: Option<Box<Unkept>>,
    /// `tools/list`, where tools may be guarded.
    pub(super) lists: Option<Box<Lists>>,
}

impl Plain {
    /// A modern request.
    pub(super) fn new(id: RequestId) -> Self {
        Self { id, opens: Opens::Nothing, is_legacy: false, told: None, unkept: None, lists: None }
    }
}

/// What a record needs to know about a call that did not fit.
#[derive(Debug)]
pub(super) struct Unkept {
    pub(super) tool: String,
    pub(super) party: Party,
    /// The arguments that rules would fill and the call carries.
    carried: Vec<String>,
}

/// A tool call, kept so that it can run again.
#[derive(Debug)]
pub(super) struct Call {
    frame: Kept,
    id: Range<usize>,
    progress_token: Option<Range<usize>>,
    pub(super) arrived: Moment,
    pub(super) caller: Arc<Caller>,
    /// It does not describe itself: it belongs to a session that `initialize` opened.
    pub(super) is_legacy: bool,
    /// Why it is never asked about.
    pub(super) bar: Option<&'static str>,
    /// How many questions the upstream had asked when the call arrived.
    pub(super) upstream_asks: u64,
    /// A guarded call that was confirmed.
    pub(super) approval: Option<Approval>,
}

/// A call that waits for an answer.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) call: Call,
    pub(super) ask: String,
    pub(super) subject: Subject,
    /// The upstream's whole frame, byte for byte.
    pub(super) refusal: Kept,
    pub(super) asked: Moment,
    pub(super) deadline: Moment,
    pub(super) surface: Surface,
}

/// Where a question is.
#[derive(Debug)]
pub(super) enum Surface {
    /// With the client.
    Form,
    /// In the inbox.
    Inbox(InInbox),
}

impl Asking {
    /// Whether it is the question of that state.
    pub(super) fn retries(&self, nonce: &[u8; 16]) -> bool {
        let Surface::Inbox(in_inbox) = &self.surface else { return false };
        in_inbox.retry.as_ref().is_some_and(|state| state.nonce == *nonce)
    }

    /// Whether it waits for less than its call may.
    pub(super) fn is_cut(&self) -> bool {
        matches!(&self.surface, Surface::Inbox(in_inbox) if in_inbox.waiting.is_cut)
    }

    /// The rail that the question took.
    pub(super) fn rail(&self) -> Rail {
        match self.surface {
            Surface::Form => Rail::Form,
            Surface::Inbox(_) => Rail::Inbox,
        }
    }
}

/// A call that runs again.
#[derive(Debug)]
pub(super) struct Rerun {
    pub(super) call: Call,
    /// Its id at the upstream.
    pub(super) id: String,
}

/// A retry that waits for the candidates of now.
#[derive(Debug)]
pub(super) struct Checking {
    pub(super) id: RequestId,
    /// The id of our request to the upstream.
    pub(super) ours: String,
    pub(super) deadline: Moment,
    /// What the upstream gets when the candidate is still there.
    pub(super) again: Kept,
    pub(super) retry: Retry,
    pub(super) offered: Offered,
    pub(super) rule: Arc<Rule>,
}

impl Call {
    /// Keeps a call, if there is room for it.
    pub(super) fn keep(
        room: &Arc<Room>,
        frame: &ClientFrame<'_>,
        caller: &Arc<Caller>,
        arrived: Moment,
        upstream_asks: u64,
    ) -> Option<Self> {
        let kept = Kept::new(room, frame.bytes(), 0)?;
        let meta = frame.params.as_ref().and_then(|params| params.meta.as_ref());
        let progress_token = meta.and_then(|meta| {
            let token = member_at(frame.text(meta.clone()), "progressToken")?;
            Some(meta.start + token.start..meta.start + token.end)
        });
        let has = |member: bool, bar: &'static str| member.then_some(bar);
        let params = frame.params.as_ref();
        let bar = has(params.is_some_and(|params| params.task.is_some()), "task")
            .or_else(|| has(params.is_some_and(|params| params.request_state.is_some()), "server-state"))
            .or_else(|| {
                has(params.is_some_and(|params| params.input_responses.is_some()), "answer-without-state")
            });
        Some(Self {
            frame: kept,
            id: frame.id_at.clone(),
            progress_token,
            arrived,
            caller: Arc::clone(caller),
            is_legacy: !is_modern(frame),
            bar,
            upstream_asks,
            approval: None,
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.frame.bytes()
    }

    pub(super) fn id(&self) -> Option<Id<'_>> {
        self.id_in(self.id.clone())
    }

    pub(super) fn progress_token(&self) -> Option<Id<'_>> {
        self.id_in(self.progress_token.clone()?)
    }

    fn id_in(&self, range: Range<usize>) -> Option<Id<'_>> {
        Id::parse(std::str::from_utf8(self.frame.bytes().get(range)?).ok()?)
    }
}

impl Unkept {
    pub(super) fn new(frame: &ClientFrame<'_>, party: Party, rules: &Rules) -> Self {
        let arguments = rules.iter().map(|rule| rule.argument());
        let carried = arguments.filter(|argument| carries(frame, argument)).map(str::to_owned).collect();
        let mut tool = tool(frame);
        tool.truncate(tool.floor_char_boundary(MAX_NAME_BYTES));
        Self { tool, party, carried }
    }

    pub(super) fn carries(&self, argument: &str) -> bool {
        self.carried.iter().any(|carried| carried == argument)
    }
}

impl Open {
    /// The client's id of the request.
    pub(super) fn id(&self) -> Option<Id<'_>> {
        match self {
            Self::Plain(plain) => Some(plain.id.borrow()),
            Self::Called(call) => call.id(),
            Self::Asking(asking) => asking.call.id(),
            Self::Rerun(rerun) => rerun.call.id(),
            Self::Checking(checking) => Some(checking.id.borrow()),
            Self::Guarded(held) => Some(held.id.borrow()),
        }
    }
}

/// The name of the tool that a frame calls.
pub(super) fn tool(frame: &ClientFrame<'_>) -> String {
    let name = frame.param(|params| params.name.as_ref());
    let name = name.and_then(|name| Scanner::new(name.as_bytes()).string().ok());
    name.map(Quoted::text).unwrap_or_default().into_owned()
}

/// Whether a call carries an argument, whatever its value. Arguments that are no object carry everything: nothing can
/// be added to them.
pub(super) fn carries(frame: &ClientFrame<'_>, argument: &str) -> bool {
    match frame.param(|params| params.arguments.as_ref()) {
        None | Some("null") => false,
        Some(arguments) if arguments.starts_with('{') => member_named(arguments, argument).is_some(),
        Some(_) => true,
    }
}
