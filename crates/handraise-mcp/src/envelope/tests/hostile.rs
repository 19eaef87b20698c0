//! Whatever either side sends, in whatever order: nothing panics, nothing is kept for ever, and nothing runs that nobody
//! called or accepted.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::envelope::open::Open;
use crate::frame::RequestId;

const WORDS: &[&str] = &[
    "1",
    "1.0",
    "-0",
    "1e400",
    "\"1\"",
    "\"\"",
    "\"\\ud800\"",
    "\"hr1.x\"",
    "null",
    "true",
    "[]",
    "{}",
    "\"accept\"",
    "\"2026-07-28\"",
    "\"input_required\"",
    "\"tools/call\"",
    "\"notifications/cancelled\"",
    "\"initialize\"",
    "\"notifications/progress\"",
    "\"elicitation/create\"",
    "\"ambiguous_device_target\"",
    "\"tap\\u0000\"",
    REFUSAL,
];

const KEYS: &[&str] = &[
    "id",
    "method",
    "params",
    "result",
    "error",
    "name",
    "arguments",
    "_meta",
    "requestId",
    "progressToken",
    "progress",
    "requestState",
    "inputResponses",
    "capabilities",
    "elicitation",
    "form",
    "action",
    "content",
    "deviceId",
    "deviceChoice",
    "resultType",
    "protocolVersion",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "task",
    "x",
];

/// A JSON text out of pieces that matter here.
fn piece() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(WORDS).prop_map(str::to_owned);
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop::collection::vec((prop::sample::select(KEYS), inner), 0..6).prop_map(|members| {
            let members: Vec<_> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        })
    })
}

fn frame() -> impl Strategy<Value = String> {
    let id = prop_oneof![Just("1"), Just("2"), Just("\"a\""), Just("1.0"), Just("ASK"), Just("OURS")];
    let method = prop_oneof![
        4 => Just("tools/call"),
        2 => Just("notifications/cancelled"),
        1 => Just("initialize"),
        1 => Just("notifications/progress"),
        1 => Just("elicitation/create"),
        1 => Just("prompts/get"),
    ];
    prop_oneof![
        1 => piece(),
        4 => (id.clone(), method.clone(), piece())
            .prop_map(|(id, method, params)| format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#)),
        2 => (method, piece()).prop_map(|(method, params)| format!(r#"{{"method":"{method}","params":{params}}}"#)),
        2 => (id.clone(), id.clone()).prop_map(|(id, of)| format!(
            r#"{{"id":{id},"method":"notifications/cancelled","params":{{"requestId":{of}}}}}"#
        )),
        4 => (id.clone(), piece()).prop_map(|(id, result)| format!(r#"{{"id":{id},"result":{result}}}"#)),
        4 => id.clone().prop_map(|id| format!(r#"{{"result":{REFUSAL},"jsonrpc":"2.0","id":{id}}}"#)),
        3 => id.clone().prop_map(|id| call_with(id, "{}")),
        2 => id.prop_map(|id| format!(r#"{{"id":{id},"result":{}}}"#, accept("A1B2"))),
    ]
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn whatever_comes_nothing_panics_and_nothing_runs_by_itself(
        frames in prop::collection::vec((any::<bool>(), frame(), 0..3000_u64), 1..50),
    ) {
        let mut world = World::push(&json!({"form": {}}));
        world.client_sends(&call("1"));
        world.upstream_sends(&response("1", REFUSAL));
        let mut ask = value(&world.client_got())["id"].to_string();
        let mut ours = "\"none\"".to_owned();
        let (mut calls, mut accepts) = (1, 0);
        for (is_client, text, wait) in frames {
            let text = text.replace("ASK", &ask).replace("OURS", &ours);
            world.advance(Duration::from_millis(wait));
            if is_client {
                if ClientFrame::read(text.as_bytes()).is_ok_and(|frame| frame.method() == Some("tools/call")) {
                    calls += 1;
                }
                world.client_sends(&text);
            } else {
                let mut out = Vec::new();
                let process = Arc::clone(&world.process);
                if let Ok(frame) = process.read_server_frame(text.as_bytes()) {
                    let _ = world.envelope.upstream_frame(&frame, world.now, &mut out);
                }
                world.drain(out);
            }
            accepts += world.records.drain(..).filter(|record| record.outcome.as_str() == "accept").count();
            prop_assert!(world.runs <= calls + accepts);
            let waits = |call: &RequestId| {
                matches!(world.envelope.open.get(call.borrow()), Some(Open::Rerun(_) | Open::Checking(_)))
            };
            prop_assert!(world.envelope.ours.values().all(waits), "a request of ours outlives its call");
            let private = |frame: &String, method: &str| {
                let frame: Value = serde_json::from_str(frame).ok()?;
                (frame["method"] == method && frame["id"].as_str()?.starts_with("hr-")).then(|| frame["id"].to_string())
            };
            if let Some(id) = world.client.drain(..).filter_map(|frame| private(&frame, "elicitation/create")).next_back() {
                ask = id;
            }
            if let Some(id) = world.upstream.drain(..).filter_map(|frame| private(&frame, "tools/call")).next_back() {
                ours = id;
            }
        }
        world.upstream_ends();
        prop_assert_eq!((world.process.bytes_in_flight(), world.envelope.open_requests()), (0, 0));
        prop_assert_eq!(world.envelope.next_deadline(), None);
        prop_assert!(world.envelope.asks.is_empty() && world.envelope.ours.is_empty());
    }
}
