//! Questions at the wire: from the agent's request to the inbox, and the human's answer back into the same request.

use std::time::Duration;

use handraise_api::frame::action;
use serde_json::{Value, json};

use crate::{
    inbox::Inbox,
    support::{Place, eventually, stop_reason},
};

const CLAUDE: [&str; 2] = ["--as", "@agentclientprotocol/claude-agent-acp@0.65.0"];

/// Lets the scripted agent ask, answers its one ask, and returns the result that the agent received.
async fn answered(script: &str, answers: &[(&str, &[&str], &str)]) -> Value {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&CLAUDE, script));
    let ask = inbox.opened().await;
    let response = inbox.answer(&ask, answers).await;
    assert_eq!(response["payload"], json!({"success": true}), "{response}");
    assert_eq!(running.end_of_turn().await.0, "end_turn");
    let results = place.results();
    assert_eq!(results.len(), 1, "the request is answered exactly once: {results:?}");
    results.into_iter().next().unwrap()
}

fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

#[tokio::test]
async fn ac03_a_form_reaches_the_inbox_with_everything_that_the_human_needs() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let mut settings = place.settings(&CLAUDE, "single");
    settings.session_id = Some("0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e".to_owned());
    let _running = inbox.run(settings);
    let ask = inbox.opened().await;
    assert_eq!(ask["source"], "elicitation");
    assert_eq!(ask["session_id"], "0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e");
    assert_eq!(ask["tool_call_id"], "tool-42");
    assert_eq!(ask["message"], "Which database should the new service use?");
    assert_eq!(ask["client"], json!({"name": "@agentclientprotocol/claude-agent-acp", "version": "0.65.0"}));
    assert_eq!(ask["deadline_ms"], 600_000);
    assert_eq!(ask["on_deadline"], "decline");
    assert_eq!(
        (&ask["allows_partial"], &ask["allows_text_with_selection"]),
        (&json!(true), &json!(true)),
        "F6"
    );
    let questions = ask["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 1, "the companion is no question");
    assert_eq!((&questions[0]["id"], &questions[0]["kind"]), (&json!("question_0"), &json!("single")));
    assert_eq!(questions[0]["choices"][1]["preview"], "file:./app.db");
}

#[tokio::test]
async fn ac10_a_picked_option_goes_back_under_the_schemas_own_key() {
    let result = answered("single", &[("question_0", &["Postgres"], "")]).await;
    assert_eq!(result.to_string(), r#"{"action":"accept","content":{"question_0":"Postgres"}}"#);
}

#[tokio::test]
async fn ac11_text_goes_to_the_companion_that_the_marker_names() {
    let result = answered("freeform", &[("direction", &[], "straight on")]).await;
    assert_eq!(result, accept(&json!({"answer_freeform": "straight on"})));
}

#[tokio::test]
async fn ac11a_text_without_a_companion_goes_to_the_questions_own_key() {
    let result = answered("passthrough", &[("apiKey", &[], "k-1")]).await;
    assert_eq!(result, accept(&json!({"apiKey": "k-1"})));
}

#[tokio::test]
async fn ac12_ac55_f12_selections_go_back_in_declaration_order_whatever_the_click_order() {
    let result = answered("two", &[("question_1", &["prod", "dev"], "")]).await;
    assert_eq!(result, accept(&json!({"question_1": ["dev", "prod"]})));
}

#[tokio::test]
async fn ac12a_ac12i_text_beside_a_selection_is_trimmed_and_stands_alone() {
    let result = answered("single", &[("question_0", &["SQLite"], " CockroachDB ")]).await;
    assert_eq!(result, accept(&json!({"question_0_custom": "CockroachDB"})));
}

#[tokio::test]
async fn ac12b_nothing_answered_is_an_acceptance_without_content() {
    assert_eq!(answered("two", &[]).await.to_string(), r#"{"action":"accept","content":{}}"#);
}

#[tokio::test]
async fn ac12c_the_refusal_dialog_is_answered_with_its_const() {
    let result = answered("refusal", &[("choice", &["retry_fallback"], "")]).await;
    assert_eq!(result, accept(&json!({"choice": "retry_fallback"})));
}

#[tokio::test]
async fn ac12h_unanswered_questions_contribute_no_key() {
    let result = answered("eleven", &[("question_3", &["yes"], "")]).await;
    assert_eq!(result, accept(&json!({"question_3": "yes"})));
}

#[tokio::test]
async fn ac12j_whitespace_is_no_answer() {
    assert_eq!(answered("single", &[("question_0", &[], "  \n ")]).await, accept(&json!({})));
}

#[tokio::test]
async fn typed_answers_go_back_as_json_values() {
    let answers: &[(&str, &[&str], &str)] = &[
        ("email", &[], "ada@example.org"),
        ("ratio", &[], "0.5"),
        ("replicas", &[], "4"),
        ("public", &["true"], ""),
        ("tier", &["gold"], ""),
    ];
    let result = answered("typed", answers).await;
    let content =
        json!({"email": "ada@example.org", "ratio": 0.5, "replicas": 4, "public": true, "tier": "gold"});
    assert_eq!(result, accept(&content));
}

#[tokio::test]
async fn ac12d_eleven_questions_are_asked_in_order() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let _running = inbox.run(place.settings(&CLAUDE, "eleven"));
    let ask = inbox.opened().await;
    let ids: Vec<&str> = ask["questions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|question| question["id"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..11).map(|index| format!("question_{index}")).collect();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn ac12f_ac60_two_asks_with_equal_text_are_two_and_are_answered_independently() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "parallel"));
    let (first, second) = (inbox.opened().await, inbox.opened().await);
    assert_ne!(first["id"], second["id"]);
    assert_eq!(first["questions"], second["questions"]);
    inbox.answer(&second, &[("question_0", &["SQLite"], "")]).await;
    assert_eq!(inbox.settled().await.0, "accept");
    assert!(!running.is_over(), "the first still waits");
    inbox.answer(&first, &[("question_0", &["Postgres"], "")]).await;
    let (_, said) = running.end_of_turn().await;
    assert_eq!(
        said,
        "first: {\"action\":\"accept\",\"content\":{\"question_0\":\"Postgres\"}}\n\
         second: {\"action\":\"accept\",\"content\":{\"question_0\":\"SQLite\"}}\n"
    );
}

#[tokio::test]
async fn ac12g_ac61_a_second_submission_is_the_holders_not_found_and_the_agent_hears_once() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "single"));
    let ask = inbox.opened().await;
    inbox.answer(&ask, &[("question_0", &["Postgres"], "")]).await;
    let second = inbox.answer(&ask, &[("question_0", &["SQLite"], "")]).await;
    assert_eq!(second["error"]["code"], "NOT_FOUND");
    assert_eq!(second["payload"]["ended"]["submission_id"], "submission-1");
    running.end_of_turn().await;
    assert_eq!(place.results(), [accept(&json!({"question_0": "Postgres"}))]);
}

#[tokio::test]
async fn ac13_the_same_prompt_goes_on_and_ends() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "demo"));
    let answers: [&[(&str, &[&str], &str)]; 5] = [
        &[("question_0", &["Postgres"], "")],
        &[("question_1", &["dev"], "")],
        &[("choice", &["cancelled"], "")],
        &[("apiKey", &[], "k")],
        &[("email", &[], "ada@example.org"), ("public", &["false"], "")],
    ];
    for answer in answers {
        let ask = inbox.opened().await;
        inbox.answer(&ask, answer).await;
    }
    let (reason, said) = running.end_of_turn().await;
    assert_eq!(reason, "end_turn");
    assert!(said.contains("- {\"question_0\":\"Postgres\"}\n"), "{said}");
    let prompts = place.received_methods().iter().filter(|method| *method == "session/prompt").count();
    assert_eq!(prompts, 1);
}

#[tokio::test]
async fn ac14_a_skip_is_a_decline() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "single"));
    let ask = inbox.opened().await;
    inbox.skip(&ask).await;
    assert_eq!(inbox.settled().await.0, "decline");
    running.end_of_turn().await;
    assert_eq!(place.results()[0].to_string(), r#"{"action":"decline"}"#);
}

#[tokio::test]
async fn f10_answers_that_break_a_rule_are_sent_back_and_the_ask_stays_open() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "single"));
    let ask = inbox.opened().await;
    for wrong in [("question_7", ["Postgres"]), ("question_0", ["MySQL"])] {
        let response = inbox.answer(&ask, &[(wrong.0, &wrong.1, "")]).await;
        assert_eq!(response["error"]["code"], "INVALID", "{response}");
    }
    assert_eq!(place.results().len(), 0, "nothing was sent");
    inbox.answer(&ask, &[("question_0", &["Postgres"], "")]).await;
    running.end_of_turn().await;
    assert_eq!(place.results(), [accept(&json!({"question_0": "Postgres"}))]);
}

#[tokio::test]
async fn ac16_ac17_ac18_what_cannot_be_asked_is_declined_and_reaches_nobody() {
    for (script, declines) in [
        ("url", 1),
        ("request-scope", 1),
        ("both-scopes", 1),
        ("no-scope", 1),
        ("foreign-session", 1),
        ("zero", 1),
        ("malformed", 7),
    ] {
        let place = Place::new();
        // A holder goes down with its agent.
        let inbox = Inbox::start().await;
        let running = inbox.run(place.settings(&[], script));
        assert_eq!(running.end_of_turn().await.0, "end_turn", "{script}");
        inbox.hung_up().await;
        assert_eq!(place.results(), vec![json!({"action": "decline"}); declines], "{script}");
        assert_eq!(inbox.all(action::ASK_OPENED).len(), 0, "{script}");
    }
}

#[tokio::test]
async fn ac64_nobody_answers_and_the_agent_hears_decline() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "single"));
    inbox.opened().await;
    inbox.clock.advance(Duration::from_millis(599_999));
    assert_eq!(place.results().len(), 0);
    inbox.clock.advance(Duration::from_millis(1));
    let settled = inbox.settled().await;
    assert_eq!(settled, ("timeout".into(), "system".into(), json!("decline"), json!("deadline")));
    assert_eq!(running.end_of_turn().await.0, "end_turn", "the turn goes on");
    assert_eq!(place.results(), [json!({"action": "decline"})]);
}

#[tokio::test]
async fn permissions_are_asked_with_one_choice_per_option() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "permission"));
    let ask = inbox.opened().await;
    assert_eq!(ask["source"], "permission");
    assert_eq!(ask["questions"][0]["id"], "permission");
    let values: Vec<&str> = ask["questions"][0]["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["value"].as_str().unwrap())
        .collect();
    assert_eq!(values, ["no", "yes", "always", "never"]);
    inbox.permit(&ask, Some("yes")).await;
    running.end_of_turn().await;
    assert_eq!(place.results(), [json!({"outcome": {"outcome": "selected", "optionId": "yes"}})]);
}

#[tokio::test]
async fn a_permission_that_is_skipped_or_times_out_is_rejected_once_else_cancelled() {
    for (script, result) in [
        ("permission", json!({"outcome": {"outcome": "selected", "optionId": "no"}})),
        ("permission-bare", json!({"outcome": {"outcome": "cancelled"}})),
    ] {
        let mut inbox = Inbox::start().await;
        let place = Place::new();
        let running = inbox.run(place.settings(&[], script));
        let ask = inbox.opened().await;
        inbox.permit(&ask, None).await;
        running.end_of_turn().await;
        assert_eq!(place.results(), std::slice::from_ref(&result), "skipped: {script}");

        let inbox = Inbox::start().await;
        let place = Place::new();
        let running = inbox.run(place.settings(&[], script));
        inbox.opened().await;
        inbox.clock.advance(Duration::from_secs(600));
        running.end_of_turn().await;
        assert_eq!(place.results(), [result], "timed out: {script}");
    }
}

#[tokio::test]
async fn ids_of_the_wire_identify_nothing() {
    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "id-reuse"));
    for choice in ["Postgres", "SQLite"] {
        let ask = inbox.opened().await;
        inbox.answer(&ask, &[("question_0", &[choice], "")]).await;
    }
    let (_, said) = running.end_of_turn().await;
    assert!(
        said.contains("first: {\"action\":\"accept\",\"content\":{\"question_0\":\"Postgres\"}}"),
        "{said}"
    );
    assert!(
        said.contains("second: {\"action\":\"accept\",\"content\":{\"question_0\":\"SQLite\"}}"),
        "{said}"
    );

    let mut inbox = Inbox::start().await;
    let place = Place::new();
    let running = inbox.run(place.settings(&[], "duplicate-id"));
    let (first, second) = (inbox.opened().await, inbox.opened().await);
    inbox.answer(&second, &[("apiKey", &[], "k")]).await;
    inbox.answer(&first, &[("question_0", &["SQLite"], "")]).await;
    running.end_of_turn().await;
    assert_eq!(place.results(), [accept(&json!({"apiKey": "k"})), accept(&json!({"question_0": "SQLite"}))]);
}

#[tokio::test]
async fn asks_beyond_the_sessions_limit_are_declined() {
    let inbox = Inbox::start().await;
    let place = Place::new();
    let mut running = inbox.run(place.settings(&[], "many 60"));
    for _ in 0..50 {
        inbox.opened().await;
    }
    eventually("ten are declined", || place.results().len() == 10).await;
    assert_eq!(place.results(), vec![json!({"action": "decline"}); 10]);
    running.stop();
    assert_eq!(stop_reason(running.end().await.0), "cancelled");
}
