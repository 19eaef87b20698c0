//! The modern era: the form is handed back, and the retry brings the answer.

use super::*;

const ARGUMENTS: &str = r#"{"id":"d1","body":"Hi"}"#;

fn asked() -> (Scene, String) {
    let mut scene = Scene::new(whole_guard());
    let state = ask(&mut scene);
    (scene, state)
}

fn ask(scene: &mut Scene) -> String {
    let question = scene.modern(ARGUMENTS, "", &form());
    assert_eq!(scene.records(), ["form asked system"]);
    let request = &question["result"]["inputRequests"]["confirmation"];
    assert!(request["params"]["message"].as_str().unwrap().contains(r#""body":"Hi""#), "{question}");
    scene.world.advance(Duration::from_secs(1));
    state_of(&question)
}

fn retry(scene: &mut Scene, state: &str, answer: &Value) -> Value {
    scene.modern(ARGUMENTS, &retried(state, answer), &form())
}

#[track_caller]
fn is_invalid_state(answer: &Value) {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "invalid_request_state", "{answer}");
}

#[test]
fn an_accepted_retry_runs_once_without_what_is_ours() {
    let (mut scene, state) = asked();
    assert_eq!(retry(&mut scene, &state, &accepted()), Value::Null);
    assert_eq!(scene.ran.len(), 1);
    let params = &value(&scene.ran[0])["params"];
    assert_eq!(params["arguments"], value(ARGUMENTS));
    assert_eq!((params.get("requestState"), params.get("inputResponses")), (None, None));
    assert!(params["_meta"].is_object());
    assert_eq!(scene.records(), ["form accept client"]);
    scene.is_clean();
    for _ in 0..3 {
        let answer = retry(&mut scene, &state, &accepted());
        assert_eq!(case(&answer), "isError confirmation-rejected TOKEN_REUSED");
        assert_eq!(answer["result"]["resultType"], "complete");
    }
    assert_eq!(scene.ran.len(), 1);
}

#[test]
fn s5_sixty_four_replays_over_two_gateways_are_one_run() {
    let (mut one, state) = asked();
    let replica = Arc::new(Process::new(confirming(vec![whole_guard()], shared_secret())));
    let mut two = Scene::on(World::on(replica, [8; 32]));
    two.world.now = one.world.now;
    // All are judged before the store says anything about the first.
    let mut spends = Vec::new();
    for round in 0..32 {
        for (which, scene) in [&mut one, &mut two].into_iter().enumerate() {
            scene.store = Store::Silent;
            assert_eq!(retry(scene, &state, &accepted()), Value::Null, "{round}");
            spends.extend(std::mem::take(&mut scene.world.spends).into_iter().map(|spend| (which, spend)));
        }
    }
    assert_eq!(spends.len(), 0, "the silent store takes what it is asked");
    let mut store = BTreeSet::new();
    let (mut asked_of, mut runs) = ([0_u64; 2], 0);
    for (which, scene) in [&mut one, &mut two].into_iter().enumerate() {
        for ticket in 1..=32 {
            let mut out = Vec::new();
            // One store for both, whose every claim is about the same nonce.
            let was = if store.insert([0; 16]) { Spent::No } else { Spent::Yes };
            scene.world.envelope.spent(ticket, was, scene.world.now, &mut out);
            asked_of[which] += u64::from(!out.is_empty());
            scene.world.drain(out);
        }
        scene.settle();
        runs += scene.ran.len();
    }
    assert_eq!((asked_of, runs), ([32, 32], 1));
}

#[test]
fn each_answer_settles_the_question_and_only_a_ticked_box_runs_it() {
    for (answer, expected, record) in [
        (json!({"action": "decline"}), "cancelled", "form decline client"),
        (json!({"action": "cancel"}), "cancelled cancelled", "form cancel client"),
        (
            json!({"action": "accept"}),
            "isError confirmation-rejected NOT_CONFIRMED",
            "form invalid client not-confirmed",
        ),
        (
            json!({"action": "accept", "content": {"confirm": "true"}}),
            "isError confirmation-rejected NOT_CONFIRMED",
            "form invalid client not-confirmed",
        ),
        (json!(7), "cancelled cancelled", "form invalid client answer-malformed"),
    ] {
        let (mut scene, state) = asked();
        assert_eq!(case(&retry(&mut scene, &state, &answer)), expected, "{answer}");
        assert_eq!(scene.records(), [record], "{answer}");
        // The same state accepts nothing any more.
        assert_eq!(
            case(&retry(&mut scene, &state, &accepted())),
            "isError confirmation-rejected TOKEN_REUSED",
            "{answer}"
        );
        assert_eq!(scene.ran, [""; 0], "{answer}");
        scene.is_clean();
    }
}

#[test]
fn a_decline_beats_a_token_and_a_confirm_of_the_same_call() {
    let (mut scene, state) = asked();
    let token = said(&scene.modern(ARGUMENTS, "", &json!({})))["confirmToken"].as_str().unwrap().to_owned();
    for capabilities in [form(), json!({})] {
        let arguments = format!(r#"{{"id":"d1","body":"Hi","confirmToken":"{token}"}}"#);
        let answer = scene.modern(&arguments, &retried(&state, &json!({"action": "decline"})), &capabilities);
        assert_eq!(case(&answer), "cancelled");
        // Also where the answer came without its question.
        let alone = r#","inputResponses":{"confirmation":{"action":"decline"}}"#;
        let answer = scene.modern(&arguments, alone, &capabilities);
        assert_eq!(case(&answer), "isError confirmation-rejected STATE_MISSING");
    }
    assert_eq!(scene.ran, [""; 0]);
}

#[test]
fn an_answer_faster_than_a_human_is_none_and_spends_the_question() {
    let (mut scene, state) = asked();
    scene.world.now.boot = Moment::from_millis(scene.world.now.boot.as_millis() - 601);
    scene.world.now.wall_ms -= 601;
    assert_eq!(case(&retry(&mut scene, &state, &accepted())), "confirmation-not-shown");
    assert_eq!(scene.records(), ["form accept not_shown too-fast"]);
    scene.world.advance(Duration::from_secs(5));
    assert_eq!(case(&retry(&mut scene, &state, &accepted())), "isError confirmation-rejected TOKEN_REUSED");
    assert_eq!(scene.ran, [""; 0]);
}

#[test]
fn s22_every_changed_character_of_a_state_is_refused_before_anything_is_read() {
    let (mut scene, state) = asked();
    let payload_at = state.match_indices('.').nth(1).map(|(at, _)| at + 1).unwrap();
    let previews = scene.previews;
    for at in payload_at..state.len() {
        let other = if &state[at..=at] == "A" { "B" } else { "A" };
        let changed = format!("{}{other}{}", &state[..at], &state[at + 1..]);
        is_invalid_state(&retry(&mut scene, &changed, &accepted()));
    }
    for wrong in ["hr1.", "hr1.a.b.c", &state[..state.len() - 1], "theirs"] {
        is_invalid_state(&retry(&mut scene, wrong, &accepted()));
    }
    let more = r#","requestState":7,"inputResponses":{}"#;
    is_invalid_state(&scene.modern(ARGUMENTS, more, &form()));
    assert_eq!((scene.ran.len(), scene.previews), (0, previews));
    scene.is_clean();
}

#[test]
fn a_state_that_is_over_or_of_another_call_is_asked_about_anew() {
    let (mut scene, state) = asked();
    for arguments in [r#"{"id":"d1","body":"Hi!"}"#, r#"{"id":"d2","body":"Hi"}"#] {
        let answer = scene.modern(arguments, &retried(&state, &accepted()), &form());
        let other = state_of(&answer);
        assert_ne!(other, state);
    }
    scene.world.advance(Duration::from_secs(600));
    let answer = retry(&mut scene, &state, &accepted());
    let fresh = state_of(&answer);
    scene.world.advance(Duration::from_secs(1));
    assert_eq!(case(&retry(&mut scene, &state, &json!({"action": "decline"}))), "cancelled");
    assert_eq!(scene.ran, [""; 0]);
    retry(&mut scene, &fresh, &accepted());
    assert_eq!(scene.ran.len(), 1);
}

#[test]
fn s8_whoever_was_asked_and_declares_nothing_any_more_gets_neither_form_nor_token() {
    let (mut scene, state) = asked();
    scene.world.advance(Duration::from_secs(600));
    let answer = scene.modern(ARGUMENTS, &retried(&state, &accepted()), &json!({}));
    assert_eq!(case(&answer), "confirmation-not-shown");
    assert_eq!(scene.records(), ["form not_offered system form-not-declared"]);
    let (mut scene, state) = asked();
    scene.preview = Some(PREVIEW.replace("Hi", "Bye"));
    let answer = scene.modern(ARGUMENTS, &retried(&state, &accepted()), &json!({}));
    assert_eq!(case(&answer), "confirmation-not-shown");
    assert!(!answer.to_string().contains("mcpu.token"));
    // What was accepted and is unchanged runs: the state says that a form was shown.
    let (mut scene, state) = asked();
    scene.modern(ARGUMENTS, &retried(&state, &accepted()), &json!({}));
    assert_eq!(scene.ran.len(), 1);
}

#[test]
fn s10_a_state_is_bound_to_its_caller() {
    let (mut scene, state) = asked();
    scene.world.caller = Arc::new(Caller { principal: "other".to_owned(), session: None });
    is_invalid_state(&retry(&mut scene, &state, &accepted()));
    scene.world.caller = Arc::new(Caller { principal: "stdio".to_owned(), session: Some("s".to_owned()) });
    is_invalid_state(&retry(&mut scene, &state, &accepted()));
    assert_eq!(scene.ran, [""; 0]);
}

#[test]
fn an_edit_is_asked_about_once_more_and_then_no_more() {
    let (mut scene, state) = asked();
    let first = scene.preview.clone().unwrap();
    scene.preview = Some(first.replace("Hi", "Bye"));
    let again = retry(&mut scene, &state, &accepted());
    let second = state_of(&again);
    assert!(again.to_string().contains("Bye"));
    scene.records();
    scene.world.advance(Duration::from_secs(1));
    // The first state was settled by its acceptance.
    scene.preview = Some(first.clone());
    assert_eq!(case(&retry(&mut scene, &state, &accepted())), "isError confirmation-rejected TOKEN_REUSED");
    let end = retry(&mut scene, &second, &accepted());
    assert_eq!(case(&end), "isError confirmation-rejected DRAFT_CHANGED payload-changed");
    assert!(!end.to_string().contains("mcpu.token"));
    assert_eq!(scene.ran, [""; 0]);
    scene.is_clean();

    let (mut scene, state) = asked();
    scene.preview = Some(first.replace("Hi", "Bye"));
    let second = state_of(&retry(&mut scene, &state, &accepted()));
    scene.world.advance(Duration::from_secs(1));
    assert_eq!(retry(&mut scene, &second, &accepted()), Value::Null);
    assert_eq!(scene.ran.len(), 1);
}

#[test]
fn states_of_the_push_era_are_refused_and_answers_without_a_state_are_none() {
    let (mut scene, state) = asked();
    scene.sends(&format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"send","arguments":{ARGUMENTS}{}}}}}"#,
        retried(&state, &accepted())
    ));
    is_invalid_state(&scene.got());
    for more in [
        r#","inputResponses":{"confirmation":{"action":"accept","content":{"confirm":true}}}"#,
        r#","inputResponses":{}"#,
    ] {
        assert_eq!(
            case(&scene.modern(ARGUMENTS, more, &form())),
            "isError confirmation-rejected STATE_MISSING"
        );
    }
    assert_eq!(scene.ran, [""; 0]);
}

#[test]
fn a_token_rail_caller_cannot_bring_a_state_it_made_up_of_a_refusal() {
    // A state of a refusal's question about a guarded call that was never confirmed.
    let mut other = World::new(config());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": form()});
    other.client_sends(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"send","arguments":{{}},"_meta":{meta}}}}}"#
    ));
    other.upstream_sends(&response("1", REFUSAL));
    let state = state_of(&value(&other.client_got()));
    let mut scene = Scene::new(plain_guard());
    let more = format!(
        r#","requestState":"{state}","inputResponses":{{"deviceChoice":{{"action":"accept","content":{{"deviceId":"A1B2"}}}}}}"#
    );
    is_invalid_state(&scene.modern("{}", &more, &form()));
    assert_eq!(scene.records(), ["form invalid client state-not-confirmed"]);
    assert_eq!(scene.ran, [""; 0]);
}

#[test]
fn a_refusal_after_a_confirmation_runs_under_the_same_approval_once() {
    let mut scene = Scene::new(plain_guard());
    let confirm = state_of(&scene.modern("{}", "", &form()));
    scene.world.advance(Duration::from_secs(1));
    scene.modern("{}", &retried(&confirm, &accepted()), &form());
    let id = value(&scene.ran[0])["id"].to_string();
    scene.world.upstream_sends(&response(&id, REFUSAL));
    let refusal = state_of(&scene.got());
    scene.world.advance(Duration::from_secs(1));
    let more = format!(
        r#","requestState":"{refusal}","inputResponses":{{"deviceChoice":{{"action":"accept","content":{{"deviceId":"A1B2"}}}}}}"#
    );
    scene.modern(r#"{"confirmToken":""}"#, &more, &form());
    assert_eq!(scene.ran.len(), 2);
    assert_eq!(value(&scene.ran[1])["params"]["arguments"], json!({"deviceId": "A1B2"}));
    is_invalid_state(&scene.modern("{}", &more, &form()));
    assert_eq!(scene.ran.len(), 2);
}

/// A confirmed call that was refused, and the members of the retry that chooses.
fn refused(values: Values<'_>, is_kept: bool) -> (Scene, String) {
    let mut scene = Scene::on(World::new(kept_or_not(values, is_kept)));
    let confirm = state_of(&scene.modern("{}", "", &form()));
    scene.world.advance(Duration::from_secs(1));
    scene.modern("{}", &retried(&confirm, &accepted()), &form());
    let id = value(&scene.ran[0])["id"].to_string();
    scene.world.upstream_sends(&response(&id, REFUSAL));
    let refusal = state_of(&scene.got());
    scene.world.advance(Duration::from_secs(1));
    let choice = r#"{"action":"accept","content":{"deviceId":"A1B2"}}"#;
    (scene, format!(r#","requestState":"{refusal}","inputResponses":{{"deviceChoice":{choice}}}"#))
}

fn kept_or_not(values: Values<'_>, is_kept: bool) -> EnvelopeConfig {
    let guards = Guards::new(vec![plain_guard()]).unwrap();
    let random = if is_kept { [5; 32] } else { *b"random bytes of this one process" };
    let keyring = Keyring::single(&[1; 32]);
    let remembers = if is_kept { Remembers::Beyond } else { Remembers::InProcess };
    let (confirm, _) = ConfirmConfig::new(guards, values, keyring.clone(), random, remembers);
    EnvelopeConfig { confirm: Some(confirm), keyring, ..config() }
}

#[test]
fn s5_one_approval_is_one_run_after_a_refusal_also_in_another_gateway() {
    let (mut one, more) = refused(shared_secret(), true);
    let replica = Arc::new(Process::new(kept_or_not(shared_secret(), true)));
    let mut two = Scene::on(World::on(replica, [8; 32]));
    two.world.now = one.world.now;
    // A store that says nothing lets nothing run, and neither does one that knows the state.
    two.store = Store::Broken;
    is_invalid_state(&two.modern("{}", &more, &form()));
    assert_eq!(two.records(), ["form invalid client spent-store-unavailable"]);
    // Whoever declines spends nothing.
    let declined = more.replace("accept", "decline");
    assert_eq!(two.modern("{}", &declined, &form())["result"]["isError"], true);
    assert_eq!(one.modern("{}", &more, &form()), Value::Null);
    assert_eq!(one.ran.len(), 2);
    two.store = one.store;
    is_invalid_state(&two.modern("{}", &more, &form()));
    assert_eq!(two.records().last().unwrap(), "form invalid client token-reused");
    assert_eq!(two.ran, [""; 0]);
}

#[test]
fn s5_an_approval_ends_with_the_process_that_alone_knows_what_it_spent() {
    let (mut one, more) = refused(shared_secret(), false);
    let replica = Arc::new(Process::new(kept_or_not(shared_secret(), true)));
    let mut two = Scene::on(World::on(replica, [8; 32]));
    two.world.now = one.world.now;
    is_invalid_state(&two.modern("{}", &more, &form()));
    assert_eq!(two.ran, [""; 0]);
    assert_eq!(one.modern("{}", &more, &form()), Value::Null);
    assert_eq!(one.ran.len(), 2);
}

#[test]
fn a_cancelled_rerun_of_a_confirmed_call_runs_nothing() {
    let (mut scene, more) = refused(shared_secret(), true);
    scene.store = Store::Silent;
    assert_eq!(scene.modern("{}", &more, &form()), Value::Null);
    let id = scene.next;
    scene.sends(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    let mut out = Vec::new();
    scene.world.envelope.spent(2, Spent::No, scene.world.now, &mut out);
    assert_eq!((out.len(), scene.ran.len(), scene.world.envelope.guarded_calls()), (0, 1, 0));
}

#[test]
fn the_upstreams_own_question_goes_on_from_a_confirmed_run_only() {
    let mut scene = Scene::new(plain_guard());
    let theirs = r#","requestState":"theirs","inputResponses":{"colour":{"action":"accept","content":{}}}"#;
    is_invalid_state(&scene.modern("{}", theirs, &form()));
    let confirm = state_of(&scene.modern("{}", "", &form()));
    scene.world.advance(Duration::from_secs(1));
    scene.modern("{}", &retried(&confirm, &accepted()), &form());
    let id = value(&scene.ran[0])["id"].to_string();
    let question = r#"{"resultType":"input_required","inputRequests":{},"requestState":"theirs"}"#;
    scene.world.upstream_sends(&response(&id, question));
    assert_eq!(scene.got()["result"]["requestState"], "theirs");
    // Other arguments are another call.
    is_invalid_state(&scene.modern(r#"{"x":1}"#, theirs, &form()));
    assert_eq!(scene.ran.len(), 1);
    assert_eq!(scene.modern("{}", theirs, &form()), Value::Null);
    assert_eq!(scene.ran.len(), 2);
    assert!(scene.ran[1].contains(r#""requestState":"theirs""#));
    is_invalid_state(&scene.modern("{}", theirs, &form()));
    assert_eq!(scene.ran.len(), 2);
}
