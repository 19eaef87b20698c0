//! Forms through real processes: what the operator sends, and what the agent's own pipe then carries.

use serde_json::{Value, json};

use crate::support::{Agent, Home, Up, pick, say, skip, wait_for};

/// Runs a script's one ask through inbox and agent: returns the ask as operators see it, and the agent's response.
#[track_caller]
fn answer_with(script: &str, submission: &Value) -> (Value, Value) {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, script);
    let ask = up.wait_for_ask();
    let answer = up.answer(&ask, submission);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    let mut responses = agent.responses();
    assert_eq!(responses.len(), 1, "{responses:?}");
    (ask, responses.remove(0))
}

#[track_caller]
fn check(script: &str, submission: &Value, expected: &Value) -> Value {
    let (ask, response) = answer_with(script, submission);
    assert_eq!(&response, expected);
    ask
}

fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn ids(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ac04_ac06_ac10_one_question_with_its_companion_and_the_message_as_its_prompt() {
    let ask = check("single", &pick("question_0", &["SQLite"]), &accept(&json!({"question_0": "SQLite"})));
    assert_eq!(ids(&ask["questions"], "id"), ["question_0"]);
    assert_eq!(ids(&ask["questions"][0]["choices"], "value"), ["Postgres", "SQLite", "DynamoDB"]);
    assert_eq!(ask["questions"][0]["prompt"], ask["message"]);
    assert_eq!(ask["questions"][0]["choices"][1]["preview"], "file:./app.db");
}

#[test]
fn ac05_ac07_ac12_two_questions_each_with_its_own_prompt() {
    let ask =
        check("two", &pick("question_1", &["dev", "prod"]), &accept(&json!({"question_1": ["dev", "prod"]})));
    let prompts = ids(&ask["questions"], "prompt");
    assert_eq!(
        prompts,
        ["Which database should the new service use?", "Which environments should it deploy to?"]
    );
    assert_eq!(ids(&ask["questions"], "kind"), ["single", "multi"]);
}

#[test]
fn ac11_free_text_goes_to_the_companion_found_by_its_marker() {
    check("freeform", &say("direction", "straight on"), &accept(&json!({"answer_freeform": "straight on"})));
}

#[test]
fn ac12a_ac12i_trimmed_free_text_stands_instead_of_the_selection() {
    let both = json!({"answers": [
        {"question_id": "question_0", "selected_options": ["Postgres"], "custom_text": "  CockroachDB "}
    ]});
    check("single", &both, &accept(&json!({"question_0_custom": "CockroachDB"})));
}

#[test]
fn f3_ac12b_a_form_submitted_empty_is_accepted_with_nothing_in_it() {
    check("two", &json!({"answers": []}), &accept(&json!({})));
}

#[test]
fn ac12c_the_refusal_dialog_is_one_question_without_title_or_companion() {
    let ask =
        check("refusal", &pick("choice", &["retry_fallback"]), &accept(&json!({"choice": "retry_fallback"})));
    assert_eq!(ask["questions"].as_array().unwrap().len(), 1);
    assert_eq!(ask["questions"][0]["prompt"], ask["message"]);
    assert_eq!(ask["questions"][0]["title"], Value::Null);
}

#[test]
fn f3_ac12d_ac12h_eleven_questions_stand_by_number_and_unanswered_ones_contribute_no_key() {
    let ask = check("eleven", &pick("question_2", &["yes"]), &accept(&json!({"question_2": "yes"})));
    let expected: Vec<String> = (0..11).map(|n| format!("question_{n}")).collect();
    assert_eq!(ids(&ask["questions"], "id"), expected);
}

#[test]
fn ac12j_whitespace_is_no_answer() {
    check("single", &say("question_0", " \t "), &accept(&json!({})));
}

#[test]
fn ac14_skip_declines() {
    check("two", &skip(), &json!({"action": "decline"}));
}

#[test]
fn f12_ac55_selections_go_out_in_declaration_order() {
    check("two", &pick("question_1", &["prod", "dev"]), &accept(&json!({"question_1": ["dev", "prod"]})));
}

#[test]
fn f3_ac04a_ac11a_ac56_a_question_without_choices_is_answered_with_text_at_its_own_key() {
    let ask = check("passthrough", &say("apiKey", "T"), &accept(&json!({"apiKey": "T"})));
    assert_eq!(ask["questions"][0]["kind"], "text");
    assert_eq!(ask["questions"][0]["choices"], json!([]));
}

#[test]
fn typed_fields_come_back_in_their_types() {
    let answers = json!({"answers": [
        {"question_id": "email", "custom_text": "ada@example.org"},
        {"question_id": "ratio", "custom_text": "0.5"},
        {"question_id": "replicas", "custom_text": "4"},
        {"question_id": "public", "selected_options": ["true"]},
        {"question_id": "tier", "selected_options": ["gold"]},
    ]});
    let content =
        json!({"email": "ada@example.org", "ratio": 0.5, "replicas": 4, "public": true, "tier": "gold"});
    check("typed", &answers, &accept(&content));
}

#[test]
fn f10_an_answer_that_does_not_fit_is_refused_with_details_and_the_ask_stays_open() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "typed");
    let ask = up.wait_for_ask();
    let wrong = json!({"answers": [
        {"question_id": "email", "custom_text": "nobody"},
        {"question_id": "replicas", "custom_text": "11"},
        {"question_id": "public", "selected_options": ["maybe"]},
        {"question_id": "ghost", "custom_text": "boo"},
    ]});
    let refused = up.answer(&ask, &wrong);
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!(refused.body["error"]["code"], "INVALID");
    let mut questions = ids(&refused.body["error"]["details"], "question_id");
    questions.sort();
    assert_eq!(questions, ["email", "ghost", "public", "replicas"]);
    assert_eq!(up.wait_for_ask()["state"], "open");

    let right = json!({"answers": [
        {"question_id": "email", "custom_text": "ada@example.org"},
        {"question_id": "public", "selected_options": ["false"]},
    ]});
    assert_eq!(up.answer(&ask, &right).status, 200);
    assert_eq!(agent.wait(), Some(0));
    assert_eq!(agent.responses(), [accept(&json!({"email": "ada@example.org", "public": false}))]);
}

#[test]
fn ac16_ac17_ac18_what_is_no_form_of_a_session_is_declined_unseen() {
    let home = Home::new();
    let up = Up::start(&home);
    for script in ["url", "request-scope", "both-scopes", "no-scope", "zero"] {
        let mut agent = Agent::prompt(&home, script);
        assert_eq!(agent.wait(), Some(0), "{script}: {}", agent.log.text());
        assert_eq!(agent.responses(), [json!({"action": "decline"})], "{script}");
    }
    // No properties at all, none in the list, none that can be asked.
    for schema in
        [json!({"type": "object"}), json!({"properties": {}}), json!({"properties": {"a": {"$ref": "#"}}})]
    {
        let form = json!({"message": "Well?", "requestedSchema": schema});
        let mut agent = Agent::prompt(&home, &format!("form {form}"));
        assert_eq!(agent.wait(), Some(0), "{form}: {}", agent.log.text());
        assert_eq!(agent.responses(), [json!({"action": "decline"})], "{form}");
    }
    let mut agent = Agent::prompt(&home, "malformed");
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert!(
        agent.responses().iter().all(|response| response["action"] == "decline"),
        "{:?}",
        agent.responses()
    );
    assert_eq!(up.get("/asks?state=settled")["asks"], json!([]), "nothing of it may reach an operator");
}

#[test]
fn permissions_are_asks_whose_choices_go_by_kind_and_never_by_position() {
    let home = Home::new();
    let up = Up::start(&home);
    let outcome = |submission: &Value| {
        let mut agent = Agent::prompt(&home, "permission");
        let ask = up.wait_for_ask();
        assert_eq!(ask["source"], "permission");
        assert_eq!(ids(&ask["questions"], "id"), ["permission"]);
        assert_eq!(ids(&ask["questions"][0]["choices"], "value"), ["no", "yes", "always", "never"]);
        assert_eq!(up.answer(&ask, submission).status, 200);
        assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
        agent.responses().remove(0)
    };
    assert_eq!(
        outcome(&pick("permission", &["yes"])),
        json!({"outcome": {"outcome": "selected", "optionId": "yes"}})
    );
    // Skipping picks the option that rejects once.
    assert_eq!(outcome(&skip()), json!({"outcome": {"outcome": "selected", "optionId": "no"}}));
}

#[test]
fn a_permission_without_an_option_that_rejects_is_cancelled_by_skipping() {
    let (_, response) = answer_with("permission-bare", &skip());
    assert_eq!(response, json!({"outcome": {"outcome": "cancelled"}}));
}

#[test]
fn ac12f_ac60_equal_questions_are_two_asks_with_ids_of_their_own() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "parallel");
    let asks = up.wait_for_asks(2);
    assert_ne!(asks[0]["id"], asks[1]["id"]);
    for ask in &asks {
        let id = ask["id"].as_str().unwrap();
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'7'), "{id}");
    }
    assert_eq!(up.answer(&asks[0], &pick("question_0", &["Postgres"])).status, 200);
    assert_eq!(up.wait_for_ask()["id"], asks[1]["id"]);
    wait_for("the first response", || (agent.responses().len() == 1).then_some(()));
    assert_eq!(up.answer(&asks[1], &pick("question_0", &["SQLite"])).status, 200);
    assert_eq!(agent.wait(), Some(0));
    assert_eq!(agent.responses().len(), 2);
}
