//! A client that goes away while its server takes nothing: nothing is left; and one that only sends no more: nothing is
//! lost.

use std::{
    fmt::Write as _,
    fs::File,
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::pipe::{PipeFlags, pipe_with};

use super::storms::wait_until_still;
use crate::support::{Ending, Home, alive, kill, tree, wait_for, wait_within};

/// Nothing may be left after this (quality.md, "Reliability").
const GONE: Duration = Duration::from_secs(2);
const NOTE: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;

/// A gateway in front of a shell's script, and the client's ends of its stdin and its stdout: of pipes, or of sockets as
/// node gives them to its children.
fn start(home: &Home, server: &str, sockets: bool) -> (Child, File, File) {
    started(home.handraise(&["mcp", "--", "sh", "-c", server]), sockets)
}

/// The same of any command.
fn started(mut gateway: Command, sockets: bool) -> (Child, File, File) {
    let [(from_client, stdin), (to_client, stdout)] = [false, true].map(|to_client| -> (OwnedFd, OwnedFd) {
        if sockets {
            let (client, gateway) = UnixStream::pair().unwrap();
            (client.into(), gateway.into())
        } else {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            if to_client { (read, write) } else { (write, read) }
        }
    });
    let gateway = gateway.stdin(stdin).stdout(stdout).stderr(Stdio::null()).spawn().unwrap();
    (gateway, from_client.into(), to_client.into())
}

/// A process that writes notes without end, and reads nothing.
fn flood(from_client: File, to_client: Stdio) -> Ending {
    Ending(Command::new("yes").arg(NOTE).stdin(to_client).stdout(from_client).spawn().unwrap())
}

/// The gateway and everything below it end in time.
#[track_caller]
fn check_end(mut gateway: Child, below: &[u32]) {
    assert!(below.len() >= 2, "a supervisor and a server: {below:?}");
    wait_within("end of everything", GONE, || {
        let has_ended = gateway.try_wait().unwrap().is_some();
        (has_ended && below.iter().all(|process| !alive(*process))).then_some(())
    });
}

#[test]
fn s35_nothing_is_left_when_the_client_of_a_server_that_takes_nothing_is_killed() {
    for sockets in [false, true] {
        for server in ["sleep 600", "trap '' TERM; while :; do sleep 1; done"] {
            let home = Home::new();
            let (gateway, from_client, to_client) = start(&home, server, sockets);
            let client = flood(from_client, to_client.into());
            wait_until_still(&gateway);
            let below = tree(gateway.id());
            kill(client.0.id());
            check_end(gateway, &below);
        }
    }
}

#[test]
fn s35_nothing_is_left_when_the_client_of_a_server_that_takes_nothing_reads_no_more() {
    for sockets in [false, true] {
        let home = Home::new();
        let (gateway, from_client, to_client) = start(&home, "sleep 600", sockets);
        let client = flood(from_client, Stdio::null());
        wait_until_still(&gateway);
        let below = tree(gateway.id());
        drop(to_client);
        check_end(gateway, &below);
        drop(client);
    }
}

#[test]
fn s35_nothing_is_left_when_a_client_with_nothing_on_its_way_reads_no_more() {
    for sockets in [false, true] {
        let home = Home::new();
        let (gateway, from_client, to_client) = start(&home, "sleep 600", sockets);
        wait_for("the server", || (tree(gateway.id()).len() >= 2).then_some(()));
        let below = tree(gateway.id());
        drop(to_client);
        check_end(gateway, &below);
        drop(from_client);
    }
}

/// More lines than pipes and buffers hold, each of which says which it is.
fn lines() -> String {
    (0..20_000).fold(String::new(), |mut text, at| {
        let _ =
            writeln!(text, r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"at":{at}}}}}"#);
        text
    })
}

#[test]
fn what_a_client_sent_before_it_was_gone_reaches_its_server_which_ends_by_itself() {
    let home = Home::new();
    let (mut gateway, mut from_client, to_client) = start(&home, "cat > taken; exit 7", false);
    from_client.write_all(lines().as_bytes()).unwrap();
    drop((from_client, to_client));
    let status = wait_for("the end", || gateway.try_wait().unwrap());
    assert_eq!(status.code(), Some(7));
    assert!(std::fs::read_to_string(home.work().join("taken")).unwrap() == lines());
}

#[test]
fn a_client_that_sends_no_more_and_reads_on_gets_everything_of_a_slow_server_in_order() {
    // It begins late, and a shell reads byte by byte.
    let server = r#"sleep 1; while IFS= read -r line; do printf '%s\n' "$line"; done; exit 7"#;
    for sockets in [false, true] {
        let home = Home::new();
        let (mut gateway, mut from_client, mut to_client) = start(&home, server, sockets);
        let writer = std::thread::spawn(move || from_client.write_all(lines().as_bytes()).unwrap());
        let mut all = String::new();
        to_client.read_to_string(&mut all).unwrap();
        writer.join().unwrap();
        assert!(all == lines(), "{} of {} bytes", all.len(), lines().len());
        let status = wait_for("the end", || gateway.try_wait().unwrap());
        assert_eq!(status.code(), Some(7));
    }
}

#[test]
fn a_client_of_a_server_at_a_url_that_never_answers_is_missed_when_it_is_gone() {
    // It takes connections, and says nothing.
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any"}}"#;
    for (sockets, reads_only) in [(false, false), (true, false), (false, true)] {
        let home = Home::new();
        let command = home.handraise(&["mcp", "--upstream", &url]);
        let (mut gateway, mut from_client, to_client) = started(command, sockets);
        writeln!(from_client, "{call}").unwrap();
        // Nothing shows that it has begun to wait.
        std::thread::sleep(Duration::from_millis(300));
        assert!(gateway.try_wait().unwrap().is_none());
        drop(to_client);
        let kept = reads_only.then_some(from_client);
        wait_within("end of the gateway", 2 * GONE, || gateway.try_wait().unwrap());
        drop(kept);
    }
}
