//! Processes that are killed, and agents that send garbage.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{
    Agent, Ending, Home, Up, assert_gone, binary, call, kill, pick, terminate, tree, wait_for,
};

#[test]
fn s35_nothing_of_a_killed_handraise_agent_is_left() {
    let home = Home::new();
    let up = Up::start(&home);
    let agent = Agent::prompt(&home, "single");
    up.wait_for_ask();
    let below = tree(agent.child.id());
    assert!(below.len() >= 2, "a supervisor and an agent: {below:?}");
    kill(agent.child.id());
    assert_gone(&below);
}

#[test]
fn s35_nothing_of_a_killed_supervisor_is_left() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "single");
    up.wait_for_ask();
    let below = tree(agent.child.id());
    kill(below[0]);
    assert_gone(&below);
    assert_eq!(agent.wait(), Some(1), "{}", agent.log.text());
}

/// A command that hides a process from whoever looks after it, in a session of its own and deaf to every signal that
/// can be ignored, and then is the scripted agent.
fn hiding(home: &Home) -> String {
    format!(
        "setsid sh -c 'trap \"\" TERM INT HUP; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 1000; done' & \
         exec {1} fake-agent",
        home.path().join("hidden").display(),
        binary()
    )
}

/// The process that was hidden, once it is there.
fn hidden(home: &Home) -> u32 {
    wait_for("the hidden process", || {
        let text = std::fs::read_to_string(home.path().join("hidden")).ok()?;
        text.trim().parse().ok()
    })
}

#[test]
fn s35_what_an_agent_hides_is_not_left_either_whoever_is_killed() {
    for victim in ["handraise agent", "the supervisor", "the agent"] {
        let home = Home::new();
        let up = Up::start(&home);
        let mut command = home.handraise(&["agent", "--prompt", "single", "--", "sh", "-c", &hiding(&home)]);
        let agent = Ending(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        up.wait_for_ask();
        let hidden = hidden(&home);
        let below = tree(agent.0.id());
        let of = |supervised: u32| {
            let command = std::fs::read(format!("/proc/{supervised}/cmdline")).unwrap();
            String::from_utf8_lossy(&command).into_owned()
        };
        let fake = below.iter().copied().find(|process| of(*process).contains("\0fake-agent\0"));
        assert!(below.contains(&hidden) && fake != Some(below[0]), "{victim}: {below:?}");
        kill(match victim {
            "handraise agent" => agent.0.id(),
            "the supervisor" => below[0],
            _ => fake.unwrap(),
        });
        assert_gone(&below);
    }
}

#[test]
fn s35_what_an_agent_of_a_killed_inbox_hides_is_not_left_either() {
    let home = Home::new();
    let command = json!(["sh", "-c", hiding(&home)]);
    home.write_config(&format!(
        "[[agent]]\nid = 'scripted'\ncommand = {command}\ncwd = '{}'\n",
        home.work().display()
    ));
    let up = Up::start(&home);
    let start = json!({"agent": "scripted", "prompt": "single"});
    let started = call(&up.url, "POST", "/api/v1/sessions", Some(&home.token("admin")), Some(&start));
    assert!((200..300).contains(&started.status), "{started:?}");
    up.wait_for_ask();
    let hidden = hidden(&home);
    let below = tree(up.child.id());
    assert!(below.contains(&hidden) && below.len() >= 4, "{below:?}");
    kill(up.child.id());
    assert_gone(&below);
}

/// An inbox that may start the scripted agent, with one of its asks open.
fn up_with_its_own_agent(home: &Home) -> (Up, Vec<u32>) {
    home.write_config(&format!(
        "[[agent]]\nid = 'scripted'\ncommand = ['{}', 'fake-agent', '--script', 'single']\ncwd = '{}'\n",
        binary(),
        home.work().display()
    ));
    let up = Up::start(home);
    let admin = home.stdout(&["token", "create", "--scope", "admin"]);
    let start = json!({"agent": "scripted", "prompt": "single"});
    let started = call(&up.url, "POST", "/api/v1/sessions", Some(admin.trim_end()), Some(&start));
    assert!((200..300).contains(&started.status), "{started:?}");
    let ask = up.wait_for_ask();
    assert_eq!(ask["session_id"], started.body["id"]);
    let below = tree(up.child.id());
    assert!(below.len() >= 3, "handraise agent, its supervisor, its agent: {below:?}");
    (up, below)
}

#[test]
fn s35_none_of_the_agents_that_a_killed_inbox_started_is_left() {
    let home = Home::new();
    let (up, below) = up_with_its_own_agent(&home);
    kill(up.child.id());
    assert_gone(&below);
}

#[test]
fn f7_an_inbox_that_ends_in_order_hears_how_the_asks_of_its_agents_ended() {
    let home = Home::new();
    let (up, below) = up_with_its_own_agent(&home);
    let ask = up.wait_for_ask();
    up.stop();
    assert_gone(&below);
    let up = Up::start(&home);
    let settlement = up.wait_for_settlement(&ask);
    assert_eq!(settlement["provenance"], "system", "{settlement}");
    assert!(["cancel", "withdrawn"].contains(&settlement["outcome"].as_str().unwrap()), "{settlement}");
}

#[test]
fn asks_of_a_separate_holder_survive_a_killed_inbox_under_the_same_id() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    let address = up.url.strip_prefix("http://").unwrap().to_owned();
    kill(up.child.id());
    drop(up);

    let up = Up::start_with(&home, &["--listen", &address], &[]);
    let again = wait_for("the ask to be announced again", || {
        let ask = up.wait_for_ask();
        (ask["holder_connected"] == true).then_some(ask)
    });
    assert_eq!(again["id"], ask["id"]);
    assert_eq!(again["digest"], ask["digest"]);
    assert_eq!(up.answer(&again, &pick("question_0", &["Postgres"])).status, 200);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "accept", "content": {"question_0": "Postgres"}})]);
}

#[test]
fn what_was_settled_is_still_settled_after_the_inbox_was_killed() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "single");
    let ask = up.wait_for_ask();
    assert_eq!(up.answer(&ask, &pick("question_0", &["Postgres"])).status, 200);
    kill(up.child.id());
    // Whether its receipt came in time or not, it does not wait for the inbox then.
    terminate(agent.child.id());
    agent.wait();
    drop(up);
    let up = Up::start(&home);
    let settlement = up.wait_for_settlement(&ask);
    assert_eq!(settlement["outcome"], "accept");
    assert_eq!(settlement["answers"][0]["selected_options"], json!(["Postgres"]));
}

#[test]
fn noise_between_frames_is_skipped() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "noise");
    let ask = up.wait_for_ask();
    assert_eq!(up.answer(&ask, &pick("question_0", &["SQLite"])).status, 200);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "accept", "content": {"question_0": "SQLite"}})]);
}

#[test]
fn a_line_of_100_mb_ends_the_connection_with_a_clear_error_and_bounded_memory() {
    let home = Home::new();
    let _up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "long-line 100000000");
    let status = format!("/proc/{}/status", agent.child.id());
    let mut peak = 0;
    let code = wait_for("the end of handraise agent", || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
        peak = peak.max(line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0));
        agent.child.try_wait().unwrap()
    });
    assert_eq!(code.code(), Some(1));
    assert!(peak > 0 && peak < 200_000, "{peak} kB");
    wait_for("a clear error", || agent.log.text().contains("line longer than").then_some(()));
}

#[test]
fn an_id_that_an_agent_uses_again_is_another_ask() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "id-reuse");
    let first = up.wait_for_ask();
    assert_eq!(up.answer(&first, &pick("question_0", &["Postgres"])).status, 200);
    let second = wait_for("the second ask", || {
        let asks: Vec<Value> = up.get("/asks?state=open")["asks"].as_array().cloned().unwrap();
        asks.into_iter().find(|ask| ask["id"] != first["id"])
    });
    assert_eq!(up.answer(&second, &pick("question_0", &["SQLite"])).status, 200);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    let choices: Vec<Value> =
        agent.responses().iter().map(|response| response["content"]["question_0"].clone()).collect();
    assert_eq!(choices, ["Postgres", "SQLite"]);
}
