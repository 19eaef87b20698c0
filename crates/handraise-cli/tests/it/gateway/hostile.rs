//! Frames that are no frames, lines without end, and what must not be seen.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use super::smuggled::{assert_refused, honest, smuggled};
use crate::support::{Gateway, Home, Setup, wait_for, wait_within};

#[test]
fn s3_what_is_no_single_object_is_refused_and_reaches_nobody() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    gateway.answer(&json!(0), "echo", &json!({}));
    let before = gateway.received();
    for (frame, id) in [
        (r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tapOn"}}]"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","method":"ping"}"#, json!(2)),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","Name":"tapOn"}}"#,
            json!(3),
        ),
        (r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a","name":"tapOn"}}"#, json!(4)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"tapOn"}} {}"#, json!(5)),
        (r#"{"jsonrpc":"2.0","id":6,"method":"tools/call""#, json!(6)),
        ("not json", Value::Null),
    ] {
        gateway.write(format!("{frame}\n").as_bytes());
        let answer = gateway.receive();
        assert_eq!(answer["error"]["code"], -32600, "{frame}: {answer}");
        assert_eq!(answer["id"], id, "{frame}");
    }
    gateway.write(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"x\":\"\xff\"}\n");
    assert_eq!(gateway.receive()["error"]["code"], -32600);
    assert_eq!(gateway.received(), before);
    assert_eq!((gateway.count("tapOn"), gateway.calls().len()), (0, 1));
}

#[test]
fn s3_no_smuggled_frame_reaches_a_server_in_either_era() {
    for is_modern in [false, true] {
        let home = Home::new();
        let mut gateway = Gateway::start(&home, &[]);
        if !is_modern {
            gateway.initialize("2025-11-25", &json!({}));
            gateway.answer(&json!(0), "echo", &json!({}));
        }
        let before = gateway.received();
        // On a line, what is blank is no frame, and a mark before one is not of it.
        let frames = smuggled(is_modern).into_iter().filter(|frame| !frame.is_empty());
        for frame in frames.filter(|frame| !frame.starts_with("\u{feff}".as_bytes())) {
            gateway.write(&[&frame[..], b"\n"].concat());
            assert_refused(&gateway.receive(), &frame);
        }
        assert_eq!((gateway.received(), gateway.count("wipe")), (before, 0));
        gateway.write(format!("{}\n", honest(is_modern)).as_bytes());
        assert_eq!((gateway.receive()["id"].clone(), gateway.count("wipe")), (json!(9), 1));
    }
}

#[test]
fn s37_a_line_of_100_mb_gets_an_error_and_bounded_memory() {
    let home = Home::new();
    let variables = [("HANDRAISE_MCP__MAX_FRAME_BYTES", "4194304")];
    let setup = Setup { server: &[], variables: &variables, before: &[] };
    let mut gateway = Gateway::start_with(&home, &setup);
    gateway.initialize("2025-11-25", &json!({}));
    // From the client: a request.
    gateway.write(b"{\"jsonrpc\":\"2.0\",\"id\":\"long\",\"method\":\"tools/call\",\"params\":{\"name\":\"");
    let piece = vec![b'x'; 1_000_000];
    for _ in 0..100 {
        gateway.write(&piece);
    }
    gateway.write(b"\"}}\n");
    let error = gateway.receive();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("long"), &json!(-32600)), "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("4194304"), "{error}");
    // From the server: a response.
    let error = gateway.answer(&json!(1), "big", &json!({"bytes": 100_000_000}));
    assert!(error["error"]["message"].as_str().unwrap().contains("4194304"), "{error}");
    // And all goes on.
    assert_eq!(gateway.answer(&json!(2), "echo", &json!({"text": "a"}))["result"]["content"][0]["text"], "a");
    let peak = peak(gateway.child.id());
    assert!(peak < 80_000, "{peak} kB");
}

#[test]
fn s37_a_line_that_is_too_long_gets_an_error_when_its_id_stands_at_the_end() {
    let home = Home::new();
    let raw = home.path().join("raw");
    let long = "x".repeat(300_000);
    // A result that ends like the answer to the other call, a question of the server's, and the answer.
    let lines = format!(
        r#"{{"jsonrpc":"2.0","method":"x","params":{{"text":"{long}","more":"\",\"id\":2}}"}}}}
{{"method":"roots/list","params":{{"text":"{long}"}},"jsonrpc":"2.0","id":"asked"}}
{{"result":{{"content":[],"text":"{long}","id":2}},"jsonrpc":"2.0","id":1}}
{{"result":{{"content":[]}},"jsonrpc":"2.0","id":2}}
"#
    );
    std::fs::write(&raw, lines).unwrap();
    let variables = [("HANDRAISE_MCP__MAX_FRAME_BYTES", "65536")];
    let server = ["--raw", raw.to_str().unwrap(), "--after", "2"];
    let mut gateway =
        Gateway::start_with(&home, &Setup { server: &server, variables: &variables, before: &[] });
    let call = |id: &str, text: &str| {
        format!(
            r#"{{"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}},"jsonrpc":"2.0","id":{id}}}"#
        ) + "\n"
    };
    let is_too_long = |error: &Value, id: Value| {
        assert_eq!((&error["id"], &error["error"]["code"]), (&id, &json!(-32600)), "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("longer than 65536 bytes"), "{error}");
    };
    gateway.write(call("\"long\"", &long).as_bytes());
    is_too_long(&gateway.receive(), json!("long"));
    gateway.write(call("1", "").as_bytes());
    gateway.write(call("2", "").as_bytes());
    is_too_long(&gateway.receive(), json!(1));
    assert_eq!(gateway.receive(), json!({"jsonrpc": "2.0", "id": 2, "result": {"content": []}}));
    gateway.close();
    assert_eq!(gateway.rest(), b"");
    // The server hears that its question has no answer.
    let received = String::from_utf8(gateway.received()).unwrap();
    let last: Value = serde_json::from_str(received.lines().last().unwrap()).unwrap();
    is_too_long(&last, json!("asked"));
}

/// The most memory that a process has held at once, in kilobytes.
pub(super) fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    peak.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// How much processor time a process has used, in clock ticks.
pub(super) fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Waits until a process has begun and does nothing any more. It gets on until then, however busy the machine is: the bound is
/// for one that never stands still.
pub(super) fn stands_still(process: u32, has_begun: impl Fn() -> bool) {
    let is_asleep = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('S')
    };
    let is_still = || {
        let before = ticks(process);
        std::thread::sleep(Duration::from_millis(300));
        (has_begun() && ticks(process) == before && is_asleep()).then_some(())
    };
    wait_within("everything to stand still", Duration::from_secs(240), is_still);
}

/// Whether something is there to be read.
fn has_written(gateway: &Child) -> bool {
    rustix::io::ioctl_fionread(gateway.stdout.as_ref().unwrap()).unwrap() > 0
}

/// The gateway in front of a command, and a client that has not begun to read.
pub(super) fn unread(home: &Home, command: &[&str]) -> Child {
    let mut gateway = home.handraise(&[&["mcp", "--"], command].concat());
    gateway.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    gateway.spawn().unwrap()
}

#[test]
fn s37_a_flood_of_the_server_waits_for_a_client_that_does_not_read() {
    let home = Home::new();
    // Few that are long: what is held is bounded in bytes, and each takes its time.
    let text = "x".repeat(900);
    let note =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{text}"}}}}"#);
    let mut gateway = unread(&home, &["yes", &note]);
    stands_still(gateway.id(), || has_written(&gateway));
    let most = peak(gateway.id());
    assert!(most < 40_000, "{most} kB");
    // It goes on where it stood, with whole lines.
    let lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    assert!(lines.take(20_000).all(|line| line.unwrap() == note));
    // Its client is gone now, and with it everything.
    wait_for("the end", || gateway.try_wait().unwrap());
}

#[test]
fn s37_answers_for_a_client_that_does_not_read_wait_within_bounds_and_are_all_there() {
    const FRAMES: usize = 40_000;
    let home = Home::new();
    let mut gateway = unread(&home, &["cat"]);
    let mut stdin = gateway.stdin.take().unwrap();
    // Each is answered with about a thousand bytes, which nobody reads. What is held is bounded in bytes, and each frame takes
    // its time: so they are few, and long.
    let frame = format!("{{\"id\":\"{}\",\"method\":\"a\",\"method\":\"b\"}}\n", "x".repeat(900));
    let writer = std::thread::spawn(move || stdin.write_all(&frame.into_bytes().repeat(FRAMES)).unwrap());
    stands_still(gateway.id(), || has_written(&gateway));
    assert!(!writer.is_finished(), "it takes no more than it can answer");
    let most = peak(gateway.id());
    assert!(most < 80_000, "{most} kB");
    let lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    assert_eq!(lines.filter(|line| line.as_ref().unwrap().contains("-32600")).count(), FRAMES);
    writer.join().unwrap();
    assert_eq!(wait_for("the end", || gateway.try_wait().unwrap()).code(), Some(0));
}

/// What must not be seen by a server, and what must.
pub(crate) const CANARIES: [(&str, &str); 11] = [
    ("HANDRAISE_TOKEN", "canary"),
    ("HANDRAISE_STATE_SECRET", "canary-canary-canary-canary-canary"),
    ("HANDRAISE_LOG", "info"),
    ("KANDEV_FEATURES_ACP_ELICITATION", "true"),
    ("AUTOMOBILE_ELICITATION", "on"),
    ("MCP_CONFIRM_SECRET", "canary"),
    ("MCP_HOST_CONFIRM_SECRET", "canary"),
    ("DATABASE_URL", "postgres://canary"),
    ("STORE", "postgres://user:canary@host/db"),
    ("PASSED_URL", "postgres://passed"),
    ("ORDINARY", "seen"),
];
pub(crate) const PASSED: &str = "pass_env = ['PASSED_URL']\n";

/// A file that servers add their environment to, and the commands before them that do so.
pub(crate) fn environment(home: &Home) -> (PathBuf, [String; 4]) {
    let seen = home.path().join("environment");
    let script = format!("env >> '{}'; exec \"$@\"", seen.display());
    (seen, ["sh", "-c", &script, "sh"].map(str::to_owned))
}

/// So many servers have seen what they may, and nothing else of it.
#[track_caller]
pub(crate) fn assert_clean(seen: &Path, servers: usize) {
    let seen = std::fs::read_to_string(seen).unwrap();
    for withheld in
        ["HANDRAISE_", "KANDEV_", "AUTOMOBILE_", "MCP_CONFIRM", "MCP_HOST", "DATABASE_URL", "canary"]
    {
        assert!(!seen.contains(withheld), "{withheld}: {seen}");
    }
    for passed in ["PASSED_URL=postgres://passed", "ORDINARY=seen", "HOME="] {
        assert_eq!(seen.matches(passed).count(), servers, "{passed}: {seen}");
    }
}

#[test]
fn s7_a_server_sees_none_of_our_settings_or_secrets() {
    let home = Home::new();
    home.write_config(PASSED);
    let (seen, before) = environment(&home);
    let setup = Setup { server: &[], variables: &CANARIES, before: &before.each_ref().map(String::as_str) };
    let mut gateway = Gateway::start_with(&home, &setup);
    gateway.initialize("2025-11-25", &json!({}));
    assert_clean(&seen, 1);
}

#[test]
fn s42_what_a_server_writes_moves_no_terminal() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    gateway.answer(&json!(1), "complain", &json!({"text": "\u{1b}[2J\u{202e}red"}));
    wait_for("the line", || gateway.log.text().contains("\\u{1b}[2J\\u{202e}red").then_some(()));
}

#[test]
fn a_server_that_reads_nothing_while_its_answer_is_not_read_does_not_stand_still_with_us() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    // More than all pipes hold, in both directions: the server stops reading until its answer is taken.
    let text = "x".repeat(100_000);
    let writer = std::thread::spawn(move || {
        for id in 0..100 {
            gateway.call(&json!(id), "echo", &json!({ "text": text }));
        }
        gateway
    });
    let gateway = writer.join().unwrap();
    for id in 0..100 {
        assert_eq!(gateway.receive()["id"], id);
    }
}

#[test]
fn answers_in_an_array_do_not_pass_by_the_open_calls() {
    let home = Home::new();
    let raw = home.path().join("raw");
    let refusal = r#"{"isError":true,"content":[{"type":"text","text":"{\"code\":\"ambiguous_device_target\",\"candidates\":[{\"deviceId\":\"a\"},{\"deviceId\":\"b\"}]}"}]}"#;
    let hello =
        r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25","capabilities":{}, "x":1.0}}"#;
    let refused = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{refusal}}}"#);
    let note = r#"{ "jsonrpc":"2.0","method":"notifications/message","params":{"data":1.50} }"#;
    std::fs::write(&raw, format!(" [ {hello}, {note}\t,7,[{hello}],\"x\",{refused} ]\r\n[{{]\n")).unwrap();
    let mut gateway = Gateway::start(&home, &["--raw", raw.to_str().unwrap(), "--after", "2"]);
    gateway.send(&json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}}));
    gateway.call(&json!(1), "tapOn", &json!({}));
    assert_eq!(gateway.line(), format!("{hello}\n").as_bytes());
    assert_eq!(gateway.line(), format!("{note}\n").as_bytes());
    // The refusal is asked about, as it would be alone.
    let question = gateway.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    gateway.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    assert_eq!(gateway.line(), format!("{refused}\n").as_bytes());
    wait_for("word of the noise", || gateway.log.text().contains("is no frame").then_some(()));
    // Nothing is open any more: the end of the server is no error of any call.
    gateway.close();
    assert_eq!(gateway.rest(), b"");
    assert_eq!(gateway.wait(), Some(0));
}
