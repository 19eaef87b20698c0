//! Guarded calls over stdio: kills, pipes, and what refuses the start.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use super::confirming::{GUARDED, SECRET, said, session, tap, token, with};
use crate::support::{Home, binary, wait_for};

/// Where spent nonces are, as soon as there is one.
fn spent(folder: &Path) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).next()
}

#[test]
fn s5_a_gateway_that_is_killed_after_the_claim_lets_the_call_run_once_or_never() {
    for _ in 0..5 {
        let home = Home::new();
        let mut gateway = session(&home, &json!({}), &[]);
        let token = token(&mut gateway);
        gateway.call(&json!(2), "tapOn", &with(&token));
        let folder = home.data_dir().join("confirm/spent");
        // Without a pause: what comes next may be on its way already.
        let claimed = (0..10_000_000).find_map(|_| spent(&folder));
        assert!(claimed.is_some(), "nothing was claimed: {}", gateway.log.text());
        gateway.kill();
        gateway.wait();
        let mut next = session(&home, &json!({}), &[]);
        let answer = next.answer(&json!(3), "tapOn", &with(&token));
        assert_eq!(said(&answer)["error"], "TOKEN_REUSED");
        assert!(next.count("tapOn") <= 1, "{:?}", next.calls());
    }
}

#[test]
fn a_shared_folder_of_other_programs_is_used_where_it_is_named() {
    let home = Home::new();
    let shared = home.path().join("shared");
    let mut gateway = session(&home, &json!({}), &[("MCP_DATA_DIR", shared.to_str().unwrap())]);
    let token = token(&mut gateway);
    gateway.answer(&json!(2), "tapOn", &with(&token));
    assert_eq!(gateway.count("tapOn"), 1);
    assert!(spent(&shared.join(".mcp-confirm/spent")).is_some());
}

#[test]
fn a_pipe_gets_its_preview_and_runs_its_token() {
    let home = Home::new();
    home.write_config(GUARDED);
    let calls = home.path().join("calls");
    let piped = |arguments: &Value| {
        let mut command = home.handraise(&["mcp", "--"]);
        command.arg(binary()).args(["fake-server", "--calls"]).arg(&calls).env(SECRET.0, SECRET.1);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for frame in [
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "sh", "version": "1"}}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tapOn", "arguments": arguments}}),
        ] {
            writeln!(stdin, "{frame}").unwrap();
        }
        // Everything is written, and the pipe ends before anything was answered.
        drop(stdin);
        let lines: Vec<String> =
            BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
        assert!(child.wait().unwrap().success());
        said(&serde_json::from_str(lines.last().unwrap()).unwrap())
    };
    let preview = piped(&tap());
    assert_eq!(preview["status"], "confirmation-required", "{preview}");
    let ran = piped(&with(preview["confirmToken"].as_str().unwrap()));
    assert_eq!(ran, "tapped \"OK\" on emulator-5554");
}

#[test]
fn calls_that_nobody_can_answer_do_not_slip_through() {
    let home = Home::new();
    let mut gateway = session(&home, &json!({}), &[]);
    let call = |id: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",{id}\"method\":\"tools/call\",\"params\":{{\"name\":\"tapOn\",\"arguments\":{{\"deviceId\":\"emulator-5554\"}}}}}}\n"
        )
    };
    gateway.write(call("").as_bytes());
    gateway.write(call("\"id\":null,").as_bytes());
    assert_eq!(gateway.receive()["error"]["code"], -32600);
    gateway.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": ["tapOn"], "arguments": {}}}));
    assert_eq!(gateway.receive()["error"]["code"], -32602);
    gateway.answer(&json!(3), "echo", &json!({"text": "x"}));
    assert_eq!(gateway.count("tapOn"), 0);
    let received = String::from_utf8(gateway.received()).unwrap();
    assert!(!received.contains("tapOn"), "{received}");
    wait_for("a record of each", || Some(()).filter(|()| gateway.records().len() == 2));
}

#[test]
fn a_table_that_cannot_work_refuses_the_start() {
    for (config, problem) in [
        (
            "[[confirm]]\ntools = ['*']\npreview = { tool = 'listDevices' }\n",
            "\"listDevices\" is guarded itself; add it to except",
        ),
        ("[[confirm]]\ntools = ['x']\naccount = 'me'\n", "number 1: account: \"me\" is no JSON pointer"),
        ("[[confirm]]\ntools = 'x'\n", "tools takes a list of names"),
    ] {
        let home = Home::new();
        home.write_config(config);
        let output = home.run(&["mcp", "--", binary(), "fake-server"]);
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(problem), "{stderr}");
    }
}
