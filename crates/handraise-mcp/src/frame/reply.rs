//! Frames that we write ourselves.

/// JSON-RPC: the frame is no valid request.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: the parameters are not valid.
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// JSON-RPC: the request failed for reasons of the server's.
pub(crate) const INTERNAL: i32 = -32603;

/// An error response. `id` and `data` are JSON text.
pub fn error(id: &str, code: i32, message: &str, data: Option<&str>) -> Vec<u8> {
    let message = serde_json::Value::from(message);
    let data = data.map_or(String::new(), |data| format!(",\"data\":{data}"));
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}{data}}}}}")
        .into_bytes()
}

/// A response with a result, both as JSON text.
pub(crate) fn result(id: &str, result: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes()
}

/// A request, its params as JSON text.
pub(crate) fn request(id: &str, method: &str, params: &str) -> Vec<u8> {
    let method = serde_json::Value::from(method);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}").into_bytes()
}

/// A notification, its params as JSON text.
pub(crate) fn notification(method: &str, params: &str) -> Vec<u8> {
    let method = serde_json::Value::from(method);
    format!("{{\"jsonrpc\":\"2.0\",\"method\":{method},\"params\":{params}}}").into_bytes()
}

/// `notifications/cancelled` for the request `id`.
pub(crate) fn cancelled(id: &str, reason: &str) -> Vec<u8> {
    let reason = serde_json::Value::from(reason);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id},\"reason\":{reason}}}}}"
    )
    .into_bytes()
}
