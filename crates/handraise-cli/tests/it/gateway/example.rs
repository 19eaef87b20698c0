//! The servers and the config files in `examples`, as their READMEs run them.

use std::{os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{Gateway, Home};

/// The example's folder, with the modes of a clone that its group may not write; nothing when there is no Python.
fn folder(home: &Home, example: &str) -> Option<String> {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: python3 is not installed");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    for name in ["handraise.toml", "server.py"] {
        let copy = home.path().join(name);
        std::fs::copy(source.join(name), &copy).unwrap();
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    Some(home.path().to_str().unwrap().to_owned())
}

fn start(home: &Home, folder: &str) -> Gateway {
    let config = format!("{folder}/handraise.toml");
    let server = format!("{folder}/server.py");
    // No answer here is too fast to be a human's.
    let variables = [("HANDRAISE_ASK_MIN_HUMAN_MS", "0")];
    let mut gateway =
        Gateway::command_with(home, &["--config", &config, "--", "python3", &server], &variables);
    gateway.initialize("2025-11-25", &json!({"elicitation": {"form": {}}}));
    gateway
}

fn said(answer: &Value) -> Value {
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn the_example_asks_which_speaker_and_plays_there_or_not_at_all() {
    let home = Home::new();
    let Some(folder) = folder(&home, "devices") else { return };
    let mut gateway = start(&home, &folder);
    for (action, expected) in [
        ("accept", json!({"playing": "Clair de Lune", "on": "Office"})),
        (
            "decline",
            json!({"code": "several_speakers", "speakers": [
                {"id": "kitchen", "name": "Kitchen", "battery": "80 %"},
                {"id": "office", "name": "Office", "battery": "35 %"},
            ]}),
        ),
    ] {
        gateway.call(&json!(action), "play", &json!({"track": "Clair de Lune"}));
        let question = gateway.receive();
        assert_eq!(question["params"]["message"], "Which speaker should play use?", "{question}");
        let schema = &question["params"]["requestedSchema"]["properties"]["speaker"]["oneOf"];
        let offered = [("kitchen", "Kitchen (battery 80 %)"), ("office", "Office (battery 35 %)")];
        assert_eq!(*schema, json!(offered.map(|(id, title)| json!({"const": id, "title": title}))));
        let result = json!({"action": action, "content": {"speaker": "office"}});
        gateway.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
        let answer = gateway.receive();
        assert_eq!((&answer["id"], said(&answer)), (&json!(action), expected));
    }
    let named = gateway.answer(&json!(3), "play", &json!({"track": "x", "speaker": "kitchen"}));
    assert_eq!(said(&named)["on"], "Kitchen");
}

#[test]
fn the_example_sends_a_draft_as_it_was_shown_and_once() {
    let home = Home::new();
    let Some(folder) = folder(&home, "mail") else { return };
    let mut gateway = start(&home, &folder);
    gateway.call(&json!(1), "send_draft", &json!({"id": "d-17"}));
    let question = gateway.receive();
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("asks to: Send e-mail\n") && message.contains("\"subject\":\"Offer\""),
        "{message}"
    );
    // Somebody edits it while the form is open: it is shown again, as it is now.
    gateway.answer(&json!(2), "edit_draft", &json!({"id": "d-17", "subject": "Better offer"}));
    let confirmed = json!({"action": "accept", "content": {"confirm": true}});
    gateway.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": confirmed}));
    let again = gateway.receive();
    assert!(again["params"]["message"].as_str().unwrap().contains("Better offer"), "{again}");
    gateway.send(&json!({"jsonrpc": "2.0", "id": again["id"], "result": confirmed}));
    let sent = gateway.receive();
    assert_eq!(said(&sent), json!({"sent": "Better offer", "to": "all@example.com", "times": 1}));
}
