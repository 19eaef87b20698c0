//! How asks end without an answer, and how turns, sessions and agents end around them.

use std::time::Duration;

use handraise_agentctl::{AgentError, Ended};
use handraise_api::frame::action;
use serde_json::{Value, json};

use crate::{
    inbox::Inbox,
    support::{Place, stop_reason},
};

const SESSION: &str = "0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e";

fn system(outcome: &str, wire: Value, reason: &str) -> (String, String, Value, Value) {
    (outcome.into(), "system".into(), wire, json!(reason))
}

#[tokio::test]
async fn ac15_the_agent_takes_its_request_back() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "cancel-request"));
    inbox.opened().await;
    assert_eq!(inbox.settled().await, system("cancel", json!("cancel"), "request_cancelled"));
    assert_eq!(running.end_of_turn().await.0, "end_turn");
    assert_eq!(place.results(), [json!({"action": "cancel"})]);
}

#[tokio::test]
async fn d5_a_cancel_after_the_answer_changes_nothing() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "late"));
    let ask = inbox.opened().await;
    inbox.answer(&ask, &[("question_0", &["SQLite"], "")]).await;
    running.end_of_turn().await;
    assert_eq!(place.results(), [json!({"action": "accept", "content": {"question_0": "SQLite"}})]);
}

#[tokio::test]
async fn ac15_a_cancelled_turn_answers_every_open_ask_and_permission_at_once() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let mut settings = place.settings(&[], "ask-until-cancel");
    settings.session_id = Some(SESSION.to_owned());
    let running = inbox.run(settings);
    inbox.opened().await;
    inbox.opened().await;
    let reply = inbox.request(action::SESSION_CANCEL, json!({"session_id": SESSION})).await;
    assert_eq!(reply.get("error"), None, "{reply}");
    assert_eq!(inbox.settled().await, system("cancel", json!("cancel"), "turn_cancelled"));
    assert_eq!(inbox.settled().await.0, "cancel");
    let (reason, said) = running.end_of_turn().await;
    assert_eq!(reason, "cancelled");
    assert_eq!(said, "ask: {\"action\":\"cancel\"}\npermission: {\"outcome\":{\"outcome\":\"cancelled\"}}\n");
    let prompts = place.received_methods().iter().filter(|method| *method == "session/prompt").count();
    assert_eq!(prompts, 1);
}

#[tokio::test]
async fn a_prompt_that_ends_first_withdraws_its_asks() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "prompt-ends-first"));
    inbox.opened().await;
    assert_eq!(inbox.settled().await, system("withdrawn", json!("cancel"), "prompt_ended"));
    assert_eq!(running.end_of_turn().await.0, "end_turn");
    assert_eq!(place.results(), [json!({"action": "cancel"})]);
}

#[tokio::test]
async fn an_asynchronous_ask_outlives_its_prompt() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let mut settings = place.settings(&["--as", "@agentclientprotocol/codex-acp@1.13.0"], "unused");
    settings.prompt = None;
    settings.session_id = Some(SESSION.to_owned());
    let mut running = inbox.run(settings);
    prompt(&mut inbox, "async").await;
    let ask = inbox.opened().await;
    wait_for_state(&inbox, "idle", Some("end_turn")).await;
    let response = inbox.answer(&ask, &[("question_0", &["SQLite"], "")]).await;
    assert_eq!(response["payload"], json!({"success": true}), "{response}");
    assert_eq!(inbox.settled().await.0, "accept");
    running.stop();
    assert_eq!(running.end().await.0.unwrap(), Ended::Stopped);
    assert_eq!(place.results(), [json!({"action": "accept", "content": {"question_0": "SQLite"}})]);
}

#[tokio::test]
async fn ac20a_an_agent_that_exits_withdraws_its_asks_and_hears_nothing() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "exit-mid-ask"));
    inbox.opened().await;
    assert_eq!(inbox.settled().await, system("withdrawn", Value::Null, "agent_disconnected"));
    assert!(matches!(running.end().await.0, Err(AgentError::Ended { .. })));
    assert_eq!(place.results().len(), 0);
}

#[tokio::test]
async fn f7_a_shutdown_cancels_what_is_open_and_says_so_to_both_sides() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let mut running = inbox.run(place.settings(&[], "single"));
    inbox.opened().await;
    running.stop();
    assert_eq!(inbox.settled().await, system("cancel", json!("cancel"), "shutdown"));
    assert_eq!(stop_reason(running.end().await.0), "cancelled");
    assert_eq!(place.results(), [json!({"action": "cancel"})]);
    assert_eq!(place.received_methods().last().unwrap(), "session/cancel");
}

async fn prompt(inbox: &mut Inbox, text: &str) {
    // The session is announced once it is open.
    inbox.next(action::SESSION_UPDATED).await;
    let payload = json!({"session_id": SESSION, "text": text});
    let reply = inbox.request(action::SESSION_PROMPT, payload).await;
    assert_eq!(reply.get("error"), None, "{reply}");
}

async fn wait_for_state(inbox: &Inbox, state: &str, stop_reason: Option<&str>) {
    loop {
        let session = inbox.next(action::SESSION_UPDATED).await;
        if session["state"] == state && session["stop_reason"].as_str() == stop_reason {
            return;
        }
    }
}

#[tokio::test]
async fn prompts_come_from_the_inbox_and_the_transcript_goes_there() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let mut settings = place.settings(&[], "unused");
    settings.prompt = None;
    settings.session_id = Some(SESSION.to_owned());
    let mut running = inbox.run(settings);
    prompt(&mut inbox, "tools").await;
    wait_for_state(&inbox, "idle", Some("end_turn")).await;
    let foreign = json!({"session_id": "another", "text": "x"});
    assert_eq!(inbox.request(action::SESSION_PROMPT, foreign).await["error"]["code"], "NOT_FOUND");
    running.stop();
    let (ended, said) = running.end().await;
    assert_eq!(
        (ended.unwrap(), said),
        (Ended::Stopped, String::new()),
        "stdout is not for the inbox's readers"
    );
    let entries: Vec<(String, String, u64)> = inbox
        .all(action::SESSION_MESSAGE)
        .iter()
        .map(|payload| &payload["message"])
        .map(|m| {
            (
                m["type"].as_str().unwrap().into(),
                m["text"].as_str().unwrap().into(),
                m["seq"].as_u64().unwrap(),
            )
        })
        .collect();
    let texts: Vec<(&str, &str)> = entries.iter().map(|(kind, text, _)| (&**kind, &**text)).collect();
    assert_eq!(
        texts,
        [
            ("user_text", "tools"),
            ("thought", "Where is the build file?"),
            ("plan", "0 of 2 done"),
            ("tool_call", "List files"),
            ("tool_call", "List files"),
            ("tool_call", "List files"),
            ("agent_text", "Done.\n"),
            ("turn_ended", ""),
        ]
    );
    assert!(entries.windows(2).all(|pair| pair[0].2 + 1 == pair[1].2), "numbered without a gap");
}

#[tokio::test]
async fn a_second_prompt_during_a_turn_is_turned_away() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let mut settings = place.settings(&[], "wait-for-cancel");
    settings.session_id = Some(SESSION.to_owned());
    let running = inbox.run(settings);
    running.said("waiting").await;
    let payload = json!({"session_id": SESSION, "text": "more"});
    let reply = inbox.request(action::SESSION_PROMPT, payload).await;
    assert_eq!(reply["error"]["code"], "BAD_REQUEST", "{reply}");
    inbox.request(action::SESSION_CANCEL, json!({"session_id": SESSION})).await;
    assert_eq!(running.end_of_turn().await.0, "cancelled");
}

#[tokio::test]
async fn what_the_agent_said_before_it_asked_stands_before_the_question() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let _running = inbox.run(place.settings(&[], "single"));
    inbox.opened().await;
    let said: Vec<Value> = inbox.all(action::SESSION_MESSAGE);
    assert_eq!(said.last().unwrap()["message"]["text"], "I need a decision.\n");
}

#[tokio::test]
async fn an_agent_is_not_silent_while_a_human_is_waited_for() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let mut settings = place.settings(&[], "single");
    settings.answer_timeout = Duration::from_secs(3599);
    settings.idle_timeout = Duration::from_secs(3600);
    let running = inbox.run(settings);
    let ask = inbox.opened().await;
    inbox.clock.advance(Duration::from_secs(3598));
    inbox.answer(&ask, &[("question_0", &["SQLite"], "")]).await;
    // Had the clock not started anew with the answer, this would be more than an hour of silence.
    inbox.clock.advance(Duration::from_secs(3));
    assert_eq!(running.end_of_turn().await.0, "end_turn");
}

#[tokio::test]
async fn an_agent_without_anything_to_do_is_stopped() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let mut settings = place.settings(&[], "unused");
    settings.prompt = None;
    let running = inbox.run(settings);
    inbox.next(action::SESSION_UPDATED).await;
    inbox.clock.advance(Duration::from_secs(1200));
    assert_eq!(running.end().await.0.unwrap(), Ended::Idle);
}
