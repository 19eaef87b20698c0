//! The captured fixtures, and a model of how each version folds a response back into the tool's input.
//!
//! The model is written from the recorded behaviour alone and proven against every record before it judges us.

use std::sync::LazyLock;

use handraise_acp::elicitation::{Declined, Elicitation, read};
use handraise_acp::{AgentInfo, Quirks};
use handraise_core::form::Order;
use serde_json::{Map, Value, json};

/// A version of the bridge that was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bridge {
    /// 0.65.0: a companion's text stands instead of the selection.
    V65,
    /// 0.101.0: both count.
    V101,
}

pub(crate) const BRIDGES: [Bridge; 2] = [Bridge::V65, Bridge::V101];

/// One call of a builder.
pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) builder: String,
    pub(crate) input: Vec<Value>,
    pub(crate) output: Value,
}

impl Bridge {
    fn file(self) -> &'static Value {
        static FILES: LazyLock<[Value; 2]> = LazyLock::new(|| {
            let texts = [
                include_str!("../data/claude-agent-acp/0.65.0.json"),
                include_str!("../data/claude-agent-acp/0.101.0.json"),
            ];
            texts.map(|text| serde_json::from_str(text).unwrap())
        });
        &FILES[self as usize]
    }

    pub(crate) fn fixtures(self) -> Vec<Fixture> {
        let file = self.file();
        let fixtures = file["fixtures"].as_array().unwrap().iter().map(|fixture| Fixture {
            name: fixture["name"].as_str().unwrap().to_owned(),
            builder: fixture["builder"].as_str().unwrap().to_owned(),
            input: fixture["input"].as_array().unwrap().clone(),
            output: fixture.get("output").cloned().unwrap(),
        });
        fixtures.collect()
    }

    pub(crate) fn fixture(self, name: &str) -> Fixture {
        self.fixtures()
            .into_iter()
            .find(|fixture| fixture.name == name)
            .unwrap_or_else(|| panic!("no fixture {name}"))
    }

    /// As decided from what this version answers to `initialize`.
    pub(crate) fn quirks(self) -> Quirks {
        let file = self.file();
        let info = json!({"agentInfo": {"name": file["package"], "version": file["version"]}});
        Quirks::decide(&AgentInfo::read(&info), Order::Series)
    }

    pub(crate) fn read(self, params: &Value) -> Result<Elicitation, Declined> {
        read(params, true, &self.quirks())
    }

    /// What the bridge makes of a response to its `AskUserQuestion` form.
    pub(crate) fn fold(
        self,
        response: &Value,
        tool_input: &Value,
        questions: &[Value],
        reports: bool,
    ) -> Value {
        let mut annotations = Map::new();
        let mut answers = Map::new();
        let reports = reports && self == Self::V101;
        let text_of = |question: &Value| question["question"].as_str().unwrap().to_owned();
        match response["action"].as_str() {
            Some("accept") => {
                for (at, question) in questions.iter().enumerate() {
                    let text = text_of(question);
                    let (answer, note) = self.fold_question(at, question, &response["content"]);
                    if let Some(note) = note {
                        annotations.insert(text.clone(), json!({ "notes": note }));
                    }
                    match answer {
                        Some(answer) => drop(answers.insert(text, answer.into())),
                        None if reports => drop(annotations.insert(text, json!({"unanswered": "skipped"}))),
                        None => {}
                    }
                }
            }
            Some("decline") => {
                for question in questions.iter().filter(|_| reports) {
                    annotations.insert(text_of(question), json!({"unanswered": "dismissed"}));
                }
            }
            _ => return json!({"action": "cancel"}),
        }
        let mut input = tool_input.clone();
        input["answers"] = answers.into();
        if !annotations.is_empty() {
            input["annotations"] = annotations.into();
        }
        json!({"action": "answered", "updatedInput": input})
    }

    /// The answer to one question and the note beside it.
    fn fold_question(self, at: usize, question: &Value, content: &Value) -> (Option<String>, Option<String>) {
        let value = &content[format!("question_{at}")];
        let own =
            content[format!("question_{at}_custom")].as_str().map(str::trim).filter(|text| !text.is_empty());
        let own = own.map(str::to_owned);
        let scalar = |value: &Value| match value {
            Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        };
        let mut picks: Vec<String> = match value {
            Value::Array(items) if self == Self::V65 => {
                items.iter().filter(|item| item.is_string()).filter_map(scalar).collect()
            }
            Value::Array(items) => items.iter().filter_map(scalar).collect(),
            single => scalar(single).into_iter().collect(),
        };
        if self == Self::V65 {
            let picked = (!picks.is_empty()).then(|| picks.join(", "));
            return (own.or(picked), None);
        }
        if question["multiSelect"] == true {
            picks.extend(own);
            let quoted = picks.iter().map(|item| {
                let splits = item.contains(", ") || item.contains('"');
                if splits { Value::from(item.as_str()).to_string() } else { item.clone() }
            });
            let joined = quoted.collect::<Vec<_>>().join(", ");
            return (Some(joined).filter(|joined| !joined.is_empty()), None);
        }
        match (picks.is_empty(), own) {
            (true, own) => (own, None),
            (false, note) => (Some(picks.join(", ")), note),
        }
    }

    /// What the bridge hands an MCP server for a response.
    pub(crate) fn mcp_result(self, response: &Value) -> Value {
        match response["action"].as_str() {
            Some("accept") => {
                let passes = |value: &Value| match value {
                    _ if self == Self::V101 => true,
                    Value::Array(items) => items.iter().all(Value::is_string),
                    Value::Object(_) | Value::Null => false,
                    _ => true,
                };
                let content = response["content"].as_object().cloned().unwrap_or_default();
                let content: Map<_, _> = content.into_iter().filter(|(_, value)| passes(value)).collect();
                json!({"action": "accept", "content": content})
            }
            Some("decline") => json!({"action": "decline"}),
            _ => json!({"action": "cancel"}),
        }
    }

    /// What the bridge does after the dialog that follows a model's refusal.
    pub(crate) fn refusal_result(response: &Value) -> &'static str {
        let retries = response["action"] == "accept" && response["content"]["choice"] == "retry_fallback";
        if retries { "retry_fallback" } else { "cancelled" }
    }
}

#[test]
fn the_model_agrees_with_every_record() {
    for bridge in BRIDGES {
        let mut judged = 0;
        for Fixture { name, builder, input, output } in bridge.fixtures() {
            let modelled = match builder.as_str() {
                "applyAskElicitationResponse" => {
                    let [response, tool_input, questions, options @ ..] = input.as_slice() else {
                        panic!("{name}")
                    };
                    let reports = options.first().is_some_and(|options| options["reportUnanswered"] == true);
                    bridge.fold(response, tool_input, questions.as_array().unwrap(), reports)
                }
                "createElicitationResponseToElicitResult" => bridge.mcp_result(&input[0]),
                "refusalFallbackResultFromResponse" => Bridge::refusal_result(&input[0]).into(),
                _ => continue,
            };
            assert_eq!(modelled, output, "{bridge:?} {name}");
            judged += 1;
        }
        assert_eq!(judged, 35 + 8 + 6, "{bridge:?}");
    }
}
