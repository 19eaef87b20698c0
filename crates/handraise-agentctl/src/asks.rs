//! Asks of the agent: from a request on the wire to the holder, and its verdict back into the same request.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_client_protocol::{Agent, ConnectionTo, Error, Responder};
use handraise_acp::{Quirks, elicitation, permission};
use handraise_api::ask::Implementation;
use handraise_core::{
    AskId, Mode, OnDeadline, Source,
    form::{AnswerRules, Form},
    holder::{Delivery, EndCause},
};
use handraise_holder::{Holder, NewAsk};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::link::Link;

/// Why a request of a session that is not the agent's is declined.
const NO_SESSION: &str = "no_session";

type Sent = Result<(), Error>;

/// Turns a verdict into the result of the request behind an ask.
type Encode = Box<dyn FnOnce(Delivery) -> Value + Send>;

/// The asks of one session of an agent.
pub(crate) struct Asks {
    holder: Holder,
    link: Arc<Link>,
    /// Inbox-wide id of the session.
    session_id: String,
    /// Whether forms were advertised: decided once per agent start, for the advertisement and for this (F5).
    takes_forms: bool,
    answer_timeout: Duration,
    /// The turn was cancelled and its prompt is not answered yet: what is asked then is cancelled at once.
    cancelling: AtomicBool,
    open: Arc<OpenAsks>,
}

/// The agent, once it has introduced itself and opened a session.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// The agent's own id of the session.
    pub(crate) session: String,
    pub(crate) implementation: Option<Implementation>,
    pub(crate) quirks: Quirks,
}

/// Where an ask came from on the wire.
struct Asking {
    responder: Responder<Value>,
    encode: Encode,
    outlives_prompt: bool,
}

impl Asking {
    /// Answers the request, whoever decided.
    fn answer(self, delivery: Delivery) -> Sent {
        self.responder.respond((self.encode)(delivery))
    }
}

impl Asks {
    pub(crate) fn new(
        holder: Holder,
        link: Arc<Link>,
        session_id: String,
        takes_forms: bool,
        answer_timeout: Duration,
    ) -> Self {
        let (cancelling, open) = (AtomicBool::new(false), Arc::default());
        Self { holder, link, session_id, takes_forms, answer_timeout, cancelling, open }
    }

    /// Whether any ask waits for a human.
    pub(crate) fn any_open(&self) -> bool {
        !self.open.lock().asks.is_empty()
    }

    /// `elicitation/create`. What cannot be asked is declined, on purpose not answered with an error: that fails
    /// the whole turn in some agents (acp.md).
    pub(crate) fn elicitation(
        &self,
        params: &Value,
        responder: Responder<Value>,
        peer: Option<&Peer>,
        cx: &ConnectionTo<Agent>,
    ) -> Sent {
        let encode = Box::new(|delivery| match delivery {
            Delivery::Accept(content) => elicitation::accept(content),
            Delivery::Decline => elicitation::decline(),
            Delivery::Cancel => elicitation::cancel(),
        });
        let mut asking = Asking { responder, encode, outlives_prompt: false };
        let quirks = peer.map(|peer| peer.quirks).unwrap_or_default();
        let request = match elicitation::read(params, self.takes_forms, &quirks) {
            Ok(request) => request,
            Err(declined) => {
                tracing::info!(reason = declined.code(), "declined an elicitation: {declined}");
                self.holder.declined(declined.code());
                return asking.answer(Delivery::Decline);
            }
        };
        let Some(peer) = peer.filter(|peer| peer.session == request.session_id) else {
            tracing::info!("declined an elicitation: there is no such session");
            self.holder.declined(NO_SESSION);
            return asking.answer(Delivery::Decline);
        };
        for ignored in &request.ignored {
            tracing::debug!("left out of an elicitation: {ignored}");
        }
        asking.outlives_prompt = request.outlives_prompt;
        let ask =
            self.new_ask(Source::Elicitation, request.form, request.message, request.tool_call_id, peer);
        self.open(ask, asking, cx)
    }

    /// `session/request_permission`: an ask of one question with one choice per option.
    pub(crate) fn permission(
        &self,
        params: &Value,
        responder: Responder<Value>,
        peer: Option<&Peer>,
        cx: &ConnectionTo<Agent>,
    ) -> Sent {
        let outcomes = permission::outcomes_of(params);
        let encode = Box::new(move |delivery| match delivery {
            Delivery::Accept(content) => outcomes.selected(&content),
            Delivery::Decline => outcomes.skipped(),
            Delivery::Cancel => permission::cancelled(),
        });
        let asking = Asking { responder, encode, outlives_prompt: false };
        let request = match permission::read(params) {
            Ok(request) => request,
            Err(unaskable) => {
                tracing::info!(reason = unaskable.code(), "rejected a permission request: {unaskable}");
                self.holder.declined(unaskable.code());
                return asking.answer(Delivery::Decline);
            }
        };
        let Some(peer) = peer.filter(|peer| peer.session == request.session_id) else {
            tracing::info!("rejected a permission request: there is no such session");
            self.holder.declined(NO_SESSION);
            return asking.answer(Delivery::Decline);
        };
        let mut ask =
            self.new_ask(Source::Permission, request.form, request.message, request.tool_call_id, peer);
        ask.single_use = request.single_use;
        self.open(ask, asking, cx)
    }

    fn new_ask(
        &self,
        source: Source,
        form: Form,
        message: String,
        tool_call_id: Option<String>,
        peer: &Peer,
    ) -> NewAsk {
        NewAsk {
            source,
            mode: Mode::Form,
            session_id: Some(self.session_id.clone()),
            tool_call_id,
            message,
            url: None,
            confirm: None,
            on_deadline: Some(OnDeadline::Decline),
            form,
            rules: AnswerRules::for_source(source),
            single_use: Vec::new(),
            client: peer.implementation.clone(),
            server: None,
            timeout: Some(self.answer_timeout),
        }
    }

    /// Hands the ask to the holder, whose verdict answers the request, and listens for `$/cancel_request`.
    fn open(&self, ask: NewAsk, asking: Asking, cx: &ConnectionTo<Agent>) -> Sent {
        if self.cancelling.load(Ordering::Acquire) {
            return asking.answer(Delivery::Cancel);
        }
        let cancellation = asking.responder.cancellation();
        // Dropped with the closure, called or not: then the ask has ended.
        let (over, ended) = oneshot::channel::<()>();
        let place = OpenAsks::enter(&self.open, asking.outlives_prompt, Arc::clone(&self.link), over);
        let key = place.key;
        // Shared, because the holder drops the closure when it refuses the ask, and the request must be answered.
        let asking = Arc::new(Mutex::new(Some(asking)));
        let deliver = {
            let asking = Arc::clone(&asking);
            move |delivery: Delivery| {
                let asking = asking.lock().unwrap_or_else(PoisonError::into_inner).take();
                asking.is_some_and(|asking| place.link.is_alive() && asking.answer(delivery).is_ok())
            }
        };
        match self.holder.open(ask, deliver) {
            Ok(id) => {
                self.open.name(key, &id);
                let holder = self.holder.clone();
                cx.spawn(async move {
                    tokio::select! {
                        () = cancellation.cancelled() => holder.withdraw(&id, EndCause::RequestCancelled),
                        _ = ended => {}
                    }
                    Ok(())
                })
            }
            Err(refused) => {
                tracing::info!(reason = refused.code(), "declined an ask: {refused}");
                let asking = asking.lock().unwrap_or_else(PoisonError::into_inner).take();
                asking.map_or(Ok(()), |asking| asking.answer(Delivery::Decline))
            }
        }
    }

    /// The turn is being cancelled: every open ask is answered at once, because some agents wait for that (AC-15).
    pub(crate) fn turn_cancelled(&self, a_turn_is_open: bool) {
        self.cancelling.store(a_turn_is_open, Ordering::Release);
        self.holder.end_session(&self.session_id, EndCause::TurnCancelled);
    }

    /// We are going down: what is open and what comes is cancelled.
    pub(crate) fn shut_down(&self) {
        self.cancelling.store(true, Ordering::Release);
        self.holder.end_session(&self.session_id, EndCause::Shutdown);
    }

    /// The prompt was answered: nobody waits any more for the asks that belonged to it.
    pub(crate) fn prompt_ended(&self) {
        self.cancelling.store(false, Ordering::Release);
        for ask in self.open.ending_with_the_prompt() {
            self.holder.withdraw(&ask, EndCause::PromptEnded);
        }
    }

    /// The agent is gone: nobody can be told anything.
    pub(crate) fn agent_disconnected(&self) {
        self.holder.end_session(&self.session_id, EndCause::AgentDisconnected);
    }
}

/// Which asks wait for a human. Apart from [`Asks`], because the holder owns what its deliveries refer to.
#[derive(Default)]
struct OpenAsks(Mutex<Open>);

#[derive(Default)]
struct Open {
    next: u64,
    asks: BTreeMap<u64, OpenAsk>,
}

struct OpenAsk {
    /// `None` until the holder has taken it.
    id: Option<AskId>,
    outlives_prompt: bool,
}

impl OpenAsks {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(this: &Arc<Self>, outlives_prompt: bool, link: Arc<Link>, over: oneshot::Sender<()>) -> Place {
        let mut open = this.lock();
        let key = open.next;
        open.next += 1;
        open.asks.insert(key, OpenAsk { id: None, outlives_prompt });
        Place { open: Arc::clone(this), key, link, _over: over }
    }

    /// Notes the holder's id of an ask, unless it has ended already.
    fn name(&self, key: u64, id: &AskId) {
        if let Some(open) = self.lock().asks.get_mut(&key) {
            open.id = Some(id.clone());
        }
    }

    fn ending_with_the_prompt(&self) -> Vec<AskId> {
        let open = self.lock();
        open.asks.values().filter(|ask| !ask.outlives_prompt).filter_map(|ask| ask.id.clone()).collect()
    }
}

/// An ask's place among the open ones, for as long as it is there.
struct Place {
    open: Arc<OpenAsks>,
    key: u64,
    link: Arc<Link>,
    _over: oneshot::Sender<()>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.lock().asks.remove(&self.key);
        // The agent goes on from here, which may take it a while.
        self.link.sign_of_life();
    }
}

#[cfg(test)]
mod tests {
    use handraise_acp::{elicitation::Declined, permission::Unaskable};
    use handraise_api::frame::DECLINE_REASONS;
    use handraise_core::{form::Refusal, holder::Refused};

    use super::*;

    #[test]
    fn s39_every_reason_to_decline_is_a_word_that_the_inbox_counts() {
        let question = String::new;
        let refusals = [
            Refusal::NoQuestions,
            Refusal::NotAnObject,
            Refusal::SchemaTooLarge { limit: 0 },
            Refusal::TooDeep { limit: 0 },
            Refusal::TooManyProperties { found: 0, limit: 0 },
            Refusal::TooManyChoices { question: question(), found: 0, limit: 0 },
            Refusal::MessageTooLarge { found: 0, limit: 0 },
            Refusal::ChoiceCount { question: question(), found: 0, least: 0, most: 0 },
            Refusal::DuplicateQuestion { question: question() },
        ];
        let declined = [
            Declined::Off,
            Declined::UrlMode,
            Declined::UnknownMode,
            Declined::RequestScope,
            Declined::BothScopes,
            Declined::NoScope,
            Declined::Malformed(""),
        ];
        let refused = [
            Refused::NoInbox,
            Refused::ShuttingDown,
            Refused::KnownId,
            Refused::OpenAsks,
            Refused::OpenBytes,
            Refused::SessionOpenAsks,
            Refused::SessionParkedAsks,
            Refused::Rate,
            Refused::TooLarge,
        ];
        let mut words = vec![NO_SESSION, Unaskable::TooManyOptions { found: 0 }.code()];
        words.extend(refusals.iter().map(Refusal::code));
        words.extend(declined.iter().map(Declined::code));
        words.extend(refused.iter().map(|refused| refused.code()));
        words.sort_unstable();
        let mut known = DECLINE_REASONS.to_vec();
        known.sort_unstable();
        assert_eq!(words, known);
    }
}
