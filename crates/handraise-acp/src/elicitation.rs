//! `elicitation/create`: what becomes an ask, what is declined and why, and how both are answered.

use handraise_core::form::{Content, Form, FormRequest, Ignored, Mapped, Refusal, map};
use serde_json::{Map, Value, json};

use crate::quirks::Quirks;
use crate::read::{id, is_given, words};

/// The method that asks. Registered as a raw request.
pub const METHOD: &str = "elicitation/create";

/// A request that can be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// The agent's session, as the agent calls it.
    pub session_id: String,
    /// The tool call around it.
    pub tool_call_id: Option<String>,
    /// The request's own words.
    pub message: String,
    /// The questions.
    pub form: Form,
    /// What of the schema was left out: for the log.
    pub ignored: Vec<Ignored>,
    /// Whether the agent takes the answer after its prompt has ended: such an ask is not withdrawn with it.
    pub outlives_prompt: bool,
}

/// Why a request is declined without reaching anyone. A decline, never a JSON-RPC error: an error fails the whole
/// turn in some agents (acp.md).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Declined {
    /// The flag `features.acpElicitation` is off (AC-20).
    #[error("elicitation is switched off for this agent")]
    Off,
    /// `mode` is `url`, which is not advertised (AC-16).
    #[error("url mode is not advertised")]
    UrlMode,
    /// `mode` is neither `form` nor `url`.
    #[error("its mode is not known")]
    UnknownMode,
    /// It belongs to a request, not to a session (AC-17).
    #[error("it is scoped to a request, not to a session")]
    RequestScope,
    /// It names both a session and a request.
    #[error("it is scoped to a session and to a request")]
    BothScopes,
    /// It names neither a session nor a request.
    #[error("it is scoped to no session")]
    NoScope,
    /// It is no elicitation at all.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
    /// Its schema cannot be asked (AC-18).
    #[error("{0}")]
    Form(#[from] Refusal),
}

impl Declined {
    /// A short word for counters and records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::UrlMode => "url_mode",
            Self::UnknownMode => "unknown_mode",
            Self::RequestScope => "request_scope",
            Self::BothScopes => "both_scopes",
            Self::NoScope => "no_scope",
            Self::Malformed(_) => "malformed",
            Self::Form(refusal) => refusal.code(),
        }
    }
}

/// Decides about the parameters of an `elicitation/create`.
///
/// `enabled` is the flag as snapshotted when the agent started, the same that decided the advertisement (F5).
///
/// # Errors
/// Why it is to be declined; the reason is for the log.
pub fn read(params: &Value, enabled: bool, quirks: &Quirks) -> Result<Elicitation, Declined> {
    if !enabled {
        return Err(Declined::Off);
    }
    let params = params.as_object().ok_or(Declined::Malformed("its parameters are no object"))?;
    match params.get("mode").and_then(Value::as_str) {
        Some("form") => {}
        Some("url") => return Err(Declined::UrlMode),
        Some(_) => return Err(Declined::UnknownMode),
        None => return Err(Declined::Malformed("it has no mode")),
    }
    match (is_given(params, "sessionId"), is_given(params, "requestId")) {
        (true, false) => {}
        (false, true) => return Err(Declined::RequestScope),
        (true, true) => return Err(Declined::BothScopes),
        (false, false) => return Err(Declined::NoScope),
    }
    let session_id = id(params, "sessionId").ok_or(Declined::Malformed("its sessionId is no id"))?;
    let message =
        params.get("message").and_then(Value::as_str).ok_or(Declined::Malformed("it has no message"))?;
    let schema = params.get("requestedSchema").unwrap_or(&Value::Null);
    let schema = if schema.is_null() { return Err(Refusal::NoQuestions.into()) } else { schema };
    let Mapped { form, ignored } = map(&FormRequest { message, schema }, &quirks.form)?;
    Ok(Elicitation {
        session_id: session_id.to_owned(),
        tool_call_id: id(params, "toolCallId").map(str::to_owned),
        message: message.to_owned(),
        form,
        ignored,
        outlives_prompt: quirks.outlives_prompt(params),
    })
}

/// The session that a request names, whatever else is wrong with it: for the log.
pub fn session_of(params: &Value) -> Option<&str> {
    words(params.as_object()?, "sessionId")
}

/// The response to a submission.
pub fn accept(content: Content) -> Value {
    let mut response = Map::new();
    response.insert("action".to_owned(), "accept".into());
    response.insert("content".to_owned(), Value::Object(content));
    Value::Object(response)
}

/// The response to a skip, a deadline, and a request that is not asked.
pub fn decline() -> Value {
    json!({ "action": "decline" })
}

/// The response when the turn was cancelled, or we are shutting down.
pub fn cancel() -> Value {
    json!({ "action": "cancel" })
}

#[cfg(test)]
mod tests {
    use handraise_core::Answer;
    use handraise_core::form::AnswerRules;
    use handraise_core::words::Source;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_json;

    fn request() -> Value {
        json!({
            "mode": "form",
            "sessionId": "sess-1",
            "toolCallId": "tool-42",
            "message": "Pick a colour",
            "requestedSchema": {"type": "object", "properties": {
                "question_0": {"type": "string", "oneOf": [{"const": "Red"}, {"const": "Blue"}]},
            }},
        })
    }

    fn with(key: &str, value: Value) -> Result<Elicitation, Declined> {
        let mut request = request();
        request[key] = value;
        read(&request, true, &Quirks::default())
    }

    #[test]
    fn ac03_a_form_of_a_session_is_asked() {
        let asked = read(&request(), true, &Quirks::default()).unwrap();
        assert_eq!(asked.session_id, "sess-1");
        assert_eq!(asked.tool_call_id.as_deref(), Some("tool-42"));
        assert_eq!(asked.message, "Pick a colour");
        assert_eq!(asked.form.questions()[0].prompt, "Pick a colour");
        assert!(!asked.outlives_prompt);
    }

    #[test]
    fn ac10_a_pick_is_accepted_at_its_own_key() {
        let asked = read(&request(), true, &Quirks::default()).unwrap();
        let pick = Answer {
            question_id: "question_0".into(),
            selected_options: vec!["Red".into()],
            ..Answer::default()
        };
        let content = asked.form.answer(&[pick], AnswerRules::for_source(Source::Elicitation)).unwrap();
        assert_eq!(accept(content).to_string(), r#"{"action":"accept","content":{"question_0":"Red"}}"#);
    }

    #[test]
    fn ac12b_nothing_answered_is_still_an_accept() {
        assert_eq!(accept(Content::new()).to_string(), r#"{"action":"accept","content":{}}"#);
    }

    #[test]
    fn ac14_ac15_decline_and_cancel_carry_nothing() {
        assert_eq!(decline().to_string(), r#"{"action":"decline"}"#);
        assert_eq!(cancel().to_string(), r#"{"action":"cancel"}"#);
    }

    #[test]
    fn ac16_url_mode_is_declined() {
        assert_eq!(with("mode", json!("url")), Err(Declined::UrlMode));
        assert_eq!(with("mode", json!("_later")), Err(Declined::UnknownMode));
        assert_eq!(with("mode", json!(null)).map_err(|reason| reason.code()), Err("malformed"));
    }

    #[test]
    fn ac17_request_scope_both_and_neither_are_declined() {
        assert_eq!(with("requestId", json!(3)), Err(Declined::BothScopes));
        assert_eq!(with("sessionId", json!(null)), Err(Declined::NoScope));
        assert!(with("requestId", json!(null)).is_ok());
        let mut request = request();
        request["sessionId"] = json!(null);
        request["requestId"] = json!(0);
        assert_eq!(read(&request, true, &Quirks::default()), Err(Declined::RequestScope));
    }

    #[test]
    fn ac18_a_schema_without_questions_is_declined() {
        for schema in [
            json!(null),
            json!({}),
            json!({"type": "object", "properties": {}}),
            json!({"properties": {"a": {"type": "object"}}}),
        ] {
            assert_eq!(with("requestedSchema", schema), Err(Declined::Form(Refusal::NoQuestions)));
        }
        assert_eq!(with("requestedSchema", json!("x")), Err(Declined::Form(Refusal::NotAnObject)));
    }

    #[test]
    fn ac20_everything_is_declined_while_the_flag_is_off() {
        assert_eq!(read(&request(), false, &Quirks::default()), Err(Declined::Off));
        assert_eq!(read(&json!(7), false, &Quirks::default()), Err(Declined::Off));
    }

    #[test]
    fn malformed_requests_are_declined_with_a_reason() {
        let code = |result: Result<Elicitation, Declined>| result.unwrap_err().code();
        assert_eq!(code(read(&json!([]), true, &Quirks::default())), "malformed");
        assert_eq!(code(with("sessionId", json!(5))), "malformed");
        assert_eq!(code(with("sessionId", json!("x".repeat(1025)))), "malformed");
        assert_eq!(code(with("message", json!(null))), "malformed");
        assert_eq!(code(with("message", json!("x".repeat(65 * 1024)))), "message_too_large");
        assert_eq!(
            with("toolCallId", json!(5)).unwrap().tool_call_id,
            None,
            "an odd id is no reason to decline"
        );
        assert_eq!(Declined::UrlMode.to_string(), "url mode is not advertised");
    }

    proptest! {
        #[test]
        fn reading_is_total(value in any_json(), key in "mode|sessionId|requestId|message|requestedSchema|toolCallId|_meta") {
            let _ = read(&value, true, &Quirks::default());
            let _ = with(&key, value);
        }
    }
}
