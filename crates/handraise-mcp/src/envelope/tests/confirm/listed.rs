//! `tools/list` as clients get it.

use super::*;

/// Lists the tools as a client; what it gets.
fn lists(scene: &mut Scene, cursor: &str, result: &str) -> String {
    let id = scene.id();
    let params = if cursor.is_empty() { String::new() } else { format!(r#""cursor":"{cursor}""#) };
    let list = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{params}}}}}"#);
    scene.world.client_sends(&list);
    assert_eq!(scene.world.upstream_got(), list);
    scene.world.upstream_sends(&format!(r#"{{ "jsonrpc":"2.0","id":{id}, "result":{result} }}"#));
    let got = scene.world.client_got();
    got.strip_prefix(&format!(r#"{{ "jsonrpc":"2.0","id":{id}, "result":"#))
        .unwrap()
        .strip_suffix(" }")
        .unwrap()
        .to_owned()
}

#[test]
fn a_list_without_guarded_tools_keeps_every_byte() {
    let mut scene = Scene::mute(plain_guard());
    let result = r#"{"tools":[ {"name":"echo","outputSchema":{"x":1.0}} , {"name":"sender"}],"x":1e0}"#;
    assert_eq!(lists(&mut scene, "", result), result);
    for odd in [r#"{"tools":7}"#, "{}", r#"{"tools":[1,{}]}"#, "[]"] {
        assert_eq!(lists(&mut scene, "", odd), odd);
    }
}

#[test]
fn guarded_tools_gain_a_token_and_a_sentence_and_lose_their_output_schema() {
    const TOKEN: &str = r#""confirmToken":{"type":"string","description":"Only with the confirmToken that the same call has returned before."}"#;
    const SENTENCE: &str = "Runs only once it was confirmed: the client asks its user, or a first call returns a preview and a confirmToken, and the same call with that confirmToken runs it.";
    let mut scene = Scene::mute(GuardSource { tools: vec!["send*".to_owned()], ..plain_guard() });
    for (tool, expected) in [
        (
            r#"{"name":"send","description":"Sends \"it\"","inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]},"outputSchema":{"type":"object"},"x":1.0}"#,
            r#"{"name":"send","description":"Sends \"it\" SENTENCE","inputSchema":{"type":"object","properties":{"to":{"type":"string"},TOKEN},"required":["to"]},"x":1.0}"#,
        ),
        (
            r#"{ "outputSchema" : {} , "inputSchema":{"properties":{}}, "name":"send2" }"#,
            r#"{ "inputSchema":{"properties":{TOKEN}}, "name":"send2" ,"description":"SENTENCE"}"#,
        ),
        (
            r#"{"name":"send","inputSchema":{},"description":""}"#,
            r#"{"name":"send","inputSchema":{"properties":{TOKEN}},"description":"SENTENCE"}"#,
        ),
        (r#"{"name":"\u0073end","outputSchema":1}"#, r#"{"name":"\u0073end","description":"SENTENCE"}"#),
    ] {
        let other = r#" {"name":"echo","outputSchema":{ }}"#;
        let expected = expected.replace("TOKEN", TOKEN).replace("SENTENCE", SENTENCE);
        let got =
            lists(&mut scene, "", &format!(r#"{{"tools":[{other},{tool} ,{other}],"nextCursor":null}}"#));
        assert_eq!(got, format!(r#"{{"tools":[{other},{expected} ,{other}],"nextCursor":null}}"#));
    }
    // One with a token of its own keeps its schema.
    let own = r#"{"tools":[{"name":"send","inputSchema":{"properties":{"confirmToken":{}}}}]}"#;
    let got = lists(&mut scene, "", own);
    assert!(
        got.contains(r#""inputSchema":{"properties":{"confirmToken":{}}}"#)
            && got.contains("asks its user.\""),
        "{got}"
    );
}

#[test]
fn without_tokens_none_is_offered() {
    let values = Values { mode: Some("refuse"), ..Values::default() };
    let mut scene = Scene::with(vec![plain_guard()], values);
    let got = lists(&mut scene, "", r#"{"tools":[{"name":"send","inputSchema":{"properties":{}}}]}"#);
    assert!(!got.contains("confirmToken") && got.contains("asks its user."), "{got}");
}

#[test]
fn what_is_listed_says_only_what_can_happen() {
    let off = Values { elicitation: Some("off"), ..Values::default() };
    let no_tokens = Values { mode: Some("refuse"), ..off };
    let own = r#"{"tools":[{"name":"send","inputSchema":{"properties":{"confirmToken":{}}}}]}"#;
    let plain = r#"{"tools":[{"name":"send","inputSchema":{"properties":{}}}]}"#;
    let token = "confirmed: a first call returns a preview and a confirmToken";
    let nothing = "Does not run here: it has to be confirmed, and there is no way to do that.";
    for (values, tools, expected) in [(off, plain, token), (no_tokens, plain, nothing), (off, own, nothing)] {
        let got = lists(&mut Scene::with(vec![plain_guard()], values), "", tools);
        assert!(got.contains(expected) && !got.contains("asks its user"), "{got}");
    }
    // What is spent cannot be remembered: no way leads anywhere.
    let mut scene = Scene::on(World::new(remembering(Remembers::Nothing)));
    let got = lists(&mut scene, "", plain);
    assert!(got.contains(nothing) && !got.contains("confirmToken"), "{got}");
}

#[test]
fn what_only_the_inbox_confirms_is_offered_no_token() {
    let mut scene = Scene::mute(GuardSource { needs_human: true, ..plain_guard() });
    let got = lists(&mut scene, "", r#"{"tools":[{"name":"send","inputSchema":{"properties":{}}}]}"#);
    assert!(!got.contains("confirmToken") && got.contains("has confirmed it in the inbox."), "{got}");
}

#[test]
fn what_the_client_listed_is_not_listed_again_until_it_changes_or_ends() {
    let mut scene = Scene::mute(plain_guard());
    lists(&mut scene, "", &format!(r#"{{"tools":{TOOLS},"ttlMs":5000}}"#));
    assert_eq!(case(&scene.call("{}")), "confirmation-required");
    assert_eq!(scene.lists, 0);
    scene.world.advance(Duration::from_secs(5));
    assert_eq!(case(&scene.call("{}")), "confirmation-required");
    assert_eq!(scene.lists, 1);
}

#[test]
fn only_a_complete_list_counts() {
    let harmless = r#"{"tools":[{"name":"send","annotations":{"readOnlyHint":true}}],"nextCursor":"2"}"#;
    let destructive = || Scene::mute(GuardSource::default());
    // A first page, and then the second of it.
    let mut scene = destructive();
    scene.tools = r#"[{"name":"send"}]"#.to_owned();
    lists(&mut scene, "", harmless);
    lists(&mut scene, "2", r#"{"tools":[]}"#);
    assert_eq!(scene.call("{}"), Value::Null);
    assert_eq!((scene.ran.len(), scene.lists), (1, 0));
    // A first page alone, and a page of something else.
    for cursor in [None, Some("3")] {
        let mut scene = destructive();
        scene.tools = r#"[{"name":"send"}]"#.to_owned();
        lists(&mut scene, "", harmless);
        if let Some(cursor) = cursor {
            lists(&mut scene, cursor, r#"{"tools":[]}"#);
        }
        assert_eq!(case(&scene.call("{}")), "confirmation-required", "{cursor:?}");
        assert_eq!(scene.lists, 1);
    }
    // Tools that change between the question and its answer.
    let mut scene = destructive();
    scene.tools = r#"[{"name":"send"}]"#.to_owned();
    scene.world.client_sends(r#"{"jsonrpc":"2.0","id":70,"method":"tools/list"}"#);
    scene.world.upstream_sends(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    scene
        .world
        .upstream_sends(&response("70", &harmless.replace("2\"", "\"").replace(r#","nextCursor":"""#, "")));
    scene.world.client.clear();
    scene.world.upstream.clear();
    assert_eq!(case(&scene.call("{}")), "confirmation-required");
}

#[test]
fn annotations_list_as_they_guard() {
    let mut scene = Scene::mute(GuardSource::default());
    let got =
        lists(&mut scene, "", r#"{"tools":[{"name":"a"},{"name":"b","annotations":{"readOnlyHint":true}}]}"#);
    assert!(
        got.contains(r#"{"name":"a","description""#)
            && got.ends_with(r#"{"name":"b","annotations":{"readOnlyHint":true}}]}"#),
        "{got}"
    );
    let got = lists(&mut scene, "", r#"{"tools":[{"name":"a","annotations":{"readOnlyHint":true}}]}"#);
    assert!(got.contains("description"), "what was guarded once is listed so: {got}");
}
