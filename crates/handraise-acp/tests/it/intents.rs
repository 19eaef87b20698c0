//! What a human meant is what the agent is told, per version of the bridge.

use handraise_acp::elicitation::{accept, cancel, decline};
use handraise_core::Answer;
use handraise_core::form::{AnswerRules, Form};
use handraise_core::words::Source;
use serde_json::{Value, json};

use crate::bridge::{BRIDGES, Bridge};

/// What a human does with one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent {
    /// Leaves it.
    Nothing,
    /// Picks the second choice.
    Pick,
    /// Clicks the last choice, then the first, where several are taken.
    Picks,
    /// Writes these words.
    Words(&'static str),
    /// Picks the first choice and writes these words.
    PickAndWords(&'static str),
}

const INTENTS: [Intent; 8] = [
    Intent::Nothing,
    Intent::Pick,
    Intent::Picks,
    Intent::Words("  CockroachDB  "),
    Intent::Words("one, two and \"three\""),
    Intent::Words(" \t\n"),
    Intent::PickAndWords(" but version 16 "),
    Intent::PickAndWords("one, two"),
];

/// Requests whose questions have distinct texts, as answers are keyed by them.
const REQUESTS: [&str; 9] = [
    "ask/single",
    "ask/two",
    "ask/multi1",
    "ask/eleven",
    "ask/noheader",
    "ask/commaQ",
    "ask/markdownPreview",
    "ask/single/airClient=true",
    "ask/two/airClient=true",
];

fn picks(question: &Value, intent: Intent) -> Vec<String> {
    let labels: Vec<String> = question["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["label"].as_str().unwrap().to_owned())
        .collect();
    let last = labels.len() - 1;
    match intent {
        Intent::Nothing | Intent::Words(_) => vec![],
        Intent::Pick => vec![labels[1].clone()],
        Intent::Picks if question["multiSelect"] == true => vec![labels[last].clone(), labels[0].clone()],
        Intent::Picks => vec![labels[last].clone()],
        Intent::PickAndWords(_) => vec![labels[0].clone()],
    }
}

fn words(intent: Intent) -> &'static str {
    match intent {
        Intent::Words(words) | Intent::PickAndWords(words) => words,
        _ => "",
    }
}

fn submit(form: &Form, questions: &[Value], intents: &[Intent]) -> Value {
    let answers: Vec<Answer> = questions
        .iter()
        .zip(intents)
        .enumerate()
        .map(|(at, (question, intent))| Answer {
            question_id: format!("question_{at}"),
            selected_options: picks(question, *intent),
            custom_text: words(*intent).to_owned(),
        })
        .collect();
    accept(form.answer(&answers, AnswerRules::for_source(Source::Elicitation)).unwrap())
}

/// Reads a folded answer as the tool does: its items, and the note beside it.
fn heard(bridge: Bridge, folded: &Value, question: &Value) -> (Vec<String>, Option<String>) {
    let text = question["question"].as_str().unwrap();
    let input = &folded["updatedInput"];
    let note = input["annotations"][text]["notes"].as_str().map(str::to_owned);
    let Some(answer) = input["answers"][text].as_str() else { return (vec![], note) };
    if question["multiSelect"] != true || bridge == Bridge::V65 {
        return (vec![answer.to_owned()], note);
    }
    let mut items = Vec::new();
    let mut rest = answer;
    while !rest.is_empty() {
        let mut quoted = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let item = if rest.starts_with('"') {
            quoted.next().unwrap().unwrap()
        } else {
            rest.split(", ").next().unwrap().to_owned()
        };
        let length = if rest.starts_with('"') { quoted.byte_offset() } else { item.len() };
        rest = &rest[length..];
        rest = rest.strip_prefix(", ").unwrap_or(rest);
        items.push(item);
    }
    (items, note)
}

/// What should be heard.
fn meant(bridge: Bridge, question: &Value, intent: Intent) -> (Vec<String>, Option<String>) {
    let multi = question["multiSelect"] == true;
    let own = Some(words(intent).trim().to_owned()).filter(|text| !text.is_empty());
    let mut picked = picks(question, intent);
    // Declaration order, whatever the click order (AC-55).
    if intent == Intent::Picks && multi {
        picked.reverse();
    }
    match (bridge, own) {
        (Bridge::V65, Some(own)) => (vec![own], None),
        (Bridge::V65, None) if picked.is_empty() => (vec![], None),
        (Bridge::V65, None) => (vec![picked.join(", ")], None),
        (Bridge::V101, own) if multi => {
            picked.extend(own);
            (picked, None)
        }
        (Bridge::V101, own) if picked.is_empty() => (own.into_iter().collect(), None),
        (Bridge::V101, own) => (picked, own),
    }
}

#[test]
fn ac10_to_ac12j_and_ac55_what_was_meant_is_what_is_heard() {
    for bridge in BRIDGES {
        for name in REQUESTS {
            let fixture = bridge.fixture(name);
            let questions = fixture.input[0].as_array().unwrap();
            let form = bridge.read(&fixture.output).unwrap().form;
            for first in INTENTS {
                for second in INTENTS {
                    let intents: Vec<_> = [first, second].into_iter().cycle().take(questions.len()).collect();
                    let response = submit(&form, questions, &intents);
                    let folded = bridge.fold(&response, &json!({ "questions": questions }), questions, false);
                    assert_eq!(folded["action"], "answered");
                    for (question, intent) in questions.iter().zip(&intents) {
                        let heard = heard(bridge, &folded, question);
                        assert_eq!(
                            heard,
                            meant(bridge, question, *intent),
                            "{bridge:?} {name} {intent:?}: {response}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn ac12i_a_pick_beside_words_is_lost_by_no_version_that_keeps_it() {
    let content = |bridge: Bridge| {
        let fixture = bridge.fixture("ask/single");
        let form = bridge.read(&fixture.output).unwrap().form;
        submit(&form, fixture.input[0].as_array().unwrap(), &[Intent::PickAndWords(" v16 ")])
    };
    let replaced = json!({"action": "accept", "content": {"question_0_custom": "v16"}});
    assert_eq!(content(Bridge::V65), replaced);
    let both = json!({"action": "accept", "content": {"question_0": "Postgres", "question_0_custom": "v16"}});
    assert_eq!(content(Bridge::V101), both);
}

#[test]
fn ac12b_ac14_an_empty_submission_and_a_skip_sound_alike_and_a_cancel_does_not() {
    for bridge in BRIDGES {
        let fixture = bridge.fixture("ask/two");
        let questions = fixture.input[0].as_array().unwrap();
        let form = bridge.read(&fixture.output).unwrap().form;
        let empty = submit(&form, questions, &[Intent::Nothing, Intent::Nothing]);
        assert_eq!(empty, json!({"action": "accept", "content": {}}));
        let fold = |response: &Value| bridge.fold(response, &json!({}), questions, false);
        assert_eq!(fold(&empty), fold(&decline()), "{bridge:?}");
        assert_eq!(fold(&cancel()), json!({"action": "cancel"}), "{bridge:?}");
    }
}

#[test]
fn ac12d_eleven_questions_come_in_one_order_a_hundred_times_even_from_a_sorting_sender() {
    let expected: Vec<String> = (0..11).map(|at| format!("question_{at}")).collect();
    for bridge in BRIDGES {
        let mut request = bridge.fixture("ask/eleven").output;
        for sorted in [false, true] {
            if sorted {
                request["requestedSchema"]["properties"].as_object_mut().unwrap().sort_keys();
            }
            for _ in 0..100 {
                let form = bridge.read(&request).unwrap().form;
                let order: Vec<&str> = form.questions().iter().map(|question| question.id.as_str()).collect();
                assert_eq!(order, expected, "{bridge:?}");
            }
        }
    }
}

#[test]
fn ac12f_equal_requests_are_equal_forms_and_stay_two() {
    let fixture = Bridge::V101.fixture("ask/dupText");
    let read = || Bridge::V101.read(&fixture.output).unwrap();
    assert_eq!(read(), read(), "nothing in here tells them apart, so nothing in here may merge them");
}
