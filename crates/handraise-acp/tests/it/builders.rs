//! Every captured create request maps as its input says.

use handraise_acp::elicitation::Declined;
use handraise_core::form::Refusal;
use handraise_core::words::{Companion, Kind};
use handraise_core::{Question, ask::Constraints};
use serde_json::{Value, json};

use crate::bridge::{BRIDGES, Bridge, Fixture};

/// Captured outputs that are no create request, by builder: judged elsewhere or not ours to read.
const NO_REQUESTS: [&str; 6] = [
    "extractAskUserQuestions",
    "applyAskElicitationResponse",
    "createElicitationResponseToElicitResult",
    "extractRefusalFallbackPrompt",
    "refusalFallbackResultFromResponse",
    "REFUSAL_FALLBACK_DIALOG_KIND",
];

#[test]
fn ac04_to_ac12_every_create_request_maps_as_expected() {
    for bridge in BRIDGES {
        let fixtures = bridge.fixtures();
        assert_eq!(fixtures.len(), 90, "{bridge:?}");
        let mut requests = 0;
        for fixture in &fixtures {
            match fixture.builder.as_str() {
                "askUserQuestionsToCreateRequest" => check_questions(bridge, fixture),
                "mcpElicitationToCreateRequest" => check_passthrough(bridge, fixture),
                "refusalFallbackToCreateRequest" => check_refusal(bridge, fixture),
                other => {
                    assert!(NO_REQUESTS.contains(&other), "{other}");
                    continue;
                }
            }
            requests += 1;
        }
        assert_eq!(requests, 12 + 11 + 2, "{bridge:?}");
    }
}

/// The questions of the tool call are the questions of the form.
fn check_questions(bridge: Bridge, Fixture { name, input, output, .. }: &Fixture) {
    let asked = input[0].as_array().unwrap();
    let read = bridge.read(output);
    if asked.is_empty() {
        assert_eq!(read, Err(Declined::Form(Refusal::NoQuestions)), "{name}");
        return;
    }
    let elicitation = read.unwrap();
    assert!(elicitation.ignored.is_empty(), "{name}");
    assert_eq!(elicitation.tool_call_id.as_deref(), input.get(2).and_then(Value::as_str), "{name}");
    let questions = elicitation.form.questions();
    assert_eq!(questions.len(), asked.len(), "{bridge:?} {name}: companions are no questions");
    let companion = if bridge == Bridge::V65 { Companion::Replaces } else { Companion::Adds };
    for (at, (question, asked)) in questions.iter().zip(asked).enumerate() {
        let kind = if asked["multiSelect"] == true { Kind::Multi } else { Kind::Single };
        assert_eq!((question.id.clone(), question.kind), (format!("question_{at}"), kind), "{name}");
        assert_eq!(question.prompt, asked["question"], "{name}");
        assert_eq!(question.title.as_deref(), asked["header"].as_str(), "{name}");
        assert_eq!((question.companion, question.allows_text), (Some(companion), true), "{bridge:?} {name}");
        assert!(!question.required && !question.secret && question.default.is_none(), "{name}");
        let options = asked["options"].as_array().unwrap();
        assert_eq!(question.choices.len(), options.len(), "{name}");
        for (choice, option) in question.choices.iter().zip(options) {
            let said = |key: &str| option[key].as_str().filter(|text| !text.is_empty());
            assert_eq!(
                (choice.value.as_str(), choice.label.as_str()),
                (said("label").unwrap(), choice.value.as_str())
            );
            assert_eq!(choice.description.as_deref(), said("description"), "{name}");
            assert_eq!(choice.preview.as_deref(), said("preview"), "{name}");
        }
    }
}

fn check_passthrough(bridge: Bridge, Fixture { name, output, .. }: &Fixture) {
    let declined = |reason: Declined| assert_eq!(bridge.read(output), Err(reason), "{name}");
    match name.as_str() {
        "mcp/arbitrary-key" => {
            let elicitation = bridge.read(output).unwrap();
            let [question] = elicitation.form.questions() else { panic!("one question") };
            assert_eq!((question.id.as_str(), question.kind), ("apiKey", Kind::Text), "AC-04a");
            assert_eq!((question.prompt.as_str(), question.companion), ("Need key", None));
            assert!(question.secret && question.choices.is_empty());
        }
        "mcp/mode-form-explicit" | "mcp/type-forced" => {
            let elicitation = bridge.read(output).unwrap();
            assert_eq!(elicitation.form.questions()[0].id, "a");
        }
        "mcp/all-kinds" => check_all_kinds(bridge.read(output).unwrap().form.questions()),
        "mcp/no-properties" | "mcp/schema-missing" | "mcp/schema-null" | "mcp/schema-string" => {
            declined(Declined::Form(Refusal::NoQuestions));
        }
        "mcp/url" | "mcp/url-no-id" => declined(Declined::UrlMode),
        "mcp/url-no-url" => assert_eq!(output, &Value::Null, "such a request never reaches us"),
        other => panic!("unexpected fixture {other}"),
    }
}

fn check_all_kinds(questions: &[Question]) {
    let shapes: Vec<(&str, Kind, Value)> = questions
        .iter()
        .map(|question| (question.id.as_str(), question.kind, question.default.clone().unwrap_or_default()))
        .collect();
    let none = Value::Null;
    assert_eq!(
        shapes,
        [
            ("42", Kind::Text, none.clone()),
            ("zeta_first", Kind::Text, json!("bob")),
            ("email", Kind::Text, none.clone()),
            ("site", Kind::Text, none.clone()),
            ("day", Kind::Text, none.clone()),
            ("at", Kind::Text, none.clone()),
            ("code", Kind::Text, none.clone()),
            ("ratio", Kind::Number, json!(0.25)),
            ("count", Kind::Integer, json!(3)),
            ("ok", Kind::Boolean, json!(true)),
            ("plain_enum", Kind::Single, json!("a")),
            ("legacy_enum", Kind::Single, none.clone()),
            ("titled_enum", Kind::Single, json!("y")),
            ("multi_plain", Kind::Multi, json!(["q"])),
            ("multi_titled", Kind::Multi, none.clone()),
            ("step1_field2", Kind::Text, none.clone()),
            ("100_items", Kind::Integer, none),
        ],
        "in the order of the text, without `nested`"
    );
    let required: Vec<_> = questions.iter().filter(|q| q.required).map(|q| q.id.as_str()).collect();
    assert_eq!(required, ["email", "ok"]);
    let constraints = |id: &str| questions.iter().find(|q| q.id == id).unwrap().constraints.clone();
    let of_name = Constraints { min_length: Some(1), max_length: Some(40), ..Constraints::default() };
    assert_eq!(constraints("zeta_first"), of_name);
    assert_eq!(constraints("at").format.as_deref(), Some("date-time"));
    assert_eq!(constraints("code").pattern.as_deref(), Some("^[a-z]+$"));
    assert_eq!(constraints("ratio").maximum, serde_json::Number::from_f64(1.5));
    assert_eq!(
        (constraints("multi_plain").min_items, constraints("multi_plain").max_items),
        (Some(1), Some(2))
    );
    let legacy = questions.iter().find(|q| q.id == "legacy_enum").unwrap();
    assert_eq!((legacy.choices[1].value.as_str(), legacy.choices[1].label.as_str()), ("g", "Green"));
}

/// AC-12c.
fn check_refusal(bridge: Bridge, Fixture { name, output, .. }: &Fixture) {
    let elicitation = bridge.read(output).unwrap();
    let [question] = elicitation.form.questions() else { panic!("one question") };
    assert_eq!(
        (question.id.as_str(), question.kind, question.companion),
        ("choice", Kind::Single, None),
        "{name}"
    );
    assert_eq!(question.prompt, elicitation.message, "{name}");
    let values: Vec<_> = question.choices.iter().map(|choice| choice.value.as_str()).collect();
    assert_eq!(values, ["retry_fallback", "cancelled"], "{name}");
}

#[test]
fn the_extension_marker_is_read_by_an_agent_too_old_to_need_the_suffix() {
    // 0.101.0's request for a client with the extension, from an agent whose version cannot be read.
    let fixture = Bridge::V101.fixture("ask/two/airClient=true");
    let mut request = fixture.output;
    for (key, property) in request["requestedSchema"]["properties"].as_object_mut().unwrap() {
        if let Some(meta) = property.get_mut("_meta").and_then(Value::as_object_mut) {
            assert!(meta.remove("_askUserQuestionCustomAnswer").is_some(), "{key}");
        }
    }
    assert_eq!(Bridge::V65.read(&request).unwrap().form.questions().len(), 2);
}

#[test]
fn ac11_the_suffix_is_read_for_the_new_bridge_only() {
    let request = Bridge::V101.fixture("ask/two").output;
    assert_eq!(Bridge::V101.read(&request).unwrap().form.questions().len(), 2);
    assert_eq!(Bridge::V65.read(&request).unwrap().form.questions().len(), 4);
}
