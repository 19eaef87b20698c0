//! What its client cannot be asked goes to the inbox, and the same call goes on: a real `handraise up`, a real gateway, and
//! the scripted server, whose own count of calls is the witness.

use std::process::Child;

use handraise_transport::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::{
    asking::{SECOND, refusal, tap},
    confirming::{self, SECRET},
};
use crate::support::{Events, Gateway, Home, Pair, Setup, Up, call, kill, pick, wait_for};

/// An inbox with an operator at it.
fn inbox(home: &Home) -> (Up, Events) {
    let up = Up::start(home);
    let operator = up.events();
    (up, operator)
}

/// A session of a client that declares nothing, once its gateway is attached.
fn session(home: &Home, variables: &[(&str, &str)]) -> Gateway {
    let mut gateway = Gateway::start_with(home, &Setup { server: &[], variables, before: &[] });
    gateway.initialize("2025-11-25", &json!({}));
    attached(&gateway);
    gateway
}

fn attached(gateway: &Gateway) {
    wait_for("a gateway at its inbox", || gateway.log.text().contains("attached to the inbox").then_some(()));
}

#[track_caller]
fn ran_on_the_second(gateway: &Gateway, id: u64) {
    let answer = gateway.receive();
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4", "{answer}");
}

#[test]
fn a_client_that_declares_nothing_is_answered_from_the_inbox_in_the_same_call() {
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let mut gateway = session(&home, &[]);
    gateway.send(&tap(&json!(1)));
    let ask = up.wait_for_ask();
    assert_eq!((&ask["source"], &ask["origin"]["holder"]), (&json!("refusal"), &json!("gateway")));
    assert_eq!(
        (&ask["origin"]["client"]["name"], &ask["message"]),
        (&json!("tests"), &json!("Which device should tapOn use?"))
    );
    let choices = ask["questions"][0]["choices"].as_array().unwrap();
    assert_eq!((choices.len(), &choices[1]["label"]), (2, &json!("A1B2-C3D4 (ios)")));
    assert_eq!(up.answer(&ask, &pick("deviceId", &["none of them"])).status, 422);
    assert_eq!(up.answer(&ask, &pick("deviceId", &[SECOND])).status, 200);
    ran_on_the_second(&gateway, 1);
    // There is one answer.
    assert_eq!(up.answer(&ask, &pick("deviceId", &["emulator-5554"])).status, 404);
    assert_eq!(up.wait_for_settlement(&ask)["outcome"], "accept");
    assert_eq!(gateway.outcomes(1), ["accept"]);
    let record = &gateway.records()[0];
    assert_eq!(
        (&record["declared"], &record["rail"], &record["provenance"]),
        (&json!("none"), &json!("inbox"), &json!("client"))
    );
    assert_eq!(gateway.count("tapOn"), 2);
    gateway.close();
    assert_eq!(gateway.wait(), Some(0));
}

#[test]
fn in_front_of_a_url_a_call_is_answered_from_the_inbox_as_well() {
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let setup = Setup { server: &[], variables: &[], before: &[] };
    let mut gateway = Gateway::start_over(Pair::Http, &home, &setup);
    gateway.initialize("2025-11-25", &json!({}));
    attached(&gateway);
    gateway.send(&tap(&json!(1)));
    let ask = up.wait_for_ask();
    assert_eq!(up.answer(&ask, &pick("deviceId", &[SECOND])).status, 200);
    ran_on_the_second(&gateway, 1);
    gateway.send(&tap(&json!(2)));
    let ask = up.wait_for_ask();
    gateway.close();
    assert_eq!(gateway.wait(), Some(0));
    assert_eq!(up.wait_for_settlement(&ask)["outcome"], "withdrawn");
    assert_eq!(gateway.count("tapOn"), 3);
}

#[test]
fn a_declined_and_a_late_question_end_with_the_refusal_byte_for_byte() {
    let expected = refusal(&[], &tap(&json!(1)));
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let mut gateway = session(&home, &[]);
    gateway.send(&tap(&json!(1)));
    let ask = up.wait_for_ask();
    assert_eq!(up.answer(&ask, &json!({"answers": [], "rejected": true})).status, 200);
    assert_eq!(gateway.line(), expected);
    drop(gateway);
    let mut gateway = session(&home, &[("HANDRAISE_ASK_WAIT", "300ms")]);
    gateway.send(&tap(&json!(1)));
    let ask = up.wait_for_ask();
    assert_eq!(gateway.line(), expected);
    assert_eq!(up.wait_for_settlement(&ask)["outcome"], "timeout");
    assert_eq!(up.answer(&ask, &pick("deviceId", &[SECOND])).status, 404, "it comes too late");
    // Nobody answered, and the next one does not wait for it.
    let since = SystemClock.boot_millis();
    gateway.send(&tap(&json!(1)));
    assert_eq!(gateway.line(), expected);
    let took = SystemClock.boot_millis() - since;
    assert!(took < 250, "{took} ms");
    assert_eq!(gateway.outcomes(2), ["timeout", "not_offered"]);
    assert_eq!(gateway.records()[1]["reason"], "inbox-unanswered");
    assert_eq!(gateway.count("tapOn"), 3);
}

#[test]
fn what_a_client_answers_faster_than_a_human_goes_on_to_the_inbox() {
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({"elicitation": {}}));
    attached(&gateway);
    gateway.send(&tap(&json!(1)));
    let question = gateway.receive();
    gateway.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    let ask = up.wait_for_ask();
    let message = ask["message"].as_str().unwrap();
    assert!(message.contains("The client answered decline after "), "{message}");
    assert_eq!(up.answer(&ask, &pick("deviceId", &[SECOND])).status, 200);
    ran_on_the_second(&gateway, 1);
    assert_eq!(gateway.outcomes(2), ["decline", "accept"]);
}

#[test]
fn a_call_that_is_cancelled_takes_its_question_back() {
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let mut gateway = session(&home, &[]);
    gateway.send(&tap(&json!(1)));
    let ask = up.wait_for_ask();
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    let settlement = up.wait_for_settlement(&ask);
    assert_eq!(
        (&settlement["outcome"], &settlement["reason"]),
        (&json!("withdrawn"), &json!("request_cancelled"))
    );
    assert_eq!(settlement["wire"], json!(null), "nothing was sent to anybody");
    assert_eq!(up.answer(&ask, &pick("deviceId", &[SECOND])).status, 404);
    // The session goes on, and so does the end of a client that just leaves.
    gateway.send(&tap(&json!(2)));
    let ask = up.wait_for_ask();
    gateway.close();
    assert_eq!(gateway.wait(), Some(0));
    assert_eq!(up.wait_for_settlement(&ask)["outcome"], "withdrawn");
    assert_eq!(gateway.count("tapOn"), 2);
}

#[test]
fn an_answer_and_a_cancellation_at_the_same_moment_leave_one_truth() {
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    // The inbox takes so many a second of each gateway.
    for _ in 0..8 {
        let mut gateway = session(&home, &[]);
        for id in 1..=4_u64 {
            gateway.send(&tap(&json!(id)));
            let ask = up.wait_for_ask();
            let params = json!({"requestId": id});
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            let answered = up.answer(&ask, &pick("deviceId", &[SECOND])).status == 200;
            gateway.send(&cancel);
            let settlement = up.wait_for_settlement(&ask);
            assert_eq!(settlement["outcome"] == "accept", answered, "{settlement}");
            let outcomes = gateway.outcomes(id as usize);
            assert_eq!(json!(outcomes.last()), settlement["outcome"], "{:?}", gateway.records());
        }
    }
}

#[test]
fn an_inbox_that_is_killed_and_comes_back_still_answers_the_call() {
    let home = Home::new();
    let (mut up, _operator) = inbox(&home);
    let mut gateway = session(&home, &[]);
    gateway.send(&tap(&json!(1)));
    let ask = up.wait_for_ask();
    kill(up.child.id());
    end_of(&mut up.child);
    let up = Up::start(&home);
    up.wait_for_state(&ask, "open", true);
    assert_eq!(up.answer(&ask, &pick("deviceId", &[SECOND])).status, 200);
    ran_on_the_second(&gateway, 1);
    assert_eq!(gateway.count("tapOn"), 2);
}

#[test]
fn nothing_is_answered_for_a_gateway_that_was_killed() {
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let mut gateway = session(&home, &[]);
    gateway.send(&tap(&json!(1)));
    let ask = up.wait_for_ask();
    gateway.kill();
    up.wait_for_state(&ask, "open", false);
    let answered = up.answer(&ask, &pick("deviceId", &[SECOND]));
    assert_eq!((answered.status, &answered.body["error"]["code"]), (503, &json!("HOLDER_NOT_CONNECTED")));
    assert_eq!(gateway.count("tapOn"), 1);
}

#[test]
fn a_gateway_without_an_inbox_loses_no_time_and_finds_one_that_comes() {
    let expected = refusal(&[], &tap(&json!(1)));
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    let since = SystemClock.boot_millis();
    gateway.send(&tap(&json!(1)));
    assert_eq!(gateway.line(), expected);
    let took = SystemClock.boot_millis() - since;
    assert!(took < 250, "{took} ms");
    assert_eq!(gateway.outcomes(1), ["not_offered"]);
    let (up, _operator) = inbox(&home);
    // The question that finds it does not wait for it; a later one does.
    gateway.send(&tap(&json!(1)));
    assert_eq!(gateway.line(), expected);
    attached(&gateway);
    gateway.send(&tap(&json!(2)));
    let ask = up.wait_for_ask();
    assert_eq!(up.answer(&ask, &pick("deviceId", &[SECOND])).status, 200);
    ran_on_the_second(&gateway, 2);
}

#[test]
fn nobody_is_asked_where_the_settings_say_so() {
    let expected = refusal(&[], &tap(&json!(1)));
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    for (variables, attaches) in
        [([("HANDRAISE_INBOX", "none")], false), ([("HANDRAISE_RAILS__REFUSAL", "form")], true)]
    {
        let mut gateway =
            Gateway::start_with(&home, &Setup { server: &[], variables: &variables, before: &[] });
        gateway.initialize("2025-11-25", &json!({}));
        if attaches {
            attached(&gateway);
        }
        gateway.send(&tap(&json!(1)));
        assert_eq!(gateway.line(), expected);
        assert_eq!(gateway.outcomes(1), ["not_offered"]);
        assert!(attaches || !gateway.log.text().contains("inbox"), "{}", gateway.log.text());
    }
    assert_eq!(up.wait_for_asks(0), Vec::<Value>::new());
    up.stop();
}

/// A session of a client that declares nothing, with guarded tools.
fn guarded(home: &Home, config: &str) -> Gateway {
    home.write_config(config);
    session(home, &[SECRET])
}

const GUARDED: &str = "[[confirm]]\ntools = ['tapOn']\naction = 'Tap'\ntarget = '/deviceId'\npreview = { tool = 'listDevices' }\n";

#[test]
fn a_guarded_call_of_a_client_that_cannot_be_asked_is_confirmed_in_the_inbox() {
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let mut gateway = guarded(&home, GUARDED);
    gateway.call(&json!(1), "tapOn", &confirming::tap());
    let ask = up.wait_for_ask();
    assert_eq!((&ask["source"], &ask["on_deadline"]), (&json!("confirm"), &json!("refuse")));
    let confirm = &ask["confirm"];
    assert_eq!(
        (&confirm["tool"], &confirm["target"], &confirm["action"], &confirm["arguments"]),
        (
            &json!("tapOn"),
            &json!("emulator-5554"),
            &json!("Tap"),
            &json!("\"deviceId\":\"emulator-5554\"\n\"text\":\"OK\"")
        )
    );
    assert!(confirm["preview"].as_str().unwrap().contains("A1B2-C3D4"), "{confirm}");
    assert_eq!(gateway.count("tapOn"), 0);
    assert_eq!(up.answer(&ask, &pick("confirm", &["true"])).status, 200);
    let answer = gateway.receive();
    assert_eq!(answer["result"]["content"][0]["text"], "tapped \"OK\" on emulator-5554", "{answer}");
    assert_eq!(up.answer(&ask, &pick("confirm", &["true"])).body["replayed"], true);
    // Declined, and answered with no: nothing runs, and both say so.
    for (submission, case) in
        [(json!({"answers": [], "rejected": true}), "cancelled"), (pick("confirm", &["false"]), "error")]
    {
        gateway.call(&json!(2), "tapOn", &confirming::tap());
        let ask = up.wait_for_ask();
        assert_eq!(up.answer(&ask, &submission).status, 200);
        let said = confirming::said(&gateway.receive());
        assert_eq!((&said["confirmed"], &said["dispatched"]), (&json!(false), &json!(false)));
        assert!(!said[case].is_null(), "{said}");
    }
    assert_eq!(gateway.outcomes(3), ["accept", "decline", "invalid"]);
    assert_eq!(gateway.count("tapOn"), 1);
}

#[test]
fn s15_where_a_persons_word_is_demanded_a_tokens_does_not_count() {
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let mut gateway = guarded(&home, &GUARDED.replace("action", "require = 'human'\naction"));
    gateway.call(&json!(1), "tapOn", &confirming::tap());
    let ask = up.wait_for_ask();
    let by_token = up.answer(&ask, &pick("confirm", &["true"]));
    assert_eq!(by_token.body["error"]["code"], "BAD_REQUEST", "{}", by_token.body);
    assert!(by_token.body["error"]["message"].as_str().unwrap().contains("a person"), "{}", by_token.body);
    assert_eq!((up.ask(&ask)["state"].clone(), gateway.count("tapOn")), (json!("open"), 0));
    let login = json!({"secret": up.secret, "name": "Ada"});
    let page = call(&up.url, "POST", "/api/v1/login", None, Some(&login)).body;
    let page = page["token"].as_str().unwrap();
    let path = format!("/api/v1/asks/{}", ask["id"].as_str().unwrap());
    let digest = json!({"digest": ask["digest"]});
    assert_eq!(call(&up.url, "POST", &format!("{path}/seen"), Some(page), Some(&digest)).status, 204);
    // A person needs at least 350 ms between the paint and the answer.
    std::thread::sleep(std::time::Duration::from_millis(400));
    let answered =
        call(&up.url, "POST", &format!("{path}/answer"), Some(page), Some(&pick("confirm", &["true"])));
    assert_eq!(answered.status, 200, "{}", answered.body);
    let answer = gateway.receive();
    assert_eq!(answer["result"]["content"][0]["text"], "tapped \"OK\" on emulator-5554", "{answer}");
    assert_eq!(gateway.records()[0]["provenance"], "human");
    // The inbox keeps the record, and believes it: it names the ask that a person has answered there.
    let kept = wait_for("the record", || {
        let records = up.get("/records")["records"].as_array().cloned().unwrap();
        records.into_iter().find(|record| record["rail"] == "inbox")
    });
    assert_eq!(
        (&kept["provenance"], &kept["ask"], &kept["tool"]),
        (&json!("human"), &ask["id"], &json!("tapOn"))
    );
}

#[test]
fn s16_whose_confirmation_counts_is_whose_token_holds_the_question() {
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let token = |scope: &str, owner: &str| {
        let arguments = ["token", "create", "--scope", scope, "--name", owner, "--owner", owner];
        home.stdout(&arguments).trim_end().to_owned()
    };
    let (adas, bobs, holder) = (token("operator", "ada"), token("operator", "bob"), token("holder", "ada"));
    home.write_config(&GUARDED.replace("action", "who = 'not-the-caller'\naction"));
    let mut gateway = session(&home, &[SECRET, ("HANDRAISE_TOKEN", &holder)]);
    gateway.call(&json!(1), "tapOn", &confirming::tap());
    let ask = up.wait_for_ask();
    assert_eq!(ask["who"], "not-the-caller");
    let path = format!("/api/v1/asks/{}/answer", ask["id"].as_str().unwrap());
    let answer = |token: &str| call(&up.url, "POST", &path, Some(token), Some(&pick("confirm", &["true"])));
    assert_eq!((answer(&adas).status, answer(&up.operator).status), (403, 403));
    assert_eq!((gateway.count("tapOn"), answer(&bobs).status), (0, 200));
    assert_eq!(gateway.receive()["id"], 1);
    assert_eq!(gateway.count("tapOn"), 1);
}

#[test]
fn operators_switch_a_gateways_own_questions_off_and_on() {
    let expected = refusal(&[], &tap(&json!(1)));
    let home = Home::new();
    let (up, _operator) = inbox(&home);
    let admin = home.token("admin");
    let switch = |value: bool| {
        let body = json!({"value": value});
        assert_eq!(call(&up.url, "PUT", "/api/v1/flags/elicitation", Some(&admin), Some(&body)).status, 200);
    };
    switch(false);
    let mut gateway = session(&home, &[]);
    gateway.send(&tap(&json!(1)));
    assert_eq!(gateway.line(), expected);
    assert_eq!(gateway.outcomes(1), ["disabled"]);
    // It hears of it at once, and the next refusal after that is asked about.
    switch(true);
    let ask = wait_for("a question", || {
        let refused = gateway.records().len();
        gateway.send(&tap(&json!(1)));
        let asked = wait_for("a question or a refusal", || {
            let asks = up.get("/asks?state=open")["asks"].as_array().cloned().unwrap();
            (!asks.is_empty() || gateway.records().len() > refused).then_some(asks)
        });
        if asked.is_empty() {
            assert_eq!(gateway.line(), expected);
        }
        asked.into_iter().next()
    });
    assert_eq!(up.answer(&ask, &pick("deviceId", &[SECOND])).status, 200);
    ran_on_the_second(&gateway, 1);
}

fn end_of(child: &mut Child) {
    wait_for("the end of a process", || child.try_wait().unwrap());
}
