//! Previews that misbehave: nothing is confirmed, and nothing runs.

use super::*;

const ARGUMENTS: &str = r#"{"id":"d1"}"#;

#[track_caller]
fn fails(scene: &mut Scene, reason: &str) {
    for capabilities in [json!({}), form()] {
        let answer = scene.modern(ARGUMENTS, "", &capabilities);
        assert_eq!(case(&answer), format!("isError confirmation-rejected PREVIEW_FAILED {reason}"));
        assert_eq!(scene.records(), [format!("refuse error system {reason}")]);
        assert!(!answer.to_string().contains("mcpu.token"));
    }
    assert_eq!(scene.ran, [""; 0]);
    scene.is_clean();
}

#[test]
fn a_preview_that_does_not_just_answer_confirms_nothing() {
    let long = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(64 * 1024));
    for (preview, reason) in [
        (r#"{"content":[],"isError":true}"#, "preview-refused"),
        (r#"{"content":[],"isError":"no"}"#, "preview-refused"),
        (
            r#"{"content":[{"type":"text","text":"{\"etag\":1,\"code\":\"ambiguous_device_target\",\"candidates\":[{\"deviceId\":\"a\"},{\"deviceId\":\"b\"}]}"}]}"#,
            "preview-refused",
        ),
        (r#"{"resultType":"input_required","inputRequests":{}}"#, "preview-asked"),
        (r#"{"resultType":"task","taskId":"t"}"#, "preview-task"),
        (r#"{"task":{"taskId":"t"}}"#, "preview-task"),
        (r#"{"resultType":"other"}"#, "preview-error"),
        ("{}", "preview-error"),
        ("[]", "preview-error"),
        (r#"{"content":7}"#, "preview-error"),
        (r#"{"content":[],"content":[]}"#, "preview-error"),
        (r#"{"content":[{"type":"text","text":"{\"etag\":1,\"etag\":2}"}]}"#, "preview-error"),
        (r#"{"content":[{"type":"text","text":"{\"n\":9007199254740993,\"etag\":1}"}]}"#, "preview-error"),
        (r#"{"content":[{"type":"text","text":"{\"subject\":\"Hi\"}"}]}"#, "preview-no-revision"),
        (long.as_str(), "preview-too-large"),
    ] {
        let mut scene = Scene::new(whole_guard());
        scene.preview = Some(preview.to_owned());
        fails(&mut scene, reason);
    }
}

#[test]
fn a_preview_that_may_do_harm_is_not_called_unless_it_is_trusted() {
    for listed in [
        r#"[{"name":"send"},{"name":"get"}]"#,
        r#"[{"name":"send"},{"name":"get","annotations":{"readOnlyHint":false}}]"#,
        r#"[{"name":"send"},{"name":"get","annotations":{"destructiveHint":false}}]"#,
        r#"[{"name":"send"},{"name":"get","annotations":{"readOnlyHint":true,"readOnlyHint":true}}]"#,
        r#"[{"name":"send"}]"#,
    ] {
        let mut scene = Scene::new(whole_guard());
        scene.tools = listed.to_owned();
        fails(&mut scene, "preview-not-read-only");
        assert_eq!(scene.previews, 0, "{listed}");
        let mut guard = whole_guard();
        guard.preview.as_mut().unwrap().is_trusted = true;
        let mut scene = Scene::new(guard);
        scene.tools = listed.to_owned();
        assert_eq!(case(&scene.modern(ARGUMENTS, "", &json!({}))), "confirmation-required", "{listed}");
        assert_eq!((scene.previews, scene.ran.len()), (1, 0), "{listed}");
    }
}

#[test]
fn a_preview_that_is_guarded_itself_is_a_mistake_of_the_file() {
    let guard = GuardSource { tools: vec!["*".to_owned()], ..whole_guard() };
    let (number, error) = Guards::new(vec![guard.clone()]).unwrap_err();
    assert_eq!(number, 1);
    assert!(error.to_string().contains("\"get\" is guarded itself; add it to except"), "{error}");
    assert!(Guards::new(vec![GuardSource { except: vec!["get".to_owned()], ..guard }]).is_ok());
}

#[test]
fn an_error_and_no_answer_in_time_confirm_nothing() {
    let mut scene = Scene::new(whole_guard());
    scene.preview = None;
    assert_eq!(scene.modern(ARGUMENTS, "", &json!({})), Value::Null);
    scene.world.advance(Duration::from_secs(10));
    scene.world.tick();
    let cancel = value(&scene.world.upstream_got());
    assert_eq!(cancel["method"], "notifications/cancelled");
    assert_eq!(case(&scene.got()), "isError confirmation-rejected PREVIEW_FAILED preview-timeout");
    scene.is_clean();
    // A late answer is nobody's.
    scene.world.upstream_sends(&response(&cancel["params"]["requestId"].to_string(), PREVIEW));
    scene.world.nobody_got_anything();

    scene.world.client_sends(&send("50", ARGUMENTS));
    let preview = value(&scene.world.upstream_got());
    assert_eq!(preview["params"], json!({"name": "get", "arguments": {"draft": "d1"}}));
    scene.world.upstream_sends(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"m"}}}}"#,
        preview["id"]
    ));
    assert_eq!(case(&scene.got()), "isError confirmation-rejected PREVIEW_FAILED preview-error");
    assert_eq!(scene.ran, [""; 0]);
}

#[test]
fn what_the_server_asks_while_a_preview_is_under_way_fails_it() {
    let mut scene = Scene::mute(whole_guard());
    scene.preview = None;
    assert_eq!(scene.call(ARGUMENTS), Value::Null);
    scene.world.upstream_sends(r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{}}"#);
    let got: Vec<Value> = std::mem::take(&mut scene.world.upstream).iter().map(|text| value(text)).collect();
    assert_eq!(got[0]["method"], "notifications/cancelled");
    assert_eq!((&got[1]["id"], &got[1]["error"]["code"]), (&json!(5), &json!(-32603)));
    assert_eq!(case(&scene.got()), "isError confirmation-rejected PREVIEW_FAILED preview-asked");
    scene.is_clean();
    // With another call open, the question may be that one's, and goes to the client.
    scene.sends(r#"{"jsonrpc":"2.0","id":60,"method":"ping"}"#);
    scene.call(ARGUMENTS);
    let asks = r#"{"jsonrpc":"2.0","id":6,"method":"elicitation/create","params":{}}"#;
    scene.world.upstream_sends(asks);
    assert_eq!(scene.world.client.len(), 2);
    assert_eq!(scene.world.client[1], asks);
    assert_eq!(scene.ran, [""; 0]);
}

#[test]
fn every_kind_of_words_is_shown_as_the_servers() {
    for (preview, words) in [
        (r#"{"content":[{"type":"text","text":"[1,2]"}]}"#, json!([1, 2])),
        (
            r#"{"content":[{"type":"text","text":"plain"}]}"#,
            json!({"content": [{"type": "text", "text": "plain"}]}),
        ),
        (r#"{"content":[{"type":"text","text":"7"}]}"#, json!({"content": [{"type": "text", "text": "7"}]})),
        (r#"{"structuredContent":{"a":1}}"#, json!({"a": 1})),
        (
            r#"{"resultType":"complete","content":[],"structuredContent":{"a":1}}"#,
            json!({"content": [], "structuredContent": {"a": 1}}),
        ),
    ] {
        let mut guard = whole_guard();
        guard.preview.as_mut().unwrap().revision = None;
        let mut scene = Scene::mute(guard);
        scene.preview = Some(preview.to_owned());
        assert_eq!(said(&scene.call(ARGUMENTS))["preview"]["serverSays"], words, "{preview}");
    }
}
