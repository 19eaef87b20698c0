//! What goes in comes out, byte for byte, through HTTP as well.

use serde_json::json;

use crate::{
    gateway::frames::{FROM_CLIENT, FROM_SERVER},
    support::{Connection, Front, FrontSetup, Home, modern, wait_for},
};

#[test]
fn every_frame_of_a_client_reaches_the_server_as_it_went_in() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = [("Mcp-Session-Id", session.as_str())];
    let before = wait_for("the opening", || {
        let received = front.received();
        (received.split(|byte| *byte == b'\n').count() == 3).then_some(received.len())
    });
    let mut expected = Vec::new();
    let mut open: Vec<Connection> = Vec::new();
    for frame in FROM_CLIENT {
        // Those that describe themselves are renumbered, and a second initialize opens a session of its own.
        if frame.contains("io.modelcontextprotocol/protocolVersion") || frame.contains("\"initialize\"") {
            continue;
        }
        expected.extend([frame.as_bytes(), b"\n"].concat());
        open.push(front.request("POST", &named, frame.as_bytes()));
        wait_for("the frame", || (front.received().len() >= before + expected.len()).then_some(()));
    }
    assert_eq!(String::from_utf8_lossy(&front.received()[before..]), String::from_utf8_lossy(&expected));
    assert!(open.len() >= 40, "{}", open.len());
}

#[test]
fn every_frame_of_a_server_reaches_the_client_as_it_went_in() {
    let home = Home::new();
    // The answer to initialize, and then everything that servers say.
    let opening = r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25"}}"#;
    let has_method = |frame: &&&str| frame.starts_with('{') && frame.contains("\"method\":\"");
    let others: Vec<&str> = FROM_SERVER
        .iter()
        .filter(has_method)
        .filter(|frame| !frame.contains("\"result\""))
        .copied()
        .collect();
    let file = home.path().join("answer");
    std::fs::write(&file, format!("{opening}\n{}\n", others.join("\n"))).unwrap();
    let server = ["--raw", file.to_str().unwrap(), "--after", "1"];
    let front = Front::start_with(&home, &FrontSetup { server: &server, ..FrontSetup::default() });
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let mut stream = front.request("GET", &[("Mcp-Session-Id", &session)], b"");
    stream.stream();
    for frame in &others {
        assert_eq!(stream.event().unwrap().data, *frame);
    }
    assert!(others.len() >= 10, "{}", others.len());
}

#[test]
fn responses_come_back_as_they_are_under_the_ids_as_they_were_spelled() {
    let home = Home::new();
    let answers: Vec<&str> =
        FROM_SERVER.iter().copied().filter(|frame| frame.contains("\"result\"")).collect();
    assert!(answers.len() >= 15, "{}", answers.len());
    for answer in answers {
        let Some((_, id)) = answer.split_once("\"id\"") else { continue };
        let id = id.trim_start_matches([' ', ':']);
        let is_id = id.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit());
        // A question of the other era becomes an error, see `a_legacy_session_never_sees_input_required`.
        if !answer.starts_with('{') || !is_id || answer.contains("input_required") {
            continue;
        }
        let file = home.path().join("answer");
        let opening = r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25"}}"#;
        std::fs::write(&file, format!("{opening}\n{answer}\n")).unwrap();
        // The request that it answers, with the id spelled as in the answer, is there before it.
        let server = ["--raw", file.to_str().unwrap(), "--after", "1"];
        let setup =
            FrontSetup { server: &server, before: &["sh", "-c", LATE, "sh"], ..FrontSetup::default() };
        let front = Front::start_with(&home, &setup);
        let session = front.initialize("2025-11-25", &json!({}), &[]);
        let id = id.split_inclusive([',', '}']).next().unwrap().trim_end_matches([',', '}']).trim();
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
        let mut connection = front.request("POST", &[("Mcp-Session-Id", &session)], call.as_bytes());
        let head = connection.head();
        assert_eq!(connection.body(&head), answer, "{call}");
    }
}

/// Lets the first line of a server through at once, and the rest when another line has come.
const LATE: &str = r#"mkfifo in.$$ out.$$; "$@" < in.$$ > out.$$ & exec 3> in.$$ 4< out.$$; rm in.$$ out.$$
    read -r line; printf '%s\n' "$line" >&3; read -r answer <&4; printf '%s\n' "$answer"
    read -r line; read -r line; cat <&4"#;

#[test]
fn line_ends_in_a_body_become_spaces_and_nothing_else_changes() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = [("Mcp-Session-Id", session.as_str())];
    let body = "{\r\n  \"jsonrpc\": \"2.0\",\n\t\"id\": 1.0, \"method\":\"tools/call\",\r \"params\":\n{\"name\":\"echo\",\"arguments\":{\"text\":\"a\\nb\"}}}\n";
    let (status, answer) = front.request("POST", &named, body.as_bytes()).answer();
    assert_eq!((status, &answer["result"]["content"][0]["text"]), (200, &json!("a\nb")));
    let flat = body.replace(['\r', '\n'], " ") + "\n";
    assert!(front.received().ends_with(flat.as_bytes()), "{}", String::from_utf8_lossy(&front.received()));
    // Two requests of which a reader of lines would see the second.
    for smuggled in [
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"pi\nng\"}",
    ] {
        assert_eq!(front.request("POST", &named, smuggled.as_bytes()).answer().0, 400);
    }
    assert!(front.received().ends_with(flat.as_bytes()));
}

#[test]
fn a_result_of_16_mib_comes_out_as_it_went_in_in_both_eras() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let text = "abcdefghijklmnop".repeat(1 << 20);
    let params = json!({"name": "big", "arguments": {"bytes": text.len()}});
    let legacy = json!({"jsonrpc": "2.0", "id": "l", "method": "tools/call", "params": params});
    let mut connection = front.post(&[("Mcp-Session-Id", &session)], &legacy);
    let head = connection.head();
    let expected =
        format!(r#"{{"jsonrpc":"2.0","id":"l","result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#);
    assert!(connection.body(&head) == expected);
    let (frame, headers) = modern(&json!("m"), "tools/call", &params);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut connection = front.post(&headers, &frame);
    let head = connection.head();
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":"m","result":{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    );
    assert!(connection.body(&head) == expected);
    // And the other way.
    let echo = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": text}}});
    let answer = front.post(&[("Mcp-Session-Id", &session)], &echo).answer_in_time();
    assert!(answer["result"]["content"][0]["text"] == text.as_str());
    assert_eq!(front.metric("bytes_in_flight"), 0);
}
