//! `handraise hook claude`, run as Claude Code runs it, with the inbox behind it.

use std::{
    io::Write as _,
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Home, Up, pick, skip, stderr, terminate, wait_for};

/// As Claude Code 2.1.332 writes them.
const ELICITATION: &str = r#"{"session_id":"s","transcript_path":"/t","cwd":"/w","hook_event_name":"Elicitation","mcp_server_name":"devices","message":"Which device?","mode":"form","requested_schema":{"type":"object","properties":{"deviceId":{"type":"string","enum":["a","b"]}},"required":["deviceId"]}}"#;
const PERMISSION: &str = r#"{"session_id":"s","transcript_path":"/t","cwd":"/w","permission_mode":"default","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"make install"}}"#;

fn hook(home: &Home, arguments: &[&str], input: &str) -> Child {
    let mut command = home.handraise(&[&["hook", "claude"], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child
}

/// The exit status, what was printed, and what was said beside it.
#[track_caller]
fn end(child: Child) -> (Option<i32>, Value, String) {
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    let printed = if printed.is_empty() { Value::Null } else { serde_json::from_str(&printed).unwrap() };
    (output.status.code(), printed, stderr(&output))
}

#[test]
fn an_elicitation_and_a_permission_get_the_answer_that_somebody_gave() {
    let home = Home::new();
    let up = Up::start(&home);
    let child = hook(&home, &[], ELICITATION);
    let ask = up.wait_for_ask();
    assert_eq!((&ask["source"], &ask["origin"]["holder"]), (&json!("elicitation"), &json!("hook")));
    assert_eq!(ask["origin"]["server"], "devices");
    assert_eq!(up.answer(&ask, &pick("deviceId", &["b"])).status, 200);
    let (status, printed, _) = end(child);
    assert_eq!(status, Some(0));
    assert_eq!(
        printed,
        json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"deviceId": "b"}}})
    );

    let child = hook(&home, &[], PERMISSION);
    let ask = up.wait_for_ask();
    assert_eq!(ask["source"], "permission");
    assert!(ask["message"].as_str().unwrap().contains("make install"));
    assert_eq!(up.answer(&ask, &pick("permission", &["allow"])).status, 200);
    let decision = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}});
    assert_eq!(end(child).1, decision);

    let child = hook(&home, &[], PERMISSION);
    assert_eq!(up.answer(&up.wait_for_ask(), &skip()).status, 200);
    let decision = end(child).1["hookSpecificOutput"]["decision"].clone();
    assert_eq!(decision["behavior"], "deny");
    let message = decision["message"].as_str().unwrap();
    assert!(message.starts_with("\"tests\" skipped") && message.contains("no person was seen"), "{message}");
}

#[test]
fn without_an_answer_the_clients_own_policy_decides_or_it_is_denied() {
    let home = Home::new();
    for input in [ELICITATION, PERMISSION] {
        let (status, printed, said) = end(hook(&home, &[], input));
        assert_eq!((status, printed), (Some(0), Value::Null), "{said}");
        assert!(said.contains("start one with `handraise up`"), "{said}");
    }
    let (_, cancelled, _) = end(hook(&home, &["--fail", "closed"], ELICITATION));
    assert_eq!(cancelled["hookSpecificOutput"]["action"], "cancel");
    let (_, denied, _) = end(hook(&home, &["--fail", "closed"], PERMISSION));
    assert_eq!(denied["hookSpecificOutput"]["decision"]["behavior"], "deny");
    assert_eq!(end(hook(&home, &[], "{}")).0, Some(1));
    assert_eq!(end(hook(&home, &["--fail", "closed"], "{}")).0, Some(2));
    let page = ELICITATION.replace(r#""mode":"form""#, r#""mode":"url","url":"https://a.test""#);
    let (status, printed, _) = end(hook(&home, &["--fail", "closed"], &page));
    assert_eq!((status, printed), (Some(0), Value::Null), "a page is whose it is");

    let up = Up::start(&home);
    let (status, printed, said) = end(hook(&home, &["--timeout", "100ms"], PERMISSION));
    assert_eq!((status, printed), (Some(0), Value::Null));
    assert!(said.contains("nobody answered within 100ms"), "{said}");

    let child = hook(&home, &[], PERMISSION);
    let ask = up.wait_for_ask();
    terminate(child.id());
    assert_eq!(up.wait_for_settlement(&ask)["outcome"], "cancel");
    let (status, printed, _) = end(child);
    assert_eq!((status, printed), (Some(4), Value::Null));
}

#[test]
fn with_fail_closed_whatever_fails_stops_the_call() {
    let home = Home::new();
    std::fs::write(home.work().join("wrong.toml"), "unknown = 1\n").unwrap();
    let full = || Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for (fail, status) in [("open", 1), ("closed", 2)] {
        let run = |arguments: &[&str], who: &str, stdout: Stdio| {
            let mut command = home.handraise(&[&["hook", "claude", "--fail", fail], arguments].concat());
            command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped()).env("HANDRAISE_WHO", who);
            let mut child = command.spawn().unwrap();
            // It may have ended before it read.
            let _ = child.stdin.take().unwrap().write_all(PERMISSION.as_bytes());
            let output = child.wait_with_output().unwrap();
            (output.status.code(), stderr(&output))
        };
        for (arguments, who) in [
            (&["--timeout", "5"][..], "operator"),
            (&["--timeout", "0s"], "operator"),
            (&[], "zzz"),
            (&["--who", "zzz"], "operator"),
            (&["--config", "wrong.toml"], "operator"),
            (&["--log-format", "zzz"], "operator"),
        ] {
            let (ended, said) = run(arguments, who, Stdio::null());
            assert_eq!(ended, Some(status), "{fail} {arguments:?} {who}: {said}");
        }
        assert_eq!(run(&["--nonsense"], "operator", Stdio::null()).0, Some(2));
        if fail == "closed" {
            let (ended, said) = run(&[], "operator", full());
            assert_eq!(ended, Some(2), "what is denied cannot be printed: {said}");
        }
    }
}

#[test]
fn the_settings_mean_the_same_from_any_folder() {
    let home = Home::new();
    std::fs::write(home.work().join("own.toml"), "").unwrap();
    let link = home.work().join("handraise-link");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_handraise"), &link).unwrap();
    let mut command = std::process::Command::new("./handraise-link");
    command.current_dir(home.work()).env_clear().env("HOME", home.path());
    command.args(["hook", "claude", "--print-settings", "--data-dir", "d", "--config", "own.toml"]);
    command.args(["--log", "warn", "--log-format", "json", "--inbox", "unix:d/inbox.sock"]);
    let printed = command.output().unwrap();
    let settings: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let command = settings["hooks"]["Elicitation"][0]["hooks"][0]["command"].as_str().unwrap();
    let work = home.work().canonicalize().unwrap().display().to_string();
    assert_eq!(
        command,
        format!(
            "{work}/handraise-link hook claude --inbox unix:{work}/d/inbox.sock --data-dir {work}/d --config {work}/own.toml \
             --log warn --log-format json"
        )
    );
    for inbox in ["nonsense", "http://elsewhere.test", "none"] {
        let refused = home.run(&["hook", "claude", "--print-settings", "--inbox", inbox]);
        assert_eq!(refused.status.code(), Some(1), "{inbox}: {}", stderr(&refused));
    }
}

#[test]
fn the_settings_run_the_hook_with_the_same_options() {
    let home = Home::new();
    let printed =
        home.stdout(&["hook", "claude", "--print-settings", "--fail", "closed", "--timeout", "10m"]);
    let settings: Value = serde_json::from_str(&printed).unwrap();
    let hook = &settings["hooks"]["PermissionRequest"][0]["hooks"][0];
    assert_eq!(hook["timeout"], 660);
    let command = hook["command"].as_str().unwrap();
    assert!(command.ends_with("handraise hook claude --fail closed --timeout 10m"), "{command}");
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .env_clear()
        .env("HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(PERMISSION.as_bytes()).unwrap();
    wait_for("its end", || child.try_wait().unwrap());
    let (status, denied, _) = end(child);
    assert_eq!((status, &denied["hookSpecificOutput"]["decision"]["behavior"]), (Some(0), &json!("deny")));
}
