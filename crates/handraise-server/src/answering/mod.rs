//! From an operator's answer to the holder's verdict (acp.md, "Holder stream"; AC-12g, AC-20a, AC-20b, AC-61).
//!
//! The inbox adjudicates nothing: every submission is committed, forwarded, also for an ask that is believed settled,
//! and what is shown is the holder's word. Nothing is sent twice.

mod submission;
mod verdict;

use std::{pin::pin, sync::Arc, time::Duration};

use handraise_api::{
    ask::{AnswerRequest, Ask},
    error::{ErrorBody, ErrorCode},
    frame::{Ended, Respond, RespondBatch, RespondPermission, action},
    words::{AskState, Provenance, Source, Who},
};
use handraise_store::{NewSubmission, Verdict};

pub(crate) use self::verdict::{ask_for_verdicts, settle_by_holder, withdrawn};
use self::{
    submission::submission,
    verdict::{delivered, ended, had_ended, judged, record, resolve, without_verdict},
};
use crate::{
    extract::Caller,
    failure::Failure,
    hub::{Connection, Lost, Reply},
    inbox::{App, Inbox},
    metrics::Refused,
    open::Facts,
};

/// Longest reason for a skip, in bytes.
const LONGEST_REASON: usize = 4 * 1024;
/// Most answers in one submission: a form has at most 200 questions (form.md).
const MOST_ANSWERS: usize = 1_000;
/// How soon verdicts come from holders that are well. Nobody is told of an answer on its way for a shorter time.
const AT_ONCE: Duration = Duration::from_millis(100);
/// The question of a permission ask, and of nothing else (acp.md, "Agent life").
const PERMISSION: &str = "permission";

/// Forwards one answer and waits for the verdict.
pub(crate) async fn answer(
    app: App,
    caller: Caller,
    id: String,
    request: AnswerRequest,
) -> Result<Ask, Failure> {
    check(&request)?;
    let at_hand = app.open.get(&id);
    let connection = at_hand.as_ref().and_then(|facts| app.hub.connection(&facts.instance));
    let (facts, connection, settlement) = if let Some((facts, connection)) = at_hand.zip(connection) {
        (facts, Some(connection), None)
    } else {
        let Some((ask, instance)) = app.store.ask(&id).await? else { return Err(unknown(&id)) };
        let facts = Arc::new(Facts::of(&ask.content, &instance, ask.origin.owner.as_deref()));
        (facts, app.hub.connection(&instance), ask.settlement)
    };
    may_answer(&app, &caller, &id, &facts).await?;
    let new = submission(&app, &caller, &id, &facts, &request).await?;
    let frame = Forwarded::new(facts.source, &new, request)?;
    let Some(connection) = connection else {
        return match settlement {
            None => Err(Failure::holder_not_connected()),
            Some(settlement) => record(&app, new, settlement).await,
        };
    };
    // Once a submission is committed it is seen through, whether its sender still listens or not.
    let patience = app.settings.timing.verdict;
    let task = app.tasks.spawn(forward(Arc::clone(&app), connection, new, frame));
    match tokio::time::timeout(patience, task).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(error)) => Err(Failure::internal("the answer could not be forwarded", &error)),
        Err(_) => Err(Failure::verdict_unknown()),
    }
}

/// Forwards answers to asks of one holder, all or none of them (S44).
pub(crate) async fn answer_batch(
    app: App,
    caller: Caller,
    requests: Vec<(String, AnswerRequest)>,
) -> Result<Vec<Ask>, Failure> {
    let mut owner: Option<String> = None;
    let mut asks = Vec::new();
    let mut rows = Vec::new();
    let mut settled = None;
    for (id, request) in requests {
        check(&request)?;
        let Some((ask, instance)) = app.store.ask(&id).await? else { return Err(unknown(&id)) };
        match ask.content.source {
            Source::Confirm | Source::Permission => {}
            source => {
                let message = format!(
                    "ask {id} is of source {}; a batch takes confirms and permissions",
                    source.as_str()
                );
                return Err(Failure::bad_request(message));
            }
        }
        if rows.iter().any(|(known, _): &(NewSubmission, Respond)| known.ask == id) {
            return Err(Failure::bad_request(format!("ask {id} is in the batch twice")));
        }
        if owner.get_or_insert_with(|| instance.clone()) != &instance {
            return Err(Failure::bad_request("a batch takes asks of one holder"));
        }
        let facts = Facts::of(&ask.content, &instance, ask.origin.owner.as_deref());
        may_answer(&app, &caller, &id, &facts).await?;
        let new = submission(&app, &caller, &id, &facts, &request).await?;
        if caller.grant.token.page_session && new.provenance != Provenance::Human {
            return Err(Failure::invalid_one("", "painted", "every row of a batch must have been on screen"));
        }
        let respond = respond(&new, request);
        rows.push((new, respond));
        settled = settled.or_else(|| ask.settlement.clone().map(|settlement| (ask.id.clone(), settlement)));
        asks.push(app.shown(ask, &instance));
    }
    let connection = owner.as_deref().and_then(|owner| app.hub.connection(owner));
    let Some(connection) = connection else {
        return Err(match settled {
            Some((ask, settlement)) => had_ended(&ask, settlement, false),
            None => Failure::holder_not_connected(),
        });
    };
    let patience = app.settings.timing.verdict;
    let task = app.tasks.spawn(forward_batch(Arc::clone(&app), connection, asks, rows));
    match tokio::time::timeout(patience, task).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(error)) => Err(Failure::internal("the batch could not be forwarded", &error)),
        Err(_) => Err(Failure::verdict_unknown()),
    }
}

fn unknown(id: &str) -> Failure {
    Failure::ended(ErrorBody::new(ErrorCode::NotFound, format!("there is no ask '{id}'")), None, false)
}

/// Whether this caller's answer may count (S16). Nothing of one that may not is kept or forwarded.
async fn may_answer(app: &Inbox, caller: &Caller, ask: &str, facts: &Facts) -> Result<(), Failure> {
    let own = caller.grant.token.owner.as_deref();
    let whose = facts.owner.as_deref();
    if facts.who.allows(whose, own) {
        return Ok(());
    }
    app.audit(Refused::Answerers, &caller.grant, None, Some(ask)).await;
    let whose = whose.unwrap_or("nobody known");
    let rule = match facts.who {
        Who::Operator | Who::Caller => format!("only {whose} may answer this"),
        Who::NotTheCaller => format!("anybody but {whose} may answer this"),
    };
    let you = match own {
        Some(own) => format!("you are {own}"),
        None => "your token does not say whose it is; one made with --owner does".to_owned(),
    };
    Err(Failure::forbidden(format!("{rule}; {you}")))
}

fn check(request: &AnswerRequest) -> Result<(), Failure> {
    if request.answers.len() > MOST_ANSWERS {
        return Err(Failure::bad_request(format!(
            "'answers' has {}; it takes at most {MOST_ANSWERS}",
            request.answers.len()
        )));
    }
    if request.reject_reason.len() > LONGEST_REASON {
        return Err(Failure::bad_request(format!(
            "'reject_reason' has {} bytes; it takes at most {LONGEST_REASON}",
            request.reject_reason.len()
        )));
    }
    Ok(())
}

fn respond(new: &NewSubmission, request: AnswerRequest) -> Respond {
    Respond {
        pending_id: new.ask.clone(),
        submission_id: new.id.clone(),
        answers: request.answers,
        rejected: request.rejected,
        reject_reason: request.reject_reason,
        by: new.by.clone(),
        provenance: new.provenance,
    }
}

/// The frame of one submission.
enum Forwarded {
    Elicitation(Respond),
    Permission(RespondPermission),
}

impl Forwarded {
    fn new(source: Source, new: &NewSubmission, request: AnswerRequest) -> Result<Self, Failure> {
        if source != Source::Permission {
            return Ok(Self::Elicitation(respond(new, request)));
        }
        // The frame has room for one option. What does not fit it cannot be put to the holder.
        let option_id = match request.answers.as_slice() {
            _ if request.rejected => None,
            [answer] if answer.question_id == PERMISSION && answer.custom_text.trim().is_empty() => {
                match answer.selected_options.as_slice() {
                    [option] => Some(option.clone()),
                    _ => return Err(not_one_option()),
                }
            }
            _ => return Err(not_one_option()),
        };
        Ok(Self::Permission(RespondPermission {
            pending_id: new.ask.clone(),
            submission_id: new.id.clone(),
            option_id,
            by: new.by.clone(),
            provenance: new.provenance,
        }))
    }

    async fn send(&self, connection: &Connection) -> Result<Reply, Lost> {
        match self {
            Self::Elicitation(respond) => {
                connection.submit(action::RESPOND, respond, &respond.submission_id).await
            }
            Self::Permission(respond) => {
                connection.submit(action::RESPOND_PERMISSION, respond, &respond.submission_id).await
            }
        }
    }
}

fn not_one_option() -> Failure {
    Failure::invalid_one(PERMISSION, "one_option", "a permission takes exactly one option, or a skip")
}

/// Waits for the holder's word. The stream of one that hangs is ended: it is asked again when it comes back, and an ask
/// is not `sent` for ever.
async fn word(
    app: &Inbox,
    connection: &Connection,
    sent: impl Future<Output = Result<Reply, Lost>>,
) -> Result<Reply, Lost> {
    let Ok(reply) = tokio::time::timeout(app.settings.timing.hang, sent).await else {
        tracing::warn!(
            holder.instance = connection.instance,
            "a holder gives no verdict; its stream is ended"
        );
        connection.closed.cancel();
        return Err(Lost::Unknown);
    };
    reply
}

/// Commits, forwards, and notes the verdict, however late it comes.
async fn forward(
    app: App,
    connection: Arc<Connection>,
    new: NewSubmission,
    frame: Forwarded,
) -> Result<Ask, Failure> {
    connection.forwarding(&new.id);
    let outcome = async {
        let open = app.store.submit(app.now(), std::slice::from_ref(&new)).await?;
        app.metrics.submitted();
        tracing::info!(ask.id = new.ask, submission.id = new.id, by = new.by, "a submission is forwarded");
        let is_open = open.first().is_some_and(|open| *open);
        let mut sent = pin!(word(&app, &connection, frame.send(&connection)));
        let reply = match tokio::time::timeout(AT_ONCE, sent.as_mut()).await {
            Ok(reply) => reply,
            Err(_) if is_open => {
                let (reply, ()) = tokio::join!(sent, tell_on_its_way(&app, &new.ask));
                reply
            }
            Err(_) => sent.await,
        };
        match reply {
            Ok(reply) => judged(&app, &connection.instance, &new, reply).await,
            Err(lost) => without_verdict(&app, &new, lost).await,
        }
    }
    .await;
    note_ending(&connection, &new.id, outcome.as_ref().ok());
    connection.forwarded(&new.id);
    outcome
}

/// Tells that an answer is on its way, unless its ask has ended meanwhile.
async fn tell_on_its_way(app: &Inbox, ask: &str) {
    match app.store.ask(ask).await {
        Ok(Some((ask, instance))) if ask.settlement.is_none() => app.tell_updated(&app.shown(ask, &instance)),
        Ok(_) => {}
        Err(error) => tracing::error!(%error, ask.id = ask, "an ask could not be read"),
    }
}

/// Notes that a submission ended its ask: its holder is about to tell so.
fn note_ending(connection: &Connection, submission: &str, ask: Option<&Ask>) {
    let winner = ask.and_then(|ask| ask.settlement.as_ref()).and_then(|how| how.submission_id.as_deref());
    if let Some(ask) = ask.filter(|_| winner == Some(submission)) {
        connection.ended(&ask.id, submission);
    }
}

async fn forward_batch(
    app: App,
    connection: Arc<Connection>,
    asks: Vec<Ask>,
    rows: Vec<(NewSubmission, Respond)>,
) -> Result<Vec<Ask>, Failure> {
    let (news, submissions): (Vec<NewSubmission>, Vec<Respond>) = rows.into_iter().unzip();
    for new in &news {
        connection.forwarding(&new.id);
    }
    let outcome = async {
        let open = app.store.submit(app.now(), &news).await?;
        let frame = RespondBatch { submissions };
        let sent = word(&app, &connection, connection.request(action::RESPOND_BATCH, &frame));
        let (reply, ()) = tokio::join!(sent, async { tell_sent(&app, asks, &open) });
        let (verdict, failure) = match reply {
            Ok(Reply { error: None, .. }) => {
                let mut asks = Vec::new();
                for new in &news {
                    app.metrics.submitted();
                    asks.push(delivered(&app, &new.id, &new.delivered(app.now().wall)).await?);
                }
                return Ok(asks);
            }
            Ok(Reply { error: Some(error), payload }) => {
                let how = payload.and_then(|payload| serde_json::from_str::<Ended>(payload.get()).ok());
                let failure = match how.and_then(|how| how.ended) {
                    Some(how) => {
                        settle_by_holder(&app, &connection.instance, &how).await?;
                        ended(&app, error, &how.pending_id).await?
                    }
                    None => Failure::of_holder(error),
                };
                (Verdict::Refused, failure)
            }
            Err(Lost::NotWritten) => (Verdict::NotDelivered, Failure::holder_not_connected()),
            Err(Lost::Unknown) => return Err(Failure::verdict_unknown()),
        };
        for new in &news {
            resolve(&app, &new.id, verdict, None).await?;
        }
        Err(failure)
    }
    .await;
    for (at, new) in news.iter().enumerate() {
        note_ending(&connection, &new.id, outcome.as_ref().ok().and_then(|asks: &Vec<Ask>| asks.get(at)));
        connection.forwarded(&new.id);
    }
    outcome
}

/// Tells that answers are on their way, for asks that had not ended when the answers were committed.
fn tell_sent(app: &Inbox, asks: impl IntoIterator<Item = Ask>, open: &[bool]) {
    for (ask, _) in asks.into_iter().zip(open).filter(|(_, open)| **open) {
        app.tell_updated(&Ask { state: AskState::Sent, ..ask });
    }
}
