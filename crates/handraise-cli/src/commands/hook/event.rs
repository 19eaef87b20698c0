//! What Claude Code asks a hook, as an ask; and how the ask ended, in Claude Code's words.
//!
//! Written against the schemas that version 2.1.332 of the program carries, and tried with it (docs/hooks.md). Names are
//! Claude Code's.

use std::time::Duration;

use handraise_api::ask::Implementation;
use handraise_core::{
    Choice, Mode, OnDeadline, Outcome, Provenance, Source,
    form::{AnswerRules, Form, FormProfile, FormRequest, PERMISSION, map},
};
use handraise_holder::NewAsk;
use handraise_transport::escape;
use serde_json::{Map, Value, json};

use crate::asking::End;

/// Values of a permission's choices.
const ALLOW: &str = "allow";
const REJECT: &str = "reject";
/// The most bytes of a name that are shown.
const MAX_NAME_BYTES: usize = 128;
/// The most bytes of what a tool would do that are shown; how many more there are is said.
const MAX_INPUT_BYTES: usize = 16 * 1024;

/// What the client asks.
#[derive(Debug)]
pub(super) struct Event {
    kind: Kind,
    message: String,
    form: Form,
    /// The MCP server that asks, by the client's word.
    server: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Elicitation,
    Permission,
}

/// What is not asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unasked {
    /// It is no question that is understood here.
    Malformed(String),
    /// It is an elicitation that cannot be asked in the inbox.
    Elicitation(String),
    /// It is the client's own to ask.
    Theirs(String),
}

/// The tool with which the client's model asks: to let it run would answer for a human, with nothing.
const ASKS_ITSELF: &str = "AskUserQuestion";

impl Event {
    /// Reads what stands on a hook's stdin.
    ///
    /// # Errors
    /// When it is not asked, and why.
    pub(super) fn read(text: &str) -> Result<Self, Unasked> {
        let malformed = |why: String| Unasked::Malformed(why);
        let input: Value =
            serde_json::from_str(text).map_err(|error| malformed(format!("it is no JSON: {error}")))?;
        let Value::Object(input) = input else { return Err(malformed("it is no JSON object".to_owned())) };
        match word(&input, "hook_event_name") {
            Some("Elicitation") => elicitation(&input),
            Some("PermissionRequest") if word(&input, "tool_name") == Some(ASKS_ITSELF) => {
                Err(Unasked::Theirs(format!("{ASKS_ITSELF} is a question of its own, and no permission")))
            }
            Some("PermissionRequest") => permission(&input).map_err(malformed),
            Some(other) => Err(malformed(format!(
                "its hook_event_name is \"{}\"; Elicitation and PermissionRequest are answered",
                escape::shortened(other, 60)
            ))),
            None => Err(malformed("it has no hook_event_name".to_owned())),
        }
    }

    /// The ask that it is. `closed`: without an answer it is denied.
    pub(super) fn ask(&self, timeout: Duration, closed: bool) -> NewAsk {
        let (source, single_use) = match self.kind {
            Kind::Elicitation => (Source::Elicitation, Vec::new()),
            Kind::Permission => (Source::Permission, vec![ALLOW.to_owned(), REJECT.to_owned()]),
        };
        NewAsk {
            source,
            mode: Mode::Form,
            session_id: None,
            tool_call_id: None,
            message: self.message.clone(),
            url: None,
            confirm: None,
            on_deadline: closed.then_some(OnDeadline::Decline),
            form: self.form.clone(),
            rules: AnswerRules::for_source(source),
            single_use,
            client: Some(Implementation { name: "Claude Code".to_owned(), version: None }),
            server: self.server.clone(),
            timeout: Some(timeout),
        }
    }

    /// What is printed for an answer that somebody gave in the inbox; `None` where nobody did.
    pub(super) fn answer(&self, end: &End) -> Option<Value> {
        let by = escape::shortened(end.by.as_deref()?, MAX_NAME_BYTES);
        let reason = end.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        // Of a token's answer, and of one that came too fast to have been read, nothing says that a person gave it.
        let (by, unseen) = if end.provenance == Provenance::Human {
            (by, "")
        } else {
            (format!("\"{by}\""), " (no person was seen)")
        };
        match (self.kind, end.outcome) {
            (Kind::Elicitation, Outcome::Accept) => {
                Some(action("accept", end.content.clone().map(Value::Object)))
            }
            (Kind::Elicitation, Outcome::Decline) => Some(action("decline", None)),
            (Kind::Permission, Outcome::Accept) => match end.content.as_ref()?.get(PERMISSION)?.as_str()? {
                ALLOW => Some(decision(&json!({"behavior": "allow"}))),
                REJECT => {
                    Some(deny(&format!("{by} rejected this call in the inbox of handraise{unseen}{reason}")))
                }
                _ => None,
            },
            (Kind::Permission, Outcome::Decline) => Some(deny(&format!(
                "{by} skipped the question whether this call may run, so it may not{unseen}{reason}"
            ))),
            _ => None,
        }
    }
}

/// What is printed where nobody answered and that is to deny, by the event's name. A decline would say that somebody declined.
pub(super) fn closed(text: &str, why: &str) -> Option<Value> {
    let input: Value = serde_json::from_str(text).ok()?;
    match input.get("hook_event_name")?.as_str()? {
        "Elicitation" => Some(action("cancel", None)),
        "PermissionRequest" => {
            Some(deny(&format!("nobody allowed or rejected this call, and then it may not run: {why}")))
        }
        _ => None,
    }
}

fn action(action: &str, content: Option<Value>) -> Value {
    let mut output = json!({"hookEventName": "Elicitation", "action": action});
    if let Some(content) = content {
        output["content"] = content;
    }
    json!({ "hookSpecificOutput": output })
}

fn deny(message: &str) -> Value {
    decision(&json!({"behavior": "deny", "message": message}))
}

fn decision(decision: &Value) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
}

/// A question of an MCP server.
fn elicitation(input: &Map<String, Value>) -> Result<Event, Unasked> {
    let malformed = |why: String| Unasked::Malformed(why);
    match (input.get("mode"), word(input, "mode")) {
        // Whoever opens it acts as the person at the client, who may be somebody else than the operator (S28).
        (_, Some("url")) => {
            return Err(Unasked::Theirs(
                "it asks to open a page, which is for whoever sits at the client".to_owned(),
            ));
        }
        (None, _) | (_, Some("form")) => {}
        (Some(_), Some(other)) => {
            let other = escape::shortened(other, 60);
            return Err(malformed(format!("its mode is \"{other}\"; form and url are known")));
        }
        (Some(_), None) => return Err(malformed("its mode is no text".to_owned())),
    }
    let Some(message) = word(input, "message") else { return Err(malformed("it has no message".to_owned())) };
    let Some(schema) = input.get("requested_schema").filter(|schema| schema.is_object()) else {
        return Err(malformed("it has no requested_schema".to_owned()));
    };
    let request = FormRequest { message, schema };
    let mapped = map(&request, &FormProfile::declared())
        .map_err(|refusal| Unasked::Elicitation(refusal.to_string()))?;
    for ignored in &mapped.ignored {
        tracing::info!("{ignored}");
    }
    let server = word(input, "mcp_server_name").map(|name| escape::shortened(name, MAX_NAME_BYTES));
    Ok(Event { kind: Kind::Elicitation, message: message.to_owned(), form: mapped.form, server })
}

/// Whether a tool may run.
fn permission(input: &Map<String, Value>) -> Result<Event, String> {
    let tool = word(input, "tool_name").ok_or("it has no tool_name")?;
    let mut message = format!("Claude Code asks to run {}", escape::shortened(tool, MAX_NAME_BYTES));
    if let Some(cwd) = word(input, "cwd") {
        message.push_str("\nin ");
        message.push_str(&escape::shortened(cwd, 1_024));
    }
    message.push_str("\n\n");
    message.push_str(&shown(input.get("tool_input").unwrap_or(&Value::Null)));
    let choice = |value: &str, label: &str, description: &str| Choice {
        value: value.to_owned(),
        label: label.to_owned(),
        description: Some(description.to_owned()),
        preview: None,
    };
    let choices =
        vec![choice(ALLOW, "Allow", "allow · this call"), choice(REJECT, "Reject", "reject · this call")];
    let form = Form::permission("Answer", choices).map_err(|refusal| refusal.to_string())?;
    Ok(Event { kind: Kind::Permission, message, form, server: None })
}

/// What a tool would be run with, for a human: each member under its name, and its lines set in, so that no value looks
/// like another member.
fn shown(input: &Value) -> String {
    let mut text = String::new();
    match input {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                text.push_str(&escape::shortened(name, MAX_NAME_BYTES));
                text.push_str(":\n");
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                for line in value.lines() {
                    text.push_str("    ");
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        Value::Object(_) | Value::Null => text.push_str("without arguments"),
        other => text.push_str(&other.to_string()),
    }
    let all = text.len();
    if all > MAX_INPUT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_INPUT_BYTES));
        let hidden = all - text.len();
        return format!("{text}…\n\n{hidden} more bytes are not shown");
    }
    text
}

fn word<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    input.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use handraise_core::Answer;

    use super::*;

    /// As version 2.1.332 of the program writes them.
    const ELICITATION: &str = r#"{"session_id":"s","transcript_path":"/t","cwd":"/w","permission_mode":"default","hook_event_name":"Elicitation","mcp_server_name":"devices","message":"Which device?","mode":"form","requested_schema":{"type":"object","properties":{"deviceId":{"type":"string","enum":["a","b"]},"again":{"type":"boolean"}},"required":["deviceId"]}}"#;
    const PERMISSION_REQUEST: &str = r#"{"session_id":"s","transcript_path":"/t","cwd":"/w","permission_mode":"default","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"rm -rf build\ncwd:\n    /","description":"Clean"},"permission_suggestions":[]}"#;

    fn ended(outcome: Outcome, by: Option<&str>, content: Option<Value>) -> End {
        End {
            outcome,
            provenance: Provenance::Human,
            content: content.map(|content| content.as_object().unwrap().clone()),
            by: by.map(str::to_owned),
            reason: None,
            refused: None,
            was_cut_off: false,
        }
    }

    #[test]
    fn an_elicitation_is_a_form_of_its_server() {
        let event = Event::read(ELICITATION).unwrap();
        let ask = event.ask(Duration::from_secs(60), false);
        assert_eq!((ask.source, ask.message.as_str()), (Source::Elicitation, "Which device?"));
        assert_eq!(ask.server.as_deref(), Some("devices"));
        assert_eq!(ask.on_deadline, None);
        let [device, again] = ask.form.questions() else { panic!() };
        assert_eq!((device.id.as_str(), device.required, again.required), ("deviceId", true, false));

        let content = json!({"deviceId": "b", "again": true});
        assert_eq!(
            event.answer(&ended(Outcome::Accept, Some("anna"), Some(content.clone()))),
            Some(json!({"hookSpecificOutput":
                {"hookEventName": "Elicitation", "action": "accept", "content": content}}))
        );
        assert_eq!(
            event.answer(&ended(Outcome::Decline, Some("anna"), None)),
            Some(json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "decline"}}))
        );
    }

    #[test]
    fn a_permission_is_one_deliberate_choice_about_what_is_shown() {
        let event = Event::read(PERMISSION_REQUEST).unwrap();
        let ask = event.ask(Duration::from_secs(60), true);
        assert_eq!((ask.source, ask.on_deadline), (Source::Permission, Some(OnDeadline::Decline)));
        assert_eq!(
            ask.message,
            "Claude Code asks to run Bash\nin /w\n\ncommand:\n    rm -rf build\n    cwd:\n        /\ndescription:\n    Clean\n"
        );
        assert_eq!(ask.single_use, [ALLOW, REJECT]);
        let pick = |value: &str| {
            let answer = Answer {
                question_id: PERMISSION.into(),
                selected_options: vec![value.into()],
                ..Answer::default()
            };
            let content = ask.form.answer(&[answer], ask.rules).unwrap();
            let answer = event.answer(&ended(Outcome::Accept, Some("anna"), Some(Value::Object(content))));
            answer.unwrap()["hookSpecificOutput"]["decision"].clone()
        };
        assert_eq!(pick(ALLOW), json!({"behavior": "allow"}));
        let rejected = pick(REJECT);
        assert_eq!(rejected["behavior"], "deny");
        assert!(rejected["message"].as_str().unwrap().contains("anna rejected"), "{rejected}");
        for (outcome, did) in
            [(Outcome::Decline, "skipped the question"), (Outcome::Accept, "rejected this call")]
        {
            let content = Some(json!({PERMISSION: REJECT}));
            let why = End { reason: Some("not on a Friday".into()), ..ended(outcome, Some("anna"), content) };
            let told = |end: &End| {
                let denied = event.answer(end).unwrap()["hookSpecificOutput"]["decision"].clone();
                assert_eq!(denied["behavior"], "deny");
                denied["message"].as_str().unwrap().to_owned()
            };
            let human = told(&why);
            assert!(human.starts_with(&format!("anna {did}")), "{human}");
            assert!(human.ends_with(": not on a Friday") && !human.contains("no person"), "{human}");
            let token = told(&End { provenance: Provenance::Client, ..why });
            assert!(token.starts_with(&format!("\"anna\" {did}")), "{token}");
            assert!(token.contains("no person was seen"), "{token}");
        }
    }

    #[test]
    fn nothing_is_allowed_accepted_or_declined_that_nobody_answered() {
        for text in [ELICITATION, PERMISSION_REQUEST] {
            let event = Event::read(text).unwrap();
            for outcome in Outcome::ALL {
                let content = Some(json!({PERMISSION: ALLOW, "deviceId": "a"}));
                assert_eq!(event.answer(&ended(*outcome, None, content)), None, "{outcome}");
            }
            for outcome in [Outcome::Timeout, Outcome::Cancel, Outcome::Withdrawn, Outcome::Error] {
                assert_eq!(event.answer(&ended(outcome, Some("anna"), None)), None, "{outcome}");
            }
        }
        let denied = closed(PERMISSION_REQUEST, "no inbox").unwrap();
        assert_eq!(denied["hookSpecificOutput"]["decision"]["behavior"], "deny");
        let cancelled = closed(ELICITATION, "no inbox").unwrap();
        assert_eq!(cancelled["hookSpecificOutput"]["action"], "cancel", "nobody declined");
        assert_eq!(closed("{}", "no inbox"), None);
    }

    #[test]
    fn what_is_no_question_is_said() {
        let problem = |text: &str| Event::read(text).unwrap_err();
        assert_eq!(problem("[]"), Unasked::Malformed("it is no JSON object".into()));
        assert_eq!(problem("{}"), Unasked::Malformed("it has no hook_event_name".into()));
        let other = problem(r#"{"hook_event_name":"PreToolUse"}"#);
        assert!(matches!(other, Unasked::Malformed(why) if why.contains("\"PreToolUse\"")));
        let page = ELICITATION.replace(r#""mode":"form""#, r#""mode":"url","url":"https://a.test""#);
        assert!(matches!(problem(&page), Unasked::Theirs(_)), "S28");
        for (nothing, why) in [
            (r#"{"hook_event_name":"Elicitation"}"#.to_owned(), "it has no message"),
            (r#"{"hook_event_name":"Elicitation","message":"m"}"#.to_owned(), "it has no requested_schema"),
            (
                ELICITATION.replace(r#""mode":"form""#, r#""mode":"weird""#),
                "its mode is \"weird\"; form and url are known",
            ),
            (ELICITATION.replace(r#""mode":"form""#, r#""mode":7"#), "its mode is no text"),
        ] {
            assert_eq!(problem(&nothing), Unasked::Malformed(why.into()));
        }
        let nested = ELICITATION.replace("properties", "others");
        assert!(matches!(problem(&nested), Unasked::Elicitation(_)));
        let own = PERMISSION_REQUEST.replace("Bash", ASKS_ITSELF);
        assert!(matches!(problem(&own), Unasked::Theirs(_)));
        let no_tool = r#"{"hook_event_name":"PermissionRequest"}"#;
        assert_eq!(problem(no_tool), Unasked::Malformed("it has no tool_name".into()));
    }

    #[test]
    fn s26_what_is_not_shown_of_a_long_input_is_counted() {
        let long = PERMISSION_REQUEST.replace("Clean", &"é".repeat(20_000));
        let message = Event::read(&long).unwrap().message;
        assert!(message.len() < MAX_INPUT_BYTES + 200);
        assert!(message.ends_with("more bytes are not shown"), "{}", &message[message.len() - 60..]);
    }
}
