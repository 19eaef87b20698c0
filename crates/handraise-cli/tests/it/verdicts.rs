//! What an operator is told, byte for byte where inbox.md says so: statuses, bodies, and what every ask carries.

use serde_json::{Value, json};

use crate::support::{Agent, Home, Up, alive, call, kill, pick, say, terminate, wait_for};

#[test]
fn f6_every_question_carries_its_kind_and_every_ask_what_it_allows() {
    let home = Home::new();
    let up = Up::start(&home);
    let _agent = Agent::prompt(&home, "two");
    let ask = up.wait_for_ask();
    assert_eq!((&ask["source"], &ask["mode"]), (&json!("elicitation"), &json!("form")));
    let allows = (&ask["allows_partial"], &ask["allows_text_with_selection"]);
    assert_eq!(allows, (&json!(true), &json!(true)));
    let kinds: Vec<&Value> =
        ask["questions"].as_array().unwrap().iter().map(|question| &question["kind"]).collect();
    assert_eq!(kinds, ["single", "multi"]);
    assert_eq!(ask["origin"]["holder"], "agent");
    assert_eq!(ask["origin"]["client"]["name"], "fake-agent");
    assert_eq!((&ask["on_deadline"], &ask["settlement"]), (&json!("decline"), &Value::Null));
    assert!(ask["deadline"].as_str().unwrap().ends_with('Z'), "{ask}");

    let home = Home::new();
    let up = Up::start(&home);
    let _agent = Agent::prompt(&home, "permission");
    let ask = up.wait_for_ask();
    let allows = (&ask["allows_partial"], &ask["allows_text_with_selection"]);
    assert_eq!((&ask["source"], allows), (&json!("permission"), (&json!(false), &json!(false))));
}

#[test]
fn a_404_of_an_answer_says_how_the_ask_ended_and_whether_the_answer_was_kept() {
    let home = Home::new();
    let up = Up::start(&home);
    let unknown = up.answer(&json!({"id": "0192aaaa-0000-7000-8000-000000000000"}), &json!({"answers": []}));
    assert_eq!(unknown.status, 404, "{}", unknown.body);
    assert_eq!(unknown.body["error"]["code"], "NOT_FOUND");
    assert_eq!((&unknown.body["settlement"], &unknown.body["recorded"]), (&Value::Null, &json!(false)));

    // Answered, and its holder is gone: the stored settlement speaks.
    let mut agent = Agent::prompt(&home, "single");
    let answered = up.wait_for_ask();
    assert_eq!(up.answer(&answered, &pick("question_0", &["Postgres"])).status, 200);
    assert_eq!(agent.wait(), Some(0));
    wait_for("the holder's end", || (up.ask(&answered)["holder_connected"] == false).then_some(()));
    let late = up.answer(&answered, &pick("question_0", &["SQLite"]));
    assert_eq!((late.status, &late.body["error"]["code"]), (404, &json!("NOT_FOUND")), "{}", late.body);
    assert_eq!(late.body["settlement"]["outcome"], "accept");
    assert_eq!(late.body["settlement"]["answers"][0]["selected_options"], json!(["Postgres"]));
    assert_eq!(late.body["recorded"], false);
    assert_eq!(up.ask(&answered)["settlement"], late.body["settlement"], "nothing changed by it");

    // Withdrawn: what the operator chose is kept as a record, and delivered to nobody.
    let mut agent = Agent::prompt(&home, "exit-mid-ask");
    assert_eq!(agent.wait(), Some(1));
    let withdrawn = wait_for("the withdrawn ask", || {
        let asks = up.get("/asks?state=settled")["asks"].as_array().cloned().unwrap();
        asks.into_iter().find(|ask| ask["settlement"]["outcome"] == "withdrawn")
    });
    let late = up.answer(&withdrawn, &pick("question_0", &["SQLite"]));
    assert_eq!((late.status, &late.body["recorded"]), (404, &json!(true)), "{}", late.body);
    assert_eq!(late.body["settlement"]["outcome"], "withdrawn");
    let events = up.ask(&withdrawn)["events"].clone();
    assert!(events.as_array().unwrap().iter().any(|event| event["kind"] == "submitted"), "{events}");
    assert_eq!(agent.responses(), [] as [Value; 0]);
}

#[test]
fn ac20a_a_503_keeps_nothing() {
    let home = Home::new();
    let up = Up::start(&home);
    let agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    kill(agent.child.id());
    wait_for("the holder's end", || (!alive(agent.child.id())).then_some(()));
    let before = wait_for("the loss in the ask's history", || {
        let ask = up.ask(&ask);
        let events = ask["events"].as_array().unwrap();
        events.iter().any(|event| event["kind"] == "disconnected").then(|| ask.clone())
    });
    assert_eq!(up.answer(&ask, &pick("question_0", &["Postgres"])).status, 503);
    assert_eq!(up.ask(&ask), before);
}

#[test]
fn ac12e_a_companion_of_nothing_is_no_question() {
    let form = json!({"message": "Pick", "requestedSchema": {"type": "object", "properties": {
        "color": {"type": "string", "oneOf": [{"const": "red", "title": "Red"}, {"const": "blue", "title": "Blue"}]},
        "orphan": {"type": "string", "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "nobody", "isCustomAnswer": true}}},
    }}});
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, &format!("form {form}"));
    let ask = up.wait_for_ask();
    assert_eq!(ask["questions"].as_array().unwrap().len(), 1, "{ask}");
    assert_eq!(up.answer(&ask, &say("orphan", "boo")).status, 422);
    assert_eq!(up.answer(&ask, &pick("color", &["blue"])).status, 200);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "accept", "content": {"color": "blue"}})]);
}

#[test]
fn f7_ac15_an_agentctl_that_is_told_to_end_cancels_its_asks_and_says_so() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "ask-until-cancel");
    let asks = up.wait_for_asks(2);
    terminate(agent.child.id());
    agent.wait();
    let responses = agent.responses();
    assert_eq!(responses.len(), 2, "{responses:?}");
    assert!(responses.contains(&json!({"action": "cancel"})), "{responses:?}");
    assert!(responses.contains(&json!({"outcome": {"outcome": "cancelled"}})), "{responses:?}");
    // No waiting: it did not exit before the inbox had acknowledged both.
    for ask in &asks {
        let settlement = up.ask(ask)["settlement"].clone();
        let told = (&settlement["outcome"], &settlement["provenance"], &settlement["wire"]);
        assert_eq!(told, (&json!("cancel"), &json!("system"), &json!("cancel")), "{settlement}");
    }
}

#[test]
fn f5_a_setting_of_the_running_inbox_counts_for_agents_started_from_then_on() {
    let home = Home::new();
    let up = Up::start(&home);
    let before = Agent::start(&home, &["--attach", "--prompt", "single"], &[], &[]);
    let ask = up.wait_for_ask();
    let admin = home.stdout(&["token", "create", "--scope", "admin"]).trim_end().to_owned();
    let path = "/api/v1/flags/features.acpElicitation";
    let set = call(&up.url, "PUT", path, Some(&admin), Some(&json!({"value": false})));
    assert_eq!(set.status, 200, "{}", set.body);
    let mut after = Agent::prompt(&home, "single");
    assert_eq!(after.wait(), Some(0), "{}", after.log.text());
    assert_eq!(after.responses(), [json!({"action": "decline"})]);
    assert_eq!(after.received()[0]["params"]["clientCapabilities"]["elicitation"], Value::Null);
    // The one that runs took its look at its start.
    assert_eq!(up.answer(&ask, &pick("question_0", &["Postgres"])).status, 200);
    wait_for("the response", || (before.responses().len() == 1).then_some(()));
}
