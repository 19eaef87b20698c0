//! What goes in comes out, byte for byte, through HTTP as well.

use std::{collections::BTreeMap, sync::Mutex};

use serde_json::json;

use crate::{
    gateway::frames::{FROM_CLIENT, FROM_SERVER},
    support::{
        Connection, Front, FrontSetup, Home, Rig, mirrors, modern,
        rig::{begin_events, respond, write},
        wait_for,
    },
};

/// Where an id stands in a frame of the corpus, and its text.
fn id_of(frame: &str) -> Option<(std::ops::Range<usize>, &str)> {
    let at = frame.find("\"id\"")? + 4;
    let start = at + frame[at..].find(|first: char| first != ':' && !first.is_whitespace())?;
    let end = start + frame[start..].find([',', '}'])?;
    Some((start..end, &frame[start..end]))
}

/// The frame with another id, and with a subscription's tag that is its id changed alike.
fn under(frame: &str, id: &str) -> String {
    let (at, own) = id_of(frame).unwrap();
    let tag = |id: &str| format!("subscriptionId\":{id}}}");
    let before = frame[..at.start].replace(&tag(own), &tag(id));
    let after = frame[at.end..].replace(&tag(own), &tag(id));
    format!("{before}{id}{after}")
}

fn is_modern(frame: &str) -> bool {
    frame.contains("io.modelcontextprotocol/protocolVersion")
}

fn is_response(frame: &str) -> bool {
    (frame.contains("\"result\"") || frame.contains("\"error\""))
        && id_of(frame).is_some_and(|(_, id)| !matches!(id, "null" | "true"))
}

/// Posts a frame as its client does: in a session, or with the headers that mirror it.
fn post(front: &Front, session: &str, frame: &str) -> Connection {
    let mirrors = mirrors(&serde_json::from_str(frame).unwrap_or_default());
    let mut headers: Vec<_> = mirrors.iter().map(|(name, value)| (*name, value.as_str())).collect();
    if mirrors.is_empty() && !session.is_empty() {
        headers.push(("Mcp-Session-Id", session));
    }
    front.request("POST", &headers, frame.as_bytes())
}

/// Every frame of a client, one after the other; `seen` are the frames that the server has got.
#[track_caller]
fn check_from_client(front: &Front, seen: impl Fn() -> Vec<String>) {
    assert!(FROM_CLIENT.len() >= 60, "{}", FROM_CLIENT.len());
    let (mut session, mut open) = (String::new(), Vec::new());
    for (before, frame) in FROM_CLIENT.iter().enumerate() {
        let mut connection = post(front, &session, frame);
        if frame.contains("\"initialize\"") {
            connection.head().header("mcp-session-id").clone_into(&mut session);
        }
        open.push(connection);
        let got = wait_for("the frame", || seen().get(before).cloned());
        // Requests that describe themselves share a server, and are numbered anew.
        let number = id_of(&got).map(|(_, id)| id).filter(|_| is_modern(frame));
        assert_eq!(got, number.map_or_else(|| (*frame).to_owned(), |number| under(frame, number)));
        assert!(number.is_none_or(|number| number.parse::<u64>().is_ok()), "{got}");
    }
}

#[test]
fn every_frame_of_a_client_reaches_a_server_process_as_it_went_in() {
    let home = Home::new();
    let front = Front::start(&home);
    // What the gateway asks for itself is nobody's.
    let is_theirs = |line: &&str| {
        let is = |frame: &&&str| id_of(frame).is_some_and(|_| under(frame, id_of(line).unwrap().1) == *line);
        !line.contains("\"tools/list\"") || FROM_CLIENT.iter().any(|frame| is(&frame))
    };
    let seen = || {
        let received = String::from_utf8(front.received()).unwrap();
        received.lines().filter(is_theirs).map(str::to_owned).collect()
    };
    check_from_client(&front, seen);
}

#[test]
fn every_frame_of_a_client_reaches_a_server_at_a_url_as_it_went_in() {
    let home = Home::new();
    let front = Front::in_front_of(&home, &home.server(&[]), &[]);
    let bodies = || {
        let bodies = home.requests().into_iter().map(|request| request["body"].as_str().unwrap().to_owned());
        bodies.filter(|body| !body.is_empty()).collect()
    };
    check_from_client(&front, bodies);
}

/// The request that a response of the corpus answers: the client's own, where there is one.
fn request_of(response: &str) -> String {
    let (_, id) = id_of(response).unwrap();
    let own = FROM_CLIENT.iter().find(|frame| id_of(frame).is_some_and(|(_, own)| own == id));
    own.map_or_else(|| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#), |frame| (*frame).to_owned())
}

/// Every frame of a server, one after the other, in a session or of the requests that describe themselves. `say` has it say
/// the next one that answers nothing.
#[track_caller]
fn check_from_server(front: &Front, session: &str, of_modern: bool, say: impl Fn()) -> usize {
    let mut stream = (!session.is_empty()).then(|| {
        let mut stream = front.request("GET", &[("Mcp-Session-Id", session)], b"");
        stream.stream();
        stream
    });
    let mut checked = 0;
    // What answers nothing comes first: while a call is open, its stream carries some of it.
    if let Some(stream) = &mut stream {
        for frame in FROM_SERVER.iter().filter(|frame| !is_response(frame)) {
            say();
            assert_eq!(stream.event().unwrap().data, *frame);
            checked += 1;
        }
    }
    // The first one opened the session.
    for frame in FROM_SERVER[1..].iter().filter(|frame| is_response(frame)) {
        let request = request_of(frame);
        if is_modern(&request) == of_modern {
            let mut connection = post(front, session, &request);
            let head = connection.head();
            assert_eq!((head.header("content-type"), head.status), ("application/json", 200), "{frame}");
            assert_eq!(connection.body(&head), *frame);
            checked += 1;
        }
    }
    checked
}

/// A gateway in front of a process that says a line for each that comes.
fn saying(home: &Home, lines: &[String]) -> Front {
    let file = home.path().join("lines");
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let server = ["--raw", file.to_str().unwrap(), "--each"];
    Front::start_with(home, &FrontSetup { server: &server, ..FrontSetup::default() })
}

#[test]
fn every_frame_of_a_server_process_comes_out_as_it_went_in() {
    assert!(FROM_SERVER.len() >= 60, "{}", FROM_SERVER.len());
    let of_modern = |frame: &&&str| is_response(frame) && is_modern(&request_of(frame));
    // Those of a session.
    let home = Home::new();
    let others = FROM_SERVER.iter().filter(|frame| !is_response(frame));
    let answers = FROM_SERVER[1..].iter().filter(|frame| is_response(frame) && !of_modern(frame));
    let lines = FROM_SERVER[..1].iter().chain(others).chain(answers);
    let lines: Vec<_> = lines.map(|frame| (*frame).to_owned()).collect();
    let front = saying(&home, &lines);
    let mut opened = post(&front, "", FROM_CLIENT[0]);
    let head = opened.head();
    assert_eq!(opened.body(&head), FROM_SERVER[0]);
    let session = head.header("mcp-session-id").to_owned();
    let say = || {
        let hint = post(&front, &session, r#"{"jsonrpc":"2.0","method":"notifications/go"}"#).head();
        assert_eq!(hint.status, 202);
    };
    let in_session = check_from_server(&front, &session, false, say);
    // Those of requests that are numbered anew, from 1 on. The tools are listed first, so that nobody else has to.
    let home = Home::new();
    let modern = FROM_SERVER.iter().filter(of_modern).enumerate();
    let modern = modern.map(|(at, frame)| under(frame, &(at + 2).to_string()));
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#.to_owned();
    let lines: Vec<_> = [list].into_iter().chain(modern).collect();
    let front = saying(&home, &lines);
    let (frame, _) = crate::support::modern(&json!(1), "tools/list", &json!({}));
    assert_eq!(post(&front, "", &frame.to_string()).answer().0, 200);
    assert_eq!(1 + in_session + check_from_server(&front, "", true, || ()), FROM_SERVER.len());
}

#[test]
fn every_frame_of_a_server_at_a_url_comes_out_as_it_went_in() {
    let asked_before = Mutex::new(BTreeMap::<String, usize>::new());
    let rig = Rig::start(move |asked, stream| {
        let Some((_, id)) = id_of(&asked.body) else {
            if asked.method == "GET" {
                begin_events(stream);
                for frame in FROM_SERVER.iter().filter(|frame| !is_response(frame)) {
                    write(stream, format!("event: message\ndata: {frame}\n\n").as_bytes());
                }
                let _ = std::io::Read::read(stream, &mut [0]);
            }
            return respond(stream, 202, "", "");
        };
        // A request that was numbered anew is known by what else stands in it.
        let client = FROM_CLIENT.iter().find(|frame| is_modern(frame) && under(frame, id) == asked.body);
        let own = client.map_or(id, |frame| id_of(frame).unwrap().1);
        let answers = |frame: &&&str| is_response(frame) && id_of(frame).unwrap().1 == own;
        // Two answers have one id: the second comes when it is asked for again.
        let mut asked_before = asked_before.lock().unwrap();
        let before = asked_before.entry(own.to_owned()).or_insert(0);
        let answer = FROM_SERVER.iter().filter(answers).nth(*before);
        *before += 1;
        let json = "Content-Type: application/json\r\nMcp-Session-Id: s\r\n";
        respond(stream, 200, json, &under(answer.unwrap(), id));
    });
    let home = Home::new();
    let front = Front::in_front_of(&home, &rig.url, &[]);
    let mut opened = post(&front, "", FROM_CLIENT[0]);
    let head = opened.head();
    assert_eq!(opened.body(&head), FROM_SERVER[0]);
    let session = head.header("mcp-session-id").to_owned();
    assert_eq!(post(&front, &session, FROM_CLIENT[1]).head().status, 202);
    let in_session = check_from_server(&front, &session, false, || ());
    assert_eq!(1 + in_session + check_from_server(&front, "", true, || ()), FROM_SERVER.len());
}

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
