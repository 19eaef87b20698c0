//! What differs between agents, as data: order, companions, prompts, secrets, previews.

use crate::words::Companion;

/// Keys that lead from a property's or choice's `_meta` to a value.
pub type MetaPath = &'static [&'static str];

/// In which order questions are presented (form.md, "Order").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The order of the JSON text: MCP and script asks.
    Declared,
    /// The order of the JSON text, except that keys forming one numbered series are put in D1 order: ACP asks.
    #[default]
    Series,
    /// D1 for all: where the order was lost, or `acp.question_order = "sorted"`.
    Sorted,
}

/// How a string property is recognised as the companion of another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompanionMarker {
    /// `_meta` names the question at `question`, provided that it holds `value` at `path` for each `(path, value)`
    /// of `when`.
    Meta {
        /// Leads to the question's key.
        question: MetaPath,
        /// Must hold, or the marker is no marker.
        when: &'static [(MetaPath, &'static str)],
    },
    /// The key is a choice question's key with this suffix, and the property is an unconstrained, non-required
    /// string. Only for agents measured to do this (form.md, "Companions", 4).
    Suffix(&'static str),
}

/// Which of a property's words is the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PromptRule {
    /// `description` asks and `title` is the heading (AC-05, AC-06).
    #[default]
    DescriptionAsks,
    /// Where the property's `_meta` holds something at this path, `title` asks and `description` is the heading.
    TitleAsksWhere(MetaPath),
}

/// How one kind of agent writes its forms and reads the answers. Quirks of agents are built by their dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormProfile {
    /// In which order questions are presented.
    pub order: Order,
    /// What the agent does with a companion's text beside a selection.
    pub companion: Companion,
    /// Whether a question with choices and without a companion takes words at its own key: instead of a pick, or among
    /// several.
    pub own_words: bool,
    /// How companions are recognised; the first match wins.
    pub markers: &'static [CompanionMarker],
    /// Which of a property's words is the question.
    pub prompt: PromptRule,
    /// Where `_meta` of a property says `true` for a secret.
    pub secrets: &'static [MetaPath],
    /// Where `_meta` of a choice holds a preview.
    pub previews: &'static [MetaPath],
}

impl FormProfile {
    /// The marker of seed and older Claude bridges: `_meta._askUserQuestionCustomAnswer.questionId`.
    pub const CUSTOM_ANSWER: CompanionMarker =
        CompanionMarker::Meta { question: &["_askUserQuestionCustomAnswer", "questionId"], when: &[] };

    /// Where the Claude bridge puts a choice's preview. The key is namespaced, so everybody may use it.
    pub const OPTION_PREVIEW: MetaPath = &["_claude/askUserQuestionOption", "preview"];

    /// An agent nobody measured: the seed's rules.
    pub const fn acp() -> Self {
        Self {
            order: Order::Series,
            companion: Companion::Replaces,
            own_words: false,
            markers: &[Self::CUSTOM_ANSWER],
            prompt: PromptRule::DescriptionAsks,
            secrets: &[],
            previews: &[Self::OPTION_PREVIEW],
        }
    }

    /// MCP servers and scripts: as [`FormProfile::acp`], in the order of the JSON text.
    pub const fn declared() -> Self {
        Self { order: Order::Declared, ..Self::acp() }
    }
}

impl Default for FormProfile {
    fn default() -> Self {
        Self::acp()
    }
}
