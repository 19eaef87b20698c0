//! The tools.

use std::{
    io::{self, Write as _},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    devices::described,
    refusal::{self, Shape},
    server::{Call, Server},
};

/// What clients may tell their model.
pub(crate) const INSTRUCTIONS: &str = "Device tools over devices that do not exist. Without deviceId, a tap is refused while there are several.";

/// `tools/list`'s tools.
pub(crate) fn list() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let number = |about: &str| json!({"type": "integer", "description": about});
    let mut device = text("Where to run; without it, the only device there is");
    // Over HTTP, whoever routes by devices need not read the body.
    device["x-mcp-header"] = json!("Device");
    let tool = |name: &str, about: &str, read_only: bool, properties: Value| {
        json!({
            "name": name, "description": about, "annotations": {"readOnlyHint": read_only},
            "inputSchema": {"type": "object", "properties": properties},
        })
    };
    json!([
        tool("echo", "Returns the text that it is given", true, json!({"text": text("What to return")})),
        tool("listDevices", "Lists the devices", true, json!({})),
        tool(
            "tapOn",
            "Taps on a text on a device's screen",
            false,
            json!({
                "text": text("What to tap on"), "deviceId": device.clone(),
                "shape": text("How the refusal looks, see --shape"),
                "dieAfterMs": number("End the process so long after the answer"),
            })
        ),
        tool(
            "swipe",
            "Swipes slowly, with progress; then like tapOn",
            false,
            json!({
                "steps": number("How many"), "pauseMs": number("How long each takes"), "deviceId": device.clone(),
            })
        ),
        tool("unplug", "Takes a device away", false, json!({"deviceId": device.clone()})),
        tool("big", "Returns that many bytes of text", true, json!({"bytes": number("How many")})),
        tool(
            "ask",
            "Asks the client with elicitation/create and returns its answer",
            true,
            json!({
                "message": text("What to ask"), "askId": {"description": "The id of the question's request"},
            })
        ),
        tool("declared", "Returns what the client declared for elicitation", true, json!({})),
        tool(
            "notify",
            "Sends a log message and tools/list_changed, then returns",
            true,
            json!({"endSubscriptions": {"type": "boolean", "description": "End every subscription as well"}})
        ),
        tool("complain", "Writes a line to stderr", true, json!({"text": text("What to write")})),
        tool("leave", "Starts a process in a session of its own, which sleeps", false, json!({})),
        tool(
            "die",
            "Ends the process without an answer",
            false,
            json!({"status": number("The exit status")})
        ),
        tool("hang", "Never answers", true, json!({})),
    ])
}

/// Whether a call gets a thread of its own.
pub(crate) fn takes_time(call: &Call) -> bool {
    matches!(call.name.as_str(), "swipe" | "ask") || call.arguments["dieAfterMs"].is_u64()
}

/// Runs a call and answers it.
pub(crate) fn run(server: &Server, call: &Call) -> io::Result<()> {
    server.calls.began(&call.name, &call.arguments)?;
    let arguments = &call.arguments;
    match call.name.as_str() {
        "echo" => text(server, call, arguments["text"].as_str().unwrap_or_default()),
        "listDevices" => {
            let devices: Vec<Value> = server.world.devices.present().iter().map(|id| described(id)).collect();
            let list = json!({ "devices": devices });
            let content = json!([{"type": "text", "text": list.to_string()}]);
            respond(server, call, &format!("{{\"content\":{content},\"structuredContent\":{list}}}"))
        }
        "tapOn" => {
            tap(server, call, &format!("tapped {}", arguments["text"]))?;
            if let Some(millis) = arguments["dieAfterMs"].as_u64() {
                thread::sleep(Duration::from_millis(millis));
                std::process::exit(3);
            }
            Ok(())
        }
        "swipe" => swipe(server, call),
        "unplug" => {
            server.world.devices.unplug(arguments["deviceId"].as_str().unwrap_or_default());
            text(server, call, "unplugged")
        }
        "big" => {
            let bytes = usize::try_from(arguments["bytes"].as_u64().unwrap_or(0)).unwrap_or(0);
            // Written by hand: there is nothing to escape, and it may be a lot.
            let mut result = "{\"content\":[{\"type\":\"text\",\"text\":\"".to_owned();
            result.push_str(&"abcdefghijklmnop".repeat(bytes / 16 + 1)[..bytes]);
            result.push_str("\"}]}");
            respond(server, call, &result)
        }
        "ask" => ask(server, call),
        "declared" => text(server, call, &server.declared().to_string()),
        "notify" => {
            server.wire.notify("notifications/message", &json!({"level": "info", "data": "noted"}))?;
            let changed = "notifications/tools/list_changed";
            if call.is_modern {
                server.world.subscriptions.tell("toolsListChanged", changed)?;
            } else {
                server.wire.notify(changed, &json!({}))?;
            }
            if arguments["endSubscriptions"] == true {
                server.world.subscriptions.end()?;
            }
            text(server, call, "notified")
        }
        "complain" => {
            let _ = writeln!(io::stderr(), "{}", arguments["text"].as_str().unwrap_or_default());
            text(server, call, "complained")
        }
        "leave" => text(server, call, &leave()?.to_string()),
        "die" => {
            let status = arguments["status"].as_i64().and_then(|status| i32::try_from(status).ok());
            std::process::exit(status.unwrap_or(1))
        }
        "hang" => Ok(()),
        other => server.wire.fail(&call.id, -32602, &format!("no tool is called {other}")),
    }
}

/// A result in the call's era.
fn respond(server: &Server, call: &Call, result: &str) -> io::Result<()> {
    if call.is_modern {
        let rest = result.strip_prefix('{').unwrap_or(result);
        return server.wire.respond(&call.id, &format!("{{\"resultType\":\"complete\",{rest}"));
    }
    server.wire.respond(&call.id, result)
}

fn text(server: &Server, call: &Call, text: &str) -> io::Result<()> {
    let content = json!([{"type": "text", "text": text}]);
    respond(server, call, &format!("{{\"content\":{content}}}"))
}

/// Does something on a device: on the one named, else on the only one; refuses where there are several.
fn tap(server: &Server, call: &Call, done: &str) -> io::Result<()> {
    let present = server.world.devices.present();
    let device = match (&call.arguments["deviceId"], present.as_slice()) {
        (Value::Null, [only]) => only.clone(),
        (Value::Null, [_, _, ..]) => {
            let shape = match call.arguments["shape"].as_str().map(Shape::named) {
                Some(Ok(shape)) => shape,
                Some(Err(complaint)) => return server.wire.fail(&call.id, -32602, &complaint),
                None => server.options.shape,
            };
            return respond(server, call, &refusal::result(shape, &present));
        }
        (Value::String(named), _) if present.contains(named) => named.clone(),
        (named, _) => {
            let refusal =
                json!({"success": false, "error": format!("no device {named}"), "code": "device_not_found"});
            let content = json!([{"type": "text", "text": refusal.to_string()}]);
            return respond(server, call, &format!("{{\"content\":{content},\"isError\":true}}"));
        }
    };
    let kind = if call.is_task { " as a task" } else { "" };
    text(server, call, &format!("{done} on {device}{kind}"))
}

/// Reports each step; a cancelled swipe ends without an answer.
fn swipe(server: &Server, call: &Call) -> io::Result<()> {
    let steps = call.arguments["steps"].as_u64().unwrap_or(3);
    let pause = Duration::from_millis(call.arguments["pauseMs"].as_u64().unwrap_or(10));
    for step in 1..=steps {
        thread::sleep(pause);
        if call.is_cancelled() {
            return server.calls.cancelled(&call.name);
        }
        if let Some(token) = &call.progress_token {
            let progress = json!({"progressToken": token, "progress": step, "total": steps});
            server.wire.notify("notifications/progress", &progress)?;
        }
    }
    tap(server, call, "swiped")
}

/// Asks by itself: pushes in the legacy era, returns `input_required` in the modern one.
fn ask(server: &Server, call: &Call) -> io::Result<()> {
    let params = json!({
        "message": call.arguments["message"].as_str().unwrap_or("Which colour?"),
        "requestedSchema": {
            "type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
            "required": ["colour"],
        },
    });
    if call.is_modern {
        if let (Some(answers), Some("fake-server state")) = (&call.answers, call.state.as_deref()) {
            return text(server, call, &answers["colour"].to_string());
        }
        let question = json!({"colour": {"method": "elicitation/create", "params": params}});
        let result = json!({
            "resultType": "input_required", "inputRequests": question, "requestState": "fake-server state",
        });
        return server.wire.respond(&call.id, &result.to_string());
    }
    let answer = server.ask(call.arguments.get("askId"), "elicitation/create", &params)?;
    match answer.recv() {
        Ok(answer) => text(server, call, &answer.to_string()),
        // The client is gone.
        Err(_) => Ok(()),
    }
}

/// Starts a process that leaves our session and outlives us unless somebody looks for it.
fn leave() -> io::Result<u32> {
    let child = Command::new("setsid")
        .args(["sleep", "300"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(child.id())
}
