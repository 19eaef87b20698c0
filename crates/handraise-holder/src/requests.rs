//! What the inbox asks of this holder: submissions to judge, verdicts to repeat, commands to hand on.

use std::{collections::VecDeque, future::Future, pin::Pin};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{Respond, RespondBatch, RespondPermission, SessionCancel, SessionPrompt, VerdictQuery, action},
};
use handraise_core::{
    Answer, AskId, Submission, SubmissionId,
    holder::{Route, Verdict},
};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    Command, Reply,
    settled::Answered,
    state::Shared,
    wire::{self, Incoming, shorten},
};

/// Commands of the inbox that wait to be taken up.
const MAX_COMMANDS: usize = 64;
/// Submissions in one batch.
const MAX_BATCH: usize = 1_000;

/// Why a token's acceptance of some asks does not count.
const PERSONS_ALONE: &str =
    "only a page or terminal that has shown the question to a person may accept this ask";

/// The one question of a permission ask (acp.md, "Agent life").
const PERMISSION_QUESTION: &str = "permission";

type CommandAnswer = (String, String, Result<(), ErrorBody>);

/// The requests of one connection's inbox, and the responses that wait to be written.
pub(crate) struct Requests<'a> {
    shared: &'a Shared,
    pub(crate) replies: VecDeque<Message>,
    commands: FuturesUnordered<Pin<Box<dyn Future<Output = CommandAnswer> + Send>>>,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, replies: VecDeque::new(), commands: FuturesUnordered::new() }
    }

    pub(crate) fn take(&mut self, frame: &Incoming<'_>) {
        // A request without an id cannot be answered; it is carried out all the same.
        let id = frame.id.as_deref().unwrap_or("");
        if let Some(reply) = self.answer(id, frame) {
            self.replies.push_back(Message::text(reply));
        }
    }

    /// Carries a request out. `None`: its response comes later.
    fn answer(&mut self, id: &str, frame: &Incoming<'_>) -> Option<String> {
        let name = frame.action.as_ref();
        let result = match name {
            action::RESPOND => frame.payload().map(|respond| Some(self.respond(id, name, respond))),
            action::RESPOND_PERMISSION => {
                frame.payload().map(|respond| Some(self.respond_permission(id, name, respond)))
            }
            action::RESPOND_BATCH => frame.payload().map(|batch| Some(self.respond_batch(id, name, batch))),
            action::VERDICT => frame.payload().map(|query| Some(self.verdict(id, name, &query))),
            action::SESSION_PROMPT => frame.payload().map(|SessionPrompt { session_id, text }| {
                self.command(id, name, |reply| Command::Prompt { session_id, text, reply })
            }),
            action::SESSION_CANCEL => frame.payload().map(|SessionCancel { session_id }| {
                self.command(id, name, |reply| Command::Cancel { session_id, reply })
            }),
            unknown => {
                let message = format!("this holder knows no action `{}`", shorten(unknown));
                let error = ErrorBody::new(ErrorCode::UnknownAction, message);
                return Some(wire::failure(id, &shorten(unknown), error));
            }
        };
        // The error may quote the payload, which may hold an answer: only its place is told.
        result.unwrap_or_else(|error| {
            let message = format!("the payload of `{name}` cannot be read at column {}", error.column());
            Some(bad_request(id, name, message))
        })
    }

    fn respond(&self, id: &str, name: &str, respond: Respond) -> String {
        match submission(respond) {
            Ok(submitted) => self.submit(id, name, submitted, Route::Elicitation),
            Err(message) => bad_request(id, name, message),
        }
    }

    fn respond_permission(&self, id: &str, name: &str, respond: RespondPermission) -> String {
        let RespondPermission { pending_id, submission_id, option_id, by, provenance } = respond;
        let rejected = option_id.is_none();
        let answers = option_id.map(|option| handraise_api::ask::Answer {
            question_id: PERMISSION_QUESTION.into(),
            selected_options: vec![option],
            custom_text: String::new(),
        });
        let answers = answers.into_iter().collect();
        let reject_reason = String::new();
        match submission(Respond {
            pending_id,
            submission_id,
            answers,
            rejected,
            reject_reason,
            by,
            provenance,
        }) {
            Ok(submitted) => self.submit(id, name, submitted, Route::Permission),
            Err(message) => bad_request(id, name, message),
        }
    }

    fn submit(&self, id: &str, name: &str, submitted: Submitted, route: Route) -> String {
        let Submitted { ask, submission, answered } = submitted;
        self.shared.change(|state, now| {
            if answered.falls_short_of(state.takes_persons_alone(&ask), &submission) {
                return wire::verdict(id, name, &ask, Verdict::Unsuitable(PERSONS_ALONE), now);
            }
            let (engine, courier) = state.adjudicator();
            let verdict = engine.submit(now, &ask, &submission, route, courier);
            tracing::debug!(ask.id = %ask, submission.id = %submission.id, verdict = word(&verdict), "submission");
            if verdict == Verdict::Delivered {
                state.answerers.insert(ask.clone(), answered);
            }
            wire::verdict(id, name, &ask, verdict, now)
        })
    }

    fn respond_batch(&self, id: &str, name: &str, batch: RespondBatch) -> String {
        if batch.submissions.len() > MAX_BATCH {
            return bad_request(id, name, format!("a batch has at most {MAX_BATCH} submissions"));
        }
        let submissions: Result<Vec<_>, _> = batch.submissions.into_iter().map(submission).collect();
        let (submissions, answerers): (Vec<_>, Vec<_>) = match submissions {
            Ok(submitted) => submitted.into_iter().map(|it| ((it.ask, it.submission), it.answered)).unzip(),
            Err(message) => return bad_request(id, name, message),
        };
        self.shared.change(|state, now| {
            let short = submissions.iter().zip(&answerers).find(|((ask, submission), answered)| {
                answered.falls_short_of(state.takes_persons_alone(ask), submission)
            });
            if let Some(((ask, _), _)) = short {
                return wire::verdict(id, name, ask, Verdict::Unsuitable(PERSONS_ALONE), now);
            }
            let (engine, courier) = state.adjudicator();
            match engine.submit_batch(now, &submissions, courier) {
                Ok(()) => {
                    for ((ask, _), answered) in submissions.iter().zip(answerers) {
                        state.answerers.insert(ask.clone(), answered);
                    }
                    wire::success(id, name)
                }
                Err((index, verdict)) => match submissions.get(index) {
                    Some((ask, _)) => wire::verdict(id, name, ask, verdict, now),
                    None => bad_request(id, name, "the batch could not be taken".into()),
                },
            }
        })
    }

    fn verdict(&self, id: &str, name: &str, query: &VerdictQuery) -> String {
        let ids = (AskId::new(&*query.pending_id), SubmissionId::new(&*query.submission_id));
        let (Ok(ask), Ok(submission)) = ids else {
            return bad_request(id, name, "pending_id or submission_id is no id".into());
        };
        self.shared.change(|state, now| {
            let (engine, courier) = state.adjudicator();
            let verdict = engine.verdict(now, &ask, &submission, courier);
            tracing::debug!(ask.id = %ask, submission.id = %submission, verdict = word(&verdict), "verdict asked");
            wire::verdict(id, name, &ask, verdict, now)
        })
    }

    /// Hands a command to whoever runs the sessions; its response comes when they reply.
    fn command(&self, id: &str, name: &str, command: impl FnOnce(Reply) -> Command) -> Option<String> {
        let (sender, answer) = oneshot::channel();
        let nobody = || ErrorBody::new(ErrorCode::NotFound, "this holder runs no sessions");
        let busy =
            || ErrorBody::new(ErrorCode::LimitExceeded, "too many commands wait in this holder; try again");
        let sent = self.shared.look(|state| match &state.commands {
            _ if self.commands.len() >= MAX_COMMANDS => Err(busy()),
            None => Err(nobody()),
            Some(commands) => commands.try_send(command(Reply(sender))).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => busy(),
                mpsc::error::TrySendError::Closed(_) => nobody(),
            }),
        });
        if let Err(error) = sent {
            return Some(wire::failure(id, name, error));
        }
        let (id, name) = (id.to_owned(), name.to_owned());
        self.commands.push(Box::pin(async move {
            let dropped =
                || Err(ErrorBody::new(ErrorCode::Internal, "the holder did not take the command up"));
            (id, name, answer.await.unwrap_or_else(|_| dropped()))
        }));
        None
    }

    /// Whether commands wait for whoever carries them out.
    pub(crate) fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Waits until a command was carried out, and lets its response wait to be written.
    pub(crate) async fn command_answered(&mut self) {
        let Some((id, name, result)) = self.commands.next().await else { return };
        self.replies.push_back(Message::text(match result {
            Ok(()) => wire::success(&id, &name),
            Err(error) => wire::failure(&id, &name, error),
        }));
    }
}

/// A submission, and who sent it by the inbox's word: only the inbox writes `by` and `human` (S15).
struct Submitted {
    ask: AskId,
    submission: Submission,
    answered: Answered,
}

fn submission(respond: Respond) -> Result<Submitted, String> {
    let Respond { pending_id, submission_id, answers, rejected, reject_reason, by, provenance } = respond;
    let ask = AskId::new(pending_id).map_err(|error| format!("pending_id: {error}"))?;
    let id = SubmissionId::new(submission_id).map_err(|error| format!("submission_id: {error}"))?;
    let answers = answers.into_iter().map(Answer::from).collect();
    let answered =
        Answered { by: shorten(&by), provenance: provenance.into(), reject_reason: reject_reason.clone() };
    Ok(Submitted { ask, submission: Submission { id, answers, rejected, reject_reason }, answered })
}

fn bad_request(id: &str, name: &str, message: String) -> String {
    wire::failure(id, name, ErrorBody::new(ErrorCode::BadRequest, message))
}

/// A verdict for the log, which never holds an answer.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Delivered => "delivered",
        Verdict::Invalid(_) => "invalid",
        Verdict::Ended(_) => "ended",
        Verdict::Unseen => "unseen",
        Verdict::Unsuitable(_) => "unsuitable",
    }
}
