//! Before the first turn: `initialize` and `session/new`, both sent raw.

use agent_client_protocol::{Agent, ConnectionTo, Error, UntypedMessage};
use handraise_acp::{
    AgentInfo, Quirks,
    capabilities::{Offer, PROTOCOL_VERSION, initialize_params},
};
use handraise_api::ask::Implementation;
use handraise_core::form::Order;
use handraise_transport::escape;
use serde_json::{Value, json};

use crate::{AgentError, AgentSettings, asks::Peer};

/// What the agent is told of us and of the session.
pub(crate) struct Introduction {
    initialize: Value,
    new_session: Value,
    order: Order,
}

impl Introduction {
    pub(crate) fn new(settings: &AgentSettings, takes_forms: bool) -> Self {
        let offer = Offer { elicitation: takes_forms, terminal: settings.allow_terminal };
        Self {
            initialize: initialize_params(&settings.agent_id(), offer, &settings.version),
            new_session: json!({"cwd": settings.cwd, "mcpServers": settings.mcp_servers}),
            order: settings.question_order,
        }
    }

    /// Introduces us and opens a session.
    pub(crate) async fn carry_out(self, cx: &ConnectionTo<Agent>) -> Result<Peer, AgentError> {
        let method = "initialize";
        let reply = call(cx, method, &self.initialize).await?;
        let version = reply.get("protocolVersion").and_then(Value::as_u64);
        if version != Some(PROTOCOL_VERSION.into()) {
            let problem = match version {
                Some(version) => {
                    format!("it wants protocol version {version}, and handraise speaks {PROTOCOL_VERSION}")
                }
                None => "it names no protocol version".to_owned(),
            };
            return Err(AgentError::Protocol { method, problem });
        }
        let info = AgentInfo::read(&reply);
        let quirks = Quirks::decide(&info, self.order);
        let AgentInfo { name, version } = info;
        let implementation = name.map(|name| Implementation { name, version });
        let method = "session/new";
        let reply = call(cx, method, &self.new_session).await?;
        let session = reply
            .get("sessionId")
            .and_then(Value::as_str)
            .ok_or_else(|| AgentError::Protocol { method, problem: "it names no session".to_owned() })?
            .to_owned();
        Ok(Peer { session, implementation, quirks })
    }
}

async fn call(cx: &ConnectionTo<Agent>, method: &'static str, params: &Value) -> Result<Value, AgentError> {
    let message = untyped(method, params)?;
    cx.send_request(message).block_task().await.map_err(|error| refused(method, &error))
}

/// A request as the protocol crate takes it.
pub(crate) fn untyped(method: &'static str, params: &Value) -> Result<UntypedMessage, AgentError> {
    UntypedMessage::new(method, params).map_err(|error| refused(method, &error))
}

/// The agent's own words for why it did not do what it was asked.
pub(crate) fn refused(method: &'static str, error: &Error) -> AgentError {
    AgentError::Refused {
        method,
        message: escape::shortened(&error.message, 300),
        code: i32::from(error.code),
    }
}
