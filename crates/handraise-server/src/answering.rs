//! From an operator's answer to the holder's verdict (acp.md, "Holder stream"; AC-12g, AC-20a, AC-20b, AC-61).
//!
//! The inbox adjudicates nothing: every submission is committed, forwarded, also for an ask that is believed settled,
//! and what is shown is the holder's word. Nothing is sent twice.

use std::sync::Arc;

use handraise_api::{
    ask::{Answer, AnswerRequest, Ask, Settlement},
    error::{ErrorBody, ErrorCode},
    frame::{AskSettled, Ended, HolderSettlement, Respond, RespondBatch, RespondPermission, action},
    words::{AskState, Outcome, Provenance, Rail, Source},
};
use handraise_store::{Ending, NewSubmission, Replied, Settled, StoreError, StoredSubmission, Verdict};
use handraise_transport::ids;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::SignedDuration;
use serde::Serialize;
use sha2::Sha256;

use crate::{
    access::hex,
    extract::Caller,
    failure::Failure,
    hub::{Connection, Lost, Reply},
    inbox::{App, Inbox},
    peer::Peer,
};

/// How much earlier than its answer a question must have been painted for a human to have read it (S15).
const READ_MILLIS: i64 = 350;
/// Longest reason for a skip, in bytes.
const LONGEST_REASON: usize = 4 * 1024;
/// Most answers in one submission: a form has at most 200 questions (form.md).
const MOST_ANSWERS: usize = 1_000;
/// The question of a permission ask, and of nothing else (acp.md, "Agent life").
const PERMISSION: &str = "permission";
/// What a stored secret shows (S33).
const MASK: &str = "•";

/// Forwards one answer and waits for the verdict.
pub(crate) async fn answer(
    app: App,
    caller: Caller,
    id: String,
    request: AnswerRequest,
) -> Result<Ask, Failure> {
    check(&request)?;
    let Some((ask, instance)) = app.store.ask(&id).await? else { return Err(unknown(&id)) };
    let new = submission(&app, &caller, &ask, &request).await?;
    let frame = Forwarded::new(&ask, &new, request)?;
    let Some(connection) = app.hub.connection(&instance) else {
        return match ask.settlement {
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
    let mut rows = Vec::new();
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
        let new = submission(&app, &caller, &ask, &request).await?;
        if caller.grant.token.page_session && new.provenance != Provenance::Human {
            return Err(Failure::invalid_one("", "painted", "every row of a batch must have been on screen"));
        }
        let respond = respond(&new, request);
        rows.push((new, respond));
    }
    let connection = owner.as_deref().and_then(|owner| app.hub.connection(owner));
    let Some(connection) = connection else { return Err(Failure::holder_not_connected()) };
    let patience = app.settings.timing.verdict;
    let task = app.tasks.spawn(forward_batch(Arc::clone(&app), connection, rows));
    match tokio::time::timeout(patience, task).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(error)) => Err(Failure::internal("the batch could not be forwarded", &error)),
        Err(_) => Err(Failure::verdict_unknown()),
    }
}

fn unknown(id: &str) -> Failure {
    Failure::ended(ErrorBody::new(ErrorCode::NotFound, format!("there is no ask '{id}'")), None, false)
}

fn check(request: &AnswerRequest) -> Result<(), Failure> {
    if request.answers.len() > MOST_ANSWERS {
        return Err(Failure::bad_request(format!("a submission has at most {MOST_ANSWERS} answers")));
    }
    if request.reject_reason.len() > LONGEST_REASON {
        return Err(Failure::bad_request(format!("a reason has at most {LONGEST_REASON} bytes")));
    }
    Ok(())
}

/// The row of a submission: who, from where, what, without secrets.
async fn submission(
    app: &Inbox,
    caller: &Caller,
    ask: &Ask,
    request: &AnswerRequest,
) -> Result<NewSubmission, Failure> {
    let token = &caller.grant.token;
    let is_secret =
        |question: &str| ask.content.questions.iter().any(|known| known.secret && known.id == question);
    let holds_secrets = request.answers.iter().any(|answer| is_secret(&answer.question_id));
    Ok(NewSubmission {
        id: ids::mint(),
        ask: ask.id.clone(),
        token: token.id.clone(),
        by: token.name.clone(),
        provenance: provenance(app, caller, &ask.id).await?,
        answers: request
            .answers
            .iter()
            .map(|answer| if is_secret(&answer.question_id) { masked(answer) } else { answer.clone() })
            .collect(),
        rejected: request.rejected,
        reject_reason: request.reject_reason.clone(),
        fingerprint: fingerprint(request, holds_secrets.then_some(&app.pepper)),
    })
}

fn masked(answer: &Answer) -> Answer {
    let mask = |text: &String| if text.is_empty() { String::new() } else { MASK.to_owned() };
    Answer {
        question_id: answer.question_id.clone(),
        selected_options: answer.selected_options.iter().map(mask).collect(),
        custom_text: mask(&answer.custom_text),
    }
}

/// Equal for equal submissions. One that holds secrets is keyed, so that it cannot be guessed from the database;
/// the key is the process's own, so that such a repeat is not recognised after a restart.
fn fingerprint(request: &AnswerRequest, pepper: Option<&[u8; 32]>) -> String {
    let mut answers: Vec<Answer> = request.answers.clone();
    for answer in &mut answers {
        answer.selected_options.sort();
        answer.custom_text = answer.custom_text.trim().to_owned();
    }
    answers.retain(|answer| !answer.selected_options.is_empty() || !answer.custom_text.is_empty());
    answers.sort_by(|a, b| a.question_id.cmp(&b.question_id));
    let text = serde_json::to_vec(&(answers, request.rejected)).unwrap_or_default();
    let key: &[u8] = pepper.map_or(b"no secrets", |pepper| pepper);
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mut mac) => {
            mac.update(&text);
            hex(&mac.finalize().into_bytes())
        }
        // No key length is refused; a unique text would only never compare equal.
        Err(_) => ids::mint(),
    }
}

/// Who stands behind an answer (S15): a human only where this session itself has had the question on screen long
/// enough: a signed-in page, or a terminal on this machine's socket.
async fn provenance(app: &Inbox, caller: &Caller, ask: &str) -> Result<Provenance, StoreError> {
    let token = &caller.grant.token;
    let surface = match (token.page_session, caller.peer) {
        (true, _) => "page",
        (false, Peer::Socket) => "terminal",
        (false, Peer::Tcp(_)) => return Ok(Provenance::Client),
    };
    let painted = app.store.painted(ask, &token.id).await?;
    let now = i64::try_from(app.now().boot.as_millis()).unwrap_or(i64::MAX);
    let read = painted.is_some_and(|painted| {
        painted.surface == surface && now.saturating_sub(painted.boot_millis) >= READ_MILLIS
    });
    Ok(if read { Provenance::Human } else { Provenance::Client })
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
    fn new(ask: &Ask, new: &NewSubmission, request: AnswerRequest) -> Result<Self, Failure> {
        if ask.content.source != Source::Permission {
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
            Self::Elicitation(respond) => connection.request(action::RESPOND, respond).await,
            Self::Permission(respond) => connection.request(action::RESPOND_PERMISSION, respond).await,
        }
    }
}

fn not_one_option() -> Failure {
    Failure::invalid_one(PERMISSION, "one_option", "a permission takes exactly one option, or a skip")
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
        let sent = app.store.submit(app.now(), std::slice::from_ref(&new)).await?;
        app.metrics.submitted();
        tracing::info!(ask.id = new.ask, submission.id = new.id, by = new.by, "a submission is forwarded");
        let (reply, ()) = tokio::join!(frame.send(&connection), tell_sent(&app, &sent));
        match reply {
            Ok(reply) => judged(&app, &connection.instance, &new, reply).await,
            Err(Lost::NotWritten) => {
                resolve(&app, &new.id, Verdict::NotDelivered, None).await?;
                Err(Failure::holder_not_connected())
            }
            Err(Lost::Unknown) => Err(Failure::verdict_unknown()),
        }
    }
    .await;
    connection.forwarded(&new.id);
    outcome
}

async fn forward_batch(
    app: App,
    connection: Arc<Connection>,
    rows: Vec<(NewSubmission, Respond)>,
) -> Result<Vec<Ask>, Failure> {
    let (news, submissions): (Vec<NewSubmission>, Vec<Respond>) = rows.into_iter().unzip();
    for new in &news {
        connection.forwarding(&new.id);
    }
    let outcome = async {
        let sent = app.store.submit(app.now(), &news).await?;
        let frame = RespondBatch { submissions };
        let (reply, ()) =
            tokio::join!(connection.request(action::RESPOND_BATCH, &frame), tell_sent(&app, &sent));
        let (verdict, failure) = match reply {
            Ok(Reply { error: None, .. }) => {
                let mut asks = Vec::new();
                for new in &news {
                    app.metrics.submitted();
                    asks.push(delivered(&app, &new.id).await?);
                }
                return Ok(asks);
            }
            Ok(Reply { error: Some(error), payload }) => {
                let ended = payload.and_then(|payload| serde_json::from_str::<Ended>(payload.get()).ok());
                if let Some(ended) = ended.and_then(|ended| ended.ended) {
                    settle_by_holder(&app, &connection.instance, &ended).await?;
                }
                (Verdict::Refused, Failure::of_holder(error))
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
    for new in &news {
        connection.forwarded(&new.id);
    }
    outcome
}

async fn tell_sent(app: &Inbox, asks: &[String]) {
    for id in asks {
        if let Ok(Some((ask, instance))) = app.store.ask(id).await
            && ask.state == AskState::Sent
        {
            app.tell_updated(&app.shown(ask, &instance));
        }
    }
}

/// Notes what the holder said to a submission, and says it to the operator.
async fn judged(app: &App, instance: &str, new: &NewSubmission, reply: Reply) -> Result<Ask, Failure> {
    let Reply { payload, error } = reply;
    let Some(error) = error else { return delivered(app, &new.id).await };
    match error.code {
        ErrorCode::NotFound => {
            let ended = payload.and_then(|payload| serde_json::from_str::<Ended>(payload.get()).ok());
            let ended = ended.and_then(|ended| ended.ended);
            let ask = not_found(app, instance, &new.id, &new.ask, ended.as_ref()).await?;
            let winner = ended.and_then(|ended| ended.submission_id);
            if let Some(winner) = winner
                && let Some(winner) = app.store.submission(&winner).await?
                && winner.token == new.token
                && winner.fingerprint == new.fingerprint
                && winner.ask == new.ask
            {
                return Ok(Ask { replayed: true, ..ask });
            }
            let recorded = was_withdrawn(ask.settlement.as_ref());
            Err(Failure::ended(error, ask.settlement, recorded))
        }
        ErrorCode::Invalid => {
            resolve(app, &new.id, Verdict::Invalid, None).await?;
            Err(Failure::invalid(error))
        }
        _ => {
            tracing::warn!(ask.id = new.ask, code = ?error.code, "a holder refused a submission");
            resolve(app, &new.id, Verdict::Refused, None).await?;
            Err(Failure::of_holder(error))
        }
    }
}

async fn delivered(app: &App, submission: &str) -> Result<Ask, Failure> {
    let stored = app.store.submission(submission).await?;
    let ending = stored.map(|stored| Ending::delivered(&stored, app.now().wall));
    match resolve(app, submission, Verdict::Delivered, ending.as_ref()).await? {
        Some(ask) => Ok(ask),
        None => Err(Failure::not_found("submission", submission)),
    }
}

/// The holder does not know the ask as open: its word on how it ended is taken up.
async fn not_found(
    app: &App,
    instance: &str,
    submission: &str,
    ask: &str,
    ended: Option<&AskSettled>,
) -> Result<Ask, Failure> {
    // Noted first, so that nobody takes the submission for the winner of an ask that it lost.
    resolve(app, submission, Verdict::NotFound, None).await?;
    if let Some(ended) = ended.filter(|ended| ended.pending_id == ask) {
        settle_by_holder(app, instance, ended).await?;
    } else {
        let ending = withdrawn(app, "unknown_to_holder");
        if let Settled::Now(ended) = app.store.settle(ask, Some(instance), &ending).await? {
            app.tell_settled(&app.shown(*ended, instance)).await;
        }
    }
    match app.store.ask(ask).await? {
        Some((ask, instance)) => Ok(app.shown(ask, &instance)),
        None => Err(unknown(ask)),
    }
}

/// Notes a verdict and tells what changed by it.
async fn resolve(
    app: &App,
    submission: &str,
    verdict: Verdict,
    ending: Option<&Ending>,
) -> Result<Option<Ask>, Failure> {
    let replied = app.store.reply(app.now(), submission, verdict, ending).await?;
    let Some(Replied { ask, settled_now, reopened }) = replied else { return Ok(None) };
    let instance = app.store.ask(&ask.id).await?.map(|(_, instance)| instance).unwrap_or_default();
    let ask = app.shown(ask, &instance);
    if settled_now {
        app.tell_settled(&ask).await;
    } else if reopened {
        app.tell_updated(&ask);
    }
    Ok(Some(ask))
}

/// An answer to an ask that ended, of a holder that is gone: kept as what the operator chose, and not delivered.
async fn record(app: &App, new: NewSubmission, settlement: Settlement) -> Result<Ask, Failure> {
    let recorded = was_withdrawn(Some(&settlement));
    app.store.submit(app.now(), std::slice::from_ref(&new)).await?;
    app.store.reply(app.now(), &new.id, Verdict::NotFound, None).await?;
    let message = format!("ask {} had ended as {}", new.ask, settlement.outcome.as_str());
    Err(Failure::ended(ErrorBody::new(ErrorCode::NotFound, message), Some(settlement), recorded))
}

fn was_withdrawn(settlement: Option<&Settlement>) -> bool {
    settlement.is_some_and(|how| how.outcome == Outcome::Withdrawn)
}

/// How the inbox itself ends an ask whose request is known to have died.
pub(crate) fn withdrawn(app: &Inbox, reason: &str) -> Ending {
    Ending {
        outcome: Outcome::Withdrawn,
        provenance: Provenance::System,
        rail: Rail::Inbox,
        wire: None,
        by: None,
        at: app.now().wall,
        reason: Some(reason.to_owned()),
        submission_id: None,
    }
}

/// Takes up the holder's word that an ask ended (F7).
pub(crate) async fn settle_by_holder(
    app: &Inbox,
    instance: &str,
    said: &AskSettled,
) -> Result<Settled, StoreError> {
    const LONGEST: usize = 1_024;
    let HolderSettlement { outcome, provenance, rail, wire, reason, ago_ms } = &said.settlement;
    let now = app.now();
    let ago = SignedDuration::from_millis(i64::try_from(*ago_ms).unwrap_or(i64::MAX));
    let ending = Ending {
        outcome: *outcome,
        // Only the inbox says `human` (S15).
        provenance: if *provenance == Provenance::Human { Provenance::Client } else { *provenance },
        rail: *rail,
        wire: *wire,
        by: None,
        at: now.wall.saturating_sub(ago).unwrap_or(now.wall),
        reason: reason.as_ref().map(|reason| {
            let end = reason.floor_char_boundary(LONGEST);
            reason.get(..end).unwrap_or_default().to_owned()
        }),
        submission_id: said.submission_id.clone(),
    };
    let settled = app.store.settle_by(now, &said.pending_id, instance, &ending).await?;
    if let Settled::Now(ask) = &settled {
        app.tell_settled(&app.shown((**ask).clone(), instance)).await;
    }
    Ok(settled)
}

#[derive(Serialize)]
struct VerdictQuery<'a> {
    pending_id: &'a str,
    submission_id: &'a str,
}

/// Asks a holder that came back what became of submissions whose verdict is unknown. `gone` are those of them whose
/// ask its snapshot does not have: unseen there means withdrawn.
pub(crate) async fn ask_for_verdicts(app: App, connection: Arc<Connection>, gone: Vec<String>) {
    const AT_ONCE: u32 = 10_000;
    let unresolved = match app.store.unresolved(&connection.instance, AT_ONCE).await {
        Ok(unresolved) => unresolved,
        Err(error) => {
            tracing::error!(%error, "unresolved submissions could not be read");
            return;
        }
    };
    for submission in unresolved {
        if connection.is_forwarding(&submission.id) {
            continue;
        }
        let query = VerdictQuery { pending_id: &submission.ask, submission_id: &submission.id };
        let Ok(reply) = connection.request(action::VERDICT, &query).await else { return };
        if let Err(failure) = verdict_came(&app, &connection, &submission, reply, &gone).await {
            tracing::error!(?failure, submission.id, "a verdict could not be noted");
        }
    }
}

async fn verdict_came(
    app: &App,
    connection: &Connection,
    submission: &StoredSubmission,
    reply: Reply,
    gone: &[String],
) -> Result<(), Failure> {
    let Reply { payload, error } = reply;
    let code = error.map(|error| error.code);
    tracing::info!(ask.id = submission.ask, submission.id, ?code, "a verdict came after a lost stream");
    match code {
        None => {
            delivered(app, &submission.id).await?;
        }
        Some(ErrorCode::NotFound) => {
            let ended = payload.and_then(|payload| serde_json::from_str::<Ended>(payload.get()).ok());
            let ended = ended.and_then(|ended| ended.ended);
            not_found(app, &connection.instance, &submission.id, &submission.ask, ended.as_ref()).await?;
        }
        Some(ErrorCode::Invalid) => {
            resolve(app, &submission.id, Verdict::Invalid, None).await?;
        }
        Some(ErrorCode::Unseen) => {
            let ending = gone.contains(&submission.ask).then(|| withdrawn(app, "not_in_snapshot"));
            resolve(app, &submission.id, Verdict::Unseen, ending.as_ref()).await?;
        }
        Some(_) => {
            resolve(app, &submission.id, Verdict::Refused, None).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(question: &str, selected: &[&str], text: &str) -> AnswerRequest {
        AnswerRequest {
            answers: vec![Answer {
                question_id: question.into(),
                selected_options: selected.iter().map(|&s| s.into()).collect(),
                custom_text: text.into(),
            }],
            ..AnswerRequest::default()
        }
    }

    #[test]
    fn equal_submissions_have_equal_fingerprints_whatever_the_click_order() {
        let print = |request: &AnswerRequest| fingerprint(request, None);
        assert_eq!(print(&request("q", &["a", "b"], " x ")), print(&request("q", &["b", "a"], "x")));
        assert_eq!(print(&request("q", &[], " ")), print(&AnswerRequest::default()));
        assert_ne!(print(&request("q", &["a"], "")), print(&request("q", &["b"], "")));
        assert_ne!(print(&request("q", &["a"], "")), print(&request("r", &["a"], "")));
        let skip = AnswerRequest { rejected: true, ..AnswerRequest::default() };
        assert_ne!(print(&skip), print(&AnswerRequest::default()));
    }

    #[test]
    fn s33_a_fingerprint_of_secrets_is_keyed_by_the_process() {
        let secret = request("password", &[], "hunter2");
        assert_ne!(fingerprint(&secret, Some(&[1; 32])), fingerprint(&secret, Some(&[2; 32])));
        assert_ne!(fingerprint(&secret, Some(&[1; 32])), fingerprint(&secret, None));
    }

    #[test]
    fn s33_a_masked_answer_says_only_that_there_is_one() {
        let shown = masked(&request("password", &["one"], "hunter2").answers[0]);
        assert_eq!((shown.selected_options.as_slice(), &*shown.custom_text), (&["•".to_owned()][..], "•"));
        assert_eq!(masked(&request("password", &[], "").answers[0]).custom_text, "");
    }
}
