//! What clients smuggle, what a server's lines have around them, and what a server must not see, behind a gateway that
//! listens.

use serde_json::{Value, json};

use crate::{
    gateway::{
        hostile::{CANARIES, PASSED, assert_clean, environment},
        smuggled::{assert_refused, honest, smuggled},
    },
    support::{Front, FrontSetup, Home, modern, wait_for},
};

/// Makes a request one that hyper reads, and means nothing else.
const OTHERWISE: (&str, &str) = ("Connection", "keep-alive, x-nothing");
/// What mirrors a call of the tool `wipe`.
const MIRRORS: [(&str, &str); 3] =
    [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "wipe")];

fn at_a_url(home: &Home) -> Front {
    Front::in_front_of(home, &home.server(&[]), &[])
}

/// How much the server has got.
fn received(home: &Home, front: &Front) -> usize {
    front.received().len() + home.requests().len()
}

#[test]
fn s3_no_smuggled_body_reaches_a_server_in_either_era() {
    for start in [Front::start, at_a_url] {
        let home = Home::new();
        let front = start(&home);
        let session = front.initialize("2025-11-25", &json!({}), &[]);
        let named = [("Mcp-Session-Id", session.as_str())];
        // What follows the opening is there, and nothing is on its way.
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        assert_eq!(front.post(&named, &ping).answer_in_time()["id"], 1);
        for (is_modern, own) in [(false, &named[..]), (true, &MIRRORS[..])] {
            let before = received(&home, &front);
            for frame in smuggled(is_modern) {
                for headers in [own.to_vec(), [own, &[OTHERWISE]].concat()] {
                    let mut answered = front.request("POST", &headers, &frame);
                    let head = answered.head();
                    assert_eq!(
                        (head.status, head.header("content-type")),
                        (400, "application/json"),
                        "{}",
                        String::from_utf8_lossy(&frame)
                    );
                    let error: Value = serde_json::from_str(&answered.body(&head)).unwrap();
                    assert_refused(&error, &frame);
                }
            }
            assert_eq!((received(&home, &front), front.count("wipe")), (before, usize::from(is_modern)));
            // The same call to every reader is let through, and is counted.
            let honest = honest(is_modern);
            let answer = front.request("POST", own, honest.as_bytes()).answer_in_time();
            assert_eq!((&answer["id"], front.count("wipe")), (&json!(9), 1 + usize::from(is_modern)));
        }
    }
}

#[test]
fn s7_servers_behind_a_gateway_that_listens_see_none_of_our_settings_or_secrets() {
    let home = Home::new();
    home.write_config(PASSED);
    let (seen, before) = environment(&home);
    let before = before.each_ref().map(String::as_str);
    let setup = FrontSetup { variables: &CANARIES, before: &before, ..FrontSetup::default() };
    let front = Front::start_with(&home, &setup);
    // One of a session, and one of the requests that describe themselves.
    front.initialize("2025-11-25", &json!({}), &[]);
    let (frame, headers) = modern(&json!(1), "tools/list", &json!({}));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(front.post(&headers, &frame).answer().0, 200);
    assert_eq!(front.metric("children"), 2);
    assert_clean(&seen, 2);
}

#[test]
fn what_stands_around_the_lines_of_a_server_is_no_frame_in_either_era() {
    for style in ["bom", "noise", "crlf"] {
        for pieces in ["1", "100000"] {
            let home = Home::new();
            let server = ["--lines", style, "--pieces", pieces];
            let variables = [("HANDRAISE_ASK_MIN_HUMAN_MS", "0")];
            let front = Front::start_with(
                &home,
                &FrontSetup { server: &server, variables: &variables, ..FrontSetup::default() },
            );
            let session = front.initialize("2025-11-25", &json!({"elicitation": {}}), &[]);
            let named = [("Mcp-Session-Id", session.as_str())];
            let params = json!({"name": "echo", "arguments": {"text": "ü 👩‍🚀"}});
            let echo = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let mut answered = front.post(&named, &echo);
            let head = answered.head();
            assert_eq!(
                answered.body(&head),
                r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ü 👩‍🚀"}]}}"#,
                "{style}"
            );
            let (frame, headers) = modern(&json!(2), "tools/call", &params);
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let mut answered = front.post(&headers, &frame);
            let head = answered.head();
            assert_eq!(
                answered.body(&head),
                r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"ü 👩‍🚀"}]}}"#,
                "{style}"
            );
            // A refusal among them is asked about.
            let params = json!({"name": "tapOn", "arguments": {"text": "OK"}});
            let tap = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
            let mut stream = front.post(&named, &tap);
            stream.stream();
            let ask = stream.event().unwrap().frame();
            let decline = json!({"jsonrpc": "2.0", "id": ask["id"], "result": {"action": "decline"}});
            assert_eq!(front.post(&named, &decline).head().status, 202);
            assert!(stream.event().unwrap().data.contains("ambiguous_device_target"));
            if style == "noise" {
                wait_for("word of the noise", || front.log.text().contains("is no frame").then_some(()));
                assert!(!front.log.text().contains("Server listening"), "{}", front.log.text());
            }
        }
    }
}
