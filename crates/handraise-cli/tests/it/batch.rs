//! A batch through real processes: all of the answers, or none of them (S44).

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Agent, Answer, Home, Up, call, kill, pick, wait_for};

/// Answers a permission each.
fn submissions(answers: &[(&Value, &str)]) -> Value {
    let of = |(ask, option): &(&Value, &str)| {
        let mut submission = pick("permission", &[option]);
        submission["id"] = ask["id"].clone();
        submission
    };
    json!({"submissions": answers.iter().map(of).collect::<Vec<_>>()})
}

fn batch(up: &Up, token: &str, answers: &[(&Value, &str)]) -> Answer {
    call(&up.url, "POST", "/api/v1/asks/answer-batch", Some(token), Some(&submissions(answers)))
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

#[test]
fn s44_a_batch_is_delivered_whole_or_not_at_all() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "permissions 3");
    let asks = up.wait_for_asks(3);
    let form = Agent::start(&home, &["--attach", "--prompt", "single"], &[], &[]);
    let other = wait_for("the form", || {
        let asks = up.get("/asks?source=elicitation")["asks"].as_array().cloned().unwrap();
        asks.first().cloned()
    });
    let unknown = json!({"id": "0192aaaa-0000-7000-8000-000000000000"});
    let refused = [
        ("an option that holds for more than this call", vec![(&asks[0], "yes"), (&asks[1], "always")], 400),
        ("an option that there is not", vec![(&asks[0], "yes"), (&asks[1], "perhaps")], 400),
        ("an ask that there is not", vec![(&asks[0], "yes"), (&unknown, "yes")], 404),
        ("a form, of another holder", vec![(&asks[0], "yes"), (&other, "yes")], 400),
        ("an ask twice", vec![(&asks[0], "yes"), (&asks[0], "no")], 400),
    ];
    for (why, answers, status) in refused {
        let answer = batch(&up, &up.operator, &answers);
        assert_eq!(answer.status, status, "{why}: {}", answer.body);
        assert_eq!(up.wait_for_asks(4).iter().filter(|ask| ask["state"] == "open").count(), 4, "{why}");
        assert!(agent.responses().is_empty() && form.responses().is_empty(), "{why}");
    }

    let answer = batch(&up, &up.operator, &[(&asks[2], "no"), (&asks[0], "yes"), (&asks[1], "yes")]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let ids: Vec<&Value> = answer.body["asks"].as_array().unwrap().iter().map(|ask| &ask["id"]).collect();
    assert_eq!(ids, [&asks[2]["id"], &asks[0]["id"], &asks[1]["id"]], "as they were sent");
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    let mut responses = agent.responses();
    responses.sort_by_key(ToString::to_string);
    assert_eq!(responses, [selected("no"), selected("yes"), selected("yes")]);
    for (ask, option) in [(&asks[0], "yes"), (&asks[1], "yes"), (&asks[2], "no")] {
        let settlement = up.wait_for_settlement(ask);
        assert_eq!(settlement["answers"][0]["selected_options"], json!([option]));
        assert_eq!((&settlement["by"], &settlement["provenance"]), (&json!("tests"), &json!("client")));
    }
}

#[test]
fn s44_one_ask_that_has_ended_keeps_a_batch_from_answering_the_others() {
    let home = Home::new();
    let up = Up::start(&home);
    let agent = Agent::prompt(&home, "permissions 2");
    let asks = up.wait_for_asks(2);
    assert_eq!(up.answer(&asks[0], &pick("permission", &["no"])).status, 200);
    let late = batch(&up, &up.operator, &[(&asks[1], "yes"), (&asks[0], "yes")]);
    assert_eq!((late.status, &late.body["error"]["code"]), (404, &json!("NOT_FOUND")), "{}", late.body);
    assert_eq!(late.body["settlement"]["answers"][0]["selected_options"], json!(["no"]), "{}", late.body);
    assert_eq!(late.body["recorded"], false);
    assert_eq!(up.wait_for_ask()["id"], asks[1]["id"]);
    assert_eq!(up.wait_for_ask()["state"], "open");
    assert_eq!(agent.responses(), [selected("no")]);
    assert_eq!(up.wait_for_settlement(&asks[0])["answers"][0]["selected_options"], json!(["no"]));

    // The same from what is stored, once the holder is gone; of those that are open it is only said that it is gone.
    kill(agent.child.id());
    up.wait_for_state(&asks[1], "open", false);
    let late = batch(&up, &up.operator, &[(&asks[1], "yes"), (&asks[0], "yes")]);
    assert_eq!((late.status, &late.body["settlement"]["outcome"]), (404, &json!("accept")), "{}", late.body);
    let gone = batch(&up, &up.operator, &[(&asks[1], "yes")]);
    assert_eq!((gone.status, &gone.body["error"]["code"]), (503, &json!("HOLDER_NOT_CONNECTED")));
    assert_eq!(up.ask(&asks[1])["state"], "open");
}

#[test]
fn s44_a_page_s_batch_needs_every_row_painted() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "permissions 2");
    let asks = up.wait_for_asks(2);
    let login = json!({"secret": up.secret, "name": "Ada"});
    let page = call(&up.url, "POST", "/api/v1/login", None, Some(&login)).body["token"].clone();
    let page = page.as_str().unwrap();
    let paint = |ask: &Value| {
        let path = format!("/api/v1/asks/{}/seen", ask["id"].as_str().unwrap());
        let digest = json!({"digest": ask["digest"]});
        assert_eq!(call(&up.url, "POST", &path, Some(page), Some(&digest)).status, 204);
        // A person needs at least 350 ms between the paint and the answer; less would not be believed.
        std::thread::sleep(Duration::from_millis(400));
    };
    let answers = [(&asks[0], "yes"), (&asks[1], "yes")];
    paint(&asks[0]);
    let unseen = batch(&up, page, &answers);
    assert_eq!((unseen.status, &unseen.body["error"]["details"][0]["rule"]), (422, &json!("painted")));
    assert!(agent.responses().is_empty());
    paint(&asks[1]);
    assert_eq!(batch(&up, page, &answers).status, 200);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    for ask in &asks {
        let settlement = up.wait_for_settlement(ask);
        assert_eq!((&settlement["provenance"], &settlement["by"]), (&json!("human"), &json!("Ada")));
    }
}
