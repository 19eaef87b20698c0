//! The server: the tools of `servers/tools.json` in both eras, and a witness that writes every call down.

use std::{fs::OpenOptions, io::Write as _, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ElicitRequest,
        ElicitRequestParams, ErrorCode, Implementation, InputRequest, InputRequests, InputRequiredResult,
        JsonObject, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
        ResultType, ServerCapabilities, ServerConfig, ServerRequest, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

/// The tools, as all servers of the tests have them.
const TOOLS: &str = include_str!("../../servers/tools.json");

struct Server {
    witness: PathBuf,
    tools: Arc<Vec<Tool>>,
}

/// Serves the tools on stdin and stdout until the client goes.
pub(crate) async fn serve(witness: &str) -> anyhow::Result<()> {
    let tools = serde_json::from_str(TOOLS).context("servers/tools.json")?;
    let server = Server { witness: witness.into(), tools: Arc::new(tools) };
    let service = server.serve((tokio::io::stdin(), tokio::io::stdout())).await?;
    service.waiting().await?;
    Ok(())
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("rmcp", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.witness(&call.name, &call)?;
        let given = call.arguments.clone().unwrap_or_default();
        let result = match call.name.as_ref() {
            "echo" => echoed(&given),
            "fail" => {
                let data = json!({"reason": "asked to", "tries": 1});
                return Err(ErrorData::new(ErrorCode(-31999), "the tool failed", Some(data)));
            }
            "count" => count(&given, &context).await,
            "wait" => {
                progress(&context, 1, None).await;
                context.ct.cancelled().await;
                self.witness("wait, given up", &call)?;
                text("nobody reads this")
            }
            "ask" => return ask(&call, &context).await,
            "tap" => tapped(&given),
            name => return Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
        };
        complete(result)
    }
}

impl Server {
    /// Writes down what happened to a call.
    fn witness(&self, what: &str, call: &CallToolRequestParams) -> Result<(), ErrorData> {
        let line = json!({"tool": what, "arguments": call.arguments});
        let file = OpenOptions::new().append(true).create(true).open(&self.witness);
        file.and_then(|mut file| writeln!(file, "{line}"))
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// An unusual result, so that what gets lost on the way shows.
fn echoed(given: &JsonObject) -> Value {
    let annotations = json!({"audience": ["user"], "priority": 0.5});
    json!({
        "_meta": {"example.test/vendor": {"kept": true}},
        "content": [
            {"type": "text", "text": given.get("text"), "annotations": annotations},
            {"type": "resource_link", "uri": "example://one", "name": "one"},
        ],
        "structuredContent": given,
    })
}

/// A refusal that names candidates, unless the device was named.
fn tapped(given: &JsonObject) -> Value {
    if let Some(device) = given.get("deviceId") {
        return text(&format!("tapped on {}", device.as_str().unwrap_or_default()));
    }
    let offer = given.get("offer").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let candidates: Vec<_> =
        offer.iter().map(|device| json!({"deviceId": device, "platform": "android"})).collect();
    let error = format!("{} devices match (code ambiguous_device_target). Pass deviceId.", candidates.len());
    let refusal = json!({
        "success": false,
        "error": error,
        "code": "ambiguous_device_target",
        "candidates": candidates,
        "retryable": false,
    });
    let mut result = text(&refusal.to_string());
    result["isError"] = true.into();
    result
}

async fn count(given: &JsonObject, context: &RequestContext<RoleServer>) -> Value {
    let steps = given
        .get("steps")
        .and_then(Value::as_u64)
        .and_then(|steps| u32::try_from(steps).ok())
        .unwrap_or_default();
    for step in 1..=steps {
        progress(context, step, Some(steps)).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    text(&format!("counted to {steps}"))
}

async fn progress(context: &RequestContext<RoleServer>, step: u32, steps: Option<u32>) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let mut progress = ProgressNotificationParam::new(token, f64::from(step));
    progress.total = steps.map(f64::from);
    // A client that is gone needs no progress.
    let _ = context.peer.notify_progress(progress).await;
}

async fn ask(
    call: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let question = ElicitRequest::new(read::<ElicitRequestParams>(json!({
        "mode": "form",
        "message": "Go on?",
        "requestedSchema": {
            "type": "object",
            "properties": {"goOn": {"type": "boolean"}},
            "required": ["goOn"],
        },
    }))?);
    if context.protocol_version() != Some(ProtocolVersion::V_2026_07_28) {
        return match context.peer.send_request(ServerRequest::ElicitRequest(question)).await {
            Ok(ClientResult::ElicitResult(answer)) => {
                complete(text(&format!("the client answered {}", json!(answer))))
            }
            Ok(_) => Err(ErrorData::internal_error("the client answered something else", None)),
            Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
        };
    }
    let Some(answers) = &call.input_responses else {
        let questions = InputRequests::from([("goOn".to_owned(), InputRequest::Elicitation(question))]);
        let state = "the server's own state".to_owned();
        return Ok(CallToolResponse::InputRequired(InputRequiredResult::new(Some(questions), Some(state))));
    };
    let state = call.request_state.as_deref().unwrap_or_default();
    let words = format!("the client answered {} to {state}", json!(answers.get("goOn")));
    complete(text(&words))
}

fn text(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}]})
}

fn complete(result: Value) -> Result<CallToolResponse, ErrorData> {
    let mut result: CallToolResult = read(result)?;
    // The SDK leaves it out again where the client is of the push era.
    result.result_type = Some(ResultType::COMPLETE);
    Ok(CallToolResponse::Complete(result))
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
