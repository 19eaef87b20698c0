//! An MCP server with one tool, `deploy`, that asks its client for details by `elicitation/create`.

use std::{
    io::{self, BufRead as _, Write as _},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// How long to wait for the client's answer.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Milliseconds after which the request is cancelled and the tool fails; otherwise it waits for ever.
    #[arg(long)]
    patience: Option<u64>,
}

/// The form: one property of every kind that MCP has.
fn form() -> Value {
    json!({"type": "object", "required": ["zone", "confirm"], "properties": {
        "zone": {"type": "string", "title": "Zone", "enum": ["eu", "us"]},
        "replicas": {"type": "integer", "title": "Replicas", "minimum": 1, "maximum": 9},
        "confirm": {"type": "boolean", "title": "Confirm"},
        "email": {"type": "string", "title": "E-mail", "format": "email"},
        "apiKey": {"type": "string"},
    }})
}

/// Speaks MCP on stdin and stdout until stdin ends.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (sender, frames) = mpsc::channel::<Value>();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(frame) = serde_json::from_str(&line) else { continue };
            if sender.send(frame).is_err() {
                return;
            }
        }
    });
    while let Ok(frame) = frames.recv() {
        match frame["method"].as_str() {
            Some("initialize") => {
                let server = json!({"name": "deploytool", "version": "1.0.0"});
                let version = &frame["params"]["protocolVersion"];
                respond(
                    &frame,
                    &json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}),
                )?;
            }
            Some("tools/list") => {
                let schema = json!({"type": "object", "properties": {}});
                let tool =
                    json!({"name": "deploy", "description": "Deploys the service.", "inputSchema": schema});
                respond(&frame, &json!({"tools": [tool]}))?;
            }
            Some("tools/call") => {
                let text = match elicit(&frames, arguments.patience.map(Duration::from_millis))? {
                    Some(answer) if answer["error"].is_null() => answer["result"].to_string(),
                    Some(answer) => format!("the client cannot ask: {}", answer["error"]["code"]),
                    None => "nobody answered in time".to_owned(),
                };
                let failed = !text.starts_with('{');
                respond(&frame, &json!({"content": [{"type": "text", "text": text}], "isError": failed}))?;
            }
            Some("ping") => respond(&frame, &json!({}))?,
            Some(_) if !frame["id"].is_null() => {
                let error = json!({"code": -32601, "message": "there is no such method"});
                send(&json!({"jsonrpc": "2.0", "id": frame["id"], "error": error}))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Asks, and waits for the answer; `None` when patience ended first, which the client is told.
fn elicit(frames: &mpsc::Receiver<Value>, patience: Option<Duration>) -> anyhow::Result<Option<Value>> {
    let params = json!({"message": "Deployment details", "requestedSchema": form()});
    send(&json!({"jsonrpc": "2.0", "id": "elicit-1", "method": "elicitation/create", "params": params}))?;
    loop {
        // Patience begins anew with every frame; nothing else is said while a form is open.
        let frame = match patience {
            Some(patience) => frames.recv_timeout(patience),
            None => frames.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match frame {
            Ok(frame) if frame["id"] == "elicit-1" => return Ok(Some(frame)),
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => {
                let params = json!({"requestId": "elicit-1", "reason": "nobody answered in time"});
                send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))?;
                return Ok(None);
            }
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the client has gone"),
        }
    }
}

fn respond(request: &Value, result: &Value) -> anyhow::Result<()> {
    send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

fn send(frame: &Value) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{frame}")?;
    Ok(out.flush()?)
}
