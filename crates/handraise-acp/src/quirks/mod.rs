//! What agents do differently, decided once per agent from what `initialize` answered.
//!
//! One file per agent, each with the versions that were measured. Nothing elsewhere asks which agent it talks to.

pub mod claude_agent_acp;
pub mod codex_acp;
pub mod cursor_agent;
pub mod mistral_vibe;
mod version;

use handraise_core::form::{FormProfile, MetaPath, Order};
use serde_json::{Map, Value};

pub use version::Version;

use crate::read::id;

/// An agent that was measured; also a closed set of labels for counters (S39).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Agent {
    /// `@agentclientprotocol/claude-agent-acp`.
    ClaudeAgentAcp,
    /// `@agentclientprotocol/codex-acp`.
    CodexAcp,
    /// `@mistralai/mistral-vibe`.
    MistralVibe,
    /// Any other.
    #[default]
    Other,
}

impl Agent {
    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeAgentAcp => "claude-agent-acp",
            Self::CodexAcp => "codex-acp",
            Self::MistralVibe => "mistral-vibe",
            Self::Other => "other",
        }
    }
}

/// How an agent calls itself. Its own claim, shown as one (S26).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentInfo {
    /// Its package name.
    pub name: Option<String>,
    /// Its version, as written.
    pub version: Option<String>,
}

impl AgentInfo {
    /// Reads `agentInfo` of the result of `initialize`. What is missing or odd is absent.
    pub fn read(result: &Value) -> Self {
        let info = result.get("agentInfo").and_then(Value::as_object);
        let text = |key| info.and_then(|info| id(info, key)).map(str::to_owned);
        Self { name: text("name"), version: text("version") }
    }
}

/// How one agent is read and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks {
    /// Which agent it is.
    pub agent: Agent,
    /// How its forms are written and its answers read.
    pub form: FormProfile,
    /// Where a request's `_meta` says which word when its answer is taken after the prompt ended too.
    pub asynchronous: Option<(MetaPath, &'static str)>,
}

impl Quirks {
    /// Decides, once per agent. `order` is what the configuration says: [`Order::Series`], or [`Order::Sorted`]
    /// for `acp.question_order = "sorted"`.
    pub fn decide(info: &AgentInfo, order: Order) -> Self {
        let version = info.version.as_deref().and_then(Version::parse);
        let mut quirks = match info.name.as_deref() {
            Some(claude_agent_acp::NAME) => claude_agent_acp::quirks(version),
            Some(codex_acp::NAME) => codex_acp::quirks(),
            Some(mistral_vibe::NAME) => mistral_vibe::quirks(),
            _ => Self::default(),
        };
        quirks.form.order = order;
        quirks
    }

    /// Whether the answer to a request is taken after the prompt around it ended.
    pub fn outlives_prompt(&self, params: &Map<String, Value>) -> bool {
        let Some((path, word)) = self.asynchronous else { return false };
        let said =
            params.get("_meta").and_then(|meta| path.iter().try_fold(meta, |value, key| value.get(*key)));
        said.and_then(Value::as_str) == Some(word)
    }
}

#[cfg(test)]
mod tests {
    use handraise_core::form::{CompanionMarker, PromptRule};
    use handraise_core::words::Companion;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::any_json;

    pub(crate) fn decided(name: &str, version: &str) -> Quirks {
        let info = AgentInfo { name: Some(name.into()), version: Some(version.into()) };
        Quirks::decide(&info, Order::Series)
    }

    #[test]
    fn other_agents_are_unchanged_by_every_quirk() {
        let plain = Quirks::default();
        assert_eq!(plain.form, FormProfile::acp());
        assert_eq!(plain.form.companion, Companion::Replaces);
        assert_eq!(plain.form.markers, [FormProfile::CUSTOM_ANSWER]);
        assert_eq!(plain.form.prompt, PromptRule::DescriptionAsks);
        for name in
            ["", "claude-agent-acp", "codex-acp", "@zed-industries/claude-code-acp", "gemini", "opencode"]
        {
            assert_eq!(decided(name, "99.0.0"), plain, "{name}");
        }
        assert_eq!(Quirks::decide(&AgentInfo::default(), Order::Series), plain);
        for name in [codex_acp::NAME, mistral_vibe::NAME] {
            let markers = decided(name, "99.0.0").form.markers;
            assert!(!markers.iter().any(|marker| matches!(marker, CompanionMarker::Suffix(_))), "{name}");
        }
        for name in [claude_agent_acp::NAME, mistral_vibe::NAME] {
            let quirks = decided(name, "99.0.0");
            assert_eq!(
                (quirks.form.prompt, quirks.form.secrets.len()),
                (PromptRule::DescriptionAsks, 0),
                "{name}"
            );
            assert_eq!(quirks.asynchronous, None, "{name}");
        }
    }

    #[test]
    fn the_configuration_can_force_d1_for_all() {
        for name in [claude_agent_acp::NAME, codex_acp::NAME, "other"] {
            let info = AgentInfo { name: Some(name.into()), version: None };
            assert_eq!(Quirks::decide(&info, Order::Sorted).form.order, Order::Sorted);
            assert_eq!(Quirks::decide(&info, Order::Series).form.order, Order::Series);
        }
    }

    #[test]
    fn agent_info_is_read_from_the_result_of_initialize() {
        let info = AgentInfo::read(&json!({"agentInfo": {"name": "n", "version": "1.0.0", "title": "N"}}));
        assert_eq!(info, AgentInfo { name: Some("n".into()), version: Some("1.0.0".into()) });
        for odd in [json!(null), json!({"agentInfo": null}), json!({"agentInfo": {"name": 5, "version": ""}})]
        {
            assert_eq!(AgentInfo::read(&odd), AgentInfo::default());
        }
    }

    proptest! {
        #[test]
        fn deciding_is_total(value in any_json(), version in any::<String>()) {
            let _ = Quirks::decide(&AgentInfo::read(&value), Order::Series);
            let _ = Quirks::decide(&AgentInfo::read(&json!({ "agentInfo": value })), Order::Series);
            let quirks = decided(claude_agent_acp::NAME, &version);
            prop_assert_eq!(quirks.agent, Agent::ClaudeAgentAcp);
            if let Some(params) = json!({ "_meta": value }).as_object() {
                let _ = codex_acp::quirks().outlives_prompt(params);
            }
        }
    }
}
