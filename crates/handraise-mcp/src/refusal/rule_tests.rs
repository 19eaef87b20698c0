//! Rules: how a table becomes one, and which are in force.

use serde_json::{Value, json};

use super::testing::source;
use super::*;

const CODE: &str = PRESET;

/// A result as `shapeToolCallError` builds it: the payload as compact JSON in the first content block.
fn result_of(payload: &Value) -> String {
    json!({"content": [{"type": "text", "text": payload.to_string()}], "isError": true}).to_string()
}

fn devices() -> Value {
    json!([{"deviceId": "emulator-5554", "platform": "android"}, {"deviceId": "A1B2", "platform": "ios"}])
}

#[test]
fn rules_are_added_replaced_and_disabled_by_name() {
    let named = |name: &str, code: &str, argument: &str| {
        let source =
            RuleSource { name: name.into(), code: code.into(), argument: argument.into(), ..source() };
        Entry::Rule(Box::new(Rule::new(source).unwrap()))
    };
    let refusal = |code: &str| result_of(&json!({"code": code, "devices": devices()}));
    let rules = Rules::configured([named("account", "ambiguous_account", "accountId")]);
    let read = |rules: &Rules, code: &str| {
        rules.read(&refusal(code), |_| false).map(|refusal| refusal.rule().argument().to_owned())
    };
    assert_eq!(read(&rules, "ambiguous_account").as_deref(), Some("accountId"));
    assert_eq!(read(&rules, CODE).as_deref(), Some("deviceId"));
    assert_eq!(read(&rules, "other"), None);

    let rules = Rules::configured([named(PRESET, CODE, "device")]);
    assert_eq!(read(&rules, CODE).as_deref(), Some("device"));
    assert_eq!(rules.iter().count(), 1);

    let rules = Rules::configured([Entry::Disabled(PRESET.into())]);
    assert!(rules.is_empty());
    assert!(!rules.may_match(refusal(CODE).as_bytes()));
    assert_eq!(read(&rules, CODE), None);

    let rules = Rules::configured([Entry::Disabled(PRESET.into()), named(PRESET, CODE, "device")]);
    assert_eq!(read(&rules, CODE).as_deref(), Some("device"));
    assert!(rules.named(PRESET).is_some());
}

#[test]
fn a_rule_may_point_anywhere() {
    let rule = Rule::new(RuleSource {
        name: "capacity".into(),
        code: "capacity/exhausted".into(),
        code_at: vec!["/problems/0/type".into()],
        candidates_at: vec!["/a~1b".into()],
        value: String::new(),
        title: "{{{name}}}".into(),
        argument: "slot".into(),
        message: "Which {argument} for {tool}?".into(),
        candidates_tool: None,
    });
    let rules = Rules::configured([Entry::Rule(Box::new(rule.unwrap()))]);
    let text = json!({"problems": [{"type": "capacity/exhausted"}], "a/b": ["one", "two", 3]}).to_string();
    let php = json!({"content": [{"type": "text", "text": text.replace('/', "\\/")}]}).to_string();
    let ambiguity = rules.read(&php, |_| false).and_then(Refusal::ambiguity).unwrap();
    let read: Vec<_> = ambiguity.candidates.iter().map(|c| (c.value.as_str(), c.title.as_str())).collect();
    assert_eq!(read, [("one", "one"), ("two", "two")]);
    assert_eq!(ambiguity.message("boot"), "Which slot for boot?");
}

#[test]
fn the_preset_is_the_table_of_the_documentation() {
    let (preset, table) = (Rule::ambiguous_device_target(), Rule::new(source()).unwrap());
    assert_eq!(preset.name(), table.name());
    assert_eq!(preset.code(), table.code());
    assert_eq!(preset.code_at, table.code_at);
    assert_eq!(preset.candidates_at, table.candidates_at);
    assert_eq!(preset.value, table.value);
    assert_eq!(preset.argument(), table.argument());
    let filling = |member: &str| Some(member.to_uppercase());
    assert_eq!(preset.title.fill(filling), table.title.fill(filling));
    assert_eq!(preset.message_for("tapOn"), "Which device should tapOn use?");
    assert_eq!(table.message_for("tapOn"), "Which device should tapOn use?");
}

#[test]
fn a_rule_that_cannot_be_used_is_named() {
    let complaint = |change: fn(&mut RuleSource)| {
        let mut source = source();
        change(&mut source);
        Rule::new(source).unwrap_err().to_string()
    };
    let rule = "refusal \"ambiguous_device_target\": ";
    for (complaint, says) in [
        (complaint(|s| s.code.clear()), "code has 0 bytes; it takes 1 to 128"),
        (complaint(|s| s.argument = "a".repeat(129)), "argument has 129 bytes; it takes 1 to 128"),
        (complaint(|s| s.code_at.clear()), "code_at has 0 paths; it takes 1 to 16"),
        (
            complaint(|s| s.candidates_at = vec!["/a".into(); 17]),
            "candidates_at has 17 paths; it takes 1 to 16",
        ),
        (
            complaint(|s| s.value = "deviceId".into()),
            "value: \"deviceId\" is no JSON pointer: write it as \"/member\" or \"/member/inner\"",
        ),
        (
            complaint(|s| s.title = "{deviceId".into()),
            "title: \"{deviceId\" has a brace without its counterpart: a brace itself is written twice",
        ),
        (complaint(|s| s.message = "{device}?".into()), "message: {device} is nothing that can be filled in"),
        (
            complaint(|s| s.candidates_tool = Some(("l".into(), Vec::new()))),
            "candidates_tool.candidates_at has 0 paths; it takes 1 to 16",
        ),
    ] {
        assert_eq!(complaint, format!("{rule}{says}"));
    }
    assert_eq!(complaint(|s| s.name.clear()), "refusal \"\": name has 0 bytes; it takes 1 to 128");
}
