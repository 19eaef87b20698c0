//! Guarded calls in the inbox: nothing runs without an acceptance of exactly what was shown there.

use std::sync::atomic::{AtomicBool, Ordering};

use handraise_core::words::{Provenance, Rail, Source};

use super::*;
use crate::confirm::{Answerers, Demand};
use crate::envelope::{InboxEnd, InboxSaid, OPERATOR_GONE};
use crate::rails::{Asked, Ladder};

type Operator = Arc<AtomicBool>;

/// Somebody is at the inbox, until it is said otherwise.
fn attach(scene: &Scene) -> Operator {
    let operator = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&operator);
    let away = OPERATOR_GONE + Duration::from_secs(1);
    scene
        .world
        .process
        .attach_inbox(move || Some(if seen.load(Ordering::Relaxed) { Duration::ZERO } else { away }));
    operator
}

/// A session beside an inbox.
fn beside(guard: GuardSource, capabilities: &Value) -> (Scene, Operator) {
    let mut scene = Scene::new(guard);
    scene.world.initialize(capabilities, "2025-11-25");
    let operator = attach(&scene);
    (scene, operator)
}

fn says(scene: &mut Scene, key: &str, end: InboxEnd, provenance: Provenance) -> Value {
    let mut out = Vec::new();
    scene.world.envelope.inbox_said(key, &InboxSaid { end, provenance }, scene.world.now, &mut out);
    scene.world.drain(out);
    scene.settle();
    scene.got()
}

fn yes() -> InboxEnd {
    InboxEnd::Accepted(r#"{"confirm":true}"#.into())
}

/// Calls, and takes what the inbox is asked; nothing has run.
#[track_caller]
fn put(scene: &mut Scene, arguments: &str) -> InboxAsk {
    let ran = scene.ran.len();
    assert_eq!(scene.call(arguments), Value::Null);
    assert_eq!((scene.world.inbox.len(), scene.ran.len()), (1, ran), "{:?}", scene.world.records);
    scene.world.inbox.remove(0)
}

#[test]
fn a_call_that_its_client_cannot_be_asked_about_is_confirmed_in_the_inbox() {
    let (mut scene, _) = beside(whole_guard(), &json!({}));
    let ask = put(&mut scene, r#"{"id":"d1","account":"ada","to":"b"}"#);
    assert_eq!(
        (ask.source, ask.tool.as_str(), ask.timeout),
        (Source::Confirm, "send", Duration::from_secs(45))
    );
    assert_eq!(ask.message, "stdio (calls itself \"client\") asks to: Send e-mail");
    let schema = value(&ask.schema);
    assert_eq!(
        (&schema["properties"]["confirm"]["type"], &schema["required"]),
        (&json!("boolean"), &json!(["confirm"]))
    );
    let shown = ask.confirm.unwrap();
    assert_eq!(
        (shown.account.as_deref(), shown.target.as_deref(), shown.action.as_str()),
        (Some("ada"), Some("d1"), "Send e-mail")
    );
    assert_eq!(shown.arguments, "\"account\":\"ada\"\n\"id\":\"d1\"\n\"to\":\"b\"");
    assert!(shown.preview.unwrap().contains("Hi"));
    assert_eq!(shown.demand, Demand::default());
    scene.world.advance(Duration::from_secs(5));
    assert_eq!(says(&mut scene, &ask.key, yes(), Provenance::Human), Value::Null);
    assert_eq!(scene.ran.len(), 1);
    assert_eq!(value(&scene.ran[0])["params"]["arguments"], json!({"id": "d1", "account": "ada", "to": "b"}));
    assert_eq!(
        (scene.previews, scene.world.records[0].latency_ms),
        (2, Some(5000)),
        "read again after the acceptance"
    );
    assert_eq!(scene.world.records[0].ask.as_ref(), Some(&ask.key));
    assert_eq!(scene.records(), ["inbox accept human"]);
    let Store::Of(spent) = &scene.store else { panic!() };
    assert_eq!(spent.len(), 1, "S5: the acceptance is spent");
    // It was for one call: what comes twice runs nothing.
    assert_eq!(says(&mut scene, &ask.key, yes(), Provenance::Human), Value::Null);
    assert_eq!(scene.ran.len(), 1);
    scene.is_clean();
}

#[test]
fn everything_but_a_whole_acceptance_runs_nothing_and_says_how_it_ended() {
    let human = Provenance::Human;
    let content = |content: &str| InboxEnd::Accepted(content.to_owned());
    for (end, provenance, expected, recorded) in [
        (InboxEnd::Declined, human, "cancelled", "inbox decline human"),
        (InboxEnd::Cancelled, Provenance::System, "cancelled cancelled", "inbox cancel system"),
        (InboxEnd::TimedOut, Provenance::System, "cancelled timeout", "inbox timeout system"),
        (
            content(r#"{"confirm":false}"#),
            human,
            "isError confirmation-rejected NOT_CONFIRMED",
            "inbox invalid human not-confirmed",
        ),
        (
            content(r#"{"confirm":"true"}"#),
            human,
            "isError confirmation-rejected NOT_CONFIRMED",
            "inbox invalid human not-confirmed",
        ),
        (
            content(r#"{"confirm":true,"confirm":true}"#),
            human,
            "isError confirmation-rejected NOT_CONFIRMED",
            "inbox invalid human not-confirmed",
        ),
        (
            content("{}"),
            human,
            "isError confirmation-rejected NOT_CONFIRMED",
            "inbox invalid human not-confirmed",
        ),
        (
            content("x"),
            human,
            "isError confirmation-rejected NOT_CONFIRMED",
            "inbox invalid human not-confirmed",
        ),
        (
            yes(),
            Provenance::NotShown,
            "isError confirmation-rejected NOT_CONFIRMED",
            "inbox invalid not_shown not-human",
        ),
        (
            yes(),
            Provenance::System,
            "isError confirmation-rejected NOT_CONFIRMED",
            "inbox invalid system not-human",
        ),
    ] {
        let (mut scene, _) = beside(plain_guard(), &json!({}));
        let ask = put(&mut scene, "{}");
        let answer = says(&mut scene, &ask.key, end, provenance);
        assert_eq!(case(&answer), expected, "{recorded}");
        assert_eq!(scene.records(), [recorded]);
        assert_eq!(scene.ran, [""; 0]);
        assert!(!answer.to_string().contains("mcpu.token"));
        scene.is_clean();
    }
}

#[test]
fn what_changed_while_it_was_asked_about_is_asked_a_last_time() {
    let (mut scene, _) = beside(whole_guard(), &json!({}));
    let first = put(&mut scene, r#"{"id":"d1"}"#);
    scene.preview = Some(PREVIEW.replace("Hi", "Bye").replace("\\\"1\\\"", "\\\"2\\\""));
    assert_eq!(says(&mut scene, &first.key, yes(), Provenance::Human), Value::Null);
    let second = scene.world.inbox.remove(0);
    assert!(second.confirm.unwrap().preview.unwrap().contains("Bye"));
    assert_eq!(scene.records(), ["inbox invalid human revision-changed"]);
    scene.preview = Some(PREVIEW.to_owned());
    let answer = says(&mut scene, &second.key, yes(), Provenance::Human);
    assert_eq!(case(&answer), "isError confirmation-rejected DRAFT_CHANGED revision-changed");
    assert_eq!(scene.ran, [""; 0]);
    scene.is_clean();
}

#[test]
fn s5_what_the_store_does_not_take_does_not_run() {
    let (mut scene, _) = beside(plain_guard(), &json!({}));
    let ask = put(&mut scene, "{}");
    scene.store = Store::Broken;
    let answer = says(&mut scene, &ask.key, yes(), Provenance::Human);
    assert_eq!(case(&answer), "isError confirmation-rejected SPENT_STORE_UNAVAILABLE");
    assert_eq!(scene.records(), ["inbox invalid human spent-store-unavailable"]);
    assert_eq!(scene.ran, [""; 0]);
    scene.is_clean();
}

#[test]
fn a_persons_word_is_a_persons_and_nothing_else_confirms_where_it_is_demanded() {
    let guard = GuardSource { needs_human: true, ..plain_guard() };
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        let (mut scene, operator) = beside(guard.clone(), &capabilities);
        let ask = put(&mut scene, r#"{"confirmToken":"x"}"#);
        assert!(ask.confirm.unwrap().demand.human);
        let answer = says(&mut scene, &ask.key, yes(), Provenance::Client);
        assert_eq!(case(&answer), "isError confirmation-rejected NOT_CONFIRMED");
        assert_eq!(scene.records(), ["inbox invalid client not-human"]);
        let ask = put(&mut scene, "{}");
        says(&mut scene, &ask.key, yes(), Provenance::Human);
        assert_eq!((scene.ran.len(), scene.records()), (1, vec!["inbox accept human".to_owned()]));
        let ask = put(&mut scene, "{}");
        let answer = says(&mut scene, &ask.key, InboxEnd::NotOpened("not-opened"), Provenance::System);
        assert_eq!(case(&answer), "confirmation-not-shown");
        scene.records();
        operator.store(false, Ordering::Relaxed);
        let answer = scene.call("{}");
        assert_eq!(case(&answer), "confirmation-unsupported");
        assert!(said(&answer)["note"].as_str().unwrap().contains("inbox"));
        assert_eq!(scene.records(), ["refuse not_offered system needs-inbox"]);
        assert_eq!(scene.ran.len(), 1);
        scene.is_clean();
    }
}

#[test]
fn whose_word_counts_goes_with_the_question_and_tables_that_contradict_each_other_leave_nobody() {
    let guard = |who| GuardSource { who, ..plain_guard() };
    let (mut scene, _) = beside(guard(Answerers::Caller), &json!({"elicitation": {}}));
    assert_eq!(put(&mut scene, "{}").confirm.unwrap().demand.who, Answerers::Caller);
    let mut scene =
        Scene::with(vec![guard(Answerers::Caller), guard(Answerers::NotTheCaller)], shared_secret());
    scene.world.initialize(&json!({}), "2025-11-25");
    attach(&scene);
    assert_eq!(case(&scene.call("{}")), "confirmation-unsupported");
    assert!(scene.world.inbox.is_empty());
}

#[test]
fn s8_a_form_that_nobody_was_shown_goes_on_to_the_inbox_and_never_to_a_token() {
    for (result, word) in [(json!({"action": "decline"}), "decline"), (json!({"action": "cancel"}), "cancel")]
    {
        let (mut scene, _) = beside(plain_guard(), &json!({"elicitation": {}}));
        let question = scene.call("{}");
        assert_eq!(scene.answer(&question, 12, &result), Value::Null);
        let ask = scene.world.inbox.remove(0);
        let sentence =
            format!("The client answered {word} after 12 ms: nobody can have read the question there.");
        assert_eq!(
            ask.message,
            format!("stdio (calls itself \"client\") asks to: Send e-mail\n\n{sentence}")
        );
        assert_eq!(scene.records(), [format!("form {word} not_shown")]);
        // It could not be put to anybody: there is no other rail left.
        let answer = says(&mut scene, &ask.key, InboxEnd::NotOpened("not-opened"), Provenance::System);
        assert_eq!(case(&answer), "confirmation-not-shown");
        assert!(!answer.to_string().contains("mcpu.token"));
        assert_eq!(scene.records(), ["inbox error system not-opened"]);
        scene.is_clean();
    }
    let (mut scene, operator) = beside(plain_guard(), &json!({"elicitation": {}}));
    operator.store(false, Ordering::Relaxed);
    let question = scene.call("{}");
    let answer = scene.answer(&question, 12, &json!({"action": "decline"}));
    assert_eq!(case(&answer), "confirmation-not-shown");
    // What came too fast to be a person's confirms nothing there, and is asked nowhere else.
    let (mut scene, _) = beside(plain_guard(), &json!({"elicitation": {}}));
    let question = scene.call("{}");
    assert_eq!(case(&scene.answer(&question, 12, &accepted())), "confirmation-not-shown");
    assert!(scene.world.inbox.is_empty());
}

#[test]
fn a_modern_retry_that_nobody_was_shown_goes_on_inside_that_retry() {
    let mut scene = Scene::new(plain_guard());
    attach(&scene);
    let question = scene.modern("{}", "", &json!({"elicitation": {}}));
    let state = state_of(&question);
    scene.world.advance(Duration::from_millis(12));
    let declined = json!({"action": "decline"});
    assert_eq!(scene.modern("{}", &retried(&state, &declined), &json!({"elicitation": {}})), Value::Null);
    let ask = scene.world.inbox.remove(0);
    assert!(ask.message.contains("The client answered decline after 12 ms"), "{}", ask.message);
    says(&mut scene, &ask.key, yes(), Provenance::Human);
    assert_eq!(scene.ran.len(), 1);
    let ran = value(&scene.ran[0]);
    assert_eq!((&ran["id"], ran["params"].get("requestState")), (&json!(2), None));
    // The state's question is settled.
    scene.world.advance(Duration::from_secs(1));
    let again = scene.modern("{}", &retried(&state, &accepted()), &json!({"elicitation": {}}));
    assert_eq!(case(&again), "isError confirmation-rejected TOKEN_REUSED");
    assert_eq!(scene.ran.len(), 1);
}

#[test]
fn a_modern_call_is_held_open_for_the_inbox() {
    let mut scene = Scene::new(plain_guard());
    attach(&scene);
    assert_eq!(scene.modern("{}", "", &json!({})), Value::Null);
    let ask = scene.world.inbox.remove(0);
    let answer = says(&mut scene, &ask.key, InboxEnd::Declined, Provenance::Human);
    assert_eq!((case(&answer).as_str(), &answer["result"]["resultType"]), ("cancelled", &json!("complete")));
    scene.is_clean();
}

#[test]
fn without_an_operator_the_next_rail_is_taken_at_once() {
    let (mut scene, operator) = beside(plain_guard(), &json!({}));
    operator.store(false, Ordering::Relaxed);
    assert_eq!(case(&scene.call("{}")), "confirmation-required");
    operator.store(true, Ordering::Relaxed);
    // Nor does a question that could not be opened cost the token.
    let ask = put(&mut scene, "{}");
    let answer = says(&mut scene, &ask.key, InboxEnd::NotOpened("not-opened"), Provenance::System);
    assert_eq!(case(&answer), "confirmation-required");
    scene.is_clean();
}

#[test]
fn the_order_of_rails_is_that_of_the_settings() {
    let with = |words: &[&str], capabilities: &Value| {
        let confirm_rails = Ladder::parse(Asked::Confirm, words.iter().copied()).unwrap();
        let config = EnvelopeConfig { confirm_rails, ..confirming(vec![plain_guard()], shared_secret()) };
        let mut scene = Scene::on(World::new(config));
        scene.world.initialize(capabilities, "2025-11-25");
        attach(&scene);
        scene
    };
    let forms = json!({"elicitation": {}});
    assert_eq!(case(&with(&["token", "form"], &forms).call("{}")), "confirmation-required");
    let mut scene = with(&["inbox", "form"], &forms);
    let ask = put(&mut scene, "{}");
    let question = says(&mut scene, &ask.key, InboxEnd::NotOpened("not-opened"), Provenance::System);
    assert_eq!(question["method"], "elicitation/create");
    let refused = with(&["form"], &json!({})).call("{}");
    assert_eq!(case(&refused), "confirmation-unsupported");
    assert!(said(&refused)["note"].as_str().unwrap().contains("rails.confirm"), "{refused}");
    assert_eq!(case(&with(&["refuse"], &forms).call("{}")), "confirmation-unsupported");
}

#[test]
fn a_wait_ends_with_its_deadline_its_call_its_client_and_its_server() {
    let (mut scene, _) = beside(plain_guard(), &json!({}));
    let ask = put(&mut scene, "{}");
    scene.world.advance(Duration::from_millis(45_250));
    scene.world.tick();
    assert_eq!(case(&scene.got()), "cancelled timeout");
    assert_eq!(scene.records(), ["inbox timeout system"]);
    assert_eq!(scene.world.withdrawn, [(ask.key.clone(), Withdrawal::TimedOut)]);
    assert_eq!(says(&mut scene, &ask.key, yes(), Provenance::Human), Value::Null);
    // Nobody was there: the next one does not wait, and there is no token for it.
    let answer = scene.call("{}");
    assert_eq!(case(&answer), "confirmation-not-shown");
    assert_eq!(scene.records(), ["inbox not_offered system inbox-unanswered"]);
    scene.is_clean();
    for (end, why, records) in [
        (0, Withdrawal::Cancelled, "inbox withdrawn client call-cancelled"),
        (1, Withdrawal::Gone, "inbox withdrawn system client-closed"),
        (2, Withdrawal::Gone, "inbox withdrawn system server-ended"),
    ] {
        let (mut scene, _) = beside(plain_guard(), &json!({}));
        let ask = put(&mut scene, "{}");
        match end {
            0 => scene
                .sends(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#),
            1 => scene.world.client_closes(),
            _ => scene.world.upstream_ends(),
        }
        assert_eq!(scene.world.withdrawn, [(ask.key.clone(), why)]);
        assert_eq!(scene.records(), [records]);
        assert_eq!(scene.world.client.len(), usize::from(end != 0));
        scene.world.client.clear();
        assert_eq!(says(&mut scene, &ask.key, yes(), Provenance::Human), Value::Null);
        assert_eq!(scene.ran, [""; 0]);
        scene.is_clean();
    }
}

#[test]
fn a_call_that_takes_progress_hears_of_its_wait_and_never_of_less_after_it() {
    let (mut scene, _) = beside(plain_guard(), &json!({}));
    scene.sends(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send","arguments":{},"_meta":{"progressToken":7}}}"#);
    let ask = scene.world.inbox.remove(0);
    assert_eq!(ask.timeout, Duration::from_mins(10));
    scene.world.advance(Duration::from_secs(10));
    scene.world.tick();
    let told = scene.got();
    assert_eq!(told["params"]["progressToken"], 7);
    let told = told["params"]["progress"].as_f64().unwrap();
    says(&mut scene, &ask.key, yes(), Provenance::Human);
    assert_eq!(scene.ran.len(), 1);
    let progress = |value: f64| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":7,"progress":{value}}}}}"#
        )
    };
    scene.world.upstream_sends(&progress(told / 2.0));
    assert_eq!(scene.got(), Value::Null);
    scene.world.upstream_sends(&progress(1.0));
    assert_eq!(scene.got()["params"]["progress"], 1.0);
    scene.is_clean();
}

#[test]
fn more_than_a_surface_shows_cannot_be_confirmed_there() {
    let (mut scene, _) = beside(plain_guard(), &json!({}));
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(40_000));
    assert_eq!(case(&scene.call(&long)), "confirmation-not-shown");
    assert_eq!(scene.records(), ["inbox not_offered system too-long"]);
    assert!(scene.world.inbox.is_empty());
}

#[test]
fn a_refusals_question_of_a_confirmed_call_goes_to_the_inbox_as_well() {
    let (mut scene, _) = beside(plain_guard(), &json!({}));
    let ask = put(&mut scene, "{}");
    says(&mut scene, &ask.key, yes(), Provenance::Human);
    let id = value(&scene.ran[0])["id"].to_string();
    scene.world.upstream_sends(&response(&id, REFUSAL));
    let ask = scene.world.inbox.remove(0);
    assert_eq!((ask.source, ask.confirm), (Source::Refusal, None));
    let end = InboxEnd::Accepted(r#"{"deviceId":"A1B2"}"#.into());
    let mut out = Vec::new();
    let said = InboxSaid { end, provenance: Provenance::Human };
    scene.world.envelope.inbox_said(&ask.key, &said, scene.world.now, &mut out);
    scene.world.drain(out);
    let again = value(&scene.world.upstream_got());
    assert_eq!(again["params"]["arguments"]["deviceId"], "A1B2");
    assert_eq!(scene.world.records.last().map(|record| record.rail), Some(Rail::Inbox));
}
