//! The flag `features.acpElicitation`: what is advertised, and what is declined.

use handraise_api::frame::action;
use serde_json::{Value, json};

use crate::{inbox::Inbox, support::Place};

/// The `clientCapabilities` that the agent received, byte for byte.
async fn advertised(agent_id: &str, flag: bool, overridden: Option<bool>) -> String {
    let inbox = Inbox::with_flag(flag).await;
    let place = Place::new();
    let mut settings = place.settings(&[], "never-asks");
    settings.agent_id = Some(agent_id.to_owned());
    settings.elicitation = overridden;
    inbox.run(settings).end_of_turn().await;
    let line = place.received_lines().remove(0);
    let from = line.find("\"clientCapabilities\":").unwrap() + "\"clientCapabilities\":".len();
    let to = line.find(",\"clientInfo\"").unwrap();
    line[from..to].to_owned()
}

const CLAUDE_OFF: &str =
    r#"{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":false,"_meta":{"terminal_output":true}}"#;
const CURSOR_OFF: &str = r#"{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":false}"#;

#[tokio::test]
async fn ac01_with_the_flag_forms_are_advertised_as_an_object() {
    let capabilities: Value = serde_json::from_str(&advertised("claude-acp", true, None).await).unwrap();
    assert_eq!(capabilities["elicitation"], json!({"form": {}}));
}

#[tokio::test]
async fn ac02_without_the_flag_capabilities_are_byte_for_byte_those_of_before() {
    assert_eq!(advertised("claude-acp", false, None).await, CLAUDE_OFF);
    assert_eq!(advertised("cursor-agent", false, None).await, CURSOR_OFF);
}

#[tokio::test]
async fn ac02a_the_flag_adds_forms_and_nothing_else() {
    let off = CURSOR_OFF.strip_suffix('}').unwrap();
    assert_eq!(
        advertised("cursor-agent", true, None).await,
        format!("{off},\"elicitation\":{{\"form\":{{}}}}}}")
    );
}

#[tokio::test]
async fn f5_the_command_line_wins_over_the_inboxs_flag() {
    assert_eq!(advertised("claude-acp", true, Some(false)).await, CLAUDE_OFF);
    assert!(advertised("claude-acp", false, Some(true)).await.contains("elicitation"));
}

#[tokio::test]
async fn ac20_f5_without_the_flag_an_ask_is_declined_and_reaches_nobody() {
    let inbox = Inbox::with_flag(false).await;
    let place = Place::new();
    assert_eq!(inbox.run(place.settings(&[], "single")).end_of_turn().await.0, "end_turn");
    inbox.hung_up().await;
    assert_eq!(place.results(), [json!({"action": "decline"})]);
    assert_eq!(inbox.all(action::ASK_OPENED).len(), 0);
    let kinds: Vec<Value> =
        inbox.all(action::SESSION_MESSAGE).iter().map(|payload| payload["message"]["type"].clone()).collect();
    assert!(!kinds.contains(&json!("clarification_request")), "{kinds:?}");
}

#[tokio::test]
async fn ac19_an_agent_that_never_asks_notices_nothing_but_the_capability() {
    let mut runs = Vec::new();
    for flag in [true, false] {
        let inbox = Inbox::with_flag(flag).await;
        let place = Place::new();
        let (reason, said) = inbox.run(place.settings(&[], "never-asks")).end_of_turn().await;
        inbox.hung_up().await;
        let states: Vec<Value> =
            inbox.all(action::SESSION_UPDATED).iter().map(|session| session["state"].clone()).collect();
        let mut kinds: Vec<Value> =
            inbox.all(action::SESSION_MESSAGE).iter().map(|entry| entry["message"]["type"].clone()).collect();
        kinds.dedup();
        let mut received = place.received();
        let capabilities = received[0]["params"]["clientCapabilities"].take();
        assert_eq!(capabilities.get("elicitation").is_some(), flag);
        let frames: Vec<Value> = received
            .into_iter()
            .map(|mut frame| {
                // Ids are random, working directories differ.
                frame["id"] = json!(null);
                if frame["params"].get("cwd").is_some() {
                    frame["params"]["cwd"] = json!(null);
                }
                frame
            })
            .collect();
        runs.push((reason, said, states, kinds, frames, inbox.all(action::ASK_OPENED).len()));
    }
    assert_eq!(runs[0], runs[1]);
    assert_eq!(runs[0].5, 0);
}
