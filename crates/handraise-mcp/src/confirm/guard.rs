//! Which tools are guarded, and what is shown about a call of one (confirm.md, "In the gateway").

use std::sync::Arc;

use serde_json::value::RawValue;

use super::glob::{Glob, MAX_PATTERN_BYTES};
use crate::pointer::{self, Pointer, PointerError};

/// The most patterns, and arguments of a preview.
const MAX_ENTRIES: usize = 256;

/// The most bytes of an action and of a preview's tool.
const MAX_WORD_BYTES: usize = 256;

/// A `[[confirm]]` table as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GuardSource {
    /// Patterns of the tools that are guarded. Empty: those whose annotations call them destructive, or nothing.
    pub tools: Vec<String>,
    /// Patterns of tools that this table leaves out.
    pub except: Vec<String>,
    /// What a human is asked to confirm.
    pub action: Option<String>,
    /// A JSON pointer into the arguments: for whom the call acts.
    pub account: Option<String>,
    /// A JSON pointer into the arguments: what it acts on.
    pub target: Option<String>,
    /// The tool that shows what the call would do.
    pub preview: Option<PreviewSource>,
    /// Only a page session that painted the question may accept.
    pub needs_human: bool,
    /// Whose acceptance counts.
    pub who: Answerers,
}

/// Whose acceptance counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answerers {
    /// Every operator's.
    #[default]
    Operator,
    /// Only that of whoever calls.
    Caller,
    /// Only that of somebody else.
    NotTheCaller,
    /// Nobody's: tables contradict each other.
    Nobody,
}

impl Answerers {
    /// Those whom both name.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Operator, one) | (one, Self::Operator) => one,
            (one, another) if one == another => one,
            _ => Self::Nobody,
        }
    }
}

/// What all tables together demand of whoever accepts a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    /// It takes a surface of the inbox that has painted the question.
    pub human: bool,
    /// Whose acceptance counts.
    pub who: Answerers,
}

impl Demand {
    /// Whether it leaves nothing but the inbox.
    pub fn needs_inbox(self) -> bool {
        self.human || self.who != Answerers::Operator
    }
}

/// The `preview` of a [`GuardSource`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreviewSource {
    /// The tool.
    pub tool: String,
    /// Its arguments, each with a JSON pointer into those of the guarded call.
    pub arguments: Vec<(String, String)>,
    /// A JSON pointer into its result: the target's revision.
    pub revision: Option<String>,
    /// It may be called although its server does not call it read-only.
    pub is_trusted: bool,
}

/// Why a table cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// A pattern that is empty or too long, or too many of them.
    #[error(
        "{member}: \"{pattern}\" is no pattern: it takes 1 to {MAX_PATTERN_BYTES} bytes, and a list 1 to {MAX_ENTRIES} of them"
    )]
    Pattern {
        /// The member of the table.
        member: &'static str,
        /// What it has.
        pattern: String,
    },
    /// A text of no length, or too long.
    #[error("{member} has {length} bytes; it takes 1 to {MAX_WORD_BYTES}")]
    Length {
        /// The member of the table.
        member: &'static str,
        /// How long it is.
        length: usize,
    },
    /// A path that is no JSON pointer.
    #[error("{member}: {source}")]
    Pointer {
        /// The member of the table.
        member: String,
        /// What is wrong.
        source: PointerError,
    },
    /// A preview that nobody may call without a confirmation.
    #[error(
        "preview: the tool \"{tool}\" is guarded itself; add it to except of the table whose tools name it"
    )]
    GuardedPreview {
        /// The tool.
        tool: String,
    },
}

/// What guards some tools.
#[derive(Debug)]
pub struct Guard {
    tools: Vec<Glob>,
    except: Vec<Glob>,
    action: Option<String>,
    account: Option<Pointer>,
    target: Option<Pointer>,
    preview: Option<PreviewRule>,
    demand: Demand,
}

/// How a call is shown before it runs.
#[derive(Debug)]
pub struct PreviewRule {
    tool: String,
    arguments: Vec<(String, Pointer)>,
    revision: Option<Pointer>,
    is_trusted: bool,
}

/// All tables, in the order of the file.
#[derive(Debug, Default)]
pub struct Guards {
    guards: Vec<Arc<Guard>>,
}

/// What guards one tool.
#[derive(Debug, Clone)]
pub struct Guarding {
    /// The first table that the tool falls under: it has the words and the preview.
    pub guard: Arc<Guard>,
    /// What all tables that the tool falls under demand.
    pub demand: Demand,
}

impl Guards {
    /// Checks the tables.
    ///
    /// # Errors
    /// The first [`GuardError`], with the number of its table, from 1.
    pub fn new(sources: Vec<GuardSource>) -> Result<Self, (usize, GuardError)> {
        let guards: Vec<Arc<Guard>> = sources
            .into_iter()
            .enumerate()
            .map(|(index, source)| Guard::new(source).map(Arc::new).map_err(|error| (index + 1, error)))
            .collect::<Result<_, _>>()?;
        let guards = Self { guards };
        for (index, guard) in guards.guards.iter().enumerate() {
            // Patterns guard whatever a server says; annotations are looked at when it is called.
            if let Some(preview) = &guard.preview
                && guards.guards.iter().any(|other| other.names(&preview.tool))
            {
                return Err((index + 1, GuardError::GuardedPreview { tool: preview.tool.clone() }));
            }
        }
        Ok(guards)
    }

    /// Whether nothing is guarded.
    pub fn is_empty(&self) -> bool {
        self.guards.is_empty()
    }

    /// Whether a tool may be guarded, whatever its server says about it.
    pub fn concern(&self, tool: &str) -> bool {
        self.guards.iter().any(|guard| guard.covers(tool, false))
    }

    /// What guards a tool. `is_harmless`: its server has said so, and never anything else.
    pub fn of(&self, tool: &str, is_harmless: bool) -> Option<Guarding> {
        let mut covering = self.guards.iter().filter(|guard| guard.covers(tool, is_harmless)).peekable();
        let guard = Arc::clone(covering.peek()?);
        let demand = covering.fold(Demand::default(), |all, guard| Demand {
            human: all.human || guard.demand.human,
            who: all.who.and(guard.demand.who),
        });
        Some(Guarding { guard, demand })
    }
}

impl Guard {
    fn new(source: GuardSource) -> Result<Self, GuardError> {
        let preview = source.preview.map(PreviewRule::new).transpose()?;
        if let Some(action) = &source.action {
            word("action", action)?;
        }
        Ok(Self {
            tools: globs("tools", &source.tools)?,
            except: globs("except", &source.except)?,
            action: source.action,
            account: source.account.map(|path| pointer("account".to_owned(), &path)).transpose()?,
            target: source.target.map(|path| pointer("target".to_owned(), &path)).transpose()?,
            preview,
            demand: Demand { human: source.needs_human, who: source.who },
        })
    }

    /// Whether the table names a tool by a pattern.
    fn names(&self, tool: &str) -> bool {
        self.tools.iter().any(|glob| glob.is_roughly(tool))
            && !self.except.iter().any(|glob| glob.is_exactly(tool))
    }

    fn covers(&self, tool: &str, is_harmless: bool) -> bool {
        if self.tools.is_empty() {
            return !is_harmless && !self.except.iter().any(|glob| glob.is_exactly(tool));
        }
        self.names(tool)
    }

    /// What a human is asked to confirm.
    pub fn action(&self, tool: &str) -> String {
        self.action.clone().unwrap_or_else(|| format!("Run {}", crate::visible::text(tool)))
    }

    /// For whom a call acts: nobody in particular, where the arguments do not say.
    pub fn account(&self, arguments: &RawValue) -> Option<String> {
        found(self.account.as_ref()?, arguments)
    }

    /// What a call acts on; empty for something new.
    pub fn target(&self, arguments: &RawValue) -> String {
        self.target.as_ref().and_then(|target| found(target, arguments)).unwrap_or_default()
    }

    /// How a call is shown before it runs.
    pub fn preview(&self) -> Option<&PreviewRule> {
        self.preview.as_ref()
    }
}

impl PreviewRule {
    fn new(source: PreviewSource) -> Result<Self, GuardError> {
        word("preview.tool", &source.tool)?;
        if source.arguments.len() > MAX_ENTRIES {
            return Err(GuardError::Length { member: "preview.arguments", length: source.arguments.len() });
        }
        let arguments = source
            .arguments
            .into_iter()
            .map(|(name, path)| Ok((name.clone(), pointer(format!("preview.arguments.{name}"), &path)?)))
            .collect::<Result<_, GuardError>>()?;
        let revision =
            source.revision.map(|path| pointer("preview.revision".to_owned(), &path)).transpose()?;
        Ok(Self { tool: source.tool, arguments, revision, is_trusted: source.is_trusted })
    }

    /// The tool that is called.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Whether it may be called although its server does not call it read-only.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Where its result has the target's revision.
    pub(super) fn revision(&self) -> Option<&Pointer> {
        self.revision.as_ref()
    }

    /// Its arguments, as JSON: each as it stands in those of the guarded call, without those that are not there.
    pub fn arguments(&self, arguments: &RawValue) -> String {
        let mut json = String::from("{");
        for (name, path) in &self.arguments {
            let Some(value) = path.find(arguments) else { continue };
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&crate::frame::splice::quoted(name));
            json.push(':');
            json.push_str(value.get());
        }
        json.push('}');
        json
    }
}

/// What a pointer leads to: a string's text, of everything else its JSON.
fn found(path: &Pointer, arguments: &RawValue) -> Option<String> {
    let value = path.find(arguments)?;
    Some(pointer::string(value).unwrap_or_else(|| value.get().to_owned()))
}

fn globs(member: &'static str, patterns: &[String]) -> Result<Vec<Glob>, GuardError> {
    if patterns.len() > MAX_ENTRIES {
        return Err(GuardError::Pattern { member, pattern: patterns[MAX_ENTRIES].clone() });
    }
    patterns
        .iter()
        .map(|text| Glob::parse(text).ok_or_else(|| GuardError::Pattern { member, pattern: text.clone() }))
        .collect()
}

fn word(member: &'static str, text: &str) -> Result<(), GuardError> {
    let length = text.len();
    if (1..=MAX_WORD_BYTES).contains(&length) { Ok(()) } else { Err(GuardError::Length { member, length }) }
}

fn pointer(member: String, path: &str) -> Result<Pointer, GuardError> {
    Pointer::parse(path).map_err(|source| GuardError::Pointer { member, source })
}
