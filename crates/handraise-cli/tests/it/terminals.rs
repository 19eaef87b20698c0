//! `handraise agent --allow-terminal` through real processes: what is offered, what commands see, what is left.

use serde_json::{Value, json};

use crate::support::{Agent, Home, Up, alive, assert_gone, kill, tree, wait_for};

/// A command that says that it runs, ignores every signal that can be ignored, and has sent a process of the same kind
/// into a session of its own.
fn stubborn(home: &Home) -> Value {
    let line = format!(
        "trap '' TERM INT HUP
         setsid sh -c 'trap \"\" TERM INT HUP; echo $$ > {0}; while :; do sleep 1000; done' &
         while ! test -s {0}; do sleep 0.01; done
         : > {0}.settled; echo started; while :; do sleep 1000; done",
        home.path().join("hidden").display()
    );
    json!({"command": "sh", "args": ["-c", line]})
}

fn hidden(home: &Home) -> u32 {
    std::fs::read_to_string(home.path().join("hidden")).unwrap().trim().parse().unwrap()
}

/// Everything below `handraise agent`, once the stubborn command is among it.
fn family(home: &Home, agent: &Agent) -> Vec<u32> {
    // From here on nothing of it comes and goes.
    wait_for("the hidden process", || home.path().join("hidden.settled").exists().then_some(()));
    let hidden = hidden(home);
    let below = tree(agent.child.id());
    // Two supervisors, the agent, the command, what it has hidden.
    assert!(below.len() >= 5 && below.contains(&hidden), "{below:?}");
    below
}

#[test]
fn terminals_are_off_unless_they_are_allowed() {
    let home = Home::new();
    let _up = Up::start(&home);
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&["--prompt", "terminal echo here"], arguments].concat();
        let mut agent = Agent::start(&home, &arguments, &[], variables);
        assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
        let offered = agent.received()[0]["params"]["clientCapabilities"]["terminal"].clone();
        let outputs: Vec<Value> = agent.responses().iter().map(|answer| answer["output"].clone()).collect();
        let refused = agent.received().iter().any(|frame| frame["error"]["code"] == -32601);
        (offered == true, outputs.contains(&json!("here\n")), refused)
    };
    let variable = |value| [("HANDRAISE_ACP__ALLOW_TERMINAL", value)];
    assert_eq!(run(&[], &[]), (false, false, true));
    assert_eq!(run(&[], &variable("off")), (false, false, true));
    assert_eq!(run(&["--allow-terminal"], &[]), (true, true, false));
    assert_eq!(run(&["--allow-terminal"], &variable("off")), (true, true, false));
    assert_eq!(run(&[], &variable("on")), (true, true, false));
}

#[test]
fn s7_a_command_sees_none_of_our_settings_and_the_transcript_names_it() {
    let home = Home::new();
    let up = Up::start(&home);
    let arguments = ["--allow-terminal", "--log", "info", "--prompt", "terminal env"];
    let variables = [
        ("MCP_CONFIRM_SECRET", "canary-77aa"),
        ("KANDEV_TOKEN", "canary-77aa"),
        ("STAGING_DATABASE_URL", "canary-77aa"),
        ("ANTHROPIC_API_KEY", "theirs-88bb"),
    ];
    let mut agent = Agent::start(&home, &arguments, &[], &variables);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    let responses = agent.responses();
    let shown = responses.iter().find_map(|answer| answer["output"].as_str()).unwrap();
    assert!(shown.contains("ANTHROPIC_API_KEY=theirs-88bb"), "{shown}");
    assert!(!shown.contains("canary-77aa") && !shown.contains("HANDRAISE_"), "{shown}");
    let log = agent.log.text();
    assert!(log.contains("the agent has a command run") && !log.contains("88bb"), "{log}");
    let session = up.get("/sessions")["sessions"][0]["id"].as_str().unwrap().to_owned();
    wait_for("the command in the transcript", || {
        let messages = up.get(&format!("/sessions/{session}/messages"))["messages"].clone();
        let notices = messages.as_array().unwrap().iter().filter(|message| message["type"] == "notice");
        notices.into_iter().any(|notice| notice["text"] == "The agent has a command run: env").then_some(())
    });
}

#[test]
fn s35_nothing_of_a_command_is_left_when_handraise_agent_is_killed() {
    let home = Home::new();
    let _up = Up::start(&home);
    let prompt = format!("terminal-wait {}", stubborn(&home));
    let agent = Agent::start(&home, &["--allow-terminal", "--prompt", &prompt], &[], &[]);
    let below = family(&home, &agent);
    kill(agent.child.id());
    assert_gone(&below);
}

#[test]
fn s35_a_command_that_was_never_released_ends_with_its_session() {
    let home = Home::new();
    let _up = Up::start(&home);
    let prompt = format!("terminal-leave {}", stubborn(&home));
    let mut agent = Agent::start(&home, &["--allow-terminal", "--prompt", &prompt, "--attach"], &[], &[]);
    let below = family(&home, &agent);
    // The turn has ended, and the command runs on until the session ends.
    wait_for("the end of the turn", || {
        let created = agent.responses().iter().any(|answer| answer["output"] == "started\n");
        created.then_some(())
    });
    assert!(below.iter().all(|process| alive(*process)), "{below:?}");
    drop(agent.child.stdin.take());
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert!(below.iter().all(|process| !alive(*process)), "{below:?}");
}

#[test]
fn s35_nothing_of_a_command_is_left_when_its_supervisor_is_killed() {
    let home = Home::new();
    let _up = Up::start(&home);
    let prompt = format!("terminal-wait {}", stubborn(&home));
    let mut agent = Agent::start(&home, &["--allow-terminal", "--prompt", &prompt], &[], &[]);
    let below = family(&home, &agent);
    let hidden = hidden(&home);
    let supervisors = tree(agent.child.id()).into_iter().filter(|process| tree(*process).contains(&hidden));
    // The one right below `handraise agent`.
    let supervisor = supervisors.max_by_key(|process| tree(*process).len()).unwrap();
    let of_the_command = tree(supervisor);
    kill(supervisor);
    assert_gone(&of_the_command);
    // The agent is told, and its turn goes on.
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert!(agent.responses().contains(&json!({"exitCode": null, "signal": "SIGKILL"})));
    assert_gone(&below);
}
