//! The ask: what operators read and answer (inbox.md).

use handraise_core as core;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};
use utoipa::ToSchema;

use crate::words::{
    AskState, Companion, HolderKind, Kind, Mode, OnDeadline, Outcome, Provenance, Rail, Source, Who,
    WireAction,
};

/// One pending or ended request for a human decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ask {
    /// Minted by the holder, reused verbatim on every hop.
    pub id: String,
    /// SHA-256 of the content, in hex: what was painted is what was answered (S15).
    pub digest: String,
    /// Where it is in its life.
    pub state: AskState,
    /// What is asked.
    #[serde(flatten)]
    pub content: AskContent,
    /// Who asks; proof first, claims after (S26).
    pub origin: Origin,
    /// When the inbox first heard of it.
    #[schema(value_type = String, format = DateTime)]
    pub opened_at: Timestamp,
    /// When it ends by itself.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub deadline: Option<Timestamp>,
    /// Until when an answer is kept for the next identical call.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub parked_until: Option<Timestamp>,
    /// Whether its holder can be reached now.
    pub holder_connected: bool,
    /// How it ended.
    #[schema(required)]
    pub settlement: Option<Settlement>,
    /// Set on a repeated answer by the operator whose equal submission had won.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// What is asked: immutable once announced, and what the digest covers (S9).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AskContent {
    /// Where it comes from.
    pub source: Source,
    /// Form or link.
    pub mode: Mode,
    /// The inbox-wide session it belongs to.
    #[schema(required)]
    pub session_id: Option<String>,
    /// The agent's tool call around it.
    #[schema(required)]
    pub tool_call_id: Option<String>,
    /// The request's own words.
    pub message: String,
    /// The page to open, in `url` mode.
    #[schema(required)]
    pub url: Option<String>,
    /// The guarded call, for a confirm.
    #[schema(required)]
    pub confirm: Option<Confirm>,
    /// What the holder does at the deadline.
    #[schema(required)]
    pub on_deadline: Option<OnDeadline>,
    /// Whose answer counts (S16); every operator's where nothing is said.
    #[serde(default, skip_serializing_if = "Who::is_everybody")]
    pub who: Who,
    /// Whether free text may stand beside a selection (F6).
    pub allows_text_with_selection: bool,
    /// Whether questions may be left unanswered (F6).
    pub allows_partial: bool,
    /// In presentation order.
    pub questions: Vec<Question>,
}

impl AskContent {
    /// SHA-256 of the content as JSON text, in hex: names what was painted and what was answered (S9, S15).
    pub fn digest(&self) -> String {
        // The text of a value that came from JSON text cannot fail; an empty one would only never match.
        Self::digest_of(&serde_json::to_string(self).unwrap_or_default())
    }

    /// The [`digest`](Self::digest) of content whose JSON text this is.
    pub fn digest_of(text: &str) -> String {
        use std::fmt::Write as _;

        use sha2::{Digest as _, Sha256};

        Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// A guarded call that waits for a confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Confirm {
    /// Tool name.
    pub tool: String,
    /// Account it acts as, if known.
    #[schema(required)]
    pub account: Option<String>,
    /// What it acts on.
    #[schema(required)]
    pub target: Option<String>,
    /// The act in words, for the button.
    #[schema(required)]
    pub action: Option<String>,
    /// Exactly the canonical JSON text of the arguments that is bound to the answer, cut at its members: one a line. What
    /// hides in it is escaped.
    pub arguments: String,
    /// What the upstream's preview says: that server's own words, and shown as such.
    #[schema(required)]
    pub preview: Option<String>,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Origin {
    /// What kind of process holds it.
    pub holder: HolderKind,
    /// The name of the token it came with: proven.
    pub holder_token: String,
    /// The person whose token that is, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub owner: Option<String>,
    /// The agent or client, by its own word.
    #[schema(required)]
    pub client: Option<Implementation>,
    /// The server behind the question, by its own word.
    #[schema(required)]
    pub server: Option<String>,
}

/// A program's self-given name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Implementation {
    /// Name.
    pub name: String,
    /// Version.
    #[schema(required)]
    pub version: Option<String>,
}

/// One question of an ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Question {
    /// The schema's property key, verbatim.
    pub id: String,
    /// The shape of its answer.
    pub kind: Kind,
    /// A short heading.
    #[schema(required)]
    pub title: Option<String>,
    /// The question itself.
    pub prompt: String,
    /// Whether it must be answered.
    pub required: bool,
    /// Pre-fills the surface; never sent unseen.
    #[schema(required)]
    pub default: Option<Value>,
    /// Whether free text is taken.
    pub allows_text: bool,
    /// What free text does to a selection.
    #[schema(required)]
    pub companion: Option<Companion>,
    /// Whether the answer looks like a secret.
    pub secret: bool,
    /// In declaration order; `[]` for kinds without.
    pub choices: Vec<Choice>,
    /// What the schema demands.
    pub constraints: Constraints,
}

/// One option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Choice {
    /// What an answer names.
    pub value: String,
    /// What a human reads.
    pub label: String,
    /// One line about it.
    #[schema(required)]
    pub description: Option<String>,
    /// What choosing it would look like, as text.
    #[schema(required)]
    pub preview: Option<String>,
}

/// What the schema demands of an answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Constraints {
    /// Shortest text, in Unicode scalar values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub min_length: Option<u64>,
    /// Longest text, in Unicode scalar values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_length: Option<u64>,
    /// A regular expression; checked by the holder alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pattern: Option<String>,
    /// `email`, `uri`, `date`, `date-time`, or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub format: Option<String>,
    /// Least number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64)]
    pub minimum: Option<Number>,
    /// Greatest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64)]
    pub maximum: Option<Number>,
    /// Fewest selections.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub min_items: Option<u64>,
    /// Most selections.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_items: Option<u64>,
}

/// A human's answer to one question. `Debug` hides what was said.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Answer {
    /// Which question.
    pub question_id: String,
    /// Values of the choices picked.
    #[serde(default)]
    #[schema(required)]
    pub selected_options: Vec<String>,
    /// Free text; numbers too come here, as text.
    #[serde(default)]
    #[schema(required)]
    pub custom_text: String,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        core::Answer::from(self.clone()).fmt(f)
    }
}

/// How an ask ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Settlement {
    /// How.
    pub outcome: Outcome,
    /// Who stands behind it.
    pub provenance: Provenance,
    /// How it reached a human.
    pub rail: Rail,
    /// What the asking side was sent; `null` when nothing could be sent.
    #[schema(required)]
    pub wire: Option<WireAction>,
    /// The operator or token that answered.
    #[schema(required)]
    pub by: Option<String>,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Why, in words or a code such as `agent_disconnected`.
    #[schema(required)]
    pub reason: Option<String>,
    /// What was answered; secrets as `•` (S33).
    pub answers: Vec<Answer>,
    /// The submission that won.
    #[schema(required)]
    pub submission_id: Option<String>,
}

/// Body of `POST /asks/{id}/answer`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRequest {
    /// One entry per answered question; empty for none, which accepts an ask that takes partial answers.
    #[serde(deserialize_with = "spelled_out")]
    pub answers: Vec<Answer>,
    /// Set by the Skip control.
    #[serde(default)]
    pub rejected: bool,
    /// Why it was skipped.
    #[serde(default)]
    pub reject_reason: String,
}

/// Body of `POST /asks/answer-batch` (S44).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// Confirms and permissions of one holder.
    pub submissions: Vec<BatchEntry>,
}

/// One ask's answer within a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchEntry {
    /// Which ask.
    pub id: String,
    /// Its answers.
    #[serde(deserialize_with = "spelled_out")]
    pub answers: Vec<Answer>,
    /// Whether it is skipped.
    #[serde(default)]
    pub rejected: bool,
}

/// Reads the answers of a request. On the holder stream and in the store what is not known is ignored, for the sake of
/// other versions; from whoever answers, a field that is misspelt would be a question left empty.
fn spelled_out<'de, D: Deserializer<'de>>(given: D) -> Result<Vec<Answer>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename = "Answer", deny_unknown_fields)]
    struct Given {
        question_id: String,
        #[serde(default)]
        selected_options: Vec<String>,
        #[serde(default)]
        custom_text: String,
    }

    let given = Vec::<Given>::deserialize(given)?;
    let answer = |Given { question_id, selected_options, custom_text }| Answer {
        question_id,
        selected_options,
        custom_text,
    };
    Ok(given.into_iter().map(answer).collect())
}

/// Body of `POST /asks/{id}/seen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenRequest {
    /// The digest of what was painted.
    pub digest: String,
    /// `"terminal"` from `handraise inbox`; absent from the page.
    #[serde(default)]
    pub surface: Option<String>,
}

/// `GET /asks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AskList {
    /// One page.
    pub asks: Vec<Ask>,
    /// Pass as `cursor` for the next page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// `GET /asks/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AskDetail {
    /// The ask.
    #[serde(flatten)]
    pub ask: Ask,
    /// What happened to it, oldest first.
    pub events: Vec<AskEvent>,
}

/// One thing that happened to an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskEvent {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// `opened`, `seen`, `submitted`, `verdict`, `settled`, `disconnected`, `reconnected`.
    pub kind: String,
    /// Who did it, where someone did.
    #[schema(required)]
    pub by: Option<String>,
    /// In short: a code, never an answer.
    #[schema(required)]
    pub detail: Option<String>,
}

impl From<core::Answer> for Answer {
    fn from(answer: core::Answer) -> Self {
        let core::Answer { question_id, selected_options, custom_text } = answer;
        Self { question_id, selected_options, custom_text }
    }
}

impl From<Answer> for core::Answer {
    fn from(answer: Answer) -> Self {
        let Answer { question_id, selected_options, custom_text } = answer;
        Self { question_id, selected_options, custom_text }
    }
}

impl From<&core::Question> for Question {
    fn from(question: &core::Question) -> Self {
        let core::Question {
            id,
            kind,
            title,
            prompt,
            required,
            default,
            allows_text,
            companion,
            secret,
            choices,
            constraints,
        } = question;
        Self {
            id: id.clone(),
            kind: (*kind).into(),
            title: title.clone(),
            prompt: prompt.clone(),
            required: *required,
            default: default.clone(),
            allows_text: *allows_text,
            companion: companion.map(Into::into),
            secret: *secret,
            choices: choices.iter().map(Into::into).collect(),
            constraints: constraints.into(),
        }
    }
}

impl From<&core::Choice> for Choice {
    fn from(choice: &core::Choice) -> Self {
        let core::Choice { value, label, description, preview } = choice.clone();
        Self { value, label, description, preview }
    }
}

impl From<&core::Constraints> for Constraints {
    fn from(constraints: &core::Constraints) -> Self {
        let core::Constraints {
            min_length,
            max_length,
            pattern,
            format,
            minimum,
            maximum,
            min_items,
            max_items,
        } = constraints.clone();
        Self { min_length, max_length, pattern, format, minimum, maximum, min_items, max_items }
    }
}
