//! S22: a state of one kind is worth nothing where the other is wanted.

use super::*;
use crate::envelope::tests::seed::modern_call;

const ARGUMENTS: &str = r#"{"id":"d1"}"#;

/// Both answers at once, so that whoever takes the state finds one.
fn with(state: &str) -> String {
    let choice = accept("A1B2");
    format!(
        r#","requestState":"{state}","inputResponses":{{"confirmation":{},"deviceChoice":{choice}}}"#,
        accepted()
    )
}

/// Runs a modern call of the tool that nothing guards; the client's one frame, if there is one.
fn unguarded(scene: &mut Scene, more: &str) -> Value {
    let id = scene.id();
    scene.sends(&modern_call(&id, more, &json!({"form": {}})));
    scene.got()
}

#[track_caller]
fn is_refused(scene: &mut Scene, answer: &Value, record: &str, ran: usize) {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "invalid_request_state", "{answer}");
    assert_eq!(scene.records(), [format!("form invalid client {record}")]);
    assert_eq!(scene.ran.len(), ran, "nothing runs");
}

/// The state of a form about a guarded call.
fn of_form(scene: &mut Scene) -> String {
    let state = state_of(&scene.modern(ARGUMENTS, "", &form()));
    assert_eq!(scene.records(), ["form asked system"]);
    scene.world.advance(Duration::from_secs(1));
    state
}

/// The state of the refusal's question about a call that ran last.
fn of_refusal(scene: &mut Scene) -> String {
    let id = value(scene.ran.last().unwrap())["id"].to_string();
    scene.world.upstream_sends(&response(&id, REFUSAL));
    let state = state_of(&scene.got());
    assert_eq!(scene.records(), ["form asked system"]);
    scene.world.advance(Duration::from_secs(1));
    state
}

#[test]
fn s22_the_state_of_a_form_is_refused_with_a_call_that_nothing_guards() {
    let mut scene = Scene::new(plain_guard());
    let state = of_form(&mut scene);
    let answer = unguarded(&mut scene, &with(&state));
    // Its key is that of another purpose.
    is_refused(&mut scene, &answer, "state-bad-mac", 0);
    // It is as good as before for what it is about.
    assert_eq!(scene.modern(ARGUMENTS, &with(&state), &form()), Value::Null);
    assert_eq!((scene.records(), scene.ran.len()), (vec!["form accept client".to_owned()], 1));
}

#[test]
fn s22_the_state_of_a_refusal_is_refused_with_a_guarded_call() {
    let mut scene = Scene::new(plain_guard());
    assert_eq!(unguarded(&mut scene, ""), Value::Null);
    let state = of_refusal(&mut scene);
    let answer = scene.modern(ARGUMENTS, &with(&state), &form());
    is_refused(&mut scene, &answer, "state-not-confirmed", 1);
    assert_eq!(unguarded(&mut scene, &with(&state)), Value::Null);
    assert_eq!((scene.records(), scene.ran.len()), (vec!["form accept client".to_owned()], 2));
}

#[test]
fn s22_the_state_of_a_confirmed_calls_refusal_runs_no_other_call() {
    let mut scene = Scene::new(plain_guard());
    let state = of_form(&mut scene);
    assert_eq!(scene.modern(ARGUMENTS, &with(&state), &form()), Value::Null);
    assert_eq!(scene.records(), ["form accept client"]);
    let state = of_refusal(&mut scene);
    let answer = unguarded(&mut scene, &with(&state));
    assert_eq!(answer["result"]["isError"], true, "the refusal that it is about: {answer}");
    assert_eq!((scene.records(), scene.ran.len()), (vec!["form invalid client other-call".to_owned()], 1));
}
