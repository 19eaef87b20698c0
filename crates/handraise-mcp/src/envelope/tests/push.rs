//! The push era beside its answers: time, memory, what was not shown, and what the peers do by themselves.

use serde_json::json;

use super::*;

/// Runs a call up to our question; it returns the question's id as JSON text.
fn asked(world: &mut World, id: &str) -> String {
    world.client_sends(&call(id));
    world.upstream_got();
    world.upstream_sends(&response(id, REFUSAL));
    let ask = value(&world.client_got());
    assert_eq!(ask["method"], "elicitation/create", "{ask}");
    ask["id"].to_string()
}

fn answer(world: &mut World, ask: &str, result: &str) {
    world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{ask},"result":{result}}}"#));
}

/// Runs a call whose refusal is to pass, and says how that is recorded.
#[track_caller]
fn passed(world: &mut World, call: &str) -> String {
    world.client_sends(call);
    world.upstream.clear();
    let frame = ClientFrame::read(call.as_bytes()).unwrap();
    let id = frame.id().unwrap().raw();
    world.upstream_sends(&response(id, REFUSAL));
    assert_eq!(world.client_got(), response(id, REFUSAL));
    world.recorded()
}

#[test]
fn a_timeout_is_counted_from_the_calls_arrival() {
    let mut world = World::push(&json!({}));
    world.client_sends(&call("1"));
    world.upstream.clear();
    world.advance(Duration::from_secs(15));
    world.upstream_sends(&response("1", REFUSAL));
    let ask = value(&world.client_got())["id"].to_string();
    let deadline = world.envelope.next_deadline().unwrap();
    assert_eq!(world.now.boot.until(deadline), Duration::from_secs(5));
    world.advance(Duration::from_millis(4999));
    world.tick();
    world.nobody_got_anything();
    world.advance(Duration::from_millis(1));
    world.tick();
    assert_eq!(
        world.client.remove(0),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{ask},"reason":"nobody answered in time"}}}}"#
        )
    );
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.records[0].latency_ms, Some(5000));
    assert_eq!(world.recorded(), "timeout system");
    answer(&mut world, &ask, &accept("A1B2"));
    world.nobody_got_anything();
    assert_eq!((world.runs, world.process.bytes_in_flight()), (1, 0));
    // It is asked again: a timeout is nobody's decision.
    asked(&mut world, "2");
}

#[test]
fn an_answer_at_the_deadline_is_late_even_when_no_tick_came() {
    let mut world = World::push(&json!({}));
    let ask = asked(&mut world, "1");
    world.advance(Duration::from_secs(20));
    answer(&mut world, &ask, &accept("A1B2"));
    assert_eq!(world.recorded(), "timeout system");
    assert_eq!(world.runs, 1);
}

#[test]
fn a_wall_clock_that_steps_ends_no_question() {
    let mut world = World::push(&json!({}));
    let ask = asked(&mut world, "1");
    world.now.wall_ms += 3_600_000;
    world.advance(Duration::from_secs(1));
    world.tick();
    answer(&mut world, &ask, &accept("A1B2"));
    assert_eq!(world.recorded(), "accept client");
}

#[test]
fn a_call_that_took_longer_than_a_question_may_is_not_asked_about() {
    let mut world = World::push(&json!({}));
    world.client_sends(&call("1"));
    world.upstream.clear();
    world.advance(Duration::from_secs(20));
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system too-late");
}

#[test]
fn decline_memory_is_per_connection_and_candidate_set() {
    let other = REFUSAL.replace("A1B2", "C3D4");
    let turned = REFUSAL.replace("emulator-5554", "•").replace("A1B2", "emulator-5554").replace('•', "A1B2");
    for action in ["decline", "cancel"] {
        let mut world = World::push(&json!({}));
        let ask = asked(&mut world, "1");
        world.advance(Duration::from_secs(1));
        answer(&mut world, &ask, &format!(r#"{{"action":"{action}"}}"#));
        world.client.clear();
        world.records.clear();
        assert_eq!(passed(&mut world, &call("2")), "remembered system");
        assert_eq!(world.records.len(), 0);
        // The same set in another order.
        world.client_sends(&call("3"));
        world.upstream.clear();
        world.upstream_sends(&response("3", &turned));
        assert_eq!(world.client_got(), response("3", &turned));
        assert_eq!(world.recorded(), "remembered system");
        // Another set.
        world.client_sends(&call("4"));
        world.upstream.clear();
        world.upstream_sends(&response("4", &other));
        assert!(world.client_got().contains("elicitation/create"));
        // Another connection.
        let mut second = World::on(Arc::clone(&world.process), [8; 32]);
        second.initialize(&json!({"elicitation": {}}), "2025-11-25");
        asked(&mut second, "1");
    }
}

#[test]
fn only_a_decline_or_cancel_that_was_shown_is_remembered() {
    for (after_ms, reply, record) in [
        (399, r#""result":{"action":"decline"}"#, "decline not_shown"),
        (4, r#""result":{"action":"cancel"}"#, "cancel not_shown"),
        (0, r#""result":{"action":"decline"}"#, "decline not_shown"),
        (
            1000,
            r#""result":{"action":"accept","content":{"deviceId":"rogue"}}"#,
            "invalid client choice-not-offered",
        ),
        (1000, r#""error":{"code":-32601,"message":"Method not found"}"#, "error not_shown client-error"),
        (
            1000,
            r#""error":{"code":-32602,"message":"No supported fields in form"}"#,
            "error not_shown client-error",
        ),
        (1000, r#""error":{"code":-1,"message":"no"}"#, "error client client-error"),
        (1000, r#""error":null"#, "error client client-error"),
        (
            1000,
            r#""result":{"action":"decline"},"error":{"code":-1,"message":"no"}"#,
            "invalid client answer-malformed",
        ),
    ] {
        let mut world = World::push(&json!({}));
        let ask = asked(&mut world, "1");
        world.advance(Duration::from_millis(after_ms));
        world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{ask},{reply}}}"#));
        assert_eq!(world.client_got(), response("1", REFUSAL));
        assert_eq!(world.recorded(), record);
        asked(&mut world, "2");
        assert_eq!(world.runs, 2);
    }
    let mut world = World::push(&json!({}));
    let ask = asked(&mut world, "1");
    world.advance(Duration::from_millis(400));
    answer(&mut world, &ask, r#"{"action":"decline"}"#);
    world.client.clear();
    assert_eq!(world.recorded(), "decline client");
    assert_eq!(passed(&mut world, &call("2")), "remembered system");
}

#[test]
fn a_fast_accept_is_honoured_and_recorded_as_not_shown() {
    let mut world = World::push(&json!({}));
    let ask = asked(&mut world, "1");
    world.advance(Duration::from_millis(3));
    answer(&mut world, &ask, &accept("A1B2"));
    assert_eq!(world.recorded(), "accept not_shown");
    assert_eq!(world.runs, 2);
    assert!(world.upstream_got().contains(r#""deviceId":"A1B2""#));
}

#[test]
fn a_question_is_spelled_as_its_version_knows_it() {
    for (version, has_titles) in [("2025-06-18", false), ("2025-11-25", true), ("2026-07-28", true)] {
        let mut world = World::new(config());
        // rmcp 3.11 writes 2026-07-28 into `initialize`: a push connection all the same.
        world.initialize(&json!({"elicitation": {}}), version);
        world.client_sends(&call("1"));
        world.upstream.clear();
        world.upstream_sends(&response("1", REFUSAL));
        let params = value(&world.client_got())["params"].clone();
        let field = &params["requestedSchema"]["properties"]["deviceId"];
        assert_eq!(params.get("mode").is_some(), has_titles, "{version}");
        assert_eq!(field.get("oneOf").is_some(), has_titles, "{version}");
        assert_eq!(field.get("enumNames").is_some(), !has_titles, "{version}");
    }
    let mut world = World::new(config());
    world.initialize(&json!({"elicitation": {}}), "2025-03-26");
    assert_eq!(passed(&mut world, &call("1")), "not_offered system");
    // A connection that nobody opened.
    let mut world = World::new(config());
    world.client_sends(&call("1"));
    world.upstream.clear();
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.records[0].declared.as_str(), "unknown");
}

#[test]
fn s26_a_tools_name_does_nothing_but_appear_and_is_bounded() {
    let named = |name: &str| call("1").replace("tapOn", name);
    let mut world = World::push(&json!({}));
    world.client_sends(&named("tap\\u202eOn\\u001b"));
    world.upstream.clear();
    world.upstream_sends(&response("1", REFUSAL));
    let ask = value(&world.client_got());
    assert_eq!(ask["params"]["message"], "Which device should tap\\u{202e}On\\u{1b} use?");
    world.advance(Duration::from_secs(1));
    answer(&mut world, &ask["id"].to_string(), &accept("A1B2"));
    assert!(world.upstream_got().contains("\"tap\\u202eOn\\u001b\""), "what runs is what was called");
    let mut world = World::push(&json!({}));
    assert_eq!(passed(&mut world, &named(&"t".repeat(1025))), "not_offered system tool-name-too-long");
}

#[test]
fn the_switch_is_read_for_every_call() {
    let mut world = World::push(&json!({}));
    world.process.set_elicitation(false);
    assert_eq!(passed(&mut world, &call("1")), "disabled system");
    world.process.set_elicitation(true);
    let ask = asked(&mut world, "2");
    // An open question is answered as it was asked.
    world.process.set_elicitation(false);
    world.advance(Duration::from_secs(1));
    answer(&mut world, &ask, &accept("A1B2"));
    assert_eq!(world.runs, 3);
}

#[test]
fn a_record_says_who_and_what_and_nothing_of_the_arguments() {
    let mut world = World::push(&json!({"form": {}, "url": {}}));
    let ask = asked(&mut world, "1");
    world.advance(Duration::from_secs(2));
    answer(&mut world, &ask, &accept("A1B2"));
    assert_eq!(
        world.records[0].to_line(),
        r#"[elicitation] {"declared":"both","era":"push","rail":"form","outcome":"accept","provenance":"client","latencyMs":2000,"tool":"tapOn","refusal":"ambiguous_device_target","client":"client","protocolVersion":"2025-11-25"}"#
    );
}

#[test]
fn s27_an_upstream_request_in_our_name_space_is_refused() {
    let mut world = World::push(&json!({}));
    let ask = asked(&mut world, "1");
    let forged = format!("{}0\"", &ask[..ask.len() - 2]);
    for id in [&ask, &forged, &ask.replace("hr-", "h\\u0072-")] {
        let request = json!({"message": "m", "requestedSchema": {}}).to_string();
        world.upstream_sends(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{request}}}"#
        ));
        let refused = value(&world.upstream_got());
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &value(id)));
        assert!(world.client.is_empty());
    }
    // What the upstream knows of our ids, it has from our requests: another name space.
    world.advance(Duration::from_secs(1));
    answer(&mut world, &ask, &accept("A1B2"));
    let private = value(&world.upstream_got())["id"].to_string();
    assert_ne!(private[..20], ask[..20]);
}

#[test]
fn s27_an_answer_counts_only_from_where_the_question_went() {
    let mut world = World::push(&json!({}));
    let mut other = World::on(Arc::clone(&world.process), [8; 32]);
    other.initialize(&json!({"elicitation": {}}), "2025-11-25");
    let ask = asked(&mut world, "1");
    let other_ask = asked(&mut other, "1");
    assert_ne!(ask, other_ask);
    world.advance(Duration::from_secs(1));
    answer(&mut other, &ask, &accept("A1B2"));
    assert_eq!((world.runs, other.runs), (1, 1));
    other.upstream.clear();
    // Guesses are nobody's business either.
    let guess = format!("{}{}\"", &ask[..ask.len() - 33], "0".repeat(32));
    answer(&mut world, &guess, &accept("A1B2"));
    world.nobody_got_anything();
    // An id may be spelled with escapes.
    answer(&mut world, &ask.replace("hr-ask", "hr\\u002dask"), &accept("A1B2"));
    assert_eq!(world.runs, 2);
    world.upstream.clear();
    answer(&mut world, &ask, &accept("emulator-5554"));
    assert_eq!(world.runs, 2, "once");
    world.nobody_got_anything();
}

#[test]
fn s3_an_answer_that_cannot_be_read_is_invalid_at_once_and_answered_by_nobody() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":ASK,"result":{"action":"accept"},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":ASK,"result":{"action":"accept"},"result":{"action":"accept"}}"#,
        r#"{"jsonrpc":"2.0","id":ASK,"Result":{"action":"accept"},"Id":1}"#,
        r#"{"jsonrpc":"2.0","id":ASK,"method":"tools/call","result":{"action":"accept"}}"#,
        r#"{"jsonrpc":"2.0","id":ASK}"#,
        r#"{"jsonrpc":"2.0","id":ASK,"result":{"action":"#,
        r#"{"jsonrpc":"2.0","id":ASK,"id":1,"result":{"action":"accept"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"},"id":ASK}"#,
        r#"{"jsonrpc":"2.0","id":ASK,"id":null,"id":ASK,"result":{"action":"accept"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":ASK,"result":{"action":"#,
    ] {
        let mut world = World::push(&json!({}));
        let ask = asked(&mut world, "1");
        world.advance(Duration::from_secs(1));
        world.client_sends(&answer.replace("ASK", &ask));
        assert_eq!(world.recorded(), "invalid client answer-malformed", "{answer}");
        assert_eq!(world.client_got(), response("1", REFUSAL), "{answer}");
        assert_eq!((world.runs, world.envelope.open_requests()), (1, 0), "{answer}");
        assert_eq!((world.process.bytes_in_flight(), world.envelope.next_deadline()), (0, None));
        // A second one is late.
        world.client_sends(&answer.replace("ASK", &ask));
        world.nobody_got_anything();
    }
}

#[test]
fn the_upstreams_own_questions_pass_and_no_second_one_is_added() {
    let mut world = World::push(&json!({}));
    world.client_sends(&call("1"));
    world.upstream.clear();
    let own = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}"#;
    world.upstream_sends(own);
    assert_eq!(world.client_got(), own);
    let reply = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}"#;
    world.client_sends(reply);
    assert_eq!(world.upstream_got(), reply);
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system server-asked");
    asked(&mut world, "2");
}

#[test]
fn the_second_result_is_the_answer_whatever_it_is() {
    for result in
        [REFUSAL.to_owned(), REFUSAL.replace("A1B2", "Z9"), r#"{"isError":true,"content":[]}"#.to_owned()]
    {
        let mut world = World::push(&json!({}));
        let ask = asked(&mut world, "\"c\\u0061ll\"");
        world.advance(Duration::from_secs(1));
        answer(&mut world, &ask, &accept("A1B2"));
        let private = value(&world.upstream_got())["id"].to_string();
        // Servers write their members in other orders, too.
        world.upstream_sends(&format!(r#"{{"result":{result},"jsonrpc":"2.0","id":{private}}}"#));
        assert_eq!(world.client_got(), format!(r#"{{"result":{result},"jsonrpc":"2.0","id":"c\u0061ll"}}"#));
        assert_eq!((world.runs, world.records.len()), (2, 1));
    }
    let mut world = World::push(&json!({}));
    let ask = asked(&mut world, "1");
    world.advance(Duration::from_secs(1));
    answer(&mut world, &ask, &accept("A1B2"));
    let private = value(&world.upstream_got())["id"].to_string();
    let error = r#""error":{"code":-32000,"message":"gone"}"#;
    world.upstream_sends(&format!(r#"{{"jsonrpc":"2.0","id":{private},{error}}}"#));
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":1,{error}}}"#));
}

#[test]
fn progress_stays_monotonic_across_the_second_run() {
    let mut world = World::push(&json!({}));
    let progress = |value: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"p","progress":{value}}}}}"#
        )
    };
    let with_token =
        call("1").replace(r#""name": "tapOn""#, r#""name": "tapOn","_meta":{"x":1,"progressToken": "p"}"#);
    world.client_sends(&with_token);
    world.upstream.clear();
    world.upstream_sends(&progress("30"));
    world.upstream_sends(&progress("60.0"));
    assert_eq!(std::mem::take(&mut world.client), [progress("30"), progress("60.0")]);
    world.upstream_sends(&response("1", REFUSAL));
    let ask = value(&world.client_got())["id"].to_string();
    world.advance(Duration::from_secs(1));
    answer(&mut world, &ask, &accept("A1B2"));
    let again = world.upstream_got();
    assert!(again.contains(r#""progressToken": "p""#), "the client's own token");
    for value in ["10", "60", "61", "61", "99"] {
        world.upstream_sends(&progress(value));
    }
    assert_eq!(std::mem::take(&mut world.client), [progress("61"), progress("99")]);
    world.upstream_sends(&response(&value(&again)["id"].to_string(), "{}"));
    world.client_got();
    // The token's next use begins anew.
    world.client_sends(&with_token.replace(r#""id": 1"#, r#""id": 2"#));
    world.upstream_sends(&progress("1"));
    assert_eq!(world.client_got(), progress("1"));
}

#[test]
fn s4_arguments_that_cannot_be_bound_are_not_asked_about() {
    for (arguments, reason) in unbindable() {
        let mut world = World::push(&json!({}));
        let record = passed(&mut world, &call_with("1", &arguments));
        assert_eq!(record, format!("not_offered system {reason}"));
    }
}

#[test]
fn a_state_has_no_place_in_the_push_era() {
    for (method, state) in [("tools/call", "x"), ("tools/call", "hr1.AAAA.BBBB.CCCC"), ("prompts/get", "x")] {
        let mut world = World::push(&json!({}));
        world.client_sends(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"tapOn","requestState":"{state}"}}}}"#
        ));
        assert_eq!(
            world.client_got(),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}}"#
        );
        assert_eq!(world.runs, 0);
    }
    // A method of somebody's own may well have such a parameter.
    let mut world = World::push(&json!({}));
    let vendor = r#"{"jsonrpc":"2.0","id":1,"method":"vendor/x","params":{"requestState":"x"}}"#;
    world.client_sends(vendor);
    assert_eq!(world.upstream_got(), vendor);
}

#[test]
fn task_calls_and_calls_with_answers_are_not_asked_about() {
    for (member, reason) in
        [(r#""task":{"ttl":1}"#, "task"), (r#""inputResponses":{}"#, "answer-without-state")]
    {
        let mut world = World::push(&json!({}));
        let call = call("1").replace(r#""name": "tapOn""#, &format!(r#""name": "tapOn", {member}"#));
        assert_eq!(passed(&mut world, &call), format!("not_offered system {reason}"));
    }
}
