//! The dialog after a refusal, and forms of MCP servers passed through: what comes out at the other end.

use handraise_acp::elicitation::{accept, cancel, decline};
use handraise_core::Answer;
use handraise_core::form::AnswerRules;
use handraise_core::words::{Kind, Source};
use serde_json::{Value, json};

use crate::bridge::{BRIDGES, Bridge};

fn pick(question: &str, value: &str) -> Answer {
    Answer { question_id: question.into(), selected_options: vec![value.into()], ..Answer::default() }
}

const RULES: AnswerRules = AnswerRules::for_source(Source::Elicitation);

#[test]
fn ac12c_the_refusal_dialog_retries_only_when_told_to() {
    for bridge in BRIDGES {
        for name in ["refusal/full", "refusal/no-category-no-guidance"] {
            let form = bridge.read(&bridge.fixture(name).output).unwrap().form;
            let result =
                |answers: &[Answer]| Bridge::refusal_result(&accept(form.answer(answers, RULES).unwrap()));
            let retry = accept(form.answer(&[pick("choice", "retry_fallback")], RULES).unwrap());
            assert_eq!(retry, json!({"action": "accept", "content": {"choice": "retry_fallback"}}));
            assert_eq!(result(&[pick("choice", "retry_fallback")]), "retry_fallback");
            assert_eq!(result(&[pick("choice", "cancelled")]), "cancelled");
            assert_eq!(result(&[]), "cancelled");
            assert!(form.answer(&[pick("choice", "Retry with Opus")], RULES).is_err(), "a label is no value");
        }
        assert_eq!(
            (Bridge::refusal_result(&decline()), Bridge::refusal_result(&cancel())),
            ("cancelled", "cancelled")
        );
    }
}

#[test]
fn ac11a_ac56_an_mcp_servers_form_gets_what_was_typed() {
    for bridge in BRIDGES {
        let form = bridge.read(&bridge.fixture("mcp/arbitrary-key").output).unwrap().form;
        let typed = Answer { question_id: "apiKey".into(), custom_text: " T ".into(), ..Answer::default() };
        let response = accept(form.answer(&[typed], RULES).unwrap());
        assert_eq!(response, json!({"action": "accept", "content": {"apiKey": "T"}}));
        assert_eq!(bridge.mcp_result(&response), response);
    }
}

#[test]
fn every_kind_arrives_at_the_mcp_server_as_it_was_answered() {
    for bridge in BRIDGES {
        let form = bridge.read(&bridge.fixture("mcp/all-kinds").output).unwrap().form;
        let typed = |id: &str| match id {
            "email" => "a@b.example",
            "site" => "https://a.example/",
            "day" => "2026-11-29",
            "at" => "2026-11-29T12:00:00Z",
            "ratio" => "1.5",
            "count" | "100_items" => "7",
            _ => "abc",
        };
        let answers: Vec<Answer> = form
            .questions()
            .iter()
            .map(|question| match question.kind {
                Kind::Boolean => pick(&question.id, "false"),
                Kind::Single | Kind::Multi => pick(&question.id, &question.choices[0].value),
                Kind::Text | Kind::Number | Kind::Integer => Answer {
                    question_id: question.id.clone(),
                    custom_text: typed(&question.id).to_owned(),
                    ..Answer::default()
                },
            })
            .collect();
        let response = accept(form.answer(&answers, RULES).unwrap());
        let content = response["content"].as_object().unwrap();
        assert_eq!(content.len(), 17);
        assert_eq!(
            (&content["ok"], &content["count"], &content["ratio"]),
            (&json!(false), &json!(7), &json!(1.5))
        );
        assert_eq!(content["multi_plain"], json!(["p"]));
        assert_eq!(bridge.mcp_result(&response), response, "no version drops a value of ours");
        assert!(content.values().all(|value| !value.is_null() && value != &Value::from("")));
    }
}
