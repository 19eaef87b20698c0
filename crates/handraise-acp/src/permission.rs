//! `session/request_permission`: one question with one choice per option, and the outcome for every end.

use std::collections::HashMap;

use handraise_core::Choice;
use handraise_core::form::{Content, Form, PERMISSION, Refusal};
use serde_json::{Map, Value, json};

use crate::read::{cut, id, words};

/// The method that asks.
pub const METHOD: &str = "session/request_permission";

/// The most options of one request.
const MAX_OPTIONS: usize = 64;
/// The most bytes of an option's name and of a tool call's title.
const MAX_NAME_BYTES: usize = 1024;
/// The most bytes of everything that is shown about the tool call.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;

/// A request that can be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Permission {
    /// The agent's session, as the agent calls it.
    pub session_id: String,
    /// The tool call it is about.
    pub tool_call_id: Option<String>,
    /// What the tool call is called, and what it would do as far as the agent says.
    pub message: String,
    /// The one question, `permission`.
    pub form: Form,
    /// Values of the options that hold for this one time: only those may be picked in a batch (S44).
    pub single_use: Vec<String>,
    /// What is sent at each end.
    pub outcomes: Outcomes,
}

/// What is sent at each end of a permission request. Decided by the options' kinds, never by their position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcomes {
    reject_once: Option<String>,
}

/// Why a request cannot be asked. It is answered with [`Outcomes::skipped`] of [`outcomes_of`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unaskable {
    /// It is no permission request at all.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
    /// More options than a question takes.
    #[error("it has {found} options; the most is {MAX_OPTIONS}")]
    TooManyOptions {
        /// How many it has.
        found: usize,
    },
    /// No option can be picked.
    #[error("{0}")]
    Form(#[from] Refusal),
}

impl Unaskable {
    /// A short word for counters and records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::TooManyOptions { .. } => "too_many_options",
            Self::Form(refusal) => refusal.code(),
        }
    }
}

/// Reads the parameters of a `session/request_permission`.
///
/// # Errors
/// When nothing can be asked; the reason is for the log.
pub fn read(params: &Value) -> Result<Permission, Unaskable> {
    let params = params.as_object().ok_or(Unaskable::Malformed("its parameters are no object"))?;
    let session_id = id(params, "sessionId").ok_or(Unaskable::Malformed("its sessionId is no id"))?;
    let options =
        params.get("options").and_then(Value::as_array).ok_or(Unaskable::Malformed("it has no options"))?;
    if options.len() > MAX_OPTIONS {
        return Err(Unaskable::TooManyOptions { found: options.len() });
    }
    let options = pickable(options);
    let tool_call = params.get("toolCall").and_then(Value::as_object);
    Ok(Permission {
        session_id: session_id.to_owned(),
        tool_call_id: tool_call.and_then(|call| id(call, "toolCallId")).map(str::to_owned),
        message: tool_call.map_or_else(|| UNSAID.to_owned(), message),
        form: Form::permission("Answer", options.iter().map(choice).collect())?,
        single_use: of_kind(&options, &["allow_once", "reject_once"]).map(str::to_owned).collect(),
        outcomes: outcomes(&options),
    })
}

/// What is sent at each end of a request, whatever else is wrong with it.
pub fn outcomes_of(params: &Value) -> Outcomes {
    let options = params.get("options").and_then(Value::as_array);
    options.map(|options| outcomes(&pickable(options))).unwrap_or_default()
}

impl Outcomes {
    /// The option that was picked.
    pub fn selected(&self, content: &Content) -> Value {
        match content.get(PERMISSION).and_then(Value::as_str) {
            Some(option) => select(option),
            None => self.skipped(),
        }
    }

    /// Nobody decided: skipped, or the deadline passed. The first `reject_once` option, else `cancelled`.
    pub fn skipped(&self) -> Value {
        self.reject_once.as_deref().map_or_else(cancelled, select)
    }
}

/// The turn was cancelled, or we are shutting down.
pub fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

fn select(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

fn outcomes(options: &[Pickable<'_>]) -> Outcomes {
    Outcomes { reject_once: of_kind(options, &["reject_once"]).next().map(str::to_owned) }
}

/// An option that can be picked.
struct Pickable<'a> {
    id: &'a str,
    name: Option<&'a str>,
    /// What it does, by the agent's word.
    kind: Option<&'a str>,
}

/// The options that have an id, each id once. Where one id is of two kinds, nobody can tell what picking it does: it
/// has no kind then, so that a skip never picks it, nor a batch.
fn pickable(options: &[Value]) -> Vec<Pickable<'_>> {
    let mut found: Vec<Pickable<'_>> = Vec::new();
    let mut places = HashMap::new();
    for option in options.iter().filter_map(Value::as_object) {
        let Some(id) = id(option, "optionId") else { continue };
        let kind = option.get("kind").and_then(Value::as_str);
        let at = *places.entry(id).or_insert(found.len());
        match found.get_mut(at) {
            Some(before) => before.kind = before.kind.filter(|before| kind == Some(before)),
            None => found.push(Pickable { id, name: words(option, "name"), kind }),
        }
    }
    found
}

fn of_kind<'a>(options: &'a [Pickable<'_>], kinds: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    options
        .iter()
        .filter(|option| option.kind.is_some_and(|kind| kinds.contains(&kind)))
        .map(|option| option.id)
}

fn choice(option: &Pickable<'_>) -> Choice {
    Choice {
        value: option.id.to_owned(),
        label: cut(option.name.unwrap_or(option.id), MAX_NAME_BYTES),
        description: Some(kind(option.kind)),
        preview: None,
    }
}

/// Our own word for what an option does: the label is the agent's and may say anything.
fn kind(kind: Option<&str>) -> String {
    match kind {
        Some("allow_once") => "allow · this call".to_owned(),
        Some("allow_always") => "allow · every later call like it in this session".to_owned(),
        Some("reject_once") => "reject · this call".to_owned(),
        Some("reject_always") => "reject · every later call like it in this session".to_owned(),
        Some(other) => format!("the agent calls it “{}”: we do not know what it does", cut(other, 64)),
        None => "the agent does not say whether it allows or rejects".to_owned(),
    }
}

/// Shown when the agent says nothing about its tool call.
const UNSAID: &str = "The agent asks for permission and does not say for what.";

/// The title of the tool call, and under it what the agent says that it would do: the command and where, files,
/// text such as a plan.
fn message(call: &Map<String, Value>) -> String {
    let title = words(call, "title").map(|title| cut(title, MAX_NAME_BYTES));
    let mut message = title.unwrap_or_else(|| UNSAID.to_owned());
    if let Some(input) = call.get("rawInput").and_then(Value::as_object) {
        if let Some(command) = input.get("command").and_then(command)
            && !message.contains(&command)
        {
            add(&mut message, &command);
        }
        if let Some(cwd) = words(input, "cwd") {
            add(&mut message, &format!("in {cwd}"));
        }
    }
    for content in call.get("content").and_then(Value::as_array).into_iter().flatten() {
        let text = match content.get("type").and_then(Value::as_str) {
            Some("content") => content.pointer("/content/text").and_then(Value::as_str).map(str::to_owned),
            Some("diff") => content.get("path").and_then(Value::as_str).map(|path| format!("changes {path}")),
            _ => None,
        };
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            add(&mut message, &text);
        }
        if message.len() >= MAX_MESSAGE_BYTES {
            break;
        }
    }
    message
}

/// A command as people write it: a text, or its words.
fn command(command: &Value) -> Option<String> {
    match command {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.map(|words| words.join(" ")).filter(|text| !text.is_empty())
        }
        _ => None,
    }
}

/// Adds a paragraph, within what may be shown.
fn add(message: &mut String, text: &str) {
    let left = MAX_MESSAGE_BYTES.saturating_sub(message.len());
    message.push_str("\n\n");
    message.push_str(&cut(text, left));
}

#[cfg(test)]
mod tests {
    use handraise_core::Answer;
    use handraise_core::form::AnswerRules;
    use handraise_core::words::{Kind, Source};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_json;

    /// As codex-acp asks, with the rejection first.
    fn request() -> Value {
        json!({
            "sessionId": "sess-1",
            "toolCall": {
                "toolCallId": "call-1",
                "title": "Run a command in prod?",
                "rawInput": {"command": ["terraform", "apply"], "cwd": "~/src/infra"},
            },
            "options": [
                {"optionId": "abort", "name": "No, tell Codex what to do", "kind": "reject_once"},
                {"optionId": "ok", "name": "Yes, proceed", "kind": "allow_once"},
                {"optionId": "always", "name": "Yes, and don’t ask again", "kind": "allow_always"},
                {"optionId": "never", "name": "Never", "kind": "reject_always"},
                {"optionId": "odd", "name": "Odd", "kind": "allow_on_tuesdays"},
                {"optionId": "plain", "name": ""},
                {"optionId": "ok", "name": "again", "kind": "allow_once"},
                {"name": "no id"},
            ],
        })
    }

    #[test]
    fn a_permission_is_one_question_with_a_choice_per_option() {
        let permission = read(&request()).unwrap();
        assert_eq!(permission.message, "Run a command in prod?\n\nterraform apply\n\nin ~/src/infra");
        assert_eq!(permission.tool_call_id.as_deref(), Some("call-1"));
        assert_eq!(permission.single_use, ["abort", "ok"], "S44");
        let [question] = permission.form.questions() else { panic!("one question") };
        assert_eq!((question.id.as_str(), question.kind), ("permission", Kind::Single));
        let shown: Vec<_> = question
            .choices
            .iter()
            .map(|choice| {
                (choice.value.as_str(), choice.label.as_str(), choice.description.as_deref().unwrap())
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("abort", "No, tell Codex what to do", "reject · this call"),
                ("ok", "Yes, proceed", "allow · this call"),
                ("always", "Yes, and don’t ask again", "allow · every later call like it in this session"),
                ("never", "Never", "reject · every later call like it in this session"),
                ("odd", "Odd", "the agent calls it “allow_on_tuesdays”: we do not know what it does"),
                ("plain", "plain", "the agent does not say whether it allows or rejects"),
            ]
        );
    }

    #[test]
    fn a_pick_is_sent_as_selected_whatever_its_kind() {
        let permission = read(&request()).unwrap();
        for option in ["always", "odd"] {
            let answer = Answer {
                question_id: "permission".into(),
                selected_options: vec![option.to_owned()],
                ..Answer::default()
            };
            let content =
                permission.form.answer(&[answer], AnswerRules::for_source(Source::Permission)).unwrap();
            let sent = permission.outcomes.selected(&content);
            assert_eq!(sent, json!({"outcome": {"outcome": "selected", "optionId": option}}));
        }
    }

    #[test]
    fn a_skip_rejects_once_and_never_for_ever() {
        let skipped = |kinds: &[&str]| {
            let options: Vec<_> = kinds
                .iter()
                .map(|kind| json!({"optionId": format!("id-{kind}"), "name": "n", "kind": kind}))
                .collect();
            read(&json!({"sessionId": "s", "options": options})).unwrap().outcomes.skipped()
        };
        let rejected = json!({"outcome": {"outcome": "selected", "optionId": "id-reject_once"}});
        assert_eq!(skipped(&["allow_once", "reject_always", "reject_once"]), rejected);
        assert_eq!(skipped(&["allow_once", "reject_always"]), cancelled());
        assert_eq!(cancelled().to_string(), r#"{"outcome":{"outcome":"cancelled"}}"#);
    }

    #[test]
    fn s44_an_id_of_two_kinds_is_never_picked_for_a_human() {
        for kinds in
            [["reject_once", "allow_once"], ["allow_once", "reject_once"], ["allow_always", "allow_once"]]
        {
            let options = kinds.map(|kind| json!({"optionId": "x", "name": "Reject", "kind": kind}));
            let request = json!({"sessionId": "s", "options": options});
            let permission = read(&request).unwrap();
            assert_eq!(permission.form.questions()[0].choices.len(), 1);
            assert_eq!(permission.single_use, [""; 0], "{kinds:?}");
            assert_eq!(permission.outcomes.skipped(), cancelled(), "{kinds:?}");
            assert_eq!(outcomes_of(&request).skipped(), cancelled(), "{kinds:?}");
        }
    }

    #[test]
    fn a_request_that_cannot_be_asked_is_still_rejected() {
        let mut request = request();
        request["sessionId"] = json!(null);
        assert!(matches!(read(&request), Err(Unaskable::Malformed(_))));
        let rejected = json!({"outcome": {"outcome": "selected", "optionId": "abort"}});
        assert_eq!(outcomes_of(&request).skipped(), rejected);
        assert_eq!(outcomes_of(&json!(null)).skipped(), cancelled());
        let none = json!({"sessionId": "s", "options": []});
        assert_eq!(read(&none), Err(Unaskable::Form(Refusal::NoQuestions)));
        let many = json!({"sessionId": "s", "options": vec![json!({"optionId": "a"}); 65]});
        assert_eq!(read(&many), Err(Unaskable::TooManyOptions { found: 65 }));
    }

    #[test]
    fn what_is_shown_of_a_tool_call_is_bounded() {
        let mut request = request();
        request["toolCall"] = json!({
            "title": "x".repeat(5000),
            "content": [
                {"type": "content", "content": {"type": "text", "text": "The plan"}},
                {"type": "diff", "path": "/src/main.rs", "newText": "…"},
                {"type": "content", "content": {"type": "text", "text": "y".repeat(100_000)}},
            ],
        });
        let message = read(&request).unwrap().message;
        assert!(message.contains("(3976 more bytes)\n\nThe plan\n\nchanges /src/main.rs\n\nyyy"));
        assert!(message.ends_with(" more bytes)") && message.len() < 17 * 1024, "{}", message.len());
        request["toolCall"] = json!(null);
        assert_eq!(read(&request).unwrap().message, UNSAID);
    }

    proptest! {
        #[test]
        fn reading_is_total(value in any_json(), key in "sessionId|toolCall|options") {
            let _ = (read(&value), outcomes_of(&value).skipped());
            let mut request = request();
            request[&key] = value;
            let _ = (read(&request), outcomes_of(&request).skipped());
        }
    }
}
