//! What a session costs that nobody uses: so much for each, however many there are.

use serde_json::json;

use crate::support::{Connection, Front, FrontSetup, Home, wait_for};

/// What each may cost besides its server process and that one's supervisor, in kB.
const MOST: u64 = 40;

/// What a process holds in memory, in kB.
fn resident(front: &Front) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", front.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Opens sessions and their streams, until there are so many.
fn open(front: &Front, streams: &mut Vec<Connection>, number: usize) {
    while streams.len() < number {
        let session = front.initialize("2025-11-25", &json!({"elicitation": {}}), &[]);
        let mut stream = front.connect();
        // As clients write it who have no body to send.
        let request = format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {session}\r\n\r\n");
        assert!(stream.write(request.as_bytes()));
        stream.stream();
        streams.push(stream);
    }
    wait_for("rest", || (front.metric("bytes_in_flight") == 0).then_some(()));
}

/// What each session costs, once there are as many as `few`, and then as many as twice that.
#[track_caller]
fn assert_cheap(front: &Front, few: usize) {
    let mut streams = Vec::new();
    // What is there once, and what grows in steps, is there.
    open(front, &mut streams, few);
    let before = resident(front);
    open(front, &mut streams, 2 * few);
    let slope = resident(front).saturating_sub(before) / few as u64;
    println!("{slope} kB for each of {} sessions", 2 * few);
    assert!(slope <= MOST, "{slope} kB for each session");
    assert_eq!(front.metric("sessions"), 2 * few as u64);
}

#[test]
fn an_idle_session_costs_little_beside_its_process_however_many_there_are() {
    let home = Home::new();
    let variables = [("HANDRAISE_MCP__CHILDREN", "200")];
    assert_cheap(
        &Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() }),
        40,
    );
}

#[test]
fn an_idle_session_in_front_of_a_url_costs_little_however_many_there_are() {
    let home = Home::new();
    let variables = [("HANDRAISE_MCP__SESSIONS", "500")];
    assert_cheap(&Front::in_front_of(&home, &home.server(&[]), &variables), 120);
}
