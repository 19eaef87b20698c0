//! What a tool wants to have in headers: learned from lists of tools that pass, and asked for when a call was refused
//! because nobody has listed them.

use std::time::Duration;

use handraise_mcp::{
    declared::modern_version,
    frame::{ClientFrame, Id, Looks, ServerFrame},
    http::headers::HEADER_MISMATCH,
};
use http::HeaderMap;
use tokio::time::timeout;

use super::{
    answer::{self, Answer},
    context::Context,
    events::only_answer,
    exchange::{self, Again},
};

/// How long listing the tools may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many pages of a list are asked for.
const MOST_PAGES: usize = 16;
/// The id of our request. It is alone on its connection, and no client sees it.
const ID: &str = "\"handraise-tools\"";

/// Takes note of a list of tools.
pub(crate) fn learn(context: &Context, response: &ServerFrame<'_>) {
    for (tool, problem) in context.tools().learn_response(response) {
        tracing::warn!(tool, "a tool's x-mcp-header cannot be used: {problem}");
    }
}

/// Whether a request was refused because its headers do not say what its body says.
pub(crate) fn is_mismatch(frames: &[bytes::Bytes], request: Id<'_>) -> bool {
    let [only] = frames else { return false };
    let Ok(frame) = ServerFrame::read(only, |_| Looks::default()) else { return false };
    frame.response_id().is_some_and(|id| id.is(request)) && frame.error_code() == Some(HEADER_MISMATCH.into())
}

/// The headers of a call once the tools have been listed; `None` when that says nothing new to those that it `had`.
pub(crate) async fn learn_for(context: &Context, had: &HeaderMap, call: &Again) -> Option<HeaderMap> {
    let frame = ClientFrame::read(&call.body).ok().filter(|frame| frame.method() == Some("tools/call"))?;
    let version = modern_version(&frame)?;
    tracing::debug!("a call was refused for its headers: asking for the tools");
    let listed = timeout(PATIENCE, list(context, &frame, &version)).await;
    listed.ok()?;
    let headers = exchange::modern_headers(context, &frame, &version, call.params.as_deref());
    (headers != *had).then_some(headers)
}

/// Lists the tools, as the client that made the call.
async fn list(context: &Context, call: &ClientFrame<'_>, version: &str) {
    let Some(meta) = meta_of(call) else { return };
    let mut cursor = String::new();
    for _ in 0..MOST_PAGES {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{ID},"method":"tools/list","params":{{{cursor}"_meta":{meta}}}}}"#
        );
        let Some(response) = page(context, body, version).await else { return };
        let Ok(frame) = ServerFrame::read(&response, |_| Looks::default()) else { return };
        learn(context, &frame);
        let Some(next) = frame.result_member("nextCursor").filter(|next| next.starts_with('"')) else {
            return;
        };
        cursor = format!(r#""cursor":{next},"#);
    }
}

async fn page(context: &Context, body: String, version: &str) -> Option<bytes::Bytes> {
    let frame = ClientFrame::read(body.as_bytes()).ok()?;
    let headers = exchange::modern_headers(context, &frame, version, None);
    let request = exchange::post(context, &headers, body.into(), None);
    let response = context.server.http.request(request).await.ok()?;
    let id = Id::parse(ID)?;
    match answer::read(context, response, id, false).await.ok()? {
        Answer::Frames(frames, _) => frames.into_iter().next(),
        Answer::Stream(body) => only_answer(context, body, id).await,
    }
}

/// The call's `_meta` without its progress token: nobody waits for the progress of ours.
fn meta_of(call: &ClientFrame<'_>) -> Option<String> {
    let meta = call.param_text("_meta")?;
    let mut members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(meta).ok()?;
    members.remove("progressToken");
    serde_json::to_string(&members).ok()
}
