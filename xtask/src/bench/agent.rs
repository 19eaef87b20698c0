//! The agent of the measurement: asks many forms, and says on a socket when a response has come.

use std::{
    io::{self, BufRead as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
};

use anyhow::Context as _;
use serde_json::{Value, json};

/// How many forms, and where to say what came.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    asks: usize,
    socket: PathBuf,
}

/// Where to say what came.
#[derive(clap::Args)]
pub(crate) struct RelayArguments {
    socket: PathBuf,
}

/// Speaks as much ACP as the measurement needs. Every answered form is followed by another one, so that as many
/// stay open as in the beginning.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut report = UnixStream::connect(&arguments.socket)?;
    let mut out = io::stdout().lock();
    let mut next = 0_usize;
    for line in io::stdin().lock().lines() {
        let frame: Value = serde_json::from_str(&line?)?;
        let id = frame.get("id").cloned().unwrap_or(Value::Null);
        match frame.get("method").and_then(Value::as_str) {
            Some("initialize") => {
                respond(&mut out, &id, &json!({"protocolVersion": 1, "agentCapabilities": {}}))?;
            }
            Some("session/new") => respond(&mut out, &id, &json!({"sessionId": "bench"}))?,
            Some("session/prompt") => {
                while next < arguments.asks {
                    ask(&mut out, next)?;
                    next += 1;
                }
            }
            Some(_) => {}
            None => {
                report.write_all(b".")?;
                ask(&mut out, next)?;
                next += 1;
            }
        }
    }
    Ok(())
}

/// Says that a line has come, and nothing else.
pub(crate) fn relay(arguments: &RelayArguments) -> anyhow::Result<()> {
    let mut report = UnixStream::connect(&arguments.socket)?;
    for line in io::stdin().lock().lines() {
        line.context("the pipe broke")?;
        report.write_all(b".")?;
    }
    Ok(())
}

fn respond(out: &mut impl io::Write, id: &Value, result: &Value) -> io::Result<()> {
    writeln!(out, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
    out.flush()
}

/// A question with three choices and a companion, as agents' bridges ask it.
fn ask(out: &mut impl io::Write, number: usize) -> io::Result<()> {
    let request = json!({
        "jsonrpc": "2.0",
        "id": number,
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "sessionId": "bench",
            "message": format!("Which database should service {number} use?"),
            "requestedSchema": {"type": "object", "properties": {
                "question_0": {"type": "string", "title": "Datastore", "oneOf": [
                    {"const": "Postgres", "title": "Postgres", "description": "Operated by the team."},
                    {"const": "SQLite", "title": "SQLite", "description": "Embedded."},
                    {"const": "DynamoDB", "title": "DynamoDB"},
                ]},
                "question_0_custom": {"type": "string", "title": "Other",
                    "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "question_0", "isCustomAnswer": true}}},
            }},
        },
    });
    writeln!(out, "{request}")?;
    out.flush()
}
