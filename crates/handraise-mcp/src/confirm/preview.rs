//! What a preview tool said: the server's words about a call that has not run.

use serde_json::value::RawValue;

use super::guard::PreviewRule;
use crate::canonical::{Dialect, canonical};
use crate::pointer::{self, sole};

/// The longest result of a preview, in bytes.
pub const MAX_PREVIEW_BYTES: usize = 64 * 1024;

/// A preview that can be shown and bound.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The server's words, as JSON.
    pub words: Box<RawValue>,
    /// The target's revision, where the rule says where it stands.
    pub revision: Option<String>,
}

/// Why there is no preview, and so no confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PreviewFault {
    /// Its server does not list it as read-only, and nobody has trusted it.
    NotReadOnly,
    /// It is guarded itself.
    Guarded,
    /// It asked something.
    Asked,
    /// It refused.
    Refused,
    /// It became a task.
    Task,
    /// It failed, or its result cannot be read or bound.
    Error,
    /// Its result has more than [`MAX_PREVIEW_BYTES`].
    TooLarge,
    /// It did not answer in time.
    Late,
    /// The revision is not where it should be.
    NoRevision,
}

impl PreviewFault {
    /// The fault's one spelling, in records and results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotReadOnly => "preview-not-read-only",
            Self::Guarded => "preview-guarded",
            Self::Asked => "preview-asked",
            Self::Refused => "preview-refused",
            Self::Task => "preview-task",
            Self::Error => "preview-error",
            Self::TooLarge => "preview-too-large",
            Self::Late => "preview-timeout",
            Self::NoRevision => "preview-no-revision",
        }
    }
}

impl Preview {
    /// Reads the result of a preview; `None`: an error came instead.
    pub fn read(rule: &PreviewRule, result: Option<&str>) -> Result<Self, PreviewFault> {
        let result = result.ok_or(PreviewFault::Error)?;
        if result.len() > MAX_PREVIEW_BYTES {
            return Err(PreviewFault::TooLarge);
        }
        let whole: &RawValue = serde_json::from_str(result).map_err(|_| PreviewFault::Error)?;
        let member = |name| sole(whole, name).map_err(|_| PreviewFault::Error);
        match member("resultType")?.map(pointer::string) {
            None => {}
            Some(Some(kind)) if kind == "complete" => {}
            Some(Some(kind)) if kind == "input_required" => return Err(PreviewFault::Asked),
            Some(Some(kind)) if kind == "task" => return Err(PreviewFault::Task),
            Some(_) => return Err(PreviewFault::Error),
        }
        if member("task")?.is_some() {
            return Err(PreviewFault::Task);
        }
        match member("isError")?.map(RawValue::get) {
            None | Some("false") => {}
            Some(_) => return Err(PreviewFault::Refused),
        }
        let words = words(member("content")?, member("structuredContent")?).ok_or(PreviewFault::Error)?;
        // What is shown is what is hashed.
        canonical(words.get().as_bytes(), None, Dialect::DoubledDollar).map_err(|_| PreviewFault::Error)?;
        let revision = match rule.revision() {
            None => None,
            Some(path) => {
                let value = path.find(&words).ok_or(PreviewFault::NoRevision)?;
                Some(pointer::string(value).unwrap_or_else(|| value.get().to_owned()))
            }
        };
        Ok(Self { words, revision })
    }
}

/// The words of a result: the JSON of its one text where it is some, else everything.
fn words(content: Option<&RawValue>, structured: Option<&RawValue>) -> Option<Box<RawValue>> {
    let blocks = content.map_or_else(|| Some(Vec::new()), |content| pointer::items(content, 1024))?;
    if let [only] = blocks.as_slice()
        && let Ok(Some(text)) = sole(only, "text")
        && let Some(text) = pointer::string(text)
        && let Ok(words) = serde_json::from_str::<Box<RawValue>>(&text)
        && words.get().starts_with(['{', '['])
    {
        return Some(words);
    }
    let json = match (content, structured) {
        (None, None) => return None,
        (Some(content), None) => format!("{{\"content\":{}}}", content.get()),
        (None, Some(structured)) => structured.get().to_owned(),
        (Some(content), Some(structured)) => {
            format!("{{\"content\":{},\"structuredContent\":{}}}", content.get(), structured.get())
        }
    };
    RawValue::from_string(json).ok()
}
