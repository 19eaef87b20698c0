//! A call that is cancelled, a client that goes and a server that ends, at every stage: nothing runs, nothing is left.

use super::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Listing,
    Preview,
    Asking,
    PreviewAgain,
    Look,
    Claim,
}

const STAGES: [Stage; 6] =
    [Stage::Listing, Stage::Preview, Stage::Asking, Stage::PreviewAgain, Stage::Look, Stage::Claim];

/// A call that has come to a stage.
fn at(stage: Stage) -> Scene {
    let is_token = stage == Stage::Look;
    let mut scene =
        if is_token { Scene::mute(whole_guard()) } else { Scene::push(whole_guard(), &json!({})) };
    let arguments = r#"{"id":"d1"}"#;
    match stage {
        Stage::Listing => {
            scene.world.client_sends(&send("1", arguments));
            scene.world.upstream.clear();
        }
        Stage::Preview => {
            scene.preview = None;
            scene.call(arguments);
        }
        Stage::Asking => drop(scene.call(arguments)),
        Stage::PreviewAgain => {
            let question = scene.call(arguments);
            scene.preview = None;
            scene.answer(&question, 1_000, &accepted());
        }
        Stage::Look => {
            let answer = scene.call(arguments);
            let token = said(&answer)["confirmToken"].as_str().unwrap().to_owned();
            scene.store = Store::Silent;
            scene.next = 0;
            scene.call(&format!(r#"{{"id":"d1","confirmToken":"{token}"}}"#));
        }
        Stage::Claim => {
            let question = scene.call(arguments);
            scene.store = Store::Silent;
            scene.answer(&question, 1_000, &accepted());
        }
    }
    scene.world.client.clear();
    scene.records();
    assert_eq!(scene.world.envelope.guarded_calls(), 1, "{stage:?}");
    scene
}

/// What comes later from the server or the store changes nothing.
fn nothing_comes_of_it(scene: &mut Scene, stage: Stage) {
    for ticket in 0..5 {
        let mut out = Vec::new();
        scene.world.envelope.spent(ticket, Spent::No, scene.world.now, &mut out);
        assert_eq!(out, [], "{stage:?}");
    }
    scene.world.upstream.clear();
    scene.settle();
    assert_eq!(scene.ran, [""; 0], "{stage:?}");
}

#[test]
fn a_cancelled_call_gets_no_answer_and_runs_nothing() {
    for stage in STAGES {
        let mut scene = at(stage);
        scene
            .world
            .client_sends(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
        let told: Vec<Value> = scene.world.client.iter().map(|text| value(text)).collect();
        assert!(told.iter().all(|frame| frame["method"] == "notifications/cancelled"), "{stage:?}: {told:?}");
        assert_eq!(told.len(), usize::from(stage == Stage::Asking), "{stage:?}");
        let cancels =
            scene.world.upstream.iter().filter(|text| text.contains("notifications/cancelled")).count();
        assert_eq!(cancels, usize::from(matches!(stage, Stage::Preview | Stage::PreviewAgain)), "{stage:?}");
        let records = scene.records();
        assert_eq!(records.len(), 1, "{stage:?}");
        assert!(records[0].ends_with("withdrawn client call-cancelled"), "{stage:?}: {records:?}");
        nothing_comes_of_it(&mut scene, stage);
        if stage == Stage::Listing {
            // The list is still awaited: the next call uses it.
            continue;
        }
        scene.is_clean();
    }
}

#[test]
fn a_server_that_ends_ends_the_call_with_its_status() {
    for stage in STAGES {
        let mut scene = at(stage);
        scene.world.upstream_ends();
        let last = value(&scene.world.client.pop().unwrap());
        assert_eq!(last["error"]["message"], "the MCP server ended: exit status 3", "{stage:?}");
        nothing_comes_of_it(&mut scene, stage);
        scene.world.client.clear();
        scene.is_clean();
    }
}

#[test]
fn a_client_that_goes_ends_its_form_and_what_the_server_has_to_say_still_comes() {
    for stage in STAGES {
        let mut scene = at(stage);
        scene.world.client_closes();
        if stage == Stage::Asking {
            assert_eq!(case(&value(&scene.world.client.pop().unwrap())), "cancelled cancelled");
            assert_eq!(scene.records(), ["form withdrawn system client-closed"]);
            scene.world.client.clear();
            scene.is_clean();
        } else {
            assert_eq!(scene.world.client, [""; 0], "{stage:?}");
            assert_eq!(scene.world.envelope.guarded_calls(), 1, "{stage:?}");
        }
    }
    // A pipe that has closed asks nobody, and what it confirmed before runs.
    let mut scene = at(Stage::Claim);
    scene.world.client_closes();
    let mut out = Vec::new();
    scene.world.envelope.spent(1, Spent::No, scene.world.now, &mut out);
    scene.world.drain(out);
    scene.settle();
    assert_eq!(scene.ran.len(), 1);
    let mut scene = Scene::push(plain_guard(), &json!({}));
    scene.world.client_sends(&send("1", "{}"));
    scene.world.client_closes();
    scene.settle();
    assert_eq!(case(&scene.got()), "confirmation-not-shown");
    scene.is_clean();
}

#[test]
fn what_does_not_fit_into_memory_does_not_run() {
    let mut config = confirming(vec![plain_guard()], shared_secret());
    config.limits.bytes_in_flight = 200;
    let mut scene = Scene::on(World::new(config));
    scene.world.initialize(&json!({}), "2025-11-25");
    scene.sends(&send("1", &format!(r#"{{"a":"{}"}}"#, "x".repeat(200))));
    let answer = scene.got();
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(scene.ran, [""; 0]);
    scene.is_clean();
}
