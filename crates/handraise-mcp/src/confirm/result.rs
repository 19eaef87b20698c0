//! What a caller is told when nothing was done: one text block of JSON (confirm.md, "Results").

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Mode, Rejection};
use crate::canonical::Unbindable;

/// A result in which nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    text: String,
    is_error: bool,
}

/// The preview of a call and the token that lets it run.
#[derive(Debug, Clone, Copy)]
pub struct Phase1<'a> {
    /// What the call would do, as the server's preview has it: JSON, or nothing.
    pub preview: Option<&'a RawValue>,
    /// The token.
    pub token: &'a str,
    /// When the token ends, in milliseconds since 1970.
    pub expires_ms: u64,
    /// How long it lives, in seconds.
    pub ttl_seconds: u64,
    /// What the model is to do with it.
    pub mode: Mode,
}

impl Told {
    /// The JSON of the text block.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the result is an error.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The result of the call, as compact JSON.
    pub fn to_result(&self) -> String {
        let content = json!([{"type": "text", "text": self.text}]);
        if self.is_error {
            json!({"content": content, "isError": true}).to_string()
        } else {
            json!({"content": content}).to_string()
        }
    }

    fn news(object: Object) -> Self {
        Self { text: object.finish(), is_error: false }
    }

    fn error(object: Object) -> Self {
        Self { text: object.finish(), is_error: true }
    }

    /// The first of the two calls of the token rail: a preview, and the token that confirms it.
    pub fn confirmation_required(action: &str, phase1: &Phase1<'_>) -> Self {
        let mut object = Object::nothing_done(Some("confirmation-required"));
        object.member("action", action);
        object.phase1(phase1);
        Self::news(object)
    }

    /// A token was brought that does not let the call run. When the draft has changed, the token rail passes a fresh
    /// preview and a fresh token, which follow the note.
    pub fn rejected(action: &str, rejection: Rejection, fresh: Option<&Phase1<'_>>) -> Self {
        let note = match rejection.code() {
            "TOKEN_INVALID" => {
                "Nothing was done. The confirmToken is not one for this call: call again without it for a new preview."
            }
            "TOKEN_REUSED" => {
                "Nothing was done. The confirmToken was used before: call again without it for a new preview."
            }
            "TOKEN_EXPIRED" => {
                "Nothing was done. The confirmToken has expired: call again without it for a new preview."
            }
            "DRAFT_CHANGED" => {
                "Nothing was done. What was shown is no longer what would happen: it has to be confirmed again."
            }
            _ => {
                "Nothing was done. Whether the confirmToken was used before cannot be told now: try again later."
            }
        };
        let mut object = rejection_of(rejection.code(), rejection.reason());
        object.member("action", action);
        object.member("note", note);
        if let Some(fresh) = fresh.filter(|_| rejection.code() == "DRAFT_CHANGED") {
            object.phase1(fresh);
        }
        Self::error(object)
    }

    /// The form came back accepted, without its field set to true.
    pub fn not_confirmed(action: &str) -> Self {
        let note = "Nothing was done. The form was accepted without its box ticked, which confirms nothing.";
        Self::plain_rejection("NOT_CONFIRMED", action, note)
    }

    /// A retry brought an answer without the state that its question came with.
    pub fn state_missing(action: &str) -> Self {
        let note = "Nothing was done. The answer came without the requestState of its question: call again without it.";
        Self::plain_rejection("STATE_MISSING", action, note)
    }

    /// Arguments that cannot be bound to a confirmation (S4).
    pub fn unbindable(action: &str, why: Unbindable) -> Self {
        let mut object = rejection_of("unbindable-arguments", Some(why.as_str()));
        object.member("action", action);
        object.member("note", &format!("Nothing was done. These arguments cannot be confirmed: {why}."));
        Self::error(object)
    }

    /// A human declined. Not for an answer that nobody was shown: that is [`Told::not_shown`].
    pub fn declined(action: &str) -> Self {
        let mut object = Object::nothing_done(None);
        object.member("cancelled", &true);
        object.member("action", action);
        object.member("note", "Nothing was done. It was declined: do not try again unless you are asked to.");
        Self::news(object)
    }

    /// The form was put away.
    pub fn cancelled(action: &str) -> Self {
        Self::unanswered(
            action,
            "cancelled",
            "Nothing was done. The question was put away without an answer.",
        )
    }

    /// Nobody answered in time.
    pub fn timed_out(action: &str) -> Self {
        Self::unanswered(action, "timeout", "Nothing was done. Nobody answered in time.")
    }

    /// No rail could show the question to anybody.
    pub fn not_shown(action: &str) -> Self {
        Self::refused(action, "confirmation-not-shown", "Nothing was done. Nobody was shown the question.")
    }

    /// The question waits in the inbox.
    pub fn pending(action: &str, ask: &str) -> Self {
        let mut object = Object::nothing_done(Some("confirmation-pending"));
        object.member("action", action);
        object.member("ask", ask);
        object
            .member("note", "Nothing was done yet. Somebody is asked: the same call again gets the answer.");
        Self::news(object)
    }

    /// The caller cannot be asked, and no tokens are given: `remedy` says what would change it, and `forms` whether
    /// callers that take forms are asked with one.
    pub fn unsupported(action: &str, remedy: &str, forms: bool) -> Self {
        let note = if forms {
            format!(
                "Nothing was done. This client cannot show a confirmation, and {remedy}, or use a client that supports \
                 elicitation."
            )
        } else {
            format!("Nothing was done. Forms are switched off (MCP_CONFIRM_ELICITATION), and {remedy}.")
        };
        Self::refused(action, "confirmation-unsupported", &note)
    }

    /// The policy leaves only the inbox, and nobody can be asked there now.
    pub fn needs_inbox(action: &str) -> Self {
        let note = "Nothing was done. The policy takes the word of a person in the inbox for this, or of somebody it names, and \
                    nobody can be asked there now: start handraise up, open its page, and call again. [[confirm]] require and \
                    who say so; with require = \"any\" and who = \"operator\" this client is asked.";
        Self::refused(action, "confirmation-unsupported", note)
    }

    /// It was accepted in the inbox, and not by a surface that had shown it to a person.
    pub fn not_human(action: &str) -> Self {
        let note = "Nothing was done. It was accepted without a person having been shown it, and the policy takes a \
                    person's word alone.";
        Self::plain_rejection("NOT_CONFIRMED", action, note)
    }

    /// The surface that this caller has does not show all of it.
    pub fn too_long(action: &str, hidden: usize) -> Self {
        let note = format!(
            "Nothing was done. What would happen does not fit where this client shows it ({} bytes not shown), and what is \
             not shown cannot be confirmed there.",
            grouped(hidden)
        );
        Self::refused(action, "confirmation-not-shown", &note)
    }

    /// What would happen could not be read, and so not shown.
    pub fn unreadable(action: &str, reason: &str, note: &str) -> Self {
        let mut object = rejection_of("PREVIEW_FAILED", Some(reason));
        object.member("action", action);
        object.member("note", &format!("Nothing was done. {note}"));
        Self::error(object)
    }

    /// An acceptance of a form that does not let the call run.
    pub fn not_accepted(action: &str, rejection: Rejection) -> Self {
        let note = match rejection {
            Rejection::Reused => {
                "Nothing was done. This confirmation was used before: call again to be asked anew."
            }
            Rejection::RevisionChanged | Rejection::PayloadChanged => {
                "Nothing was done. What was shown changed twice while it was asked about: call again to be asked anew."
            }
            _ => {
                "Nothing was done. Whether this confirmation was used before cannot be told now: try again later."
            }
        };
        let mut object = rejection_of(rejection.code(), rejection.reason());
        object.member("action", action);
        object.member("note", note);
        Self::error(object)
    }

    fn plain_rejection(code: &'static str, action: &str, note: &str) -> Self {
        let mut object = rejection_of(code, None);
        object.member("action", action);
        object.member("note", note);
        Self::error(object)
    }

    fn unanswered(action: &str, reason: &str, note: &str) -> Self {
        let mut object = Object::nothing_done(None);
        object.member("cancelled", &true);
        object.member("action", action);
        object.member("reason", reason);
        object.member("note", note);
        Self::news(object)
    }

    fn refused(action: &str, reason: &str, note: &str) -> Self {
        let mut object = Object::nothing_done(None);
        object.member("action", action);
        object.member("reason", reason);
        object.member("note", note);
        Self::news(object)
    }
}

fn rejection_of(code: &str, reason: Option<&str>) -> Object {
    let mut object = Object::nothing_done(Some("confirmation-rejected"));
    object.member("error", code);
    if let Some(reason) = reason {
        object.member("reason", reason);
    }
    object
}

/// Compact JSON of an object, member by member.
struct Object {
    json: String,
}

impl Object {
    /// The members that every result begins with.
    fn nothing_done(status: Option<&str>) -> Self {
        let mut object = Self { json: String::from("{") };
        if let Some(status) = status {
            object.member("status", status);
        }
        object.member("confirmed", &false);
        object.member("dispatched", &false);
        object
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if self.json.len() > 1 {
            self.json.push(',');
        }
        self.json.push('"');
        self.json.push_str(name);
        self.json.push_str("\":");
        // Strings, numbers and JSON have JSON.
        self.json.push_str(&serde_json::to_string(value).unwrap_or_default());
    }

    fn phase1(&mut self, phase1: &Phase1<'_>) {
        let instruction = match phase1.mode {
            Mode::Auto => {
                "Nothing was done yet. To do exactly what the preview says, call the tool again with the same \
                 arguments and this confirmToken."
            }
            // Without tokens nobody gets here; whoever does is told the stricter of the two.
            Mode::AskUser | Mode::Refuse => {
                "Nothing was done yet. Show the preview to the user and ask whether to go on. Only after the user has \
                 said yes in the chat, call the tool again with the same arguments and this confirmToken. Do not \
                 decide for the user."
            }
        };
        self.member("preview", &phase1.preview);
        self.member("confirmToken", phase1.token);
        self.member("expiresAt", &instant(phase1.expires_ms));
        self.member("ttlSeconds", &phase1.ttl_seconds);
        self.member("instruction", instruction);
    }

    fn finish(mut self) -> String {
        self.json.push('}');
        self.json
    }
}

/// A number with commas between its thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time as RFC 3339 has it, in UTC with milliseconds; the last that it can name for a later one.
fn instant(ms: u64) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", at.unwrap_or(Timestamp::MAX))
}
