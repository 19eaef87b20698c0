//! Legacy sessions: their streams, their end, and what belongs to nobody else.

use serde_json::{Value, json};

use crate::support::{Connection, Front, FrontSetup, Home, kill, tree, wait_for};

const FORMS: &str = "2025-11-25";

/// No answer here is too fast to be a human's.
const UNHURRIED: [(&str, &str); 1] = [("HANDRAISE_ASK_MIN_HUMAN_MS", "0")];

fn start(home: &Home) -> Front {
    Front::start_with(home, &FrontSetup { variables: &UNHURRIED, ..FrontSetup::default() })
}

fn open(front: &Front) -> String {
    front.initialize(FORMS, &json!({"elicitation": {}}), &[])
}

fn call(id: &Value, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

fn tap(id: u64) -> Value {
    call(&json!(id), "tapOn", &json!({"text": "OK"}))
}

fn post(front: &Front, session: &str, frame: &Value) -> Connection {
    front.post(&[("Mcp-Session-Id", session)], frame)
}

fn get(front: &Front, session: &str, last: Option<&str>) -> Connection {
    let mut headers = vec![("Mcp-Session-Id", session)];
    headers.extend(last.map(|last| ("Last-Event-ID", last)));
    front.request("GET", &headers, b"")
}

fn accept(ask: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": ask["id"],
        "result": {"action": "accept", "content": {"deviceId": "A1B2-C3D4"}}})
}

#[track_caller]
fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_call_is_answered_with_json_and_its_question_comes_on_the_stream_of_its_post() {
    let home = Home::new();
    let front = start(&home);
    let session = open(&front);
    assert_eq!(session.len(), 64, "S10: nobody guesses it");
    let (status, answer) = post(&front, &session, &call(&json!(1), "echo", &json!({"text": "a"}))).answer();
    assert_eq!((status, text(&answer)), (200, "a"));
    let mut stream = post(&front, &session, &tap(2));
    assert_eq!(stream.stream().header("x-accel-buffering"), "no");
    let ask = stream.event().unwrap().frame();
    assert_eq!(ask["method"], "elicitation/create");
    let mut answered = post(&front, &session, &accept(&ask));
    let head = answered.head();
    assert_eq!((head.status, answered.body(&head)), (202, String::new()));
    let answer = stream.event().unwrap().frame();
    assert_eq!((&answer["id"], text(&answer)), (&json!(2), "tapped \"OK\" on A1B2-C3D4"));
    assert_eq!(stream.event(), None, "the response is the last thing on its stream");
    assert_eq!(front.count("tapOn"), 2);
}

#[test]
fn a_client_that_takes_no_stream_cannot_be_asked_and_loses_no_time() {
    let home = Home::new();
    let front = start(&home);
    let session = open(&front);
    let headers = [("Mcp-Session-Id", session.as_str()), ("Accept", "application/json")];
    let (status, answer) = front.post(&headers, &tap(1)).answer();
    assert_eq!(status, 200);
    assert!(text(&answer).contains("ambiguous_device_target"), "{answer}");
    assert_eq!((front.count("tapOn"), front.outcomes(1)), (1, vec!["error".to_owned()]));
    assert_eq!(front.records()[0]["provenance"], "not_shown");
}

#[test]
fn what_belongs_to_no_call_comes_on_the_get_stream_also_what_was_said_before_it_was_there() {
    let home = Home::new();
    let front = start(&home);
    let session = open(&front);
    let headers = [("Mcp-Session-Id", session.as_str()), ("Accept", "application/json")];
    assert_eq!(front.post(&headers, &call(&json!(1), "notify", &json!({}))).answer().0, 200);
    let mut stream = get(&front, &session, None);
    stream.stream();
    let methods: Vec<_> = (0..2).map(|_| stream.event().unwrap().frame()["method"].clone()).collect();
    assert_eq!(methods, ["notifications/message", "notifications/tools/list_changed"]);
    // With a stream, a log message goes with its call, and the rest stays where it was.
    let mut call = post(&front, &session, &call(&json!(2), "notify", &json!({})));
    call.stream();
    assert_eq!(call.event().unwrap().frame()["method"], "notifications/message");
    assert_eq!(call.event().unwrap().frame()["id"], 2);
    assert_eq!(stream.event().unwrap().frame()["method"], "notifications/tools/list_changed");
    // A new GET takes over, and repeats nothing.
    let mut again = get(&front, &session, None);
    again.stream();
    assert_eq!(stream.event(), None);
}

#[test]
fn a_question_of_the_server_goes_with_its_call_and_its_answer_reaches_the_server() {
    let home = Home::new();
    let front = start(&home);
    let session = open(&front);
    let mut stream = post(&front, &session, &call(&json!(1), "ask", &json!({"askId": 7})));
    stream.stream();
    let question = stream.event().unwrap().frame();
    assert_eq!((&question["id"], &question["method"]), (&json!(7), &json!("elicitation/create")));
    let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"action": "decline"}});
    assert_eq!(post(&front, &session, &answer).head().status, 202);
    assert_eq!(text(&stream.event().unwrap().frame()), "{\"action\":\"decline\"}");
}

#[test]
fn s27_an_answer_from_another_session_counts_for_nothing() {
    let home = Home::new();
    let front = start(&home);
    let (session, other) = (open(&front), open(&front));
    let mut stream = post(&front, &session, &tap(1));
    stream.stream();
    let ask = stream.event().unwrap().frame();
    assert_eq!(post(&front, &other, &accept(&ask)).head().status, 202);
    // The other session's own server hears of it, and nothing runs.
    assert_eq!(post(&front, &other, &call(&json!(1), "echo", &json!({}))).answer().0, 200);
    assert_eq!(front.count("tapOn"), 1);
    post(&front, &session, &accept(&ask)).head();
    assert_eq!(text(&stream.event().unwrap().frame()), "tapped \"OK\" on A1B2-C3D4");
    assert_eq!(front.count("tapOn"), 2);
}

#[test]
fn a_client_that_disconnects_has_cancelled_nothing_and_comes_back_for_the_answer() {
    let home = Home::new();
    let front = start(&home);
    let session = open(&front);
    let mut stream = post(&front, &session, &tap(1));
    stream.stream();
    let asked = stream.event().unwrap();
    drop(stream);
    // It comes back twice and leaves before anything is said; the third time it stays.
    for _ in 0..2 {
        get(&front, &session, Some(&asked.id)).stream();
    }
    let mut resumed = get(&front, &session, Some(&asked.id));
    resumed.stream();
    assert_eq!(post(&front, &session, &accept(&asked.frame())).head().status, 202);
    let answered = resumed.event().unwrap();
    assert_eq!(text(&answered.frame()), "tapped \"OK\" on A1B2-C3D4");
    assert_eq!(resumed.event(), None);
    // And once more, when all is over.
    let mut again = get(&front, &session, Some(&asked.id));
    again.stream();
    assert_eq!((again.event(), again.event()), (Some(answered), None));
    assert_eq!(front.count("tapOn"), 2);
}

#[test]
fn an_answer_whose_post_is_swallowed_is_none_and_one_that_is_posted_again_counts_once() {
    let home = Home::new();
    let variables = [UNHURRIED[0], ("HANDRAISE_ASK_TIMEOUT_MS", "3000")];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    let session = open(&front);
    // Something in between takes the answer, and passes on only how it begins.
    let mut stream = post(&front, &session, &tap(1));
    stream.stream();
    let ask = stream.event().unwrap().frame();
    let whole = accept(&ask).to_string();
    let length = whole.len().to_string();
    let headers = [("Mcp-Session-Id", session.as_str()), ("Content-Length", length.as_str())];
    drop(front.request("POST", &headers, &whole.as_bytes()[..whole.len() - 1]));
    let withdrawn = stream.event().unwrap().frame();
    assert_eq!(
        (&withdrawn["method"], &withdrawn["params"]["requestId"]),
        (&json!("notifications/cancelled"), &ask["id"])
    );
    assert!(text(&stream.event().unwrap().frame()).contains("ambiguous_device_target"));
    assert_eq!((stream.event(), front.count("tapOn")), (None, 1));
    assert_eq!(post(&front, &session, &accept(&ask)).head().status, 202, "it is late, and changes nothing");
    // Something in between swallows what comes back, so that the client posts its answer again.
    let mut stream = post(&front, &session, &tap(2));
    stream.stream();
    let ask = stream.event().unwrap().frame();
    drop(post(&front, &session, &accept(&ask)));
    for _ in 0..3 {
        assert_eq!(post(&front, &session, &accept(&ask)).head().status, 202);
    }
    assert_eq!(text(&stream.event().unwrap().frame()), "tapped \"OK\" on A1B2-C3D4");
    assert_eq!(stream.event(), None);
    assert_eq!(post(&front, &session, &call(&json!(3), "echo", &json!({}))).answer().0, 200);
    assert_eq!(front.count("tapOn"), 3);
}

#[test]
fn a_disconnect_is_no_cancel_and_a_cancel_is() {
    let home = Home::new();
    let front = start(&home);
    let session = open(&front);
    let swipe =
        |id: u64| call(&json!(id), "swipe", &json!({"steps": 10, "pauseMs": 20, "deviceId": "A1B2-C3D4"}));
    drop(post(&front, &session, &swipe(1)));
    let mut stream = post(&front, &session, &swipe(2));
    wait_for("both calls", || (front.count("swipe") == 2).then_some(()));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    assert_eq!(post(&front, &session, &cancel).head().status, 202);
    stream.stream();
    assert_eq!(stream.event(), None, "a cancelled call has no response");
    wait_for("the cancel", || (front.cancelled("swipe") == 1).then_some(()));
    // The id is free again, and the first call was left alone.
    assert_eq!(post(&front, &session, &swipe(2)).answer().0, 200);
    assert_eq!(front.cancelled("swipe"), 1);
}

#[test]
fn s6_another_sessions_event_ids_lead_nowhere() {
    let home = Home::new();
    let front = start(&home);
    let (session, other) = (open(&front), open(&front));
    let mut stream = post(&front, &session, &tap(1));
    stream.stream();
    let asked = stream.event().unwrap();
    let mut foreign = get(&front, &other, Some(&asked.id));
    foreign.stream();
    assert_eq!(foreign.event(), None, "that stream is not one of this session's");
    post(&front, &session, &accept(&asked.frame())).head();
    assert!(stream.event().is_some(), "the stream stays where it was");
}

#[test]
fn s6_an_event_id_that_two_sessions_have_leads_each_to_its_own_stream() {
    let home = Home::new();
    let front = start(&home);
    let (session, other) = (open(&front), open(&front));
    let mut streams = [(&session, 1), (&other, 9)].map(|(session, id)| post(&front, session, &tap(id)));
    let [asked, of_other] = streams.each_mut().map(|stream| {
        stream.stream();
        stream.event().unwrap()
    });
    assert_eq!(asked.id, of_other.id);
    let mut resumed = get(&front, &other, Some(&asked.id));
    resumed.stream();
    post(&front, &session, &accept(&asked.frame())).head();
    assert_eq!(streams[0].event().unwrap().frame()["id"], 1);
    post(&front, &other, &accept(&of_other.frame())).head();
    assert_eq!((&resumed.event().unwrap().frame()["id"], resumed.event()), (&json!(9), None));
}

#[test]
fn a_deleted_session_is_unknown_and_so_is_every_session_after_a_restart() {
    let home = Home::new();
    let mut front = start(&home);
    let session = open(&front);
    let mut stream = post(&front, &session, &tap(1));
    stream.stream();
    let ask = stream.event().unwrap().frame();
    assert_eq!(front.request("DELETE", &[("Mcp-Session-Id", &session)], b"").head().status, 204);
    let withdrawn = stream.event().unwrap().frame();
    assert_eq!(withdrawn["params"]["requestId"], ask["id"], "{withdrawn}");
    assert!(text(&stream.event().unwrap().frame()).contains("ambiguous_device_target"));
    assert_eq!(stream.event(), None);
    for method in ["POST", "GET", "DELETE"] {
        let body = tap(2).to_string();
        let mut gone = front.request(method, &[("Mcp-Session-Id", &session)], body.as_bytes());
        assert_eq!(gone.head().status, 404, "{method}");
    }
    let (status, error) = post(&front, &session, &tap(2)).answer();
    assert_eq!((status, &error["id"], &error["error"]["code"]), (404, &json!(2), &json!(-32600)), "{error}");
    wait_for("the server's end", || (front.metric("children") == 0).then_some(()));
    let session = open(&front);
    assert_eq!(front.stop(), Some(0));
    let front = start(&home);
    assert_eq!(post(&front, &session, &tap(3)).head().status, 404);
    let session = open(&front);
    assert_eq!(post(&front, &session, &call(&json!(4), "echo", &json!({}))).answer().0, 200);
    assert_eq!(front.count("tapOn"), 1);
}

#[test]
fn s33_a_server_that_dies_ends_its_calls_with_its_status_and_its_session_and_nobody_elses() {
    let home = Home::new();
    let front = start(&home);
    let (session, other) = (open(&front), open(&front));
    let mut hanging = post(&front, &session, &call(&json!("h"), "hang", &json!({})));
    let (_, answer) = post(&front, &session, &call(&json!(1), "die", &json!({"status": 7}))).answer();
    assert_eq!(answer["error"]["message"], "the MCP server ended: exit status 7", "{answer}");
    assert_eq!(hanging.answer().1["id"], "h");
    assert_eq!(post(&front, &session, &tap(2)).head().status, 404, "the client opens a new session");
    assert_eq!(post(&front, &other, &call(&json!(1), "echo", &json!({}))).answer().0, 200);
}

#[test]
fn a_server_that_does_not_open_a_session_leaves_none() {
    let home = Home::new();
    let setup = FrontSetup { server: &["--era", "modern"], ..FrontSetup::default() };
    let front = Front::start_with(&home, &setup);
    let opening = crate::support::initialize(FORMS, &json!({}));
    let mut refused = front.post(&[], &opening);
    let head = refused.head();
    assert_eq!((head.status, head.header("mcp-session-id")), (200, ""));
    assert!(refused.body(&head).contains("-32601"));
    wait_for("its end", || (front.metric("children") + front.metric("sessions") == 0).then_some(()));
}

#[test]
fn headers_of_another_era_change_nothing_about_a_session() {
    // Seen in the wild: 2025-06-18 by its body, 2026-07-28 by its headers, and a server/discover that has to fail.
    let home = Home::new();
    let setup = FrontSetup { server: &["--era", "legacy"], variables: &UNHURRIED, ..FrontSetup::default() };
    let front = Front::start_with(&home, &setup);
    let newer = ("MCP-Protocol-Version", "2026-07-28");
    let discover = json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {}});
    let failed = front.post(&[newer, ("Mcp-Method", "server/discover")], &discover).answer();
    assert_eq!((failed.0, &failed.1["error"]["code"]), (400, &json!(-32602)), "{}", failed.1);
    let opening = crate::support::initialize("2025-06-18", &json!({"elicitation": {}}));
    let opened = front.post(&[newer, ("Mcp-Method", "initialize")], &opening).head();
    let session = ("Mcp-Session-Id", opened.header("mcp-session-id"));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let headers = [newer, session, ("Mcp-Method", "notifications/initialized")];
    assert_eq!(front.post(&headers, &initialized).head().status, 202);
    let headers = [newer, session, ("Mcp-Method", "tools/call"), ("Mcp-Name", "tapOn")];
    let mut stream = front.post(&headers, &tap(1));
    stream.stream();
    let ask = stream.event().unwrap().frame();
    assert_eq!(ask["method"], "elicitation/create");
    assert!(ask["params"].get("mode").is_none(), "{ask}");
}

#[test]
fn requests_without_a_session_are_told_so_and_one_id_is_one_open_request() {
    let home = Home::new();
    let front = start(&home);
    assert_eq!(front.post(&[], &tap(1)).answer().0, 400);
    assert_eq!(front.request("GET", &[], b"").head().status, 405);
    assert_eq!(front.request("DELETE", &[], b"").head().status, 405);
    assert_eq!(front.request("PUT", &[], b"{}").head().status, 405);
    let session = open(&front);
    let hanging = post(&front, &session, &call(&json!(1), "hang", &json!({})));
    wait_for("the call", || (front.count("hang") == 1).then_some(()));
    assert_eq!(post(&front, &session, &call(&json!(1.0), "echo", &json!({}))).answer().0, 400);
    assert_eq!(post(&front, &session, &call(&json!("1"), "echo", &json!({}))).answer().0, 200);
    drop(hanging);
    assert_eq!(front.count("echo"), 1);
}

#[test]
fn a_silent_call_becomes_a_stream_that_the_client_can_come_back_to() {
    let home = Home::new();
    let front = start(&home);
    let session = open(&front);
    let mut stream = post(&front, &session, &call(&json!(1), "hang", &json!({})));
    stream.stream();
    let prime = stream.event().unwrap();
    assert!(prime.data.is_empty() && prime.id.starts_with("2-"), "{prime:?}");
    drop(stream);
    let mut resumed = get(&front, &session, Some(&prime.id));
    resumed.stream();
    front.request("DELETE", &[("Mcp-Session-Id", &session)], b"").head();
    assert!(resumed.event().unwrap().data.contains("session was ended"));
}

#[test]
fn s35_nothing_is_left_of_sessions_whose_gateway_is_killed_or_ended() {
    for is_killed in [true, false] {
        let home = Home::new();
        let mut front = start(&home);
        let session = open(&front);
        open(&front);
        post(&front, &session, &call(&json!(1), "leave", &json!({}))).answer();
        let below = tree(front.child.id());
        assert!(below.len() >= 5, "{below:?}");
        if is_killed {
            kill(front.child.id());
        } else {
            assert_eq!(front.stop(), Some(0));
        }
        wait_for("the end", || below.iter().all(|process| !crate::support::alive(*process)).then_some(()));
    }
}
