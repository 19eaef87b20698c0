//! Too much of something: of signals, of what nobody reads. Memory stays bounded, and the end comes in time.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::json;

use super::{
    asking::{SECOND, accept, ask, respond, session},
    hostile::{peak, ticks, unread},
};
use crate::support::{Home, alive, send, tree, wait_for, wait_within};

/// Nothing may be left after this (quality.md, "Reliability").
const GONE: Duration = Duration::from_secs(2);
/// What a gateway may have held at once, in kilobytes: itself, and what a few full pipes hold.
const MOST: u64 = 40_000;

#[test]
fn a_storm_of_sighup_costs_no_call_no_question_and_no_memory() {
    const CALLS: u64 = 300;
    let home = Home::new();
    home.write_config("elicitation = 'on'\n");
    let mut gateway = session(&home, &[], &[("HANDRAISE_ASK_TIMEOUT_MS", "3600000")]);
    let question = ask(&mut gateway, &json!("asked"));
    let process = gateway.child.id();
    let (over, sent) = (AtomicBool::new(false), std::sync::atomic::AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The file is right, wrong and gone in turns.
            for text in
                ["elicitation = 'off'\n", "elicitatoin = 'on'\n", "elicitation = 'on'\n"].iter().cycle()
            {
                home.write_config(text);
                for _ in 0..100 {
                    send(process, Signal::HUP);
                }
                if sent.fetch_add(100, Ordering::Relaxed) > 5_000 && over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for id in 0..CALLS {
            let answer = gateway.answer(&json!(id), "echo", &json!({"text": format!("call {id}")}));
            assert_eq!(answer["result"]["content"][0]["text"], format!("call {id}"));
        }
        over.store(true, Ordering::Relaxed);
    });
    // What was asked before is answered as if nothing had happened, and the last file counts.
    respond(&mut gateway, &question, &accept(SECOND));
    assert_eq!(gateway.receive()["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4");
    home.write_config("elicitation = 'on'\n");
    send(process, Signal::HUP);
    wait_for("the last file", || {
        let log = gateway.log.text();
        log.lines()
            .rev()
            .find(|line| line.contains("settings"))
            .is_some_and(|line| line.contains("\"on\""))
            .then_some(())
    });
    let question = ask(&mut gateway, &json!("again"));
    respond(&mut gateway, &question, &accept(SECOND));
    gateway.receive();
    assert!(peak(process) < MOST, "{} kB", peak(process));
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().count();
    assert!(threads <= 2, "{threads}: one that relays, one that logs the server's complaints");
    gateway.close();
    assert_eq!(gateway.wait(), Some(0));
}

/// Waits until nothing moves any more: not even the processor, of the gateway, its supervisor and the server.
pub(super) fn wait_until_still(gateway: &Child) {
    let spent = || {
        let below = tree(gateway.id());
        let all = below.iter().chain([&gateway.id()]).map(|process| ticks(*process)).sum::<u64>();
        (below.len(), all)
    };
    wait_for("everything to stand still", || {
        let before = spent();
        std::thread::sleep(Duration::from_millis(300));
        (before.0 >= 2 && spent() == before).then_some(())
    });
}

/// Ends it by a signal, and sees everything gone in time and within bounds.
#[track_caller]
fn check_end(mut gateway: Child) {
    let most = peak(gateway.id());
    assert!(most < MOST, "{most} kB");
    let below = tree(gateway.id());
    send(gateway.id(), Signal::TERM);
    wait_within("end of every process", GONE, || below.iter().all(|process| !alive(*process)).then_some(()));
    let ended = wait_within("end of the gateway", GONE, || gateway.try_wait().unwrap());
    assert_eq!(ended.code(), Some(143));
}

#[test]
fn s37_a_flood_for_a_client_that_does_not_read_ends_in_time() {
    let home = Home::new();
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"xxxxxxxxxxxxxxxx"}}"#;
    let gateway = unread(&home, &["yes", note]);
    wait_until_still(&gateway);
    check_end(gateway);
}

#[test]
fn s37_a_flood_of_one_line_that_never_ends_is_not_kept() {
    let home = Home::new();
    let script = "head -c 300000000 /dev/zero | tr '\\0' x; echo; echo '{\"jsonrpc\":\"2.0\",\"method\":\"after\"}'; exec sleep 60";
    let mut command = home.handraise(&["mcp", "--", "sh", "-c", script]);
    command.env("HANDRAISE_MCP__MAX_FRAME_BYTES", "1048576");
    let mut gateway =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(gateway.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"method\":\"after\"}\n");
    check_end(gateway);
}

#[test]
fn s37_a_flood_of_the_client_waits_for_a_server_that_does_not_read() {
    let home = Home::new();
    let mut gateway = unread(&home, &["sleep", "60"]);
    let mut stdin = gateway.stdin.take().unwrap();
    let call =
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
    // A quarter of a gigabyte, of which some pipes are taken.
    let writer =
        std::thread::spawn(move || stdin.write_all(format!("{call}\n").repeat(2_500_000).as_bytes()));
    wait_until_still(&gateway);
    assert!(!writer.is_finished(), "it takes no more than the server");
    check_end(gateway);
    writer.join().unwrap().unwrap_err();
}
