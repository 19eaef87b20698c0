//! One rule: which refusal, where its parts stand, and what it becomes.

use super::template::{Template, TemplateError};
use crate::pointer::{Pointer, PointerError};
use crate::visible;

/// The name of the built-in rule.
pub const PRESET: &str = "ambiguous_device_target";

/// The most bytes of a rule's name, code, argument and tool.
const MAX_NAME_BYTES: usize = 128;
/// The most paths of one kind.
const MAX_PATHS: usize = 16;

/// A `[[refusal]]` table as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// The refusal's name, in records and in decline memory.
    pub name: String,
    /// The code that the refusal carries.
    pub code: String,
    /// JSON pointers to the code; the first that holds a string decides.
    pub code_at: Vec<String>,
    /// JSON pointers to the candidates; the first that holds an array decides.
    pub candidates_at: Vec<String>,
    /// A JSON pointer into a candidate, to the string that goes into the argument; `""` for the candidate itself.
    pub value: String,
    /// What a human reads for a candidate, with `{member}` for its members.
    pub title: String,
    /// The top-level argument that the choice fills.
    pub argument: String,
    /// What a human is asked, with `{tool}` and `{argument}`.
    pub message: String,
    /// A read-only tool that lists the candidates afresh: its name, and JSON pointers into its result.
    pub candidates_tool: Option<(String, Vec<String>)>,
}

/// Why a rule cannot be used: which member, what about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Something that must not be empty, or is too long.
    #[error("refusal \"{name}\": {member} has {length} bytes; it takes 1 to 128")]
    Length {
        /// The rule.
        name: String,
        /// Which of its members.
        member: &'static str,
        /// How long it is.
        length: usize,
    },
    /// No path, or too many.
    #[error("refusal \"{name}\": {member} has {count} paths; it takes 1 to 16")]
    Paths {
        /// The rule.
        name: String,
        /// Which of its members.
        member: &'static str,
        /// How many there are.
        count: usize,
    },
    /// A path that is no JSON pointer.
    #[error("refusal \"{name}\": {member}: {source}")]
    Pointer {
        /// The rule.
        name: String,
        /// Which of its members.
        member: &'static str,
        /// What is wrong.
        source: PointerError,
    },
    /// A text that cannot be filled in.
    #[error("refusal \"{name}\": {member}: {source}")]
    Template {
        /// The rule.
        name: String,
        /// Which of its members.
        member: &'static str,
        /// What is wrong.
        source: TemplateError,
    },
}

/// A rule that can be tried on results. It states that this refusal means that nothing was done yet.
#[derive(Debug, Clone)]
pub struct Rule {
    name: String,
    code: String,
    pub(super) code_at: Vec<Pointer>,
    pub(super) candidates_at: Vec<Pointer>,
    pub(super) value: Pointer,
    pub(super) title: Template,
    argument: String,
    message: Template,
    candidates_tool: Option<CandidatesTool>,
}

/// The tool that lists candidates afresh.
#[derive(Debug, Clone)]
pub struct CandidatesTool {
    name: String,
    pub(super) candidates_at: Vec<Pointer>,
}

impl CandidatesTool {
    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Rule {
    /// Checks a rule.
    pub fn new(source: RuleSource) -> Result<Self, RuleError> {
        let check = Check { name: &source.name };
        check.length("name", &source.name)?;
        check.length("code", &source.code)?;
        check.length("argument", &source.argument)?;
        let code_at = check.pointers("code_at", &source.code_at)?;
        let candidates_at = check.pointers("candidates_at", &source.candidates_at)?;
        let value = check.pointer("value", &source.value)?;
        let title = check.template("title", &source.title)?;
        let message = check.template("message", &source.message)?;
        if let Some(place) = message.places().find(|place| !matches!(*place, "tool" | "argument")) {
            let error = TemplateError::Place(place.to_owned());
            return Err(RuleError::Template { name: source.name.clone(), member: "message", source: error });
        }
        let candidates_tool = source
            .candidates_tool
            .as_ref()
            .map(|(tool, at)| {
                check.length("candidates_tool.name", tool)?;
                let candidates_at = check.pointers("candidates_tool.candidates_at", at)?;
                Ok(CandidatesTool { name: tool.clone(), candidates_at })
            })
            .transpose()?;
        Ok(Self {
            code_at,
            candidates_at,
            value,
            title,
            message,
            candidates_tool,
            name: source.name,
            code: source.code,
            argument: source.argument,
        })
    }

    /// The preset: a device tool that refuses because several devices fit.
    pub fn ambiguous_device_target() -> Self {
        let pointers = |paths: &[&[&str]]| paths.iter().map(|path| Pointer::members(path)).collect();
        Self {
            name: PRESET.to_owned(),
            code: PRESET.to_owned(),
            code_at: pointers(&[&["code"], &["error", "code"], &["failure", "code"]]),
            candidates_at: pointers(&[
                &["candidates"],
                &["error", "candidates"],
                &["devices"],
                &["error", "devices"],
            ]),
            value: Pointer::members(&["deviceId"]),
            title: Template::of(&["", "deviceId", " (", "platform", ")"]),
            argument: "deviceId".to_owned(),
            message: Template::of(&["Which device should ", "tool", " use?"]),
            candidates_tool: None,
        }
    }

    /// The refusal's name, in records and in decline memory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The code that the refusal carries.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The top-level argument that the choice fills.
    pub fn argument(&self) -> &str {
        &self.argument
    }

    /// The tool that lists candidates afresh, where one is configured.
    pub fn candidates_tool(&self) -> Option<&CandidatesTool> {
        self.candidates_tool.as_ref()
    }

    /// What a human is asked about a call of that tool. Controls and what reorders text are made visible in its name (S26).
    pub fn message_for(&self, tool: &str) -> String {
        let filling = |place: &str| Some(visible::text(if place == "tool" { tool } else { &self.argument }));
        self.message.fill(filling).unwrap_or_default()
    }
}

/// Names the rule in every complaint about it.
struct Check<'a> {
    name: &'a str,
}

impl Check<'_> {
    fn length(&self, member: &'static str, text: &str) -> Result<(), RuleError> {
        if (1..=MAX_NAME_BYTES).contains(&text.len()) {
            return Ok(());
        }
        // A name that is itself too long is not repeated.
        let name = if self.name.len() > MAX_NAME_BYTES { "…" } else { self.name };
        Err(RuleError::Length { name: name.to_owned(), member, length: text.len() })
    }

    fn pointers(&self, member: &'static str, paths: &[String]) -> Result<Vec<Pointer>, RuleError> {
        if !(1..=MAX_PATHS).contains(&paths.len()) {
            return Err(RuleError::Paths { name: self.name.to_owned(), member, count: paths.len() });
        }
        paths.iter().map(|path| self.pointer(member, path)).collect()
    }

    fn pointer(&self, member: &'static str, path: &str) -> Result<Pointer, RuleError> {
        Pointer::parse(path).map_err(|source| RuleError::Pointer {
            name: self.name.to_owned(),
            member,
            source,
        })
    }

    fn template(&self, member: &'static str, text: &str) -> Result<Template, RuleError> {
        Template::parse(text).map_err(|source| RuleError::Template {
            name: self.name.to_owned(),
            member,
            source,
        })
    }
}
