//! A model without a mind: it says what a script tells it, and remembers what its tools were answered with.
//!
//! It speaks the APIs that agents speak to their models, on a port of the loopback interface. A script is a list of
//! steps; each request that offers tools and carries no new tool result takes the next one. What came back from
//! tools is kept by call, so that a request that is repeated, or repeats the conversation, adds nothing.

mod anthropic;
mod chat;
mod http;
mod responses;

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write as _,
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use serde_json::{Value, json};

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// The tool's name, or `NAMESPACE:NAME` where tools have namespaces.
    pub(super) tool: String,
    /// Its arguments.
    pub(super) arguments: Value,
}

/// What a request says, whatever its dialect.
#[derive(Debug, Default, PartialEq)]
struct Request {
    /// The tools that it offers.
    tools: Vec<String>,
    /// Results of tools: the call's id, and the result as text.
    results: Vec<(String, String)>,
}

/// What the model answers.
#[derive(Debug, Clone, PartialEq)]
enum Reply {
    Text(String),
    /// Ids and calls, made at once.
    Calls(Vec<(String, Call)>),
}

/// A dialect: reads a request's body, and writes a reply as a body with its content type.
struct Dialect {
    read: fn(&Value) -> Request,
    write: fn(&Value, &Reply) -> (&'static str, String),
}

const DIALECTS: &[(&str, Dialect)] = &[
    ("/v1/messages", Dialect { read: anthropic::read, write: anthropic::write }),
    ("/v1/chat/completions", Dialect { read: chat::read, write: chat::write }),
    ("/v1/responses", Dialect { read: responses::read, write: responses::write }),
];

/// A running stand-in. It serves until the process ends.
pub(super) struct Model {
    /// `http://127.0.0.1:PORT`.
    pub(super) url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Calls that are still to be made, in the order of requests.
    script: Vec<Vec<Call>>,
    next_id: usize,
    /// By the number of the call.
    results: BTreeMap<usize, String>,
    /// Tools of a script that were not offered.
    missing: Vec<String>,
    log: Option<File>,
}

impl Model {
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(&stream, &state));
            }
        });
        Ok(Self { url, state })
    }

    /// Gives it a new script and forgets the last one. Requests are logged to this file.
    pub(super) fn play(&self, script: Vec<Vec<Call>>, log: &Path) -> anyhow::Result<()> {
        let log = Some(File::create(log)?);
        *lock(&self.state) = State { script, log, ..State::default() };
        Ok(())
    }

    /// What tools were answered with, in the order of their calls; and the tools that were not there to be called.
    pub(super) fn saw(&self) -> (Vec<String>, Vec<String>) {
        let state = lock(&self.state);
        (state.results.values().cloned().collect(), state.missing.clone())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves one connection: one request, as each reply ends its connection.
fn serve(stream: &TcpStream, state: &Mutex<State>) {
    let Ok(Some(asked)) = http::read(stream) else { return };
    let body: Value = serde_json::from_slice(&asked.body).unwrap_or(Value::Null);
    let path = asked.path.split('?').next().unwrap_or_default();
    if let Some(log) = &mut lock(state).log {
        let _ = writeln!(log, "{}", json!({"method": asked.method, "path": asked.path, "body": body}));
    }
    let dialect = DIALECTS.iter().find(|(known, _)| asked.method == "POST" && path == *known);
    let sent = if let Some((_, dialect)) = dialect {
        let request = (dialect.read)(&body);
        let reply = lock(state).reply(request);
        let (kind, body) = (dialect.write)(&body, &reply);
        http::write(stream, "200 OK", kind, &body)
    } else if path.ends_with("/count_tokens") {
        http::write(stream, "200 OK", "application/json", &json!({"input_tokens": 10}).to_string())
    } else if path == "/v1/models" {
        let models = json!({"object": "list", "data": [{"id": "standin", "object": "model"}], "models": []});
        http::write(stream, "200 OK", "application/json", &models.to_string())
    } else {
        let error = json!({"type": "error", "error": {"type": "not_found_error", "message": "not here"}});
        http::write(stream, "404 Not Found", "application/json", &error.to_string())
    };
    // A client that has gone needs no reply.
    let _ = sent;
}

impl State {
    fn reply(&mut self, request: Request) -> Reply {
        if request.tools.is_empty() {
            // A title, a topic: nothing of the conversation itself.
            return Reply::Text("ok".to_owned());
        }
        let mut is_news = false;
        for (id, text) in request.results {
            let Some(number) = id.strip_prefix(CALL).and_then(|number| number.parse().ok()) else { continue };
            is_news |= self.results.insert(number, text).is_none();
        }
        if is_news || self.script.is_empty() {
            return Reply::Text("I go on.".to_owned());
        }
        let calls = self.script.remove(0);
        let is_offered = |call: &Call| {
            let name = call.tool.split(':').next().unwrap_or_default();
            request.tools.iter().any(|tool| tool == name)
        };
        let (offered, missing): (Vec<_>, Vec<_>) = calls.into_iter().partition(is_offered);
        self.missing.extend(missing.into_iter().map(|call| call.tool));
        if offered.is_empty() {
            return Reply::Text("There is no such tool.".to_owned());
        }
        Reply::Calls(offered.into_iter().map(|call| (self.new_id(), call)).collect())
    }

    fn new_id(&mut self) -> String {
        self.next_id += 1;
        format!("{CALL}{}", self.next_id)
    }
}

/// The beginning of a call's id.
const CALL: &str = "call_";

/// The text of a result: a string, or the texts of a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// One event of a stream of server-sent events.
fn event(stream: &mut String, name: Option<&str>, data: &Value) {
    if let Some(name) = name {
        stream.push_str("event: ");
        stream.push_str(name);
        stream.push('\n');
    }
    stream.push_str("data: ");
    stream.push_str(&data.to_string());
    stream.push_str("\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(tools: &[&str], results: &[(&str, &str)]) -> Request {
        Request {
            tools: tools.iter().map(ToString::to_string).collect(),
            results: results.iter().map(|(id, text)| (id.to_string(), text.to_string())).collect(),
        }
    }

    fn call(tool: &str) -> Call {
        Call { tool: tool.to_owned(), arguments: json!({}) }
    }

    #[test]
    fn a_script_is_played_once_and_results_are_kept_by_call() {
        let mut state = State { script: vec![vec![call("ask"), call("ask")]], ..State::default() };
        assert_eq!(state.reply(asks(&[], &[])), Reply::Text("ok".into()), "a side call takes no step");
        let calls = Reply::Calls(vec![("call_1".into(), call("ask")), ("call_2".into(), call("ask"))]);
        assert_eq!(state.reply(asks(&["ask"], &[])), calls);
        let results = [("call_2", "b"), ("call_1", "a"), ("foreign", "c")];
        for _ in 0..2 {
            assert_eq!(state.reply(asks(&["ask"], &results)), Reply::Text("I go on.".into()));
        }
        assert_eq!(state.results.values().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_tool_that_is_not_offered_is_not_called() {
        let mut state = State { script: vec![vec![call("mcp__x:deploy")]], ..State::default() };
        assert_eq!(state.reply(asks(&["ask"], &[])), Reply::Text("There is no such tool.".into()));
        assert_eq!(state.missing, ["mcp__x:deploy"]);
    }
}
