//! What holds for any schema and any answer.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::form::testing::{any_json, schema};
use crate::form::{CompanionMarker, Order, PromptRule, format, pattern};
use crate::words::Kind;

fn profile() -> impl Strategy<Value = FormProfile> {
    const MARKERS: &[CompanionMarker] = &[
        FormProfile::CUSTOM_ANSWER,
        CompanionMarker::Meta {
            question: &["codex", "questionId"],
            when: &[(&["codex", "role"], "user_note")],
        },
        CompanionMarker::Suffix("_custom"),
    ];
    let order = prop::sample::select(vec![Order::Declared, Order::Series, Order::Sorted]);
    (order, any::<bool>(), 0..=MARKERS.len()).prop_map(|(order, adds, markers)| FormProfile {
        order,
        companion: if adds { Companion::Adds } else { Companion::Replaces },
        markers: &MARKERS[..markers],
        prompt: PromptRule::TitleAsksWhere(&["codex"]),
        ..FormProfile::acp()
    })
}

/// Answers that are often right and sometimes wrong, chosen by `seeds`.
fn answers(form: &Form, seeds: &[u16]) -> Vec<Answer> {
    let mut seeds = seeds.iter().copied().cycle();
    let mut next = move || usize::from(seeds.next().unwrap_or(0));
    let texts =
        ["", " ", "abc", " a ", "3", "2.5", "-1", "a@b.c", "2026-01-31", "https://a.b/", "x\n\"", "true"];
    let mut answers = Vec::new();
    for question in form.questions() {
        if next() % 4 == 0 {
            continue;
        }
        let mut selected: Vec<String> = Vec::new();
        match question.kind {
            Kind::Boolean => selected.push(["true", "false", "maybe"][next() % 3].to_owned()),
            _ => {
                for choice in &question.choices {
                    if next() % 3 == 0 {
                        selected.push(choice.value.clone());
                    }
                }
            }
        }
        if next() % 2 == 0 {
            selected.reverse();
        }
        if question.kind == Kind::Single && next() % 8 != 0 {
            selected.truncate(1);
        }
        answers.push(Answer {
            question_id: question.id.clone(),
            selected_options: selected,
            custom_text: texts[next() % texts.len()].to_owned(),
        });
    }
    answers
}

/// Says what is wrong with `value` at `property`, reading the schema in its own way.
fn objection(property: &Value, value: &Value) -> Option<&'static str> {
    let kind = match &property["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default(),
        kind => kind.clone(),
    };
    let consts = |listed: &Value, plain: &Value| -> Option<Vec<Value>> {
        let titled =
            listed.as_array().map(|entries| entries.iter().map(|entry| entry["const"].clone()).collect());
        titled.or_else(|| plain.as_array().cloned())
    };
    if kind == "array" {
        let items = &property["items"];
        let list = if items["anyOf"].is_array() { &items["anyOf"] } else { &items["oneOf"] };
        let allowed = consts(list, &items["enum"]).unwrap_or_default();
        // Choices that came back empty: the text goes there as it is (form.md).
        let Some(picked) = value.as_array() else { return (!value.is_string()).then_some("neither") };
        if !picked.iter().all(|pick| allowed.contains(pick)) {
            return Some("not allowed");
        }
        let positions: Vec<_> = picked.iter().map(|pick| allowed.iter().position(|a| a == pick)).collect();
        if !positions.is_sorted() {
            return Some("not in declaration order");
        }
        let least = property["minItems"].as_u64().unwrap_or(0);
        let most = property["maxItems"].as_u64().unwrap_or(u64::MAX);
        return (!(least..=most).contains(&(picked.len() as u64))).then_some("wrong count");
    }
    if let Some(allowed) = consts(&property["oneOf"], &property["enum"])
        && allowed.contains(value)
    {
        return None;
    }
    match value {
        Value::Bool(_) => (kind != "boolean").then_some("boolean"),
        Value::Number(number) => {
            let number_value = number.as_f64().unwrap_or(f64::NAN);
            let least = property["minimum"].as_f64().unwrap_or(f64::NEG_INFINITY);
            let most = property["maximum"].as_f64().unwrap_or(f64::INFINITY);
            if kind == "integer" && number_value.fract() != 0.0 || !(kind == "integer" || kind == "number") {
                return Some("number");
            }
            (!(least..=most).contains(&number_value)).then_some("range")
        }
        Value::String(text) => {
            let length = text.chars().count() as u64;
            let fits = length >= property["minLength"].as_u64().unwrap_or(0)
                && length <= property["maxLength"].as_u64().unwrap_or(u64::MAX);
            let pattern = property["pattern"].as_str().and_then(pattern::compile);
            let matches = pattern.is_none_or(|pattern| pattern.is_match(text));
            let formatted = property["format"].as_str().is_none_or(|name| format::matches(name, text));
            (kind != "string" || !fits || !matches || !formatted || text.trim() != text || text.is_empty())
                .then_some("text")
        }
        _ => Some("neither"),
    }
}

/// Submits content again, as the answers that it stands for.
fn answers_of(form: &Form, content: &Content) -> Vec<Answer> {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut answers = Vec::new();
    for (question, field) in form.questions.iter().zip(&form.fields) {
        let own = content.get(&question.id);
        let text = match &field.text {
            super::super::TextTo::Companion(key) => content.get(key),
            super::super::TextTo::Own if question.kind == Kind::Text => own,
            _ => own.filter(|_| matches!(question.kind, Kind::Number | Kind::Integer)),
        };
        let selects = matches!(question.kind, Kind::Single | Kind::Multi | Kind::Boolean);
        let selected = match own.filter(|_| selects) {
            Some(Value::Array(picks)) => picks.iter().map(shown).collect(),
            Some(pick) => vec![shown(pick)],
            None => Vec::new(),
        };
        answers.push(Answer {
            question_id: question.id.clone(),
            selected_options: selected,
            custom_text: text.map(shown).unwrap_or_default(),
        });
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn mapping_is_total_on_any_json(value in any_json(), message in ".{0,9}", profile in profile()) {
        let _ = map(&FormRequest { message: &message, schema: &value }, &profile);
        let within = json!({"properties": value});
        let _ = map(&FormRequest { message: &message, schema: &within }, &profile);
        let property = json!({"properties": {"question_0": value, "question_0_custom": {"type": "string"}}});
        let _ = map(&FormRequest { message: &message, schema: &property }, &profile);
    }

    #[test]
    fn a_mapped_form_is_well_formed(schema in schema(), profile in profile()) {
        let Ok(Mapped { form, .. }) = try_map(&schema, &profile) else { return Ok(()) };
        prop_assert!(!form.questions().is_empty());
        let mut ids = ids(&form);
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), form.questions().len());
        for question in form.questions() {
            prop_assert!(schema["properties"].get(&question.id).is_some());
            prop_assert!(!question.prompt.is_empty() || question.id.is_empty());
            let has_choices = matches!(question.kind, Kind::Single | Kind::Multi);
            prop_assert_eq!(has_choices, !question.choices.is_empty());
            prop_assert!(question.companion.is_none() || question.allows_text);
        }
        prop_assert_eq!(try_map(&schema, &profile).unwrap().form, form, "mapping is a function");
    }

    #[test]
    fn whatever_passes_satisfies_the_schema_and_is_stable(
        schema in schema(), profile in profile(), seeds in prop::collection::vec(any::<u16>(), 1..48),
    ) {
        let Ok(Mapped { form, .. }) = try_map(&schema, &profile) else { return Ok(()) };
        let mut sent = answers(&form, &seeds);
        // As a human would: what was refused is taken back, the rest is sent again.
        if let Err(errors) = form.answer(&sent, ELICITATION) {
            sent.retain(|answer| !errors.iter().any(|error| error.question_id == answer.question_id));
        }
        let Ok(content) = form.answer(&sent, ELICITATION) else { return Ok(()) };
        for (key, value) in &content {
            let property = &schema["properties"][key];
            prop_assert_eq!(objection(property, value), None, "{} = {} at {}", key, value, property);
        }
        let mut reversed = sent.clone();
        reversed.reverse();
        for answer in &mut reversed {
            answer.selected_options.reverse();
        }
        let again = form.answer(&reversed, ELICITATION);
        prop_assert_eq!(again.as_ref().map(ToText::to_string_map), Ok(content.to_string_map()), "order of answers and clicks");
        let folded = form.answer(&answers_of(&form, &content), ELICITATION);
        prop_assert_eq!(folded.as_ref(), Ok(&content), "content, answered again, is the same content");
    }

    #[test]
    fn answering_is_total(
        schema in schema(),
        noise in prop::collection::vec((any::<String>(), prop::collection::vec(any::<String>(), 0..3), any::<String>()), 0..4),
    ) {
        let Ok(Mapped { form, .. }) = try_map(&schema, &FormProfile::acp()) else { return Ok(()) };
        let ids = ids(&form);
        let noise: Vec<Answer> = noise
            .into_iter()
            .enumerate()
            .map(|(at, (id, selected_options, custom_text))| {
                let question_id = ids.get(at).map_or(id, |id| (*id).to_owned());
                Answer { question_id, selected_options, custom_text }
            })
            .collect();
        for source in Source::ALL {
            let _ = form.answer(&noise, AnswerRules::for_source(*source));
        }
    }
}

/// The text of content: equal maps in another order are another text.
trait ToText {
    fn to_string_map(&self) -> String;
}

impl ToText for Content {
    fn to_string_map(&self) -> String {
        Value::Object(self.clone()).to_string()
    }
}
