//! What every surface shows of a guarded call (S26): who calls, what, for whom, on what, and exactly the arguments that are
//! hashed, one a line.

use serde_json::json;
use serde_json::value::RawValue;

use crate::canonical::{Canonical, Dialect, canonical};
use crate::frame::Scanner;
use crate::visible;

/// The longest message of a form, in bytes. What does not fit cannot be confirmed there.
pub const MAX_MESSAGE_BYTES: usize = 32 * 1024;

/// The longest preview of the token rail, in bytes.
pub const MAX_TOKEN_PREVIEW_BYTES: usize = 128 * 1024;

/// A guarded call, as it is shown.
#[derive(Debug)]
pub struct Shown<'a> {
    /// Who calls, by proof.
    pub principal: &'a str,
    /// What the client calls itself.
    pub client: Option<&'a str>,
    /// What is to be confirmed.
    pub action: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// For whom the call acts, where the rule says.
    pub account: Option<&'a str>,
    /// What it acts on; empty for something new.
    pub target: &'a str,
    /// The arguments that are hashed.
    pub arguments: &'a Canonical,
    /// The server's words.
    pub preview: Option<&'a RawValue>,
}

/// More than a surface shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// How many bytes it would not show.
    pub hidden: usize,
}

impl Shown<'_> {
    /// The message of a form.
    ///
    /// # Errors
    /// When it is longer than [`MAX_MESSAGE_BYTES`]: nothing is left out of what somebody confirms.
    pub fn message(&self) -> Result<String, TooLong> {
        let mut shown = vec![self.headline()];
        shown.push(format!("Tool: {}", quoted(self.tool)));
        shown.extend(self.account.map(|account| format!("Account: {}", quoted(account))));
        if !self.target.is_empty() {
            shown.push(format!("Target: {}", quoted(self.target)));
        }
        let lines = lines(self.arguments);
        shown.push(if lines.is_empty() { "Arguments: none" } else { "Arguments:" }.to_owned());
        shown.extend(lines.iter().map(|line| format!("  {line}")));
        if let Some(preview) = self.preview {
            shown.push("Preview, in the server's own words:".to_owned());
            shown.push(format!("  {}", words(preview)));
        }
        shown.push("It runs only if you confirm.".to_owned());
        fits(shown.join("\n"), MAX_MESSAGE_BYTES)
    }

    /// Who asks for what: the first line of a message, and all of it where a surface has the rest in places of its own.
    pub fn headline(&self) -> String {
        format!("{} asks to: {}", self.caller(), visible::text(self.action))
    }

    /// The server's words, exactly as they are hashed, on one line.
    pub fn server_says(&self) -> Option<String> {
        self.preview.map(words)
    }

    /// The preview of the token rail, as JSON.
    ///
    /// # Errors
    /// When it is longer than [`MAX_TOKEN_PREVIEW_BYTES`].
    pub fn json(&self) -> Result<Box<RawValue>, TooLong> {
        let head = json!({
            "caller": self.caller(),
            "tool": self.tool,
            "account": self.account,
            "target": self.target,
            "arguments": lines(self.arguments),
        });
        let head = visible::json(&head.to_string());
        let preview = self.preview.map_or_else(|| "null".to_owned(), words);
        let text = format!("{},\"serverSays\":{preview}}}", head.strip_suffix('}').unwrap_or(&head));
        let text = fits(text, MAX_TOKEN_PREVIEW_BYTES)?;
        RawValue::from_string(text).map_err(|_| TooLong { hidden: 0 })
    }

    /// The proven name first, then what the client says of itself.
    fn caller(&self) -> String {
        let principal = visible::text(self.principal);
        match self.client {
            Some(client) => format!("{principal} (calls itself {})", quoted(client)),
            None => principal,
        }
    }
}

fn fits(text: String, most: usize) -> Result<String, TooLong> {
    if text.len() <= most { Ok(text) } else { Err(TooLong { hidden: text.len() - most }) }
}

/// A text in quotes, with what hides made visible.
fn quoted(text: &str) -> String {
    visible::json(&serde_json::Value::from(text).to_string())
}

/// The server's words on one line, exactly as they are hashed: white space between them could push text out of sight.
fn words(preview: &RawValue) -> String {
    let canonical = canonical(preview.get().as_bytes(), None, Dialect::DoubledDollar);
    // What has no canonical text is no preview.
    visible::json(canonical.as_ref().map_or("null", Canonical::as_str))
}

/// The arguments, one a line: exactly the canonical text that is hashed, cut at its members.
pub fn lines(arguments: &Canonical) -> Vec<String> {
    let text = arguments.as_str();
    if !text.starts_with('{') {
        return vec![visible::json(text)];
    }
    let mut lines = Vec::new();
    let mut scanner = Scanner::new(text.as_bytes());
    // What is canonical is an object to its end.
    let _ = scanner.object(|scanner, _, key_at| {
        let value = scanner.value()?;
        lines.push(visible::json(text.get(key_at..value.end).unwrap_or_default()));
        Ok(())
    });
    lines
}
