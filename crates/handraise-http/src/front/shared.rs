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
    http::headers::{self, HeaderMismatch, SeenTools},
};
use handraise_transport::escape;

use super::{
    budget::Budget,
    events::event,
    handover::{AtOnce, First, Taker},
    outlet::{Outlet, plain_opening},
    params::Params,
    pieces::{Came, Pieces},
    reply,
};

/// JSON-RPC: the method does not exist.
const METHOD_NOT_FOUND: i32 = -32601;

/// The open requests.
#[derive(Debug)]
pub(crate) struct Desk {
    budget: Arc<Budget>,
    exchanges: BTreeMap<u64, Exchange>,
    subscriptions: usize,
    most_subscriptions: usize,
    last: u64,
    /// Which arguments of which tools are mirrored in headers.
    tools: SeenTools,
}

/// A request that is open.
#[derive(Debug)]
struct Exchange {
    id: RequestId,
    token: Option<RequestId>,
    outlet: Outlet,
    caller: Arc<Caller>,
    is_subscription: bool,
    lists_tools: bool,
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
    pub(crate) fn new(budget: Arc<Budget>, most_subscriptions: usize) -> Self {
        Self {
            budget,
            exchanges: BTreeMap::new(),
            subscriptions: 0,
            most_subscriptions,
            last: 0,
            tools: SeenTools::default(),
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
            token: frame.progress_token().map(|(token, _)| token.to_owned()),
            outlet,
            caller: Arc::clone(caller),
            is_subscription,
            lists_tools: frame.method() == Some("tools/list"),
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

    /// Compares the headers of a request with its arguments, as far as lists of tools have told which those are (S3).
    ///
    /// # Errors
    /// [`HeaderMismatch`].
    pub(crate) fn check<'h>(
        &self,
        frame: &ClientFrame<'_>,
        given: impl IntoIterator<Item = (&'h str, &'h [u8])>,
    ) -> Result<(), HeaderMismatch> {
        let tool = headers::name(frame).filter(|_| frame.method() == Some("tools/call"));
        match tool.and_then(|tool| self.tools.get(&tool)) {
            Some(tool) => headers::check(frame, given, Some(tool)),
            None => Ok(()),
        }
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

    /// Takes a frame of the server's. In this era a server asks nobody: what it asks nevertheless it is answered here.
    pub(super) fn forward(&mut self, frame: &ServerFrame<'_>, came: Came<'_>) -> Option<Vec<u8>> {
        if let Some(id) = frame.request_id() {
            return Some(if frame.method() == Some("ping") {
                reply::result(id.raw(), "{}")
            } else {
                reply::error(id.raw(), METHOD_NOT_FOUND, "requests of this era cannot be asked back")
            });
        }
        if let Some((id, _)) = frame.cancelled() {
            // Of a subscription: its stream ends.
            if let Some(exchange) = number(id).and_then(|number| self.remove(number)) {
                exchange.outlet.end(&self.budget);
            }
            return None;
        }
        let belongs_to = frame
            .response_id()
            .or_else(|| frame.progress_token().map(|(token, _)| token))
            .and_then(number)
            .or_else(|| subscription(frame.subscription()?.0));
        let logged = || {
            let is_log = frame.method() == Some("notifications/message");
            let mut exchanges = self.exchanges.iter().rev().filter(|_| is_log);
            exchanges.find(|(_, exchange)| exchange.is_logged).map(|(number, _)| *number)
        };
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
            if exchange.lists_tools
                && let Some(result) = frame.result()
            {
                for (tool, reason) in self.tools.learn(result) {
                    tracing::debug!(tool = escape::line(&tool).to_string(), %reason, "headers of a tool cannot be told");
                }
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
        self.subscriptions -= usize::from(exchange.is_subscription);
        Some(exchange)
    }

    /// Lets a second pass.
    pub(super) fn tick(&mut self) {
        for exchange in self.exchanges.values_mut() {
            exchange.outlet.tick(&self.budget, plain_opening);
        }
    }

    /// Ends every stream.
    pub(super) fn close(&mut self) {
        self.subscriptions = 0;
        for exchange in std::mem::take(&mut self.exchanges).into_values() {
            exchange.outlet.end(&self.budget);
        }
    }

    pub(super) fn is_attended(&self) -> bool {
        !self.exchanges.is_empty()
    }
}

/// The number that an id of ours is.
fn number(id: Id<'_>) -> Option<u64> {
    id.raw().parse().ok()
}

/// The number that tags a subscription. Some servers make a text of an id.
fn subscription(tag: Id<'_>) -> Option<u64> {
    number(tag).or_else(|| tag.text()?.parse().ok())
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
