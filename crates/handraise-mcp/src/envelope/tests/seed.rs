//! Seed 000, line by line, in both eras from one table.

use serde_json::json;

use super::scenarios::{Reply, Scenario, scenarios};
use super::*;

#[test]
fn seed_000_push() {
    for Scenario { name, reply, runs_with, record, .. } in scenarios() {
        let mut world = World::push(&json!({"form": {}}));
        world.client_sends(&call("41"));
        assert_eq!(world.upstream_got(), call("41"), "{name}");
        let refusal = response("41", REFUSAL);
        world.upstream_sends(&refusal);
        let ask = value(&world.client_got());
        assert_eq!(ask["method"], "elicitation/create");
        assert_eq!(
            ask["params"],
            json!({"mode": "form", "message": "Which device should tapOn use?", "requestedSchema": {
                "type": "object",
                "properties": {"deviceId": {"type": "string", "oneOf": [
                    {"const": "emulator-5554", "title": "emulator-5554 (android)"},
                    {"const": "A1B2", "title": "A1B2 (ios)"},
                ]}},
                "required": ["deviceId"],
            }})
        );
        assert_eq!((world.runs, world.records.len()), (1, 0), "{name}: nothing runs before the answer");
        let id = &ask["id"];
        let accepted = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, accept("A1B2"));
        let latency = Duration::from_secs(if matches!(reply, Reply::Late) { 20 } else { 1 });
        world.advance(latency);
        match &reply {
            Reply::Result(result) => {
                world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
            }
            Reply::Failed => {
                let error = r#"{"code":-1,"message":"no"}"#;
                world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
            }
            Reply::Late => world.tick(),
            Reply::Cancelled => world.client_sends(&cancel_of("41")),
        }
        assert_eq!(world.records[0].latency_ms, Some(latency.as_millis() as u64), "{name}");
        assert_eq!(world.recorded(), record, "{name}");
        if matches!(reply, Reply::Late | Reply::Cancelled) {
            let withdrawn = value(&world.client.remove(0));
            assert_eq!(withdrawn["method"], "notifications/cancelled", "{name}");
            assert_eq!(&withdrawn["params"]["requestId"], id, "{name}");
        }
        if matches!(reply, Reply::Cancelled) {
            world.nobody_got_anything();
        } else if let Some(device) = runs_with {
            let again = world.upstream_got();
            let private = value(&again)["id"].clone();
            let expected = call("41")
                .replace(r#""id": 41"#, &format!(r#""id": {private}"#))
                .replace(r#""n": 1.50}"#, &format!(r#""n": 1.50,"deviceId":"{device}"}}"#));
            assert_eq!(again, expected, "{name}");
            let ran = r#"{ "content":[ ],"n":1.0,"deviceId":"\u0041"}"#;
            world.upstream_sends(&response(&private.to_string(), ran));
            assert_eq!(
                world.client_got(),
                response("41", ran),
                "{name}: byte for byte under the client's id"
            );
        } else {
            assert_eq!(world.client_got(), refusal, "{name}: byte for byte");
        }
        // Whatever comes for it now comes too late.
        world.client_sends(&accepted);
        assert_eq!(world.runs, 1 + usize::from(runs_with.is_some()), "{name}");
        world.nobody_got_anything();
        assert_eq!((world.envelope.open_requests(), world.process.bytes_in_flight()), (0, 0), "{name}");
        assert_eq!(world.envelope.next_deadline(), None, "{name}");
    }
}

#[test]
fn seed_000_mrtr() {
    for Scenario { name, reply, runs_with, record, modern_record, .. } in scenarios() {
        let mut world = World::new(config());
        let first = modern_call("1", "", &json!({"form": {}}));
        world.client_sends(&first);
        assert_eq!(world.upstream_got(), first, "{name}");
        world.upstream_sends(&response("1", REFUSAL));
        let asked = value(&world.client_got());
        assert_eq!(world.recorded(), "asked system", "{name}");
        assert_eq!(asked["id"], 1);
        assert_eq!(asked["result"]["resultType"], "input_required");
        let question = &asked["result"]["inputRequests"]["deviceChoice"];
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(
            question["params"]["requestedSchema"]["properties"]["deviceId"]["oneOf"][1],
            json!({"const": "A1B2", "title": "A1B2 (ios)"})
        );
        assert_eq!(world.envelope.open_requests(), 0, "nothing is kept here");
        let state = asked["result"]["requestState"].as_str().unwrap();
        world.advance(Duration::from_secs(if matches!(reply, Reply::Late) { 600 } else { 1 }));
        let answer = match &reply {
            Reply::Result(result) => format!(r#","inputResponses": {{"deviceChoice":{result}}}"#),
            Reply::Failed => String::new(),
            Reply::Late => format!(r#","inputResponses": {{"deviceChoice":{}}}"#, accept("A1B2")),
            Reply::Cancelled => {
                world.client_sends(&cancel_of("1"));
                assert_eq!(world.upstream_got(), cancel_of("1"), "{name}: late, as it is without us");
                assert_eq!((world.records.len(), world.runs), (0, 1), "{name}");
                world.nobody_got_anything();
                continue;
            }
        };
        let retry =
            modern_call("\"r\"", &format!(r#"{answer} , "requestState":"{state}""#), &json!({"form": {}}));
        world.client_sends(&retry);
        let is_late = matches!(reply, Reply::Late);
        assert_eq!(world.records[0].latency_ms, (!is_late).then_some(1000), "{name}");
        assert_eq!(world.recorded(), modern_record.unwrap_or(record), "{name}");
        if is_late {
            let error = r#""error":{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}"#;
            assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":"r",{error}}}"#), "{name}");
        } else if let Some(device) = runs_with {
            let expected = modern_call("\"r\"", "", &json!({"form": {}}))
                .replace(r#""n": 1.50}"#, &format!(r#""n": 1.50,"deviceId":"{device}"}}"#));
            assert_eq!(world.upstream_got(), expected, "{name}: as the client would have sent it");
            world.upstream_sends(&response("\"r\"", "{ \"content\":[]}"));
            assert_eq!(world.client_got(), response("\"r\"", "{ \"content\":[]}"), "{name}");
        } else {
            assert_eq!(
                world.client_got(),
                format!(r#"{{"jsonrpc":"2.0","id":"r","result":{REFUSAL}}}"#),
                "{name}"
            );
        }
        assert_eq!(world.runs, 1 + usize::from(runs_with.is_some()), "{name}");
        world.nobody_got_anything();
        assert_eq!((world.envelope.open_requests(), world.process.bytes_in_flight()), (0, 0), "{name}");
    }
}

fn cancel_of(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

/// Nothing of what a client can do is kept beyond the request, or the connection's last `initialize`.
#[test]
fn seed_000_what_a_client_can_do_is_never_cached() {
    let mut world = World::new(config());
    let refused = |world: &mut World, call: &str, is_asked: bool| {
        world.client_sends(call);
        world.upstream.clear();
        let id = ClientFrame::read(call.as_bytes()).unwrap().id().unwrap().raw().to_owned();
        world.upstream_sends(&response(&id, REFUSAL));
        let got = world.client_got();
        assert_eq!(got == response(&id, REFUSAL), !is_asked, "{got}");
        let outcome = world.records.pop().map(|record| record.outcome.as_str());
        assert!(world.records.is_empty());
        assert_eq!(outcome == Some("not_offered"), !is_asked);
    };
    for (at, (capabilities, version, is_asked)) in [
        (json!({"elicitation": {"form": {}}}), "2025-11-25", true),
        (json!({}), "2025-11-25", false),
        (json!({"elicitation": {}}), "2025-06-18", true),
        (json!({"elicitation": {"url": {}}}), "2025-11-25", false),
        (json!({"elicitation": {}}), "2025-03-26", false),
        (json!({"elicitation": {}}), "2025-11-25", true),
    ]
    .into_iter()
    .enumerate()
    {
        world.initialize(&capabilities, version);
        refused(&mut world, &call(&format!("\"push {at}\"")), is_asked);
        // What says for itself what its client can do is not read from any of them, and changes nothing for them.
        refused(&mut world, &modern_call(&format!("\"asked {at}\""), "", &json!({})), true);
        refused(&mut world, &modern_call(&format!("\"not {at}\""), "", &json!(null)), false);
        refused(&mut world, &call(&format!("\"again {at}\"")), is_asked);
    }
    // What holds when the refusal comes.
    world.client_sends(&call("1"));
    world.initialize(&json!({}), "2025-11-25");
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL));
}

/// One question for a call: whatever the second run says, also the same refusal, is the answer.
#[test]
fn seed_000_the_second_run_never_asks() {
    for result in [REFUSAL, &REFUSAL.replace("emulator-5554", "emulator-5556"), "{ \"content\":[]}"] {
        let mut world = World::push(&json!({}));
        world.client_sends(&call("1"));
        world.upstream.clear();
        world.upstream_sends(&response("1", REFUSAL));
        let ask = value(&world.client_got())["id"].to_string();
        world.advance(Duration::from_secs(1));
        world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{ask},"result":{}}}"#, accept("A1B2")));
        let private = value(&world.upstream_got())["id"].to_string();
        world.upstream_sends(&response(&private, result));
        assert_eq!(world.client_got(), response("1", result));
        assert_eq!((world.recorded(), world.runs), ("accept client".to_owned(), 2));

        let mut world = World::new(config());
        world.client_sends(&modern_call("1", "", &json!({"form": {}})));
        world.upstream.clear();
        world.upstream_sends(&response("1", REFUSAL));
        let state = value(&world.client_got())["result"]["requestState"].as_str().unwrap().to_owned();
        world.records.clear();
        world.advance(Duration::from_secs(1));
        let extra =
            format!(r#","requestState":"{state}","inputResponses":{{"deviceChoice":{}}}"#, accept("A1B2"));
        world.client_sends(&modern_call("2", &extra, &json!({"form": {}})));
        world.upstream.clear();
        world.upstream_sends(&response("2", result));
        assert_eq!(world.client_got(), response("2", result), "a retry gets an answer, not a question");
        assert_eq!((world.recorded(), world.runs), ("accept client".to_owned(), 2));
    }
}

/// What each client that cannot be asked gets: the refusal, and a record.
#[test]
fn seed_000_who_is_not_asked() {
    for (elicitation, is_asked) in [
        (json!(null), false),
        (json!({"url": {}}), false),
        (json!({"form": null}), false),
        (json!({"form": true}), false),
        (json!("form"), false),
        (json!({}), true),
        (json!({"form": {}}), true),
        (json!({"form": {}, "url": {}}), true),
    ] {
        let mut world = World::push(&elicitation);
        world.client_sends(&call("1"));
        world.upstream.clear();
        world.upstream_sends(&response("1", REFUSAL));
        assert_eq!(world.client_got() == response("1", REFUSAL), !is_asked, "{elicitation}");
        assert_eq!(
            world.records.pop().map(|record| record.outcome.as_str()),
            (!is_asked).then_some("not_offered")
        );

        let mut world = World::new(config());
        world.client_sends(&modern_call("1", "", &elicitation));
        world.upstream.clear();
        world.upstream_sends(&response("1", REFUSAL));
        assert_eq!(world.client_got() == response("1", REFUSAL), !is_asked, "{elicitation}");
        let outcome = if is_asked { "asked" } else { "not_offered" };
        assert_eq!(world.records.pop().map(|record| record.outcome.as_str()), Some(outcome));
    }
}

/// What is no ambiguity passes without a record, byte for byte.
#[test]
fn seed_000_what_is_not_asked_about() {
    let one = REFUSAL.replace("A1B2", "emulator-5554");
    let no_code = REFUSAL.replace("ambiguous_device_target", "other");
    let no_path = REFUSAL.replace("candidates", "elsewhere");
    let no_json = REFUSAL.replace("{\\\"success", "{success");
    for (arguments, result) in [
        (r#"{"deviceId":"A1B2"}"#, REFUSAL),
        (r#"{"deviceId":null}"#, REFUSAL),
        (r#"{"d\u0065viceId":"A1B2"}"#, REFUSAL),
        ("[]", REFUSAL),
        ("{}", &one),
        ("{}", &no_code),
        ("{}", &no_path),
        ("{}", &no_json),
        ("{}", "null"),
        ("{}", r#"{"content":[]}"#),
    ] {
        for world in [&mut World::push(&json!({})), &mut World::new(config())] {
            let call = call_with("1", arguments);
            let call = if world.envelope.handshake.party().version.is_some() {
                call
            } else {
                call.replace(r#""name": "tapOn""#, r#""name": "tapOn","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#)
            };
            world.client_sends(&call);
            assert_eq!(world.upstream_got(), call);
            world.upstream_sends(&response("1", result));
            assert_eq!(world.client_got(), response("1", result), "{arguments}");
            assert!(world.records.is_empty());
        }
    }
}

/// A call of the modern era; `extra` goes before the end of its params.
pub(super) fn modern_call(id: &str, extra: &str, elicitation: &Value) -> String {
    modern_with(id, r#"{"text": "OK", "n": 1.50}"#, extra, elicitation)
}

pub(super) fn modern_with(id: &str, arguments: &str, extra: &str, elicitation: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": elicitation},
    });
    format!(
        r#"{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {{"name": "tapOn", "_meta": {meta}, "arguments": {arguments}{extra}}}, "vendor": [1e0]}}"#
    )
}
