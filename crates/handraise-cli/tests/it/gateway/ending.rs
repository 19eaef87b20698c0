//! How it ends: the client's end, the server's, ours.

use std::process::{Command, Stdio};

use handraise_transport::clock::{Clock as _, SystemClock};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Gateway, Home, Setup, alive, assert_gone, binary, kill, pause, send, terminate, tree, wait_for,
};

#[test]
fn a_pipe_into_a_server_gets_its_answers_and_its_exit_status() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    // Slow, and the last line of the pipe lacks its end.
    gateway.write(
        br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"swipe","arguments":{"steps":3,"pauseMs":100,"deviceId":"A1B2-C3D4"}}}"#,
    );
    gateway.close();
    let rest = String::from_utf8(gateway.rest()).unwrap();
    let lines: Vec<&str> = rest.lines().collect();
    assert_eq!(lines.len(), 2, "{rest}");
    assert!(lines[1].contains("swiped on A1B2-C3D4"), "{rest}");
    assert_eq!(gateway.wait(), Some(0));
}

#[test]
fn the_exit_status_is_the_servers() {
    let home = Home::new();
    let mut gateway = Gateway::command(&home, &["--", "sh", "-c", "cat > /dev/null; exit 42"]);
    gateway.close();
    assert_eq!(gateway.wait(), Some(42));
    let no_program = home.path().join("no-program");
    std::fs::write(&no_program, "words").unwrap();
    let no_program = no_program.to_str().unwrap();
    for (command, status, said) in [
        (&["no-such-program"][..], 127, "no program is called \"no-such-program\""),
        (&["/no/such/program"], 127, "check the path"),
        (&[no_program], 126, "check its permissions"),
    ] {
        let mut gateway = Gateway::command(&home, &[&["--"], command].concat());
        assert_eq!(gateway.wait(), Some(status), "{command:?}");
        wait_for(said, || gateway.log.text().contains(said).then_some(()));
        assert_eq!(gateway.rest(), b"");
    }
}

#[test]
fn s33_a_server_that_dies_during_calls_ends_each_with_its_exit_status_and_no_more() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({"elicitation": {}}));
    gateway.call(&json!("a"), "hang", &json!({}));
    gateway.call(&json!(2), "hang", &json!({}));
    gateway.answer(&json!(3), "complain", &json!({"text": "a secret of the server's"}));
    gateway.call(&json!(4), "die", &json!({"status": 9}));
    let mut errors: Vec<Value> = (0..3).map(|_| gateway.receive()).collect();
    errors.sort_by_key(|error| error["id"].to_string());
    for (error, id) in errors.iter().zip([json!("a"), json!(2), json!(4)]) {
        assert_eq!(error["id"], id);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("exit status 9") && !message.contains("secret"), "{error}");
    }
    assert_eq!(gateway.rest(), b"");
    assert_eq!(gateway.wait(), Some(9));
    // Its stderr is in our log, and nowhere else.
    gateway.log.wait_for("a secret of the server's");
}

#[test]
fn s35_nothing_of_a_killed_gateway_is_left() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    gateway.answer(&json!(1), "leave", &json!({}));
    gateway.call(&json!(2), "hang", &json!({}));
    let below = tree(gateway.child.id());
    assert!(below.len() >= 3, "a supervisor, the server, and what it left: {below:?}");
    gateway.kill();
    assert_gone(&below);
}

#[test]
fn s35_nothing_of_a_killed_supervisor_is_left() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    gateway.answer(&json!(1), "leave", &json!({}));
    gateway.call(&json!(2), "hang", &json!({}));
    let below = tree(gateway.child.id());
    kill(below[0]);
    assert_gone(&below);
    assert!(gateway.receive()["error"]["message"].as_str().unwrap().contains("supervisor was killed"));
    assert_eq!(gateway.wait(), Some(1));
}

/// A launcher in JavaScript, as npx is one: it starts what it is given with its own stdio, and waits. What it starts is
/// in a session of its own, and what it is told to end by does not end it.
/// A package's program that starts a server in a session of its own, and does not end when it is asked to.
const LAUNCHER: &str = "#!/usr/bin/env node
const { spawn } = require('node:child_process');
const child = spawn(process.argv[2], process.argv.slice(3), { stdio: 'inherit', detached: true });
child.on('exit', code => process.exit(code ?? 1));
process.on('SIGTERM', () => {});
";

#[test]
fn s35_nothing_of_a_killed_gateway_is_left_through_npx_and_node() {
    if Command::new("npx").arg("--version").output().is_err() {
        println!("skipped: npx is not installed");
        return;
    }
    let home = Home::new();
    let package = home.path().join("package");
    std::fs::create_dir(&package).unwrap();
    let manifest = json!({"name": "launcher", "version": "1.0.0", "bin": "launcher.cjs"});
    std::fs::write(package.join("package.json"), manifest.to_string()).unwrap();
    std::fs::write(package.join("launcher.cjs"), LAUNCHER).unwrap();
    let before = ["npx", "--offline", "--yes", package.to_str().unwrap()];
    let mut gateway = Gateway::start_with(&home, &Setup { server: &[], variables: &[], before: &before });
    gateway.initialize("2025-11-25", &json!({}));
    gateway.answer(&json!(1), "leave", &json!({}));
    let below = tree(gateway.child.id());
    assert!(
        below.len() >= 6,
        "a supervisor, npx, a shell, the launcher, the server, and what it left: {below:?}"
    );
    gateway.kill();
    assert_gone(&below);
}

#[test]
fn a_server_that_goes_on_after_its_stdin_has_ended_is_ended() {
    let home = Home::new();
    let mut gateway = Gateway::command(&home, &["--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done"]);
    wait_for("the server", || (tree(gateway.child.id()).len() >= 2).then_some(()));
    let below = tree(gateway.child.id());
    gateway.close();
    assert_eq!(gateway.wait(), Some(137));
    assert!(below.iter().all(|process| !alive(*process)), "{below:?}");
}

#[test]
fn calls_to_a_server_that_has_closed_its_stdin_get_errors_at_once() {
    let home = Home::new();
    let script = "trap '' TERM; read -r line; exec <&-; echo '{\"jsonrpc\":\"2.0\",\"method\":\"closed\"}'
                  while :; do sleep 1; done";
    let mut gateway = Gateway::command(&home, &["--", "sh", "-c", script]);
    gateway.call(&json!(1), "first", &json!({}));
    assert_eq!(gateway.receive()["method"], "closed");
    let below = tree(gateway.child.id());
    gateway.call(&json!("b"), "second", &json!({}));
    let mut errors = [gateway.receive(), gateway.receive()];
    errors.sort_by_key(|error| error["id"].to_string());
    // It is given a second to end, and calls meanwhile get the same.
    gateway.call(&json!(3), "third", &json!({}));
    for (error, id) in errors.iter().chain([&gateway.receive()]).zip([json!("b"), json!(1), json!(3)]) {
        assert_eq!(error["id"], id);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("it closed its stdin"), "{error}");
    }
    assert_eq!(gateway.rest(), b"");
    assert_eq!(gateway.wait(), Some(137));
    assert_gone(&below);
}

#[test]
fn a_client_that_is_gone_ends_everything() {
    let home = Home::new();
    let mut command = home.handraise(&["mcp", "--"]);
    command.args([binary(), "fake-server"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    wait_for("the end", || child.try_wait().unwrap());
}

#[test]
fn sigterm_ends_in_order_and_in_bounded_time() {
    let home = Home::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut gateway = Gateway::start(&home, &[]);
        gateway.initialize("2025-11-25", &json!({}));
        gateway.call(&json!(1), "hang", &json!({}));
        let below = tree(gateway.child.id());
        send(gateway.child.id(), signal);
        assert_gone(&below);
        let error = gateway.receive();
        assert!(error["error"]["message"].as_str().unwrap().contains("exit status 143"), "{error}");
        assert_eq!(gateway.wait(), Some(143));
    }
}

#[test]
fn sighup_reads_the_switch_again_and_keeps_it_when_the_file_is_wrong() {
    let home = Home::new();
    home.write_config("elicitation = 'on'\n");
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    let mut reloaded = |config: &str, said: &str| {
        home.write_config(config);
        send(gateway.child.id(), Signal::HUP);
        wait_for(said, || gateway.log.text().contains(said).then_some(()));
        gateway.answer(&json!(1), "echo", &json!({"text": "still here"}));
    };
    reloaded("elicitation = 'off'\n", "elicitation=\"off\"");
    reloaded("elicitatoin = 'on'\n", "did you mean 'elicitation'?");
    reloaded("elicitation = 'on'\n", "elicitation=\"on\"");
}

#[test]
fn a_storm_of_sighup_costs_no_call_and_the_last_one_counts() {
    let home = Home::new();
    home.write_config("elicitation = 'on'\n");
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({"elicitation": {}}));
    for round in 0..50 {
        for _ in 0..100 {
            send(gateway.child.id(), Signal::HUP);
        }
        gateway.answer(&json!(round), "echo", &json!({"text": "still here"}));
    }
    home.write_config("elicitation = 'off'\n");
    send(gateway.child.id(), Signal::HUP);
    let said = "elicitation=\"off\"";
    wait_for(said, || gateway.log.text().contains(said).then_some(()));
    let answer = gateway.answer(&json!("tap"), "tapOn", &json!({}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(gateway.outcomes(1), ["disabled"]);
    gateway.close();
    assert_eq!(gateway.wait(), Some(0));
}

/// A gateway whose server is stubborn, and what is below it.
fn with_stubborn_server(home: &Home) -> (Gateway, Vec<u32>) {
    let script = "trap '' TERM; echo '{\"jsonrpc\":\"2.0\",\"method\":\"up\"}'; while :; do sleep 1; done";
    let gateway = Gateway::command(home, &["--", "sh", "-c", script]);
    assert_eq!(gateway.receive()["method"], "up");
    let below = tree(gateway.child.id());
    (gateway, below)
}

#[test]
fn a_second_signal_ends_at_once() {
    let home = Home::new();
    let (mut gateway, below) = with_stubborn_server(&home);
    terminate(gateway.child.id());
    wait_for("word of the first", || gateway.log.text().contains("ending in order").then_some(()));
    let first = SystemClock.boot_millis();
    // Whatever comes within half a second of the first is the same.
    let child = &mut gateway.child;
    let status = wait_for("the end", || {
        terminate(child.id());
        child.try_wait().unwrap()
    });
    let took = SystemClock.boot_millis() - first;
    assert_eq!(status.code(), Some(1));
    gateway.log.wait_for("on the second signal");
    assert!(took >= 450, "{took} ms after word of the first");
    assert_gone(&below);
}

#[test]
fn a_signal_that_comes_twice_at_once_ends_in_order() {
    let home = Home::new();
    let (mut gateway, below) = with_stubborn_server(&home);
    gateway.call(&json!(1), "any", &json!({}));
    terminate(gateway.child.id());
    wait_for("word of the first", || gateway.log.text().contains("ending in order").then_some(()));
    terminate(gateway.child.id());
    // Which is to say that the server has its second, and the client its answer.
    let error = gateway.receive();
    assert!(error["error"]["message"].as_str().unwrap().contains("exit status 137"), "{error}");
    assert_eq!(gateway.wait(), Some(137));
    assert_gone(&below);
}

#[test]
fn the_end_by_timeout_which_signals_the_group_as_well_is_in_order() {
    // It ends by itself, but not at once.
    let script = "trap 'sleep 0.2; exit 7' TERM; echo >&2 up; while :; do sleep 0.1; done";
    for _ in 0..4 {
        let home = Home::new();
        let gateway = home.handraise(&["mcp", "--", "sh", "-c", script]);
        let mut timeout = Command::new("timeout");
        timeout.args(["--preserve-status", "1"]).arg(gateway.get_program()).args(gateway.get_args());
        timeout.env_clear().envs(gateway.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = timeout.stdin(Stdio::piped()).output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{log}");
        assert!(log.contains("ending in order") && !log.contains("on the second signal"), "{log}");
    }
}

#[test]
fn a_terminated_gateway_twice_in_a_row_leaves_nothing() {
    let home = Home::new();
    let before = [binary(), "mcp", "--"];
    let mut gateway = Gateway::start_with(&home, &Setup { server: &[], variables: &[], before: &before });
    gateway.initialize("2025-11-25", &json!({}));
    gateway.answer(&json!(1), "leave", &json!({}));
    let below = tree(gateway.child.id());
    assert!(below.len() >= 5, "{below:?}");
    terminate(gateway.child.id());
    assert_gone(&below);
}

#[test]
fn a_supervisor_and_a_server_that_were_stopped_are_continued_for_their_end() {
    let script =
        "trap 'exit 7' TERM; echo '{\"jsonrpc\":\"2.0\",\"method\":\"up\"}'; while :; do read -r line; done";
    for signal in [None, Some(Signal::TERM)] {
        let home = Home::new();
        let mut gateway = Gateway::command(&home, &["--", "sh", "-c", script]);
        assert_eq!(gateway.receive()["method"], "up");
        let below = tree(gateway.child.id());
        for process in &below {
            pause(*process);
        }
        match signal {
            Some(signal) => send(gateway.child.id(), signal),
            None => gateway.close(),
        }
        assert_eq!(gateway.wait(), Some(7), "as it ends itself");
        assert_gone(&below);
    }
}
