//! Headers that mirror what a request's body says, so that those in between need not read it.
//!
//! Modern requests (2026-07-28) carry `MCP-Protocol-Version` and `Mcp-Method`; those that name a tool, a prompt, a
//! resource or a task carry `Mcp-Name`; a tool's schema may ask for arguments as `Mcp-Param-*`. Whoever reads the body
//! refuses a request whose headers say something else: who routes by the header and who runs the body must not see two
//! requests.

mod check;
mod tool;
mod value;

use std::borrow::Cow;

use crate::frame::{ClientFrame, Quoted, Scanner};

pub use check::{HEADER_MISMATCH, HeaderMismatch, check, is_mirror, is_param};
pub use tool::{InvalidAnnotation, SeenTools, ToolHeaders};
pub use value::{decode, encode};

/// The protocol version of a request.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The session of a legacy client.
pub const SESSION_ID: &str = "mcp-session-id";
/// Where a legacy stream that broke goes on.
pub const LAST_EVENT_ID: &str = "last-event-id";
/// The method of a request.
pub const METHOD: &str = "mcp-method";
/// What a request is about: [`name`].
pub const NAME: &str = "mcp-name";
/// What names of headers begin with that mirror an argument.
pub const PARAM_PREFIX: &str = "mcp-param-";

/// A header: its name in lower case, and its value in the form in which it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name, in lower case.
    pub name: Cow<'static, str>,
    /// The value, encoded where it has to be.
    pub value: String,
}

/// The value that `Mcp-Name` mirrors: what a request names. `None` for methods that name nothing.
pub fn name(frame: &ClientFrame<'_>) -> Option<String> {
    let named = match frame.method()? {
        // Where it stands is known: what it stands beside may be long.
        "tools/call" | "prompts/get" => frame.param(|params| params.name.as_ref()),
        "resources/read" => frame.param_named("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => frame.param_named("taskId"),
        _ => None,
    };
    string(named?)
}

/// The headers that a modern request or notification carries. `tool` are those of the tool that is called.
pub fn mirrored(frame: &ClientFrame<'_>, version: &str, tool: Option<&ToolHeaders>) -> Vec<Header> {
    let mut headers = vec![Header { name: PROTOCOL_VERSION.into(), value: version.to_owned() }];
    headers.extend(frame.method().map(|method| Header { name: METHOD.into(), value: encode(method) }));
    headers.extend(name(frame).map(|name| Header { name: NAME.into(), value: encode(&name) }));
    let arguments = frame.param(|params| params.arguments.as_ref());
    if let (Some("tools/call"), Some(tool), Some(arguments)) = (frame.method(), tool, arguments) {
        headers.extend(tool.of(arguments));
    }
    headers
}

/// The string that a JSON text is.
fn string(json: &str) -> Option<String> {
    Scanner::new(json.as_bytes()).string().ok().map(Quoted::text).map(Cow::into_owned)
}

#[cfg(test)]
mod tests;
