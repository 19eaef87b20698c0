//! The row of a submission: who sent it, what stands behind them, and what may be kept of it.

use handraise_api::{
    ask::{Answer, AnswerRequest},
    words::Provenance,
};
use handraise_store::{NewSubmission, StoreError};
use handraise_transport::ids;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::{access::hex, extract::Caller, failure::Failure, inbox::Inbox, open::Facts, peer::Peer};

/// How much earlier than its answer a question must have been painted for a human to have read it (S15).
const READ_MILLIS: i64 = 350;
/// What a stored secret shows (S33).
const MASK: &str = "•";

/// The row of a submission: who, from where, what, without secrets.
pub(super) async fn submission(
    app: &Inbox,
    caller: &Caller,
    ask: &str,
    facts: &Facts,
    request: &AnswerRequest,
) -> Result<NewSubmission, Failure> {
    let token = &caller.grant.token;
    let is_secret = |answer: &Answer| facts.is_secret(&answer.question_id);
    let holds_secrets = request.answers.iter().any(is_secret);
    Ok(NewSubmission {
        id: ids::mint(),
        ask: ask.to_owned(),
        token: token.id.clone(),
        by: token.name.clone(),
        provenance: provenance(app, caller, ask).await?,
        answers: request
            .answers
            .iter()
            .map(|answer| if is_secret(answer) { masked(answer) } else { answer.clone() })
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
