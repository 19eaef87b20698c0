//! Requests of both eras, as HTTP wants them.

use serde_json::{Value, json};

/// The request that opens a session.
pub(crate) fn initialize(version: &str, capabilities: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "tests", "version": "1"},
    }})
}

/// A request of the modern era, and the headers that mirror it.
pub(crate) fn modern(id: &Value, method: &str, params: &Value) -> (Value, Vec<(&'static str, String)>) {
    let mut params = params.clone();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "modern tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let own = params["_meta"].as_object().cloned().unwrap_or_default();
    params["_meta"] = meta;
    params["_meta"].as_object_mut().unwrap().extend(own);
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let headers = mirrors(&frame);
    (frame, headers)
}

/// The headers that mirror a frame; none of one that does not describe itself.
pub(crate) fn mirrors(frame: &Value) -> Vec<(&'static str, String)> {
    let version = frame["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let Some(version) = version.filter(|version| *version >= "2026-07-28") else { return Vec::new() };
    let mut headers = vec![
        ("MCP-Protocol-Version", version.to_owned()),
        ("Mcp-Method", frame["method"].as_str().unwrap().to_owned()),
    ];
    let params = &frame["params"];
    let name = params["name"].as_str().or(params["uri"].as_str()).or(params["taskId"].as_str());
    headers.extend(name.map(|name| ("Mcp-Name", name.to_owned())));
    // The argument of the scripted server's tools that is also a header.
    let device = params["arguments"]["deviceId"].as_str().filter(|_| frame["method"] == "tools/call");
    headers.extend(device.map(|device| ("Mcp-Param-Device", device.to_owned())));
    headers
}
