//! Whole lives of asks: opened by holders, answered over HTTP, settled, as fast as the inbox goes.

use std::{
    path::Path,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::json;

use super::{
    super::websocket::WebSocket,
    up::{Up, token},
};
use crate::{clock, http::Connection, project::say};

/// Holders at the same time.
const HOLDERS: usize = 4;
/// Asks that each has open at a time.
const WINDOW: usize = 32;
/// Operators that answer at the same time.
const OPERATORS: usize = 8;

const ANSWER: &str =
    r#"{"answers":[{"question_id":"question_0","selected_options":["Postgres"],"custom_text":""}]}"#;

/// Runs so many lives and says how many went through in a second.
pub(super) fn measure(binary: &Path, folder: &Path, lives: usize) -> anyhow::Result<()> {
    let up = Up::start(binary, folder)?;
    let start = clock::now();
    let before = up.processor_time()?;
    live(&up, binary, folder, lives)?;
    let taken = clock::since(start);
    let processor = up.processor_time()?.saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let (lives_, taken, processor) = (lives as f64, taken as f64 / 1e9, processor as f64);
    say(&format!(
        "opened, answered and settled: {:.0} asks a second, {:.0} µs of processor time of `up` each, {lives} asks",
        lives_ / taken,
        processor / 1e3 / lives_
    ));
    Ok(())
}

/// Opens, answers and settles so many asks, several at a time.
pub(super) fn live(up: &Up, binary: &Path, folder: &Path, lives: usize) -> anyhow::Result<()> {
    let holder = token(binary, folder, "holder")?;
    let operator = token(binary, folder, "operator")?;
    let (opened, to_answer) = channel();
    let to_answer = Mutex::new(to_answer);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for n in 0..HOLDERS {
            let (opened, holder) = (opened.clone(), &holder);
            let share = lives / HOLDERS + usize::from(n < lives % HOLDERS);
            threads.push(scope.spawn(move || hold(up, holder, n, share, &opened)));
        }
        drop(opened);
        for _ in 0..OPERATORS {
            threads.push(scope.spawn(|| operate(up, &operator, &to_answer)));
        }
        for thread in threads {
            thread.join().ok().context("a thread broke off")??;
        }
        Ok(())
    })
}

fn operate(up: &Up, token: &str, to_answer: &Mutex<Receiver<String>>) -> anyhow::Result<()> {
    let mut connection = Connection::open(&up.url, token)?;
    loop {
        let next = to_answer.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(id) = next else { return Ok(()) };
        connection.send("POST", &format!("/api/v1/asks/{id}/answer"), ANSWER)?;
        let (status, body) = connection.receive_text()?;
        if status != 200 {
            bail!("the answer to {id} got {status}: {body}");
        }
    }
}

/// A frame of the inbox, as much of it as matters here.
#[derive(Deserialize)]
struct Incoming {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    action: String,
    payload: Option<Payload>,
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Payload {
    pending_id: Option<String>,
    submission_id: Option<String>,
}

/// Holds asks: as many as fit into the window are open, and every answer wins.
fn hold(up: &Up, token: &str, n: usize, lives: usize, opened: &Sender<String>) -> anyhow::Result<()> {
    let mut socket = WebSocket::open(&up.url, "/api/v1/holder", token)?;
    let request = |id: &str, action: &str, payload: serde_json::Value| {
        json!({"id": id, "type": "request", "action": action, "payload": payload}).to_string()
    };
    let hello = json!({"protocol": 1, "kind": "agent", "version": "0", "host": "bench"});
    socket.queue(&request("hello", "holder.hello", hello));
    let nothing = json!({"seq": 0, "last": true, "asks": [], "settlements": []});
    socket.queue(&request("snapshot", "asks.snapshot", nothing));
    let ask = request("o@ID@", "ask.opened", json!({"ask": asked(&format!("bench-{n}"))}));
    let (mut next, mut settled) = (0, 0);
    let open = |socket: &mut WebSocket, next: &mut usize| {
        if *next < lives {
            socket.queue(&ask.replace("@ID@", &format!("{n}-{next:08}")));
            *next += 1;
        }
    };
    for _ in 0..WINDOW {
        open(&mut socket, &mut next);
    }
    socket.flush()?;
    while settled < lives {
        let text = socket.receive()?;
        let frame: Incoming = serde_json::from_str(&text).with_context(|| format!("no frame: {text}"))?;
        if let Some(error) = frame.error {
            bail!("the inbox refuses {}: {error}", frame.action);
        }
        let id = frame.id.unwrap_or_default();
        if frame.kind == "response" {
            if let Some(id) = id.strip_prefix('o') {
                opened.send(id.to_owned())?;
            } else if id.starts_with('s') && id != "snapshot" {
                settled += 1;
                open(&mut socket, &mut next);
            }
        } else if let Some(Payload { pending_id: Some(ask), submission_id }) = frame.payload {
            let done =
                json!({"id": id, "type": "response", "action": frame.action, "payload": {"success": true}});
            socket.queue(&done.to_string());
            let end = json!({"pending_id": ask, "submission_id": submission_id, "settlement": {
                "outcome": "accept", "provenance": "client", "rail": "inbox", "wire": "accept", "ago_ms": 0}});
            socket.queue(&request(&format!("s{ask}"), "ask.settled", end));
        }
        if !socket.has_more() {
            socket.flush()?;
        }
    }
    Ok(())
}

/// A question with three choices, as agents' bridges ask it.
fn asked(session: &str) -> serde_json::Value {
    let choice =
        |value: &str, description: &str| json!({"value": value, "label": value, "description": description});
    json!({
        "id": "@ID@", "source": "elicitation", "mode": "form", "session_id": session, "tool_call_id": null,
        "message": "Which database should the service use?", "url": null, "confirm": null, "on_deadline": "decline",
        "deadline_ms": 3_300_000, "client": {"name": "bench", "version": "1"}, "server": null,
        "allows_text_with_selection": true, "allows_partial": true,
        "questions": [{
            "id": "question_0", "kind": "single", "title": "Datastore", "prompt": "Which database should be used?",
            "required": false, "default": null, "allows_text": true, "companion": "replaces", "secret": false,
            "choices": [
                choice("Postgres", "Operated by the team."), choice("SQLite", "Embedded."), choice("DynamoDB", "Hosted."),
            ],
            "constraints": {}
        }]
    })
}
