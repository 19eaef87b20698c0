//! What goes in comes out, byte for byte, through HTTP as well.

use serde_json::json;

use crate::{
    gateway::{
        answering::{
            BETWEEN, How, STREAMS, answering, id_of, is_modern, is_response, large, request_of, under,
        },
        frames::{FROM_CLIENT, FROM_SERVER},
    },
    support::{
        Connection, Front, FrontSetup, Home, Rig, mirrors, modern,
        rig::{begin_events, write},
        wait_for,
    },
};

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

/// What comes back for a request: its answer, and what came on its stream before that.
#[track_caller]
fn answer(connection: &mut Connection) -> (String, Vec<String>) {
    let head = connection.head();
    assert_eq!(head.status, 200);
    if head.header("content-type") == "application/json" {
        return (connection.body(&head), Vec::new());
    }
    let events = std::iter::from_fn(|| connection.event().map(|event| event.data));
    let mut data: Vec<_> = events.filter(|data| !data.is_empty()).collect();
    (data.pop().expect("an answer"), data)
}

/// Every frame of a server, one after the other, in a session or of the requests that describe themselves. `say` has it say
/// the next one that answers nothing; `between` comes before each answer.
#[track_caller]
fn check_from_server(
    front: &Front,
    session: &str,
    of_modern: bool,
    between: &[&str],
    say: impl Fn(),
) -> usize {
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
            let (answer, before) = answer(&mut post(front, session, &request));
            assert_eq!(
                (answer.as_str(), before),
                (*frame, between.iter().map(ToString::to_string).collect())
            );
            checked += 1;
        }
    }
    checked
}

/// A gateway in front of a process that says a line for each that comes, through this program of the shell.
fn saying(home: &Home, lines: &[String], through: &str) -> Front {
    let file = home.path().join("lines");
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let server = ["--raw", file.to_str().unwrap(), "--each"];
    let script = format!("\"$@\" {through}");
    let before = ["sh", "-c", script.as_str(), "sh"];
    Front::start_with(home, &FrontSetup { server: &server, before: &before, ..FrontSetup::default() })
}

/// Passes the frames of a server process through, whose lines pass by this program of the shell first.
#[track_caller]
fn check_a_process(through: &str, is_noisy: bool) {
    assert!(FROM_SERVER.len() >= 60, "{}", FROM_SERVER.len());
    let of_modern = |frame: &&&str| is_response(frame) && is_modern(&request_of(frame));
    // Those of a session.
    let home = Home::new();
    let others = FROM_SERVER.iter().filter(|frame| !is_response(frame));
    let answers = FROM_SERVER[1..].iter().filter(|frame| is_response(frame) && !of_modern(frame));
    let lines = FROM_SERVER[..1].iter().chain(others).chain(answers);
    let lines: Vec<_> = lines.map(|frame| (*frame).to_owned()).collect();
    let front = saying(&home, &lines, through);
    let mut opened = post(&front, "", FROM_CLIENT[0]);
    let head = opened.head();
    assert_eq!(opened.body(&head), FROM_SERVER[0]);
    let session = head.header("mcp-session-id").to_owned();
    let say = || {
        let hint = post(&front, &session, r#"{"jsonrpc":"2.0","method":"notifications/go"}"#).head();
        assert_eq!(hint.status, 202);
    };
    let in_session = check_from_server(&front, &session, false, &[], say);
    // Those of requests that are numbered anew, from 1 on. The tools are listed first, so that nobody else has to.
    let home = Home::new();
    let modern = FROM_SERVER.iter().filter(of_modern).enumerate();
    let modern = modern.map(|(at, frame)| under(frame, &(at + 2).to_string()));
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#.to_owned();
    let lines: Vec<_> = [list].into_iter().chain(modern).collect();
    let front = saying(&home, &lines, through);
    let (frame, _) = crate::support::modern(&json!(1), "tools/list", &json!({}));
    assert_eq!(post(&front, "", &frame.to_string()).answer().0, 200);
    let all = 1 + in_session + check_from_server(&front, "", true, &[], || ());
    assert_eq!(all, FROM_SERVER.len());
    let has_word = || front.log.text().contains("is no frame");
    if is_noisy {
        wait_for("word of the noise", || has_word().then_some(()));
    }
    assert_eq!(has_word(), is_noisy);
}

#[test]
fn every_frame_of_a_server_process_comes_out_as_it_went_in() {
    check_a_process("", false);
}

#[test]
fn every_frame_of_a_server_process_comes_out_as_it_went_in_among_marks_line_ends_and_noise() {
    check_a_process(r"| sed -u 's/$/\r/'", false);
    check_a_process(r"| sed -u -e 'i Server listening… {' -e 'i \ ' -e 's/^/\xef\xbb\xbf/'", true);
}

/// Passes the frames of a server at a URL through, whose answers come like this; `between` is said on the streams of
/// a session's calls.
#[track_caller]
fn check_at_a_url(home: &Home, url: &str, between: &[&str]) {
    let front = Front::in_front_of(home, url, &[]);
    let mut opened = post(&front, "", FROM_CLIENT[0]);
    let head = opened.head();
    assert_eq!(opened.body(&head), FROM_SERVER[0]);
    let session = head.header("mcp-session-id").to_owned();
    assert_eq!(post(&front, &session, FROM_CLIENT[1]).head().status, 202);
    let in_session = check_from_server(&front, &session, false, between, || ());
    assert_eq!(1 + in_session + check_from_server(&front, "", true, &[], || ()), FROM_SERVER.len());
    for is_modern in [false, true] {
        let (request, expected) = large(is_modern);
        let (answer, _) = answer(&mut post(&front, &session, &request));
        assert!(answer == expected, "{is_modern}: {} and {} bytes", answer.len(), expected.len());
    }
}

#[test]
fn every_frame_of_a_server_at_a_url_comes_out_as_it_went_in() {
    check_at_a_url(&Home::new(), &answering(How::Body, true, Vec::new()).url, &[]);
}

#[test]
fn every_answer_that_comes_on_the_stream_of_its_call_comes_out_as_it_went_in() {
    for how in STREAMS {
        let between = BETWEEN.map(str::to_owned).to_vec();
        check_at_a_url(&Home::new(), &answering(how, true, between).url, &BETWEEN);
    }
}

#[test]
fn every_answer_that_comes_on_a_stream_comes_out_as_it_went_in_through_two_gateways() {
    let home = Home::new();
    let rig = answering(STREAMS[1], true, BETWEEN.map(str::to_owned).to_vec());
    let inner = Front::in_front_of(&home, &rig.url, &[]);
    check_at_a_url(&home, &format!("http://{}/mcp", inner.address), &BETWEEN);
}

#[test]
fn a_client_that_takes_no_stream_gets_each_answer_alone_as_it_went_in() {
    let rig = answering(STREAMS[1], false, BETWEEN.map(str::to_owned).to_vec());
    let home = Home::new();
    let front = Front::in_front_of(&home, &rig.url, &[]);
    let session = post(&front, "", FROM_CLIENT[0]).head().header("mcp-session-id").to_owned();
    let headers = [("Mcp-Session-Id", session.as_str()), ("Accept", "application/json")];
    assert_eq!(front.request("POST", &headers, FROM_CLIENT[1].as_bytes()).head().status, 202);
    let answers = FROM_SERVER[1..].iter().filter(|frame| is_response(frame));
    for frame in answers.filter(|frame| !is_modern(&request_of(frame))) {
        let mut connection = front.request("POST", &headers, request_of(frame).as_bytes());
        assert_eq!(answer(&mut connection), ((*frame).to_owned(), Vec::new()));
    }
}

#[test]
fn what_is_said_on_the_stream_of_a_modern_call_goes_with_it_under_its_own_token() {
    let said = |id: &str, token: &str| {
        [
            format!(
                r#"{{"params":{{"total":2.0,"progress":1e0,"progressToken":{token},"message":"é"}},"method":"notifications/progress","jsonrpc":"2.0"}}"#
            ),
            BETWEEN[1].to_owned(),
            format!(
                r#"{{"result":{{"resultType":"complete","content":[],"n":1.0}},"id":{id},"jsonrpc":"2.0"}}"#
            ),
        ]
    };
    let rig = Rig::start(move |asked, stream| {
        let token = asked.body.split("\"progressToken\":").nth(1).unwrap().split([',', '}']).next().unwrap();
        assert!(token.parse::<u64>().is_ok(), "it is numbered anew: {token}");
        begin_events(stream, "");
        for frame in said(id_of(&asked.body).unwrap().1, token) {
            write(stream, format!("data: {frame}\n\n").as_bytes());
        }
    });
    let home = Home::new();
    let front = Front::in_front_of(&home, &rig.url, &[]);
    let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug","progressToken":1.0"#;
    let frame = format!(
        r#"{{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{{"name":"n","_meta":{{{meta}}}}}}}"#
    );
    let (answer, mut came) = answer(&mut post(&front, "", &frame));
    came.push(answer);
    assert_eq!(came, said(r#""\u0061""#, "1.0"));
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
