//! What `initialize` tells an agent about us (AC-01, AC-02, AC-02a).

use serde_json::{Value, json};

use crate::quirks::cursor_agent;

/// The version of ACP spoken here.
pub const PROTOCOL_VERSION: u16 = 1;

/// What is switched on for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer {
    /// The flag `features.acpElicitation`, and an inbox to ask through. The same value gates the handler (F5).
    pub elicitation: bool,
    /// `--allow-terminal`.
    pub terminal: bool,
}

/// The `clientCapabilities` for an agent, by its configured id. Without elicitation they are byte for byte those
/// of a build that has none (AC-02); with it, `elicitation.form` is added and nothing else (AC-02a).
pub fn client_capabilities(agent_id: &str, offer: Offer) -> Value {
    let mut capabilities = json!({
        "fs": { "readTextFile": true, "writeTextFile": true },
        "terminal": offer.terminal,
    });
    if agent_id != cursor_agent::ID {
        capabilities["_meta"] = json!({ "terminal_output": true });
    }
    if offer.elicitation {
        // An object: `{}` as a whole and `{"form":null}` advertise nothing in ACP.
        capabilities["elicitation"] = json!({ "form": {} });
    }
    capabilities
}

/// The parameters of `initialize`. Sent raw: the typed request adds members of its own.
pub fn initialize_params(agent_id: &str, offer: Offer, version: &str) -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": client_capabilities(agent_id, offer),
        "clientInfo": { "name": "handraise", "title": "handraise", "version": version },
    })
}

/// The id of an agent that nobody gave one: the command's file name.
pub fn agent_id_of(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    if name.is_empty() { "agent" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURSOR: &str = include_str!("../tests/data/capabilities/cursor-agent.off.json");
    const CLAUDE: &str = include_str!("../tests/data/capabilities/claude-acp.off.json");

    fn sent(agent_id: &str, elicitation: bool) -> String {
        client_capabilities(agent_id, Offer { elicitation, terminal: false }).to_string()
    }

    #[test]
    fn ac01_elicitation_form_is_an_object_when_on() {
        let params = initialize_params("claude-acp", Offer { elicitation: true, terminal: false }, "0.1.0");
        assert_eq!(params.pointer("/clientCapabilities/elicitation/form"), Some(&json!({})));
        assert_eq!(params.pointer("/clientCapabilities/elicitation/url"), None);
    }

    #[test]
    fn ac02_off_is_byte_for_byte_the_committed_fixture() {
        assert_eq!(sent("cursor-agent", false), CURSOR.trim_end());
        assert_eq!(sent("claude-acp", false), CLAUDE.trim_end());
        for agent in ["cursor-agent", "claude-acp", "anything"] {
            assert!(!sent(agent, false).contains("elicitation"));
        }
    }

    #[test]
    fn ac02a_on_adds_elicitation_form_and_nothing_else() {
        for (agent, off) in [("cursor-agent", CURSOR), ("claude-acp", CLAUDE)] {
            let with_form =
                off.trim_end().strip_suffix('}').unwrap().to_owned() + r#","elicitation":{"form":{}}}"#;
            assert_eq!(sent(agent, true), with_form);
        }
    }

    #[test]
    fn initialize_says_who_we_are_and_offers_no_auth() {
        let params = initialize_params("claude-acp", Offer::default(), "1.2.3");
        let keys: Vec<_> = params.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["protocolVersion", "clientCapabilities", "clientInfo"]);
        assert_eq!(params["clientInfo"]["version"], "1.2.3");
        assert!(!params.to_string().contains("auth"));
    }

    #[test]
    fn terminals_are_offered_only_when_allowed() {
        let allowed = client_capabilities("claude-acp", Offer { elicitation: false, terminal: true });
        assert_eq!(allowed["terminal"], true);
    }

    #[test]
    fn an_agent_without_an_id_is_called_after_its_command() {
        assert_eq!(agent_id_of("/usr/bin/cursor-agent"), "cursor-agent");
        assert_eq!(agent_id_of("C:\\bin\\agent.exe"), "agent");
        assert_eq!(agent_id_of("claude-agent-acp"), "claude-agent-acp");
        assert_eq!(agent_id_of("/"), "agent");
    }
}
