//! What is guarded, and what cannot be judged.

use super::*;

#[test]
fn a_tool_that_is_not_guarded_goes_through_byte_for_byte() {
    let mut scene = Scene::mute(plain_guard());
    let call = r#"{ "jsonrpc":"2.0","id":1e0,"method":"tools/call","params":{"name":"echo","arguments":{"confirmToken":"x","a":1.0}} }"#;
    scene.world.client_sends(call);
    assert_eq!(scene.world.upstream_got(), call);
    assert_eq!(scene.world.client, [""; 0]);
}

#[test]
fn whatever_the_name_looks_like_the_guard_sees_the_call_first() {
    for name in [r#""send""#, r#""\u0073end""#, r#""SEND""#, r#""\u017fend""#, r#""Send""#] {
        let mut scene = Scene::mute(plain_guard());
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{{}},"name":{name}}}}}"#
        );
        scene.sends(&call);
        assert_eq!(case(&scene.got()), "confirmation-required", "{name}");
        assert_eq!(scene.ran, [""; 0], "{name}");
    }
}

#[test]
fn what_cannot_be_judged_is_refused() {
    for (params, code) in [
        (r#"{"name":7}"#, -32602),
        (r#"{"name":null,"arguments":{}}"#, -32602),
        (r#"{"name":["send"]}"#, -32602),
        (r#"{"arguments":{}}"#, -32602),
        (r#"{"name":"send\ud800"}"#, -32602),
        (r#"{"name":"send\u0000"}"#, -32600),
        (r#"{"name":"x","Name":"send"}"#, -32600),
        (r#"{"name":"x","name":"send"}"#, -32600),
    ] {
        let mut scene = Scene::mute(plain_guard());
        scene.sends(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#));
        assert_eq!(scene.got()["error"]["code"], code, "{params}");
        assert_eq!(scene.ran, [""; 0], "{params}");
    }
}

#[test]
fn a_call_that_nobody_can_answer_runs_nothing() {
    for (id, replies) in
        [("", 0), (r#""id":null,"#, 1), (r#""id":true,"#, 1), (r#""id":{},"#, 1), (r#""id":[1],"#, 1)]
    {
        for name in [r#""send""#, "7"] {
            for elicitation in [json!({}), json!({"elicitation": {}})] {
                let mut scene = Scene::new(plain_guard());
                scene.world.initialize(&elicitation, "2025-11-25");
                let call =
                    format!(r#"{{"jsonrpc":"2.0",{id}"method":"tools/call","params":{{"name":{name}}}}}"#);
                scene.sends(&call);
                assert_eq!(scene.world.client.len(), replies, "{call}: {:?}", scene.world.client);
                assert!(scene.world.client.iter().all(|text| value(text)["error"]["code"] == -32600));
                assert_eq!((scene.ran.len(), scene.lists), (0, 0), "{call}");
                assert_eq!(scene.records(), ["refuse not_offered system no-id"]);
            }
        }
        let mut scene = Scene::mute(plain_guard());
        let call = format!(r#"{{"jsonrpc":"2.0",{id}"method":"tools/call","params":{{"name":"echo"}}}}"#);
        scene.world.client_sends(&call);
        assert_eq!(scene.world.upstream_got(), call, "what is not guarded goes its way");
    }
}

#[test]
fn an_id_that_is_open_guards_as_well() {
    let mut scene = Scene::mute(plain_guard());
    scene.sends(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    scene.sends(&send("1.0", "{}"));
    assert_eq!(scene.got()["error"]["message"], "an open request has this id");
    let mut scene = Scene::push(plain_guard(), &json!({}));
    scene.call("{}");
    scene.sends(&send("1", "{}"));
    assert_eq!(scene.got()["error"]["message"], "an open request has this id");
    scene.sends(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(scene.got()["error"]["message"], "an open request has this id");
    assert_eq!(scene.ran, [""; 0]);
}

#[test]
fn s4_arguments_that_cannot_be_bound_are_refused_on_every_rail() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(64), "]".repeat(64));
    for (arguments, reason) in [
        (r#"{"a":1,"a":2}"#, "duplicate-key"),
        (r#"{"a":{"b":1,"\u0062":2}}"#, "duplicate-key"),
        (r#"{"a":"\ud800"}"#, "unpaired-surrogate"),
        (r#"{"a":9007199254740993}"#, "inexact-number"),
        (deep.as_str(), "nesting-too-deep"),
        (r#"{"confirmToken":"x","confirmToken":"y"}"#, "duplicate-key"),
    ] {
        for capabilities in [json!({}), form()] {
            let mut scene = Scene::new(plain_guard());
            let answer = scene.modern(arguments, "", &capabilities);
            assert_eq!(case(&answer), format!("isError confirmation-rejected unbindable-arguments {reason}"));
            assert_eq!(scene.records(), [format!("refuse not_offered system {reason}")]);
            assert_eq!(scene.ran, [""; 0]);
            scene.is_clean();
        }
    }
}

#[test]
fn task_fields_and_other_members_change_nothing_about_the_guard() {
    for more in
        [r#","task":{"ttl":1}"#, r#","task":null"#, r#","vendor":{"confirm":true}"#, r#","confirmToken":"x""#]
    {
        let mut scene = Scene::mute(plain_guard());
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"send","arguments":{{}}{more}}}}}"#
        );
        scene.sends(&call);
        assert_eq!(case(&scene.got()), "confirmation-required", "{more}");
        assert_eq!(scene.ran, [""; 0], "{more}");
    }
}

#[test]
fn arguments_that_are_none_or_no_object_are_guarded_as_they_are() {
    for arguments in ["null", "{}", "[1]", "7", r#""text""#] {
        let mut scene = Scene::push(whole_guard(), &json!({}));
        let question = scene.call(arguments);
        scene.answer(&question, 1_000, &accepted());
        assert_eq!(scene.ran, [send("1", arguments)], "{arguments}");
    }
}

fn destructive() -> GuardSource {
    GuardSource { except: vec!["echo".to_owned()], ..GuardSource::default() }
}

#[test]
fn annotations_guard_whatever_was_not_listed_as_harmless() {
    for (definition, is_guarded) in [
        (r#"{"name":"send"}"#, true),
        (r#"{"name":"send","annotations":{}}"#, true),
        (r#"{"name":"send","annotations":{"destructiveHint":true}}"#, true),
        (r#"{"name":"send","annotations":{"readOnlyHint":false}}"#, true),
        (r#"{"name":"send","annotations":{"readOnlyHint":"true"}}"#, true),
        (r#"{"name":"send","annotations":{"destructiveHint":null}}"#, true),
        (r#"{"name":"send","annotations":{"idempotentHint":true}}"#, true),
        (r#"{"name":"send","annotations":{"readOnlyHint":true},"annotations":{}}"#, true),
        (r#"{"name":"send","annotations":{"readOnlyHint":true}},{"name":"send"}"#, true),
        (r#"{"name":"other","annotations":{"readOnlyHint":true}}"#, true),
        (r#"{"name":"send","annotations":{"readOnlyHint":true}}"#, false),
        (r#"{"name":"send","annotations":{"destructiveHint":false}}"#, false),
    ] {
        let mut scene = Scene::mute(destructive());
        scene.tools = format!("[{definition}]");
        let answer = scene.call("{}");
        if is_guarded {
            assert_eq!(case(&answer), "confirmation-required", "{definition}");
            assert_eq!(said(&answer)["action"], "Run send");
        } else {
            assert_eq!((answer, &scene.ran), (Value::Null, &vec![send("1", "{}")]), "{definition}");
            scene.is_clean();
        }
    }
}

#[test]
fn once_guarded_a_tool_stays_guarded() {
    let mut scene = Scene::mute(destructive());
    assert_eq!(case(&scene.call("{}")), "confirmation-required");
    scene.tools = TOOLS.replace(r#""name":"send""#, r#""name":"send","annotations":{"readOnlyHint":true}"#);
    scene.sends(r#"{"jsonrpc":"2.0","id":90,"method":"ping"}"#);
    scene.world.upstream_sends(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    scene.world.client.clear();
    assert_eq!(case(&scene.call("{}")), "confirmation-required");
    assert_eq!(scene.lists, 2);
    // Also on another connection of the process.
    let mut other = Scene::on(World::on(Arc::clone(&scene.world.process), [8; 32]));
    other.world.initialize(&json!({}), "2025-11-25");
    other.tools.clone_from(&scene.tools);
    assert_eq!(case(&other.call("{}")), "confirmation-required");
}

#[test]
fn tools_that_cannot_be_listed_guard_and_run_nothing() {
    for listed in [
        r#"{"tools":7}"#,
        "{}",
        r#"{"tools":[{"name":1}]}"#,
        r#"{"tools":[],"nextCursor":7}"#,
        r#"{"tools":[],"tools":[]}"#,
    ] {
        for guard in [plain_guard(), destructive()] {
            let mut scene = Scene::mute(guard);
            scene.world.client_sends(&send("1", "{}"));
            let request = value(&scene.world.upstream_got());
            assert_eq!(request["method"], "tools/list");
            scene.world.upstream_sends(&response(&request["id"].to_string(), listed));
            assert_eq!(
                case(&scene.got()),
                "isError confirmation-rejected PREVIEW_FAILED tools-not-listed",
                "{listed}"
            );
            scene.is_clean();
        }
    }
    let mut scene = Scene::mute(plain_guard());
    scene.world.client_sends(&send("1", "{}"));
    scene.world.client_sends(&send("2", "{}"));
    let request = value(&scene.world.upstream_got());
    scene.world.advance(Duration::from_secs(10));
    scene.world.tick();
    assert_eq!(value(&scene.world.upstream_got())["params"]["requestId"], request["id"]);
    assert_eq!(scene.world.client.len(), 2, "both waited for one list");
    scene.world.client.clear();
    scene.is_clean();
}

#[test]
fn a_list_goes_through_its_pages_and_begins_anew_when_tools_change_meanwhile() {
    let mut scene = Scene::mute(destructive());
    scene.world.client_sends(&send("1", "{}"));
    let first = value(&scene.world.upstream_got());
    assert_eq!(first["params"], json!({}));
    let page = r#"{"tools":[{"name":"get","annotations":{"readOnlyHint":true}}],"nextCursor":"c\"2"}"#;
    scene.world.upstream_sends(&response(&first["id"].to_string(), page));
    let second = value(&scene.world.upstream_got());
    assert_eq!(second["params"], json!({"cursor": "c\"2"}));
    scene.world.upstream_sends(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    scene.world.client.clear();
    let page = r#"{"tools":[{"name":"send","annotations":{"readOnlyHint":true}}]}"#;
    scene.world.upstream_sends(&response(&second["id"].to_string(), page));
    assert_eq!(value(&scene.world.upstream_got())["id"], 1, "it is unguarded by this list");
    scene.world.client_sends(&send("2", "{}"));
    assert_eq!(value(&scene.world.upstream_got())["method"], "tools/list", "which serves nobody later");
}
