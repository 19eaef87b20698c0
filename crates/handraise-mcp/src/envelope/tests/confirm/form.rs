//! The form in the push era, and how it ends.

use super::*;

fn asked(guard: GuardSource) -> (Scene, Value) {
    let mut scene = Scene::push(guard, &json!({"form": {}}));
    let question = scene.call(r#"{"id":"d1","body":"Hi"}"#);
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(scene.ran, [""; 0]);
    (scene, question)
}

#[test]
fn a_ticked_box_runs_the_call_once() {
    let (mut scene, question) = asked(whole_guard());
    assert_eq!(scene.answer(&question, 1_000, &accepted()), Value::Null);
    assert_eq!(scene.ran, [send("1", r#"{"id":"d1","body":"Hi"}"#)]);
    assert_eq!((scene.previews, scene.lists), (2, 1), "what was shown is read again before it runs");
    assert_eq!(scene.records(), ["form accept client"]);
    // A second answer is late, and a second acceptance of the same question is none.
    assert_eq!(scene.answer(&question, 1_000, &accepted()), Value::Null);
    assert_eq!(scene.ran.len(), 1);
    scene.is_clean();
    let Store::Of(spent) = &scene.store else { panic!() };
    assert_eq!(spent.len(), 1, "its nonce was claimed");
}

#[test]
fn s26_the_form_shows_caller_tool_account_target_and_the_arguments_that_are_hashed() {
    let mut scene = Scene::push(whole_guard(), &json!({}));
    let question = scene.call(r#"{"id":"d\u202e1","account":"me","body":"a\nb"}"#);
    assert_eq!(
        question["params"]["message"],
        "stdio (calls itself \"client\") asks to: Send e-mail\nTool: \"send\"\nAccount: \"me\"\n\
         Target: \"d\\u202e1\"\nArguments:\n  \"account\":\"me\"\n  \"body\":\"a\\nb\"\n  \"id\":\"d\\u202e1\"\n\
         Preview, in the server's own words:\n  {\"etag\":\"1\",\"subject\":\"Hi\"}\nIt runs only if you confirm."
    );
}

#[test]
fn everything_but_a_ticked_box_runs_nothing() {
    for (answer, expected, record) in [
        (
            json!({"action": "accept"}),
            "isError confirmation-rejected NOT_CONFIRMED",
            "form invalid client not-confirmed",
        ),
        (
            json!({"action": "accept", "content": {}}),
            "isError confirmation-rejected NOT_CONFIRMED",
            "form invalid client not-confirmed",
        ),
        (
            json!({"action": "accept", "content": {"confirm": false}}),
            "isError confirmation-rejected NOT_CONFIRMED",
            "form invalid client not-confirmed",
        ),
        (
            json!({"action": "accept", "content": {"confirm": "true"}}),
            "isError confirmation-rejected NOT_CONFIRMED",
            "form invalid client not-confirmed",
        ),
        (
            json!({"action": "accept", "content": {"confirm": 1}}),
            "isError confirmation-rejected NOT_CONFIRMED",
            "form invalid client not-confirmed",
        ),
        (json!({"action": "decline"}), "cancelled", "form decline client"),
        (json!({"action": "decline", "content": {"confirm": true}}), "cancelled", "form decline client"),
        (json!({"action": "cancel"}), "cancelled cancelled", "form cancel client"),
        (json!({"action": "yes"}), "cancelled cancelled", "form invalid client answer-malformed"),
        (json!(null), "cancelled cancelled", "form invalid client answer-malformed"),
    ] {
        let (mut scene, question) = asked(plain_guard());
        let end = scene.answer(&question, 1_000, &answer);
        assert_eq!(case(&end), expected, "{answer}");
        assert_eq!(scene.records(), [record], "{answer}");
        assert!(!end.to_string().contains("mcpu.token"), "s8: a form was sent");
        // What is answered later does not count.
        assert_eq!(scene.answer(&question, 1_000, &accepted()), Value::Null);
        assert_eq!(scene.ran, [""; 0], "{answer}");
        scene.is_clean();
    }
}

#[test]
fn what_was_answered_faster_than_a_human_reads_was_not_shown_to_one() {
    for (answer, record) in [
        (accepted(), "form accept not_shown too-fast"),
        (json!({"action": "decline"}), "form decline not_shown"),
        (json!({"action": "cancel"}), "form cancel not_shown"),
    ] {
        let (mut scene, question) = asked(plain_guard());
        let end = scene.answer(&question, 399, &answer);
        assert_eq!(case(&end), "confirmation-not-shown", "{answer}");
        assert!(!end.to_string().contains("declined") && !end.to_string().contains("mcpu.token"));
        assert_eq!(scene.records(), [record]);
        assert_eq!(scene.ran, [""; 0]);
        scene.is_clean();
    }
    let (mut scene, question) = asked(plain_guard());
    assert_eq!(scene.answer(&question, 400, &accepted()), Value::Null);
    assert_eq!(scene.ran.len(), 1);
}

#[test]
fn a_client_that_cannot_show_it_says_so_and_gets_no_token() {
    for (error, expected, provenance) in [
        (json!({"code": -32601, "message": "Method not found"}), "confirmation-not-shown", "not_shown"),
        (json!({"code": -32603, "message": "no supported fields"}), "confirmation-not-shown", "not_shown"),
        (json!({"code": -32603, "message": "oh"}), "cancelled cancelled", "client"),
    ] {
        let (mut scene, question) = asked(plain_guard());
        scene.world.advance(Duration::from_secs(1));
        scene.sends(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}).to_string());
        let end = scene.got();
        assert_eq!(case(&end), expected, "{error}");
        assert!(!end.to_string().contains("mcpu.token"));
        assert_eq!(scene.records(), [format!("form error {provenance} client-error")]);
        scene.is_clean();
    }
}

#[test]
fn nobody_answers_in_time() {
    let (mut scene, question) = asked(plain_guard());
    scene.world.advance(Duration::from_secs(20));
    scene.world.tick();
    let mut got = std::mem::take(&mut scene.world.client);
    assert_eq!(value(&got[0])["params"]["requestId"], question["id"], "{got:?}");
    assert_eq!(case(&value(&got.remove(1))), "cancelled timeout");
    assert_eq!(scene.records(), ["form timeout system"]);
    assert_eq!(scene.answer(&question, 0, &accepted()), Value::Null);
    assert_eq!(scene.ran, [""; 0]);
    scene.is_clean();
}

#[test]
fn s8_a_token_on_the_form_rail_is_ignored_and_a_decline_beats_it() {
    let mut mute = Scene::mute(plain_guard());
    let token = said(&mute.call(r#"{"to":"a"}"#))["confirmToken"].as_str().unwrap().to_owned();
    for (answer, runs) in [(accepted(), 1), (json!({"action": "decline"}), 0)] {
        let mut scene = Scene::push(plain_guard(), &json!({}));
        let question = scene.call(&format!(r#"{{"to":"a","confirm":true,"confirmToken":"{token}"}}"#));
        scene.answer(&question, 1_000, &answer);
        assert_eq!(scene.ran.len(), runs, "{answer}");
        assert!(
            scene.ran.iter().all(|call| !call.contains("confirmToken") && call.contains(r#""confirm":true"#))
        );
    }
}

#[test]
fn an_edit_during_the_form_is_asked_about_once_more_and_then_no_more() {
    let (mut scene, question) = asked(whole_guard());
    let first = scene.preview.clone().unwrap();
    scene.preview = Some(first.replace("Hi", "Bye"));
    let again = scene.answer(&question, 1_000, &accepted());
    assert_eq!(again["method"], "elicitation/create");
    assert_ne!(again["id"], question["id"]);
    assert!(again["params"]["message"].as_str().unwrap().contains("Bye"), "{again}");
    assert_eq!(scene.records(), ["form invalid client payload-changed"]);
    // What was accepted the second time runs.
    assert_eq!(scene.answer(&again, 1_000, &accepted()), Value::Null);
    assert_eq!(scene.ran.len(), 1);
    assert_eq!(scene.records(), ["form accept client"]);
    scene.is_clean();

    let (mut scene, question) = asked(whole_guard());
    scene.preview = Some(first.replace("Hi", "Bye"));
    let again = scene.answer(&question, 1_000, &accepted());
    scene.preview = Some(first.replace("\\\"1\\\"", "\\\"2\\\""));
    let end = scene.answer(&again, 1_000, &accepted());
    assert_eq!(case(&end), "isError confirmation-rejected DRAFT_CHANGED revision-changed");
    assert!(!end.to_string().contains("mcpu.token"), "no token once a form was sent");
    assert_eq!(scene.ran, [""; 0]);
    scene.is_clean();
}

#[test]
fn the_second_form_has_a_time_limit_of_its_own() {
    let (mut scene, question) = asked(whole_guard());
    scene.preview = Some(PREVIEW.replace("Hi", "Bye"));
    let again = scene.answer(&question, 19_000, &accepted());
    assert_eq!(again["method"], "elicitation/create");
    scene.world.advance(Duration::from_secs(19));
    scene.world.tick();
    assert_eq!(scene.got(), Value::Null);
    scene.answer(&again, 500, &accepted());
    assert_eq!(scene.ran.len(), 1);
}

#[test]
fn what_does_not_fit_the_form_is_announced_and_cannot_be_accepted_there() {
    let mut scene = Scene::push(plain_guard(), &json!({}));
    let end = scene.call(&format!(r#"{{"to":"{}"}}"#, "x".repeat(40_000)));
    assert_eq!(case(&end), "confirmation-not-shown");
    assert!(said(&end)["note"].as_str().unwrap().contains("bytes not shown"), "{end}");
    assert_eq!(scene.records(), ["form not_offered system too-long"]);
    assert!(!end.to_string().contains("mcpu.token"));
    scene.is_clean();
}

#[test]
fn an_old_session_gets_the_form_without_a_mode() {
    let mut scene = Scene::new(plain_guard());
    scene.world.initialize(&json!({"elicitation": {}}), "2025-06-18");
    let question = scene.call("{}");
    assert_eq!(question["params"].get("mode"), None);
    assert_eq!(question["params"]["requestedSchema"]["properties"]["confirm"]["type"], "boolean");
}

/// A refusal of a call that was confirmed becomes a question, and the call runs again under the approval that it has.
#[test]
fn a_refusal_after_a_confirmation_is_asked_about_and_runs_under_the_same_approval() {
    let (mut scene, question) = asked(plain_guard());
    scene.answer(&question, 19_000, &accepted());
    assert_eq!(scene.ran.len(), 1);
    scene.world.upstream_sends(&response("1", REFUSAL));
    let question = scene.got();
    assert!(question["params"]["requestedSchema"]["properties"].get("deviceId").is_some(), "{question}");
    let choice = json!({"action": "accept", "content": {"deviceId": "A1B2"}});
    scene.world.advance(Duration::from_secs(1));
    scene.world.client_sends(&json!({"jsonrpc": "2.0", "id": question["id"], "result": choice}).to_string());
    let again = value(&scene.world.upstream_got());
    assert_eq!(again["params"]["arguments"], json!({"id": "d1", "body": "Hi", "deviceId": "A1B2"}));
}
