//! `handraise agent`: capabilities, exit statuses, what it needs to start.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Agent, Home, Up, binary, stderr, tree, wait_for};

/// What clients of handraise announce without the feature, byte for byte (AC-02).
const BASELINE: &str =
    r#"{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":false,"_meta":{"terminal_output":true}}"#;
const CURSOR_BASELINE: &str = r#"{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":false}"#;

/// The `clientCapabilities` that an agent of this id was given.
fn capabilities(home: &Home, agent_id: &str, arguments: &[&str]) -> String {
    let arguments = [&["--agent-id", agent_id, "--prompt", "never-asks"], arguments].concat();
    let mut agent = Agent::start(home, &arguments, &[], &[]);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    let initialize = agent.received().remove(0);
    assert_eq!(initialize["method"], "initialize");
    initialize["params"]["clientCapabilities"].to_string()
}

#[test]
fn ac01_ac02_ac02a_f5_the_flag_adds_the_form_capability_and_nothing_else() {
    let home = Home::new();
    let up = Up::start(&home);
    let on = |baseline: &str| {
        format!("{},\"elicitation\":{{\"form\":{{}}}}}}", baseline.strip_suffix('}').unwrap())
    };
    let without_order = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for (agent_id, baseline) in [("claude-acp", BASELINE), ("cursor-agent", CURSOR_BASELINE)] {
        let with = capabilities(&home, agent_id, &[]);
        assert_eq!(without_order(&with), without_order(&on(baseline)), "{agent_id}");
        let without = capabilities(&home, agent_id, &["--elicitation", "off"]);
        assert_eq!(without, baseline, "{agent_id}");
    }
    up.stop();
    // The same, switched off where the inbox runs: it reaches the agent through the holder stream (F5).
    let up = Up::start_with(&home, &[], &[("HANDRAISE_FEATURES_ACP_ELICITATION", "off")]);
    assert_eq!(capabilities(&home, "claude-acp", &[]), BASELINE);
    assert_eq!(capabilities(&home, "cursor-agent", &[]), CURSOR_BASELINE);
    up.stop();
    let _up = Up::start_with(&home, &[], &[("KANDEV_FEATURES_ACP_ELICITATION", "off")]);
    assert_eq!(capabilities(&home, "claude-acp", &[]), BASELINE);
}

#[test]
fn ac20_with_the_flag_off_every_form_is_declined_unseen() {
    let home = Home::new();
    let up = Up::start_with(&home, &[], &[("HANDRAISE_FEATURES_ACP_ELICITATION", "off")]);
    let mut agent = Agent::prompt(&home, "single");
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "decline"})]);
    assert_eq!(up.get("/asks?state=open")["asks"], json!([]));
    assert_eq!(up.get("/asks?state=settled")["asks"], json!([]));
    let sessions = up.get("/sessions")["sessions"].clone();
    assert_eq!(sessions[0]["pending_action"], Value::Null);
}

#[test]
fn ac19_an_agent_that_never_asks_sees_no_other_difference() {
    let home = Home::new();
    let up = Up::start(&home);
    let run = |elicitation: &str| {
        let mut agent =
            Agent::start(&home, &["--prompt", "never-asks", "--elicitation", elicitation], &[], &[]);
        assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
        let methods: Vec<Value> = agent.received().iter().map(|frame| frame["method"].clone()).collect();
        let session = up.get("/sessions")["sessions"][0].clone();
        let path = format!("/sessions/{}/messages", session["id"].as_str().unwrap());
        let messages = up.get(&path)["messages"].as_array().cloned().unwrap();
        let kinds: Vec<Value> = messages.iter().map(|message| message["type"].clone()).collect();
        // The pipe is read by a thread of its own, which may be behind the process's end.
        let text = wait_for("the agent's text", || {
            let text = agent.text.text();
            text.ends_with("three\n").then_some(text)
        });
        (methods, session["state"].clone(), session["pending_action"].clone(), kinds, text)
    };
    assert_eq!(run("on"), run("off"));
}

#[test]
fn a_prompt_streams_the_agent_s_text_and_exits_by_the_stop_reason() {
    let home = Home::new();
    let _up = Up::start(&home);
    for (script, status) in
        [("echo hello there", 0), ("stop cancelled", 4), ("stop max_tokens", 6), ("stop refusal", 6)]
    {
        let mut agent = Agent::prompt(&home, script);
        assert_eq!(agent.wait(), Some(status), "{script}: {}", agent.log.text());
        if status == 0 {
            wait_for("the agent's text", || agent.text.text().contains("hello there").then_some(()));
        }
    }
    for script in ["fail", "exit 3"] {
        let mut agent = Agent::prompt(&home, script);
        assert_eq!(agent.wait(), Some(1), "{script}");
        wait_for("an error", || agent.log.text().contains("error: ").then_some(()));
    }
}

#[test]
fn json_output_is_one_event_a_line_and_ends_with_the_stop_reason() {
    let home = Home::new();
    let _up = Up::start(&home);
    let mut agent = Agent::start(&home, &["--prompt", "echo hello", "--json"], &[], &[]);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    let lines = wait_for("the last event", || {
        let text = agent.text.text();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.last().is_some_and(|line| line["event"] == "end").then_some(lines)
    });
    assert_eq!(lines.last().unwrap(), &json!({"event": "end", "data": {"stopReason": "end_turn"}}));
    assert!(lines.iter().any(|line| line["event"] == "session.message"), "{lines:?}");
    assert!(lines.iter().all(|line| line["event"].is_string() && line["data"].is_object()), "{lines:?}");
}

#[test]
fn an_inbox_that_cannot_be_reached_is_an_error_that_says_what_to_do() {
    let home = Home::new();
    let run = |inbox: &[&str], token: &str| {
        let arguments = [&["agent"], inbox, &["--prompt", "x", "--", "true"]].concat();
        home.handraise(&arguments).env("HANDRAISE_TOKEN", token).output().unwrap()
    };
    let none = run(&[], "");
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("handraise up"), "{}", stderr(&none));
    // Nobody listens on port 1.
    let gone = run(&["--inbox", "http://127.0.0.1:1"], "token");
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr(&gone).contains("127.0.0.1:1"), "{}", stderr(&gone));
    let plain = run(&["--inbox", "http://inbox.example"], "token");
    assert!(stderr(&plain).contains("https://"), "{}", stderr(&plain));
    let tokenless = run(&["--inbox", "https://inbox.example"], "");
    assert!(stderr(&tokenless).contains("token create --scope holder"), "{}", stderr(&tokenless));
}

#[test]
fn without_an_inbox_nothing_is_advertised_and_everything_is_declined() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &["--inbox", "none", "--prompt", "single"], &[], &[]);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "decline"})]);
    assert_eq!(agent.received()[0]["params"]["clientCapabilities"]["elicitation"], Value::Null);
    let mut agent = Agent::start(&home, &["--inbox", "none", "--prompt", "permission"], &[], &[]);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"outcome": {"outcome": "selected", "optionId": "no"}})]);
}

#[test]
fn s7_an_agent_sees_none_of_our_settings() {
    let home = Home::new();
    let _up = Up::start(&home);
    let seen = home.path().join("environment");
    let script = format!("env > {}; exec {} fake-agent", seen.display(), binary());
    let output = home
        .handraise(&["agent", "--prompt", "echo x", "--", "sh", "-c", &script])
        .env("HANDRAISE_LOG", "warn")
        .env("KANDEV_ACP_IDLE_TIMEOUT", "2h")
        .env("MCP_CONFIRM_SECRET", "hunter2")
        .env("STAGING_DATABASE_URL", "postgres://x")
        .env("ANTHROPIC_API_KEY", "theirs")
        .env("HANDRAISE_PASS_ENV", "KANDEV_ACP_IDLE_TIMEOUT")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.contains("ANTHROPIC_API_KEY=theirs"), "{seen}");
    assert!(seen.contains("KANDEV_ACP_IDLE_TIMEOUT=2h"), "{seen}");
    for hidden in ["HANDRAISE_", "MCP_CONFIRM_", "DATABASE_URL"] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
}

#[test]
fn s7_an_agent_inherits_no_secret() {
    const CANARY: &str = "canary-3c1e";
    let home = Home::new();
    let up = Up::start(&home);
    let seen = home.path().join("seen");
    // Its environment and arguments, and those of what stands above it.
    let script = format!(
        "exec 9>{0}; cat /proc/$$/environ /proc/$$/cmdline /proc/$PPID/cmdline >&9; exec 9>&-; \
         exec {1} fake-agent",
        seen.display(),
        binary()
    );
    let mut command = home.handraise(&["agent", "--prompt", "echo x", "--", "sh", "-c", &script]);
    let secret_names = [
        "HANDRAISE_STATE_SECRET",
        "HANDRAISE_DATABASE_URL",
        "DATABASE_URL",
        "PG_DATABASE_URL",
        "MCP_CONFIRM_SECRET",
        "MCP_HOST_CONFIRM_SECRET",
        "KANDEV_ANYTHING",
        "AUTOMOBILE_ELICITATION",
    ];
    for name in secret_names {
        command.env(name, CANARY);
    }
    // Settings that are read have values that they may have.
    command.env("AUTOMOBILE_ELICITATION", "on").env_remove("HANDRAISE_DATABASE_URL");
    command.env("HANDRAISE_STATE_SECRET", format!("{CANARY}-{CANARY}-{CANARY}-{CANARY}"));
    command.env("BY_VALUE", format!("postgres://user:{CANARY}@host/db"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let seen_text = String::from_utf8_lossy(&std::fs::read(&seen).unwrap()).into_owned();
    assert!(seen_text.contains("HOME=") && seen_text.contains("supervise"), "{seen_text}");
    let file: Value =
        serde_json::from_str(&std::fs::read_to_string(home.data_dir().join("inbox.json")).unwrap()).unwrap();
    let tokens = ["holder_token", "admin_token"].map(|key| file[key].as_str().unwrap().to_owned());
    for secret in tokens.iter().map(String::as_str).chain([CANARY, &up.secret, &up.operator]) {
        assert!(!seen_text.contains(secret), "{secret}: {seen_text}");
    }
    for name in secret_names {
        assert!(!seen_text.contains(name), "{name}: {seen_text}");
    }
}

#[test]
fn s7_an_agent_inherits_no_descriptor_of_ours() {
    let home = Home::new();
    let up = Up::start(&home);
    let agent = Agent::prompt(&home, "single");
    up.wait_for_ask();
    let links = |process: u32| -> BTreeMap<String, String> {
        let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().map_while(Result::ok);
        open.filter_map(|fd| {
            let link = std::fs::read_link(fd.path()).ok()?.display().to_string();
            Some((fd.file_name().to_string_lossy().into_owned(), link))
        })
        .collect()
    };
    let command =
        |process: u32| std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let process = tree(agent.child.id()).into_iter().find(|process| {
        let command = command(*process);
        command.contains("fake-agent") && !command.contains("supervise")
    });
    // Its record is its own; what whoever started us has left open is theirs to close.
    let inherited: Vec<String> = links(std::process::id()).into_values().collect();
    let ours: Vec<(String, String)> = links(process.unwrap())
        .into_iter()
        .filter(|(fd, link)| {
            fd.parse::<u32>().unwrap() > 2 && !link.contains("/record-") && !inherited.contains(link)
        })
        .collect();
    assert_eq!(ours, []);
}
