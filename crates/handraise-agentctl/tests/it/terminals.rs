//! Commands that are run for an agent, where that is allowed.

use handraise_agentctl::AgentSettings;
use serde_json::{Value, json};

use crate::support::{Place, run_alone, stop_reason};

fn allowed(place: &Place, prompt: &str) -> AgentSettings {
    AgentSettings { allow_terminal: true, ..place.settings(&[], prompt) }
}

/// The answers to the agent's requests of a run, errors as their code and message.
async fn answers(place: &Place, prompt: &str) -> Vec<Value> {
    let before = place.received().len();
    let (ended, _) = run_alone(allowed(place, prompt)).await;
    assert_eq!(stop_reason(ended), "end_turn");
    place.received()[before..]
        .iter()
        .filter(|frame| frame.get("method").is_none())
        .map(|frame| match frame.get("error") {
            Some(error) => json!([error["code"], error["message"]]),
            None => frame["result"].clone(),
        })
        .collect()
}

/// What `terminal/output` said of a command that has ended.
async fn output(place: &Place, order: &Value) -> Value {
    answers(place, &format!("terminal {order}")).await.remove(2)
}

#[tokio::test]
async fn terminals_are_off_by_default() {
    let place = Place::new();
    let (_, stdout) = run_alone(place.settings(&[], "terminal")).await;
    assert_eq!(stdout, "I was told: {\"error\":-32601}\n");
    assert_eq!(place.received()[0]["params"]["clientCapabilities"]["terminal"], false);
}

#[tokio::test]
async fn a_command_is_run_and_its_output_exit_and_release_are_told() {
    let place = Place::new();
    let answers = answers(&place, "terminal echo one; echo two >&2; echo three; exit 3").await;
    assert_eq!(place.received()[0]["params"]["clientCapabilities"]["terminal"], true);
    assert!(answers[0]["terminalId"].is_string(), "{answers:?}");
    let exit = json!({"exitCode": 3, "signal": null});
    assert_eq!(
        answers[1..],
        [
            exit.clone(),
            json!({"output": "one\ntwo\nthree\n", "truncated": false, "exitStatus": exit}),
            json!({}),
            json!([-32002, "there is no such terminal"]),
        ]
    );
}

#[tokio::test]
async fn arguments_are_no_shells_and_stdin_is_empty() {
    let place = Place::new();
    let order = json!({"command": "printf", "args": ["%s.", "a b", "$HOME; x"]});
    assert_eq!(output(&place, &order).await["output"], "a b.$HOME; x.");
    let ended = output(&place, &json!({"command": "cat"})).await;
    assert_eq!((&ended["output"], &ended["exitStatus"]["exitCode"]), (&json!(""), &json!(0)));
}

#[tokio::test]
async fn a_command_that_there_is_not_ends_as_in_a_shell() {
    let place = Place::new();
    let ended = output(&place, &json!({"command": "no-such-program-here"})).await;
    assert_eq!(ended["exitStatus"]["exitCode"], 127);
    assert!(ended["output"].as_str().unwrap().contains("no-such-program-here"), "{ended}");
}

#[tokio::test]
async fn the_output_is_cut_at_the_agents_limit_and_at_ours() {
    let place = Place::new();
    let order = json!({"command": "printf 'aäöü%s' end", "outputByteLimit": 8});
    let ended = output(&place, &order).await;
    assert_eq!((&ended["output"], &ended["truncated"]), (&json!("öüend"), &json!(true)));
    // Three MiB, of which the last one is kept, and no more is ever held.
    let line = "head -c 3145720 /dev/zero | tr '\\0' x; printf '%s' the-end";
    let ended = output(&place, &json!({"command": line, "outputByteLimit": 1_u64 << 40})).await;
    let text = ended["output"].as_str().unwrap();
    assert_eq!((text.len(), &ended["truncated"]), (1024 * 1024, &json!(true)));
    assert!(text.starts_with('x') && text.ends_with("xthe-end"));
}

#[tokio::test]
async fn s45_a_command_runs_beneath_the_working_directory_only() {
    let place = Place::new();
    let work = place.work().canonicalize().unwrap();
    std::fs::create_dir(work.join("sub")).unwrap();
    std::os::unix::fs::symlink("/", work.join("out")).unwrap();
    let at = |path: &std::path::Path| json!({"command": "pwd", "cwd": path});
    assert_eq!(output(&place, &json!({"command": "pwd"})).await["output"], format!("{}\n", work.display()));
    let below = output(&place, &at(&work.join("sub"))).await;
    assert_eq!(below["output"], format!("{}/sub\n", work.display()));
    for outside in [work.join(".."), work.join("out"), "/tmp".into(), "sub".into()] {
        let answers = answers(&place, &format!("terminal {}", at(&outside))).await;
        assert_eq!(answers.len(), 1, "{answers:?}");
        let [code, message] = [&answers[0][0], &answers[0][1]];
        assert_eq!(code, -32002, "{}", outside.display());
        assert!(message.as_str().unwrap().starts_with("cwd: the path is "), "{message}");
    }
}

#[tokio::test]
async fn s7_a_command_has_the_agents_environment_and_what_the_agent_adds() {
    let place = Place::new();
    let order = json!({"command": "env | sort", "env": [{"name": "CANARY", "value": "added"}]});
    let mut settings = allowed(&place, &format!("terminal {order}"));
    settings.environment.extend([("GIVEN".into(), "kept".into()), ("PWD".into(), "/elsewhere".into())]);
    run_alone(settings).await.0.unwrap();
    let results = place.results();
    let shown = results.iter().find_map(|result| result["output"].as_str()).unwrap();
    // What a shell sets by itself.
    let own = ["PWD=", "OLDPWD=", "SHLVL=", "_="];
    assert!(!shown.contains("/elsewhere"), "{shown}");
    let names: Vec<&str> =
        shown.lines().filter(|line| !own.iter().any(|own| line.starts_with(own))).collect();
    assert_eq!(names, ["CANARY=added", "GIVEN=kept", "PATH=/usr/bin:/bin"]);
}

#[tokio::test]
async fn a_killed_command_leaves_its_terminal_and_whoever_waits_is_told() {
    let place = Place::new();
    let answers = answers(&place, "terminal-kill echo started; sleep 1000").await;
    let end = answers.iter().position(|answer| *answer == json!({})).unwrap();
    let exit = json!({"exitCode": null, "signal": "SIGTERM"});
    // The exit is told to whoever waits as soon as it is known, before or after the answer to the kill.
    assert!(answers[end - 1..=end + 1].contains(&exit), "{answers:?}");
    let rest: Vec<&Value> = answers[end..].iter().filter(|answer| **answer != exit).collect();
    let output = json!({"output": "started\n", "truncated": false, "exitStatus": exit});
    assert_eq!(rest, [&json!({}), &output, &json!({}), &json!({})]);
}

#[tokio::test]
async fn s37_a_session_has_sixteen_terminals() {
    let place = Place::new();
    let (ended, stdout) = run_alone(allowed(&place, "terminal-many 18")).await;
    assert_eq!(stop_reason(ended), "end_turn");
    let refused = "refused: the session has 16 terminals; release one first\n";
    assert_eq!(stdout, "created\n".repeat(16) + &refused.repeat(2));
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_with_the_reason() {
    let place = Place::new();
    for (order, answer) in [
        (json!({"command": ""}), json!([-32602, "command is missing"])),
        (json!({"command": "a", "args": "b"}), json!([-32602, "args is no list of texts"])),
    ] {
        assert_eq!(answers(&place, &format!("terminal {order}")).await, [answer]);
    }
}
