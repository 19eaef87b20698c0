//! An ambiguity as a question to an MCP client, and the client's answer.
//!
//! The question is a form with one field: a single select, named after the argument that the choice fills.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::pointer::{self, Unclear, sole};
use crate::refusal::{Ambiguity, Candidate};

/// The first protocol version with titled choices and elicitation modes.
const FIRST_TITLED: &str = "2025-11-25";

/// How a protocol version spells a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormDialect {
    /// 2025-06-18: `enum` with `enumNames`, and no `mode`.
    EnumNames,
    /// 2025-11-25 and later: `oneOf` with titles, and `mode: "form"`.
    OneOf,
}

impl FormDialect {
    /// The spelling of a protocol version. Versions compare as text.
    pub fn of_version(version: &str) -> Self {
        if version < FIRST_TITLED { Self::EnumNames } else { Self::OneOf }
    }
}

/// The `params` of an `elicitation/create` request, as compact JSON.
pub fn elicitation_params(ambiguity: &Ambiguity, tool: &str, dialect: FormDialect) -> String {
    params(ambiguity, tool, dialect).to_string()
}

/// The `inputRequests` of an `input_required` result, as compact JSON: the question under its [`response_key`].
pub fn input_requests(ambiguity: &Ambiguity, tool: &str) -> String {
    let request = json!({
        "method": "elicitation/create",
        "params": params(ambiguity, tool, FormDialect::OneOf),
    });
    let key = response_key(ambiguity.rule.argument());
    json!({ key: request }).to_string()
}

/// The schema of the question alone, as compact JSON.
pub fn requested_schema(ambiguity: &Ambiguity) -> String {
    schema(ambiguity, FormDialect::OneOf).to_string()
}

/// The key of a question in `inputRequests`, and of its answer in `inputResponses`: the argument without a trailing `Id`,
/// and `Choice`. `deviceId` is asked for under `deviceChoice`.
pub fn response_key(argument: &str) -> String {
    let stem = ["Id", "_id"].iter().find_map(|suffix| argument.strip_suffix(suffix));
    format!("{}Choice", stem.filter(|stem| !stem.is_empty()).unwrap_or(argument))
}

fn schema(ambiguity: &Ambiguity, dialect: FormDialect) -> Value {
    let argument = ambiguity.rule.argument();
    let field = match dialect {
        FormDialect::EnumNames => {
            let column =
                |of: fn(&Candidate) -> &String| ambiguity.candidates.iter().map(of).collect::<Vec<_>>();
            json!({
                "type": "string",
                "enum": column(|candidate| &candidate.value),
                "enumNames": column(|candidate| &candidate.title),
            })
        }
        FormDialect::OneOf => {
            let choice = |candidate: &Candidate| json!({"const": candidate.value, "title": candidate.title});
            let choices: Vec<Value> = ambiguity.candidates.iter().map(choice).collect();
            json!({"type": "string", "oneOf": choices})
        }
    };
    json!({"type": "object", "properties": {argument: field}, "required": [argument]})
}

fn params(ambiguity: &Ambiguity, tool: &str, dialect: FormDialect) -> Value {
    let (message, schema) = (ambiguity.message(tool), schema(ambiguity, dialect));
    match dialect {
        FormDialect::EnumNames => json!({"message": message, "requestedSchema": schema}),
        FormDialect::OneOf => json!({"mode": "form", "message": message, "requestedSchema": schema}),
    }
}

/// What a client answered.
#[must_use = "an answer decides whether the call runs again"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The value of an offered candidate.
    Accept(Chosen),
    /// The client reported a decline.
    Decline,
    /// The client reported that the question was put away.
    Cancel,
    /// Nothing that can be used.
    Invalid(InvalidAnswer),
}

/// The value of an offered candidate.
#[derive(Clone, PartialEq, Eq)]
pub struct Chosen(String);

impl Chosen {
    /// The value, for the call's argument.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Answers stay out of logs.
impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chosen(•)")
    }
}

/// Why an answer cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidAnswer {
    /// No answer to this question.
    Missing,
    /// Not shaped like an answer.
    Malformed,
    /// An acceptance that names none of the candidates.
    NotOffered,
}

impl InvalidAnswer {
    /// The reason's one spelling, in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "answer-missing",
            Self::Malformed => "answer-malformed",
            Self::NotOffered => "choice-not-offered",
        }
    }
}

impl Answer {
    /// Reads the result of an `elicitation/create` request (or one value of `inputResponses`) against what was offered.
    ///
    /// Strict: duplicate members, another action's spelling, a value of another type or with other characters than an
    /// offered one are no acceptance. Members beside the known ones are ignored, as MCP allows them.
    pub fn read<'a>(result: &str, argument: &str, offered: impl IntoIterator<Item = &'a str>) -> Self {
        let Ok(response) = serde_json::from_str::<&RawValue>(result) else {
            return Self::Invalid(InvalidAnswer::Malformed);
        };
        let (Ok(Some(action)), Ok(content)) = (sole(response, "action"), sole(response, "content")) else {
            return Self::Invalid(InvalidAnswer::Malformed);
        };
        match pointer::string(action).as_deref() {
            Some("accept") => chosen(content, argument, offered),
            Some("decline") => Self::Decline,
            Some("cancel") => Self::Cancel,
            _ => Self::Invalid(InvalidAnswer::Malformed),
        }
    }

    /// Reads the content of an answer that was accepted against what was offered.
    pub fn of_content<'a>(content: &str, argument: &str, offered: impl IntoIterator<Item = &'a str>) -> Self {
        match serde_json::from_str::<&RawValue>(content) {
            Ok(content) => chosen(Some(content), argument, offered),
            Err(_) => Self::Invalid(InvalidAnswer::Malformed),
        }
    }

    /// Reads a retry's `inputResponses` (absent, or its JSON) against what was offered for the argument.
    pub fn read_responses<'a>(
        responses: Option<&str>,
        argument: &str,
        offered: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let Some(responses) = responses else { return Self::Invalid(InvalidAnswer::Missing) };
        let Ok(responses) = serde_json::from_str::<&RawValue>(responses) else {
            return Self::Invalid(InvalidAnswer::Malformed);
        };
        match sole(responses, &response_key(argument)) {
            Ok(Some(response)) => Self::read(response.get(), argument, offered),
            Ok(None) => Self::Invalid(InvalidAnswer::Missing),
            Err(Unclear) => Self::Invalid(InvalidAnswer::Malformed),
        }
    }
}

fn chosen<'a>(
    content: Option<&RawValue>,
    argument: &str,
    offered: impl IntoIterator<Item = &'a str>,
) -> Answer {
    let Some(content) = content.filter(|content| content.get().starts_with('{')) else {
        return Answer::Invalid(InvalidAnswer::Malformed);
    };
    let value = match sole(content, argument) {
        Ok(Some(value)) => value,
        Ok(None) => return Answer::Invalid(InvalidAnswer::Missing),
        Err(Unclear) => return Answer::Invalid(InvalidAnswer::Malformed),
    };
    let Some(value) = pointer::string(value) else { return Answer::Invalid(InvalidAnswer::Malformed) };
    if offered.into_iter().any(|offered| offered == value) {
        Answer::Accept(Chosen(value))
    } else {
        Answer::Invalid(InvalidAnswer::NotOffered)
    }
}

#[cfg(test)]
mod tests;
