//! Whoever opens a session is served as a session, whatever version is written there; and clients of both eras at once.

use serde_json::{Value, json};

use crate::support::{Connection, Front, FrontSetup, Home, Rig, initialize, modern, rig::respond};

const SECOND: &str = "A1B2-C3D4";
const UNHURRIED: [(&str, &str); 1] = [("HANDRAISE_ASK_MIN_HUMAN_MS", "0")];
const JSON: &str = "Content-Type: application/json\r\n";
const REFUSAL: &str = r#"{"content":[{"type":"text","text":"{\"code\":\"ambiguous_device_target\",\"candidates\":[{\"deviceId\":\"emulator-5554\"},{\"deviceId\":\"A1B2-C3D4\"}]}"}],"isError":true}"#;

fn tap(id: u64) -> Value {
    let params = json!({"name": "tapOn", "arguments": {"text": "OK"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {"deviceId": SECOND}})
}

/// Opens a session with the version of the modern era; its headers, and the version that was agreed on.
fn open(front: &Front) -> ([(&'static str, String); 2], Value) {
    let newer = ("MCP-Protocol-Version", "2026-07-28");
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut opened = front.post(&[newer], &initialize("2026-07-28", &capabilities));
    let head = opened.head();
    let answer: Value = serde_json::from_str(&opened.body(&head)).unwrap();
    let session = head.header("mcp-session-id").to_owned();
    assert_eq!((head.status, session.is_empty()), (200, false), "{answer}");
    assert!(answer["result"].get("resultType").is_none(), "{answer}");
    let headers = [(newer.0, newer.1.to_owned()), ("Mcp-Session-Id", session)];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(front, &headers, &initialized).head().status, 202);
    (headers, answer["result"]["protocolVersion"].clone())
}

fn post(front: &Front, headers: &[(&'static str, String)], frame: &Value) -> Connection {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    front.post(&headers, frame)
}

/// A call is asked about on its stream, as in every session, and runs with what is chosen.
#[track_caller]
fn assert_pushed_to(front: &Front, headers: &[(&'static str, String)]) {
    let mut stream = post(front, headers, &tap(1));
    stream.stream();
    let ask = stream.event().unwrap().frame();
    assert_eq!(
        (&ask["method"], &ask["params"]["mode"]),
        (&json!("elicitation/create"), &json!("form")),
        "{ask}"
    );
    let answer = json!({"jsonrpc": "2.0", "id": ask["id"], "result": accepted()});
    assert_eq!(post(front, headers, &answer).head().status, 202);
    let tapped = stream.event().unwrap().frame();
    assert_eq!(tapped["result"]["content"][0]["text"], format!("tapped \"OK\" on {SECOND}"), "{tapped}");
    assert_eq!(stream.event(), None);
    assert_eq!(front.outcomes(1), ["accept"]);
    assert_eq!(front.records()[0]["era"], "push");
}

#[test]
fn a_session_that_is_opened_with_the_modern_version_is_a_session() {
    // A server that answers with what it speaks, and one that agrees, as some do.
    for (through, agreed) in [
        ("cat", "2025-11-25"),
        (r#"sed -u 's/"protocolVersion":"2025-11-25"/"protocolVersion":"2026-07-28"/'"#, "2026-07-28"),
    ] {
        let home = Home::new();
        let script = format!("\"$@\" | {through}");
        let before = ["sh", "-c", script.as_str(), "sh"];
        let setup = FrontSetup { before: &before, variables: &UNHURRIED, ..FrontSetup::default() };
        let front = Front::start_with(&home, &setup);
        let (headers, version) = open(&front);
        assert_eq!(version, agreed);
        assert_pushed_to(&front, &headers);
        assert_eq!((front.metric("sessions"), front.metric("children"), front.count("tapOn")), (1, 1, 2));
        // It has a stream of its own and an end, as no request of the modern era has.
        let [_, (_, session)] = &headers;
        let named = [("Mcp-Session-Id", session.as_str())];
        front.request("GET", &named, b"").stream();
        assert_eq!(front.request("DELETE", &named, b"").head().status, 204);
        assert_eq!(post(&front, &headers, &tap(2)).head().status, 404);
    }
}

#[test]
fn a_session_at_a_url_that_is_opened_with_the_modern_version_is_a_session() {
    let rig = Rig::start(|asked, stream| {
        let frame = asked.json();
        let arguments = &frame["params"]["arguments"];
        let result = match frame["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": "2026-07-28", "capabilities": {}, "serverInfo": {"name": "rig", "version": "1"}})
            }
            Some("tools/call") if arguments["text"] == "question" => {
                json!({"resultType": "input_required", "inputRequests": {}, "requestState": "s"})
            }
            Some("tools/call") => match arguments["deviceId"].as_str() {
                Some(device) => {
                    json!({"content": [{"type": "text", "text": format!("tapped \"OK\" on {device}")}]})
                }
                None => serde_json::from_str(REFUSAL).unwrap(),
            },
            _ => return respond(stream, if asked.method == "POST" { 202 } else { 405 }, "", ""),
        };
        let body = json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}).to_string();
        respond(stream, 200, &format!("{JSON}Mcp-Session-Id: theirs\r\n"), &body);
    });
    let home = Home::new();
    let front = Front::in_front_of(&home, &rig.url, &UNHURRIED);
    let (headers, version) = open(&front);
    assert_eq!(version, "2026-07-28");
    assert_pushed_to(&front, &headers);
    // What no session ever sees is not seen in this one.
    let mut question = tap(2);
    question["params"]["arguments"]["text"] = json!("question");
    let error = post(&front, &headers, &question).answer_in_time();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(2), &json!(-32603)), "{error}");
    // The server is told what was agreed on, and whose session it is.
    for asked in rig.seen().iter().filter(|asked| !asked.body.contains("\"initialize\"")) {
        let told = ["mcp-session-id", "mcp-protocol-version"].map(|name| asked.headers[name].as_str());
        assert_eq!(told, ["theirs", "2026-07-28"], "{asked:?}");
    }
}

#[test]
fn s6_an_opening_that_describes_itself_is_no_method_and_reaches_no_server_that_others_share() {
    let home = Home::new();
    let front = Front::start_with(&home, &FrontSetup { variables: &UNHURRIED, ..FrontSetup::default() });
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "n", "version": "1"}});
    let (opening, mirrors) = modern(&json!(0), "initialize", &params);
    let mut opened = post(&front, &mirrors, &opening);
    let head = opened.head();
    assert_eq!(head.status, 404);
    let told: Value = serde_json::from_str(&opened.body(&head)).unwrap();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(0), &json!(-32601)));
    assert_eq!((front.metric("sessions"), front.metric("shared_servers")), (0, 0));
}

#[test]
fn clients_of_both_eras_at_once_are_each_asked_in_their_own() {
    let ways: [fn(&Home) -> Front; 2] = [
        |home| {
            let server = ["--era", "dual"];
            Front::start_with(
                home,
                &FrontSetup { server: &server, variables: &UNHURRIED, ..FrontSetup::default() },
            )
        },
        |home| Front::in_front_of(home, &home.server(&["--era", "dual"]), &UNHURRIED),
    ];
    for way in ways {
        let home = Home::new();
        let front = way(&home);
        let session = front.initialize("2025-06-18", &json!({"elicitation": {}}), &[]);
        let named = [("Mcp-Session-Id", session.as_str())];
        let described = |method: &str, params: &Value| {
            let (frame, headers) = modern(&json!(1), method, params);
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            front.post(&headers, &frame)
        };
        let discovered = described("server/discover", &json!({})).answer_in_time();
        assert_eq!(discovered["result"]["resultType"], "complete", "{discovered}");
        // Both are asked about the same call, under the same id, at the same time.
        let mut stream = front.post(&named, &tap(1));
        stream.stream();
        let ask = stream.event().unwrap().frame();
        assert_eq!(
            (&ask["method"], ask["params"].get("mode")),
            (&json!("elicitation/create"), None),
            "{ask}"
        );
        let mut params = tap(1)["params"].clone();
        let asked = described("tools/call", &params).answer_in_time();
        assert_eq!((&asked["id"], &asked["result"]["resultType"]), (&json!(1), &json!("input_required")));
        // The modern one is answered while the other still asks.
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({"deviceChoice": accepted()});
        let tapped = described("tools/call", &params).answer_in_time();
        assert_eq!(tapped["result"]["resultType"], "complete", "{tapped}");
        assert_eq!(front.count("tapOn"), 3);
        let answer = json!({"jsonrpc": "2.0", "id": ask["id"], "result": accepted()});
        assert_eq!(front.post(&named, &answer).head().status, 202);
        let of_session = stream.event().unwrap().frame();
        assert!(of_session["result"].get("resultType").is_none(), "{of_session}");
        for answer in [&tapped, &of_session] {
            let text = &answer["result"]["content"][0]["text"];
            assert_eq!((&answer["id"], text), (&json!(1), &json!(format!("tapped \"OK\" on {SECOND}"))));
        }
        assert_eq!((stream.event(), front.count("tapOn")), (None, 4));
        assert_eq!(front.outcomes(3), ["asked", "accept", "accept"]);
        let eras: Vec<_> = front.records().iter().map(|record| record["era"].clone()).collect();
        assert_eq!(eras, ["mrtr", "mrtr", "push"]);
    }
}
