//! The modern requests of one principal, which share one server.
//!
//! Clients number their requests as they like, and two of them like the same numbers. So each request goes to the server
//! under a number of ours, which stands for its id, its progress token and the tag of its subscription; what comes back
//! gets the client's own again. A frame that belongs to no open request reaches nobody.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use handraise_mcp::{
    envelope::Caller,
    frame::{ClientFrame, Id, Looks, Renumbered, RequestId, ServerFrame},
};

use super::{
    budget::Budget,
    calls,
    events::event,
    handover::{AtOnce, First, Taker},
    known::{Known, Refused, Tells},
    outlet::{Outlet, plain_opening},
    params::Params,
    pieces::{Came, Pieces},
    question::Question,
    reply,
    strays::Strays,
};

pub(super) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
pub(super) const ENDED: &str = "the MCP server ended before it answered";

/// The open requests.
#[derive(Debug)]
pub(crate) struct Desk {
    budget: Arc<Budget>,
    exchanges: BTreeMap<u64, Exchange>,
    subscriptions: usize,
    most_subscriptions: usize,
    last: u64,
    known: Known,
    strays: Strays,
}

/// A request that is open.
#[derive(Debug)]
struct Exchange {
    id: RequestId,
    token: Option<RequestId>,
    outlet: Outlet,
    caller: Arc<Caller>,
    is_subscription: bool,
    /// What its answer tells of the server.
    tells: Option<Tells>,
    /// No client has sent it.
    is_ours: bool,
    /// The request wants log messages.
    is_logged: bool,
    params: Params,
}

impl Exchange {
    fn tag(&self, given: Id<'_>) -> Cow<'_, str> {
        tag(&self.id, given)
    }
}

/// What tags a subscription for its client: its own id, as text where the server has made a text of ours.
fn tag<'i>(own: &'i RequestId, given: Id<'_>) -> Cow<'i, str> {
    let own = own.raw();
    if given.text().is_some() && !own.starts_with('"') {
        return Cow::Owned(format!("\"{own}\""));
    }
    Cow::Borrowed(own)
}

/// The principal has as many subscriptions as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManySubscriptions;

impl Desk {
    pub(crate) fn new(budget: Arc<Budget>, most_subscriptions: usize, is_remote: bool) -> Self {
        Self {
            budget,
            exchanges: BTreeMap::new(),
            subscriptions: 0,
            most_subscriptions,
            last: 0,
            known: Known::new(is_remote),
            strays: Strays::default(),
        }
    }

    /// The next number.
    pub(crate) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Opens the request with this number.
    ///
    /// # Errors
    /// [`TooManySubscriptions`].
    pub(crate) fn open(
        &mut self,
        number: u64,
        frame: &ClientFrame<'_>,
        takes_events: bool,
        caller: &Arc<Caller>,
        params: Params,
        at_once: Option<AtOnce>,
    ) -> Result<Taker, TooManySubscriptions> {
        let is_subscription = frame.method() == Some("subscriptions/listen");
        if is_subscription && self.subscriptions >= self.most_subscriptions {
            return Err(TooManySubscriptions);
        }
        self.subscriptions += usize::from(is_subscription);
        let (outlet, first) = Outlet::new(takes_events, at_once);
        let exchange = Exchange {
            id: frame.id().map(Id::to_owned).ok_or(TooManySubscriptions)?,
            token: calls::token(frame).map(Id::to_owned),
            outlet,
            caller: Arc::clone(caller),
            is_subscription,
            tells: self.known.tells(frame),
            is_ours: false,
            is_logged: frame.meta("io.modelcontextprotocol/logLevel").is_some(),
            params,
        };
        self.exchanges.insert(number, exchange);
        Ok(first)
    }

    /// What an open request, by its number, came with.
    pub(super) fn params(&self, id: Id<'_>) -> Params {
        self.exchanges.get(&number(id)?)?.params.clone()
    }

    /// Whose an open request is.
    pub(super) fn caller_of(&self, number: u64) -> Option<Arc<Caller>> {
        self.exchanges.get(&number).map(|exchange| Arc::clone(&exchange.caller))
    }

    /// What is known of the server.
    pub(super) fn known(&mut self) -> &mut Known {
        &mut self.known
    }

    /// Ends a request with its refusal.
    pub(super) fn refuse(&mut self, number: u64, refused: &Refused) {
        if let Some(Exchange { id, outlet, .. }) = self.remove(number) {
            outlet.refuse(refused.reply(Some(id.borrow())).into(), &self.budget);
        }
    }

    /// Opens a question of ours.
    pub(super) fn ask(&mut self, question: &Question) -> Option<(u64, Bytes)> {
        let caller = self.caller_of(question.key)?;
        let number = self.number();
        let raw = number.to_string();
        let exchange = Exchange {
            id: Id::parse(&raw)?.to_owned(),
            token: None,
            outlet: Outlet::Lost,
            caller,
            is_subscription: false,
            tells: Some(question.tells),
            is_ours: true,
            is_logged: false,
            params: Params::default(),
        };
        self.exchanges.insert(number, exchange);
        Some((number, question.frame(&raw)))
    }

    /// The client of a request has left, which cancels it (2026-07-28); `None`: it was over already.
    pub(crate) fn abandon(&mut self, number: u64) -> Option<Arc<Caller>> {
        self.remove(number).map(|exchange| exchange.caller)
    }

    /// Takes a frame of the envelope's: under our number.
    pub(super) fn deliver(&mut self, for_call: Option<&RequestId>, frame: Vec<u8>) {
        let Some(number) = for_call.and_then(|id| number(id.borrow())) else { return };
        let frame = Bytes::from(frame);
        let Ok(read) = ServerFrame::read(&frame, |_| Looks::default()) else { return };
        self.send_home(number, &read, Came::own(&frame));
    }

    /// An answer whose id is the text of an open request's number, under the number itself: so everybody here knows it.
    pub(super) fn respelled(&self, frame: &ServerFrame<'_>) -> Option<Bytes> {
        let (id, at) = (frame.response_id()?, frame.response_id_at()?);
        let number: u64 = id.text()?.parse().ok()?;
        self.exchanges.contains_key(&number).then(|| {
            let bytes = frame.bytes();
            [&bytes[..at.start], number.to_string().as_bytes(), &bytes[at.end..]].concat().into()
        })
    }

    /// Takes a frame of the server's. In this era a server asks nobody: what it asks nevertheless it is answered here.
    pub(super) fn forward(&mut self, frame: &ServerFrame<'_>, came: Came<'_>) -> Option<Vec<u8>> {
        if let Some(id) = frame.request_id() {
            return Some(if frame.method() == Some("ping") {
                reply::result(id.raw(), "{}")
            } else {
                reply::error(id.raw(), reply::METHOD_NOT_FOUND, "requests of this era cannot be asked back")
            });
        }
        if let Some((id, _)) = frame.cancelled() {
            // Of a subscription: its stream ends.
            if let Some(exchange) = number(id).and_then(|number| self.remove(number)) {
                exchange.outlet.end(&self.budget);
            }
            return None;
        }
        if frame.method() == Some(TOOLS_CHANGED) {
            self.known.tools_changed();
        }
        let belongs_to = frame
            .response_id()
            .or_else(|| frame.progress_token().map(|(token, _)| token))
            .or_else(|| frame.subscription().map(|(tag, _)| tag))
            .and_then(number);
        let logged = || {
            let is_log = frame.method() == Some("notifications/message");
            let mut exchanges = self.exchanges.iter().rev().filter(|_| is_log);
            exchanges.find(|(_, exchange)| exchange.is_logged).map(|(number, _)| *number)
        };
        if let Some(id) = frame.response_id()
            && belongs_to.is_none_or(|number| !self.exchanges.contains_key(&number))
        {
            // Who has left may be answered all the same.
            let is_late = belongs_to.is_some_and(|number| (1..=self.last).contains(&number));
            self.strays.found(id, is_late);
            return None;
        }
        if let Some(number) = belongs_to.or_else(logged) {
            self.send_home(number, frame, came);
        }
        None
    }

    /// Sends a frame to the client of a request, under the client's own names.
    fn send_home(&mut self, number: u64, frame: &ServerFrame<'_>, came: Came<'_>) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        if let Some(at) = frame.response_id_at() {
            let Some(exchange) = self.remove(number) else { return };
            if let Some(tells) = exchange.tells {
                self.known.learn(tells, frame, exchange.is_ours);
            }
            if exchange.is_ours {
                return;
            }
            let tag = exchange.is_subscription.then(|| frame.subscription()).flatten();
            let Exchange { id, outlet, .. } = exchange;
            let tag = tag.map(|(given, at)| (at, self::tag(&id, given)));
            let id = id.raw();
            let named = || {
                let mut edits = vec![(at.clone(), id)];
                edits.extend(tag.as_ref().map(|(at, tag)| (at.clone(), &**tag)));
                named(&came.to_bytes(), edits)
            };
            match outlet {
                Outlet::Silent { first, .. } if tag.is_none() => {
                    let bytes = came.bytes();
                    first.answer([&bytes[..at.start], id.as_bytes(), &bytes[at.end..]], named);
                }
                Outlet::Silent { first, .. } => {
                    // Nobody may be there any more.
                    first.give(First::Answer(named()));
                }
                mut outlet => {
                    outlet.event(&event("", &named()), &self.budget);
                    outlet.end(&self.budget);
                }
            }
            return;
        }
        let edit = match (frame.progress_token(), &exchange.token) {
            (Some((_, at)), Some(token)) => Some((at, Cow::Borrowed(token.raw()))),
            // A token that the request did not give.
            (Some(_), None) => return,
            (None, _) => frame.subscription().map(|(tag, at)| (at, exchange.tag(tag))),
        };
        let edits = edit.iter().map(|(at, text)| (at.clone(), &**text)).collect();
        let event = event("", &named(&came.to_bytes(), edits));
        exchange.outlet.event(&event, &self.budget);
    }

    fn remove(&mut self, number: u64) -> Option<Exchange> {
        let exchange = self.exchanges.remove(&number)?;
        self.known.forget(number);
        self.subscriptions -= usize::from(exchange.is_subscription);
        Some(exchange)
    }

    /// Lets a second pass.
    pub(super) fn tick(&mut self) {
        for (number, exchange) in &mut self.exchanges {
            // Whether it is refused is not known yet, and an answer with a status of its own is no stream.
            if !self.known.holds(*number) {
                exchange.outlet.tick(&self.budget, plain_opening);
            }
        }
        if self.known.tick() {
            self.exchanges.retain(|_, exchange| !exchange.is_ours);
        }
    }

    /// Ends every stream.
    pub(super) fn close(&mut self) {
        self.subscriptions = 0;
        for held in self.known.take_waiting() {
            if let Some(Exchange { id, outlet, .. }) = self.remove(held.key) {
                outlet.settle(&reply::error(id.raw(), reply::INTERNAL, ENDED).into(), &self.budget);
            }
        }
        for exchange in std::mem::take(&mut self.exchanges).into_values() {
            exchange.outlet.end(&self.budget);
        }
    }

    pub(super) fn is_attended(&self) -> bool {
        !self.exchanges.is_empty()
    }
}

/// The number that an id, a token or a tag of ours is. Some servers write `1.0` for 1, and some make a text of it.
fn number(id: Id<'_>) -> Option<u64> {
    id.integer().map_or_else(|| id.text()?.parse().ok(), |number| number.try_into().ok())
}

/// A frame with the client's names in it.
fn named(bytes: &Bytes, mut edits: Vec<(std::ops::Range<usize>, &str)>) -> Pieces {
    match edits.as_slice() {
        [] => bytes.clone().into(),
        [(at, text)] => Pieces::replaced(bytes, at.clone(), text.as_bytes()),
        [..] => {
            edits.sort_by_key(|(at, _)| at.start);
            let mut named = bytes.to_vec();
            for (at, text) in edits.into_iter().rev() {
                named.splice(at, text.bytes());
            }
            named.into()
        }
    }
}

/// What cancels a request at the server.
pub(crate) fn cancellation(number: u64) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{number},\
         \"reason\":\"the client has disconnected\"}}}}"
    )
    .into_bytes()
}

/// A request under a number of ours.
pub(crate) fn renumbered(frame: &ClientFrame<'_>, number: u64) -> Option<Renumbered> {
    Renumbered::new(frame, number)
}
