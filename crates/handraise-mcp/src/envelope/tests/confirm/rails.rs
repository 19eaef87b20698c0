//! Which rail a caller gets: every declaration, mode and era, in one table.

use super::*;
use crate::confirm::Answerers;

/// Declarations of `elicitation`, and whether they get a form.
fn declarations() -> Vec<(&'static str, Option<Value>, bool)> {
    vec![
        ("nothing", Some(json!({})), false),
        ("bare", Some(json!({"elicitation": {}})), true),
        ("form", Some(json!({"elicitation": {"form": {}}})), true),
        ("url", Some(json!({"elicitation": {"url": {}}})), false),
        ("both", Some(json!({"elicitation": {"form": {}, "url": {}}})), true),
        ("unknown", None, true),
        ("malformed null", Some(json!({"elicitation": null})), false),
        ("malformed list", Some(json!({"elicitation": []})), false),
        ("malformed form", Some(json!({"elicitation": {"form": 1}})), false),
        ("malformed capabilities", Some(json!("elicitation")), false),
    ]
}

/// Mode, lifetime and secret, and what a caller gets who gets no form.
type Setting = (Option<&'static str>, Option<&'static str>, Option<&'static str>, &'static str);

const SETTINGS: &[Setting] = &[
    (None, None, None, "token"),
    (Some("ask-user"), None, None, "token"),
    (Some(" AUTO "), None, None, "token"),
    (Some("auto"), Some("60"), Some(SECRET), "token"),
    (Some("refuse"), None, None, "MCP_CONFIRM_MODE"),
    (Some("sometimes"), None, None, "MCP_CONFIRM_MODE"),
    (None, Some("0"), None, "MCP_CONFIRM_TTL_SECONDS"),
    (None, Some("10m"), None, "MCP_CONFIRM_TTL_SECONDS"),
    (Some("refuse"), Some("x"), None, "MCP_CONFIRM_MODE"),
    (None, None, Some("too short"), "MCP_CONFIRM_SECRET"),
];

#[test]
fn s8_the_rail_follows_from_what_was_declared_and_set() {
    let mut cases = 0;
    for (name, capabilities, takes_forms) in declarations() {
        for (mode, ttl, secret, otherwise) in SETTINGS {
            for elicitation in [None, Some("off"), Some(" OFF "), Some("maybe")] {
                for era in ["push", "mrtr"] {
                    let values = Values {
                        mode: *mode,
                        ttl: *ttl,
                        elicitation,
                        secrets: Secrets { own: *secret, ..Secrets::default() },
                    };
                    let context = format!("{name} {mode:?} {ttl:?} {secret:?} {elicitation:?} {era}");
                    let is_off = elicitation.is_some_and(|value| value.trim().eq_ignore_ascii_case("off"));
                    let expected = if takes_forms && !is_off { "form" } else { *otherwise };
                    let mut scene = Scene::with(vec![plain_guard()], values);
                    let answer = if era == "push" {
                        if let Some(capabilities) = &capabilities {
                            scene.world.initialize(capabilities, "2025-11-25");
                        }
                        scene.call(r#"{"to":"a"}"#)
                    } else {
                        let capabilities = capabilities.clone();
                        modern_or_silent(&mut scene, capabilities.as_ref())
                    };
                    check(&answer, expected, era, &context);
                    assert_eq!(scene.ran, [""; 0], "{context}");
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 10 * 10 * 4 * 2);
}

/// A modern call; without capabilities where there are none.
fn modern_or_silent(scene: &mut Scene, capabilities: Option<&Value>) -> Value {
    let capabilities = capabilities
        .map(|capabilities| format!(r#","io.modelcontextprotocol/clientCapabilities":{capabilities}"#));
    scene.sends(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"send","arguments":{{"to":"a"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"{}}}}}}}"#,
        capabilities.unwrap_or_default()
    ));
    scene.got()
}

#[track_caller]
fn check(answer: &Value, expected: &str, era: &str, context: &str) {
    match expected {
        "form" => {
            let request = if era == "push" {
                assert_eq!(answer["method"], "elicitation/create", "{context}: {answer}");
                answer
            } else {
                assert_eq!(answer["result"]["resultType"], "input_required", "{context}: {answer}");
                &answer["result"]["inputRequests"]["confirmation"]
            };
            assert_eq!(request["method"], "elicitation/create");
            // A typed field without a default, and never an empty form.
            let schema = &request["params"]["requestedSchema"];
            assert_eq!(schema["properties"]["confirm"]["type"], "boolean", "{context}");
            assert_eq!(schema["properties"]["confirm"].get("default"), None);
            assert_eq!(schema["required"], json!(["confirm"]));
            assert!(!answer.to_string().contains("mcpu.token"), "{context}: no token beside a form");
        }
        "token" => assert_eq!(case(answer), "confirmation-required", "{context}"),
        variable => {
            assert_eq!(case(answer), "confirmation-unsupported", "{context}");
            let note = said(answer)["note"].as_str().unwrap().to_owned();
            assert!(note.contains(variable), "{context}: {note}");
            // Forms that are switched off are named, too.
            let is_off = context.to_lowercase().contains("off");
            assert_eq!(note.contains("MCP_CONFIRM_ELICITATION"), is_off, "{context}: {note}");
            assert!(!answer.to_string().contains("mcpu.token"), "{context}");
        }
    }
    if era == "mrtr" && expected != "form" {
        assert_eq!(answer["result"]["resultType"], "complete", "{context}");
    }
}

#[test]
fn a_session_of_before_elicitation_gets_a_token() {
    let mut scene = Scene::new(plain_guard());
    scene.world.initialize(&form(), "2025-03-26");
    assert_eq!(case(&scene.call("{}")), "confirmation-required");
}

#[test]
fn what_only_the_inbox_may_confirm_is_refused_without_one() {
    let (everybody, caller) = (Answerers::Operator, Answerers::Caller);
    for (needs_human, who) in [(true, everybody), (false, caller), (true, Answerers::NotTheCaller)] {
        for capabilities in [json!({}), json!({"elicitation": {}})] {
            let guard = GuardSource { needs_human, who, ..plain_guard() };
            let mut scene = Scene::new(guard);
            scene.world.initialize(&capabilities, "2025-11-25");
            let answer = scene.call(r#"{"to":"a"}"#);
            assert_eq!(case(&answer), "confirmation-unsupported");
            assert!(said(&answer)["note"].as_str().unwrap().contains("inbox"));
            assert_eq!(scene.records(), ["refuse not_offered system needs-inbox"]);
            scene.is_clean();
            assert_eq!(scene.ran, [""; 0]);
        }
    }
}

#[test]
fn s5_without_a_store_that_can_be_used_nothing_is_asked_and_no_token_is_given() {
    let token = {
        let mut scene = Scene::mute(plain_guard());
        said(&scene.call("{}"))["confirmToken"].as_str().unwrap().to_owned()
    };
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        let mut scene = Scene::on(World::new(remembering(Remembers::Nothing)));
        scene.world.initialize(&capabilities, "2025-11-25");
        for arguments in ["{}".to_owned(), json!({"confirmToken": token}).to_string()] {
            let answer = scene.call(&arguments);
            assert_eq!(case(&answer), "isError confirmation-rejected SPENT_STORE_UNAVAILABLE");
            assert!(said(&answer).get("confirmToken").is_none(), "{answer}");
            assert_eq!(scene.records(), ["refuse not_offered system spent-store-unavailable"]);
        }
        scene.is_clean();
        assert_eq!(scene.ran, [""; 0]);
    }
}

#[test]
fn the_strictest_table_that_names_a_tool_holds() {
    let strict = GuardSource {
        tools: vec!["s*".to_owned()],
        needs_human: true,
        action: Some("Strict".to_owned()),
        ..GuardSource::default()
    };
    let mut scene = Scene::with(vec![plain_guard(), strict], shared_secret());
    let answer = scene.call("{}");
    assert_eq!(
        (case(&answer).as_str(), &said(&answer)["action"]),
        ("confirmation-unsupported", &json!("Send e-mail"))
    );
}
