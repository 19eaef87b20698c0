//! The life of an ask through real processes: who wins, who hears what, and how it ends.

use serde_json::{Value, json};

use crate::support::{Agent, Home, Up, alive, call, kill, pick, say, skip, wait_for};

#[test]
fn ac03_ac13_ac20b_the_answer_continues_the_same_turn() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    assert_eq!(agent.count("session/prompt"), 1);
    let answer = up.answer(&ask, &pick("question_0", &["Postgres"]));
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["state"], "settled");
    assert_eq!(answer.body["settlement"]["outcome"], "accept");
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.count("session/prompt"), 1, "no second prompt");
    assert_eq!(agent.responses().len(), 1);
}

#[test]
fn ac08_f9_an_ask_is_a_message_of_its_session_and_a_pending_action() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    let session = ask["session_id"].as_str().unwrap();
    let path = format!("/sessions/{session}");
    wait_for("the pending action", || (up.get(&path)["pending_action"] == "clarification").then_some(()));
    assert_eq!(up.get(&path)["waiting"], 1);
    let messages = up.get(&format!("{path}/messages"))["messages"].as_array().cloned().unwrap();
    let requests: Vec<&Value> =
        messages.iter().filter(|message| message["type"] == "clarification_request").collect();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["requests_input"], true);
    assert_eq!(requests[0]["author"], "agent");
    assert_eq!(requests[0]["metadata"]["pending_id"], ask["id"]);

    assert_eq!(up.answer(&ask, &skip()).status, 200);
    assert_eq!(agent.wait(), Some(0));
    assert_eq!(up.get(&path)["pending_action"], Value::Null);
}

#[test]
fn s15_a_token_s_answer_is_a_client_s_and_a_page_s_answer_to_what_it_painted_is_a_human_s() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "parallel");
    let asks = up.wait_for_asks(2);
    let by_token = up.answer(&asks[0], &pick("question_0", &["Postgres"]));
    assert_eq!(by_token.body["settlement"]["provenance"], "client");
    assert_eq!(by_token.body["settlement"]["by"], "tests");

    let login = json!({"secret": up.secret, "name": "Ada"});
    let page = call(&up.url, "POST", "/api/v1/login", None, Some(&login));
    assert_eq!(page.status, 200, "{}", page.body);
    let page = page.body["token"].as_str().unwrap();
    let again = call(&up.url, "POST", "/api/v1/login", None, Some(&login));
    assert_eq!(again.status, 401, "S11: the link is good once: {}", again.body);
    let path = format!("/api/v1/asks/{}", asks[1]["id"].as_str().unwrap());
    let digest = json!({"digest": asks[1]["digest"]});
    assert_eq!(call(&up.url, "POST", &format!("{path}/seen"), Some(page), Some(&digest)).status, 204);
    // A person needs at least 350 ms between the paint and the answer; less would not be believed.
    std::thread::sleep(std::time::Duration::from_millis(400));
    let answer = pick("question_0", &["SQLite"]);
    let by_page = call(&up.url, "POST", &format!("{path}/answer"), Some(page), Some(&answer));
    assert_eq!(by_page.status, 200, "{}", by_page.body);
    assert_eq!(by_page.body["settlement"]["provenance"], "human");
    assert_eq!(by_page.body["settlement"]["by"], "Ada");
    assert_eq!(agent.wait(), Some(0));
}

#[test]
fn ac12g_ac61_a_second_submission_gets_the_holder_s_not_found_and_nothing_is_delivered_twice() {
    let home = Home::new();
    let up = Up::start(&home);
    // The holder stays, so that its word can be asked for.
    let agent = Agent::start(&home, &["--attach", "--prompt", "single"], &[], &[]);
    let ask = up.wait_for_ask();
    assert_eq!(up.answer(&ask, &pick("question_0", &["Postgres"])).status, 200);
    let other = home.stdout(&["token", "create", "--scope", "operator", "--name", "another"]);
    let path = format!("/api/v1/asks/{}/answer", ask["id"].as_str().unwrap());
    let second = pick("question_0", &["SQLite"]);
    let late = call(&up.url, "POST", &path, Some(other.trim_end()), Some(&second));
    assert_eq!(late.status, 404, "{}", late.body);
    assert_eq!(late.body["error"]["code"], "NOT_FOUND");
    assert_eq!(late.body["settlement"]["by"], "tests");
    // The winner's own equal repeat is no loss.
    let repeated = up.answer(&ask, &pick("question_0", &["Postgres"]));
    assert_eq!((repeated.status, &repeated.body["replayed"]), (200, &json!(true)), "{}", repeated.body);
    assert_eq!(agent.responses().len(), 1);
}

#[test]
fn of_64_racing_submissions_one_is_delivered_and_the_others_hear_the_verdict() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "passthrough");
    let ask = up.wait_for_ask();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..64)
            .map(|n| {
                let (up, ask) = (&up, &ask);
                scope.spawn(move || (n, up.answer(ask, &say("apiKey", &format!("key {n}")))))
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let winners: Vec<_> = answers.iter().filter(|(_, answer)| answer.status == 200).collect();
    assert_eq!(winners.len(), 1, "{answers:?}");
    let winner = format!("key {}", winners[0].0);
    for (_, answer) in answers.iter().filter(|(_, answer)| answer.status != 200) {
        assert_eq!(answer.status, 404, "{answer:?}");
        assert_eq!(answer.body["settlement"]["outcome"], "accept", "{answer:?}");
    }
    assert_eq!(agent.wait(), Some(0));
    assert_eq!(agent.responses(), [json!({"action": "accept", "content": {"apiKey": winner}})]);
}

#[test]
fn f7_ac64_an_ask_that_nobody_answers_is_declined_and_the_turn_goes_on() {
    let home = Home::new();
    let up = Up::start(&home);
    let timeout = [("HANDRAISE_ELICITATION_ANSWER_TIMEOUT", "700ms")];
    let mut agent = Agent::start(&home, &["--prompt", "single"], &[], &timeout);
    let ask = up.wait_for_ask();
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "decline"})]);
    let settlement = up.wait_for_settlement(&ask);
    assert_eq!(settlement["outcome"], "timeout");
    assert_eq!(settlement["provenance"], "system");
    assert_eq!(settlement["wire"], "decline");
}

#[test]
fn f7_ac15_a_cancelled_turn_cancels_its_asks_and_permissions_at_once() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "ask-until-cancel");
    let asks = up.wait_for_asks(2);
    let admin = home.stdout(&["token", "create", "--scope", "admin"]);
    let path = format!("/api/v1/sessions/{}/cancel", asks[0]["session_id"].as_str().unwrap());
    let cancelled = call(&up.url, "POST", &path, Some(admin.trim_end()), None);
    assert!((200..300).contains(&cancelled.status), "{cancelled:?}");
    for ask in &asks {
        let settlement = up.wait_for_settlement(ask);
        assert_eq!((&settlement["outcome"], &settlement["provenance"]), (&json!("cancel"), &json!("system")));
    }
    agent.wait();
    let responses = agent.responses();
    assert_eq!(responses.len(), 2);
    assert!(responses.contains(&json!({"action": "cancel"})), "{responses:?}");
    assert!(responses.contains(&json!({"outcome": {"outcome": "cancelled"}})), "{responses:?}");
}

#[test]
fn f7_an_agent_that_cancels_its_request_withdraws_the_ask() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "cancel-request");
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "cancel"})]);
    let settled = wait_for("the settled ask", || {
        let asks = up.get("/asks?state=settled")["asks"].as_array().cloned().unwrap();
        (asks.len() == 1).then(|| asks[0].clone())
    });
    assert_eq!(settled["settlement"]["outcome"], "cancel");
}

#[test]
fn f7_the_end_of_a_prompt_ends_the_asks_that_it_left_open() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "prompt-ends-first");
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "cancel"})]);
    let asks = up.get("/asks?state=settled")["asks"].as_array().cloned().unwrap();
    assert_eq!(asks.len(), 1, "the holder's last settlement was acknowledged before it exited");
    assert_eq!(asks[0]["settlement"]["outcome"], "withdrawn");
}

#[test]
fn f7_an_agent_that_exits_withdraws_its_asks() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "exit-mid-ask");
    assert_eq!(agent.wait(), Some(1));
    let asks = up.get("/asks?state=settled")["asks"].as_array().cloned().unwrap();
    assert_eq!(asks.len(), 1);
    assert_eq!(asks[0]["settlement"]["outcome"], "withdrawn");
    assert_eq!(asks[0]["settlement"]["reason"], "agent_disconnected");
    // A submission after that is told so, and delivered to nobody.
    let late = up.answer(&asks[0], &pick("question_0", &["Postgres"]));
    assert_eq!(late.status, 404, "{}", late.body);
}

#[test]
fn ac20a_without_its_holder_an_ask_cannot_be_answered_and_stays_open() {
    let home = Home::new();
    let up = Up::start(&home);
    let agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    kill(agent.child.id());
    wait_for("the holder's end", || (!alive(agent.child.id())).then_some(()));
    wait_for("the disconnected ask", || (up.wait_for_ask()["holder_connected"] == false).then_some(()));
    let answer = up.answer(&ask, &pick("question_0", &["Postgres"]));
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert_eq!(answer.body["error"]["code"], "HOLDER_NOT_CONNECTED");
    assert_eq!(up.wait_for_ask()["state"], "open");
    assert_eq!(agent.responses(), [] as [Value; 0]);
}
