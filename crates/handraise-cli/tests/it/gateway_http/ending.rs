//! SIGTERM while calls are open: every one of them ends, and nothing is left (S35).

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    process::Stdio,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    Connection, Ending, Front, FrontSetup, Gateway, Home, assert_gone, binary, certificates, initialize,
    terminate, tree, wait_for, wait_within,
};

const CLIENTS: u64 = 16;
/// How long the end may take: the two seconds of `docs/gateway.md`, and one more for a busy machine.
const END: Duration = Duration::from_secs(3);

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// Asks it to end, which it has to in time; nothing below it may be left.
fn end(front: &mut Front) {
    let below = tree(front.child.id());
    terminate(front.child.id());
    let status = wait_within("the end of handraise mcp", END, || front.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    assert_gone(&below);
}

#[test]
fn s35_calls_that_are_open_at_the_end_get_an_error_whatever_era_they_are_of() {
    let home = Home::new();
    let mut front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    let mut open: Vec<_> =
        (0..CLIENTS).map(|id| front.post(&[named], &call(id, "hang", &json!({})))).collect();
    let (frame, headers) =
        crate::support::modern(&json!(CLIENTS), "tools/call", &json!({"name": "hang", "arguments": {}}));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    open.push(front.post(&headers, &frame));
    wait_for("every call", || (front.count("hang") as u64 == CLIENTS + 1).then_some(()));
    end(&mut front);
    for (id, connection) in (0..).zip(&mut open) {
        let answer = connection.answer_in_time();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)), "{answer}");
        assert_eq!(connection.rest(), 0);
    }
}

/// Calls without a pause, until something else comes than an answer; says what.
fn calls(mut connection: Connection, session: &str, first: u64) -> (u64, String) {
    let text = "x".repeat(10_000);
    for id in first.. {
        let body = call(id, "echo", &json!({"text": text})).to_string();
        let headers = [("Mcp-Session-Id", session), ("Host", "localhost")];
        if !connection.write(&Connection::request("POST", "/mcp", &headers, body.as_bytes())) {
            return (id - first, "nothing".to_owned());
        }
        let Some(head) = connection.try_head() else { return (id - first, "nothing".to_owned()) };
        // An answer that has begun is whole, or this fails.
        let answer: Value = serde_json::from_str(&connection.body(&head)).unwrap();
        if answer["result"]["content"][0]["text"] != text {
            return (id - first, format!("{} {}", head.status, answer["error"]["message"]));
        }
    }
    unreachable!("it ends")
}

#[test]
fn s35_an_end_under_load_cuts_no_answer() {
    let home = Home::new();
    let mut front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (connection, session) = (front.connect(), session.clone());
            thread::spawn(move || calls(connection, &session, 1 + number * 1_000_000))
        })
        .collect();
    wait_for("some calls", || (front.count("echo") > 500).then_some(()));
    end(&mut front);
    let ends: Vec<_> = clients.into_iter().map(|client| client.join().expect("whole answers")).collect();
    assert!(ends.iter().all(|(calls, _)| *calls > 0), "{ends:?}");
    // Who was open has been told; who had not been heard of yet may have found the connection closed.
    let told = ends.iter().filter(|(_, last)| last != "nothing").count();
    assert!(told > 0, "{ends:?}");
}

#[test]
fn s35_calls_that_are_open_over_tls_get_an_error_at_the_end_and_others_go_on_beside_who_says_nothing() {
    let home = Home::new();
    let Some([authority, certificate, key]) = certificates(&home) else {
        println!("skipped: openssl is not installed");
        return;
    };
    let arguments = ["--tls-cert", &certificate, "--tls-key", &key];
    let mut front = Front::start_with(&home, &FrontSetup { arguments: &arguments, ..FrontSetup::default() });
    // Connections that never begin to speak TLS, or speak something else.
    let mut strangers: Vec<_> = (0..20).map(|_| front.connect()).collect();
    for stranger in strangers.iter_mut().skip(10) {
        stranger.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let url = format!("https://{}/mcp", front.address.replace("127.0.0.1", "localhost"));
    let roots = [("SSL_CERT_FILE", &*authority)];
    let mut clients: Vec<_> =
        (0..4).map(|_| Gateway::command_with(&home, &["--upstream", &url], &roots)).collect();
    for client in &mut clients {
        client.send(&initialize("2025-11-25", &json!({})));
        assert!(client.receive()["result"].is_object());
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        for id in 0..50 {
            let text = "x".repeat(20_000);
            client.send(&call(id, "echo", &json!({"text": text})));
            let answer = client.receive();
            assert!(answer["id"] == id && answer["result"]["content"][0]["text"] == text, "{answer}");
        }
        client.send(&call(99, "hang", &json!({})));
    }
    wait_for("every call", || (front.count("hang") == clients.len()).then_some(()));
    end(&mut front);
    for client in &mut clients {
        let answer = client.receive();
        assert!(answer["id"] == 99 && answer["error"].is_object(), "{answer}");
    }
}

#[test]
fn a_record_is_in_the_log_before_its_call_is_answered() {
    let home = Home::new();
    let file = home.path().join("log");
    let mut command = home.handraise(&["mcp", "--listen", "127.0.0.1:0", "--", binary(), "fake-server"]);
    command.stdout(Stdio::piped()).stderr(File::create(&file).unwrap());
    let mut gateway = Ending(command.spawn().unwrap());
    let mut printed = String::new();
    BufReader::new(gateway.0.stdout.take().unwrap()).read_line(&mut printed).unwrap();
    let address = printed.trim_end().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut connection = Connection::open(address);
    let opening = initialize("2025-11-25", &json!({})).to_string();
    connection.send("POST", "/mcp", &[], opening.as_bytes());
    let head = connection.head();
    connection.body(&head);
    let named = [("Mcp-Session-Id", head.header("mcp-session-id"))];
    for number in 1..=50 {
        let tap = call(number, "tapOn", &json!({"text": "OK"})).to_string();
        connection.send("POST", "/mcp", &named, tap.as_bytes());
        let (status, answer) = connection.answer();
        assert_eq!((status, &answer["result"]["isError"]), (200, &json!(true)), "{answer}");
        let log = std::fs::read_to_string(&file).unwrap();
        assert_eq!(log.matches("[elicitation] ").count() as u64, number, "{log}");
    }
}
