//! The form of a confirmation: one typed field that must come back true.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::pointer::{self, sole};
use crate::question::FormDialect;

/// The field, and its name in the answer.
pub const FIELD: &str = "confirm";

/// The schema of the form alone, as compact JSON.
pub fn confirm_schema(action: &str) -> String {
    schema(action).to_string()
}

fn schema(action: &str) -> Value {
    let field = json!({"type": "boolean", "title": action, "description": "Yes, do it now."});
    json!({"type": "object", "properties": {FIELD: field}, "required": [FIELD]})
}

/// The `params` of the `elicitation/create` request, as compact JSON. The field has no default: somebody has to set it.
pub fn confirm_params(message: &str, action: &str, dialect: FormDialect) -> String {
    let schema = schema(action);
    let params = match dialect {
        FormDialect::EnumNames => json!({"message": message, "requestedSchema": schema}),
        FormDialect::OneOf => json!({"mode": "form", "message": message, "requestedSchema": schema}),
    };
    Value::to_string(&params)
}

/// The question's name among those of one result, and its answer's in a retry.
pub const REQUEST: &str = "confirmation";

/// The `inputRequests` of an `input_required` result, as compact JSON: the form under [`REQUEST`].
pub fn confirm_requests(message: &str, action: &str) -> String {
    let params = confirm_params(message, action, FormDialect::OneOf);
    format!("{{\"{REQUEST}\":{{\"method\":\"elicitation/create\",\"params\":{params}}}}}")
}

/// What a client answered to the form.
#[must_use = "an answer decides whether the call runs"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmAnswer {
    /// Accepted, with the field true. Not yet a person's: how fast it came is the caller's to judge.
    Confirmed,
    /// Accepted, without the field, or with anything but true in it.
    NotConfirmed,
    /// The client reported a decline.
    Decline,
    /// The client reported that the form was put away.
    Cancel,
    /// Not shaped like an answer.
    Malformed,
}

impl ConfirmAnswer {
    /// Reads the result of the request, strictly: `"true"`, `1`, a second field of that name or no field at all confirm
    /// nothing.
    pub fn read(result: &str) -> Self {
        let Ok(result) = serde_json::from_str::<&RawValue>(result) else { return Self::Malformed };
        let (Ok(Some(action)), Ok(content)) = (sole(result, "action"), sole(result, "content")) else {
            return Self::Malformed;
        };
        match pointer::string(action).as_deref() {
            Some("accept") => {}
            Some("decline") => return Self::Decline,
            Some("cancel") => return Self::Cancel,
            _ => return Self::Malformed,
        }
        Self::of(content)
    }

    /// Reads the content of an answer that was accepted.
    pub fn of_content(content: &str) -> Self {
        Self::of(serde_json::from_str::<&RawValue>(content).ok())
    }

    fn of(content: Option<&RawValue>) -> Self {
        let field = content.and_then(|content| sole(content, FIELD).ok().flatten());
        if field.is_some_and(|field| field.get() == "true") { Self::Confirmed } else { Self::NotConfirmed }
    }
}
