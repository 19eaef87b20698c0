//! The agent's life: initialize, sessions, one turn at a time.

use std::{collections::VecDeque, io::Write as _};

use serde_json::{Value, json};

use crate::{
    args::Options,
    scripts,
    turn::{Prompt, Stop, Turn},
    wire::{Gone, Incoming, Wire},
};

/// What the agent knows between turns.
pub(crate) struct Agent<'a> {
    pub(crate) wire: Wire<'a>,
    name: String,
    version: String,
    /// Whether the client said that it takes forms.
    pub(crate) takes_forms: bool,
    sessions: u64,
    /// Prompts that came during a turn.
    waiting: VecDeque<(Value, Value)>,
}

/// Serves one client until it is gone.
pub(crate) fn serve(mut wire: Wire<'_>, options: &Options) -> u8 {
    if options.list {
        return match wire.raw(scripts::list().as_bytes()) {
            Ok(()) => 0,
            Err(_) => 1,
        };
    }
    let mut agent = Agent {
        wire,
        name: options.name.clone(),
        version: options.version.clone(),
        takes_forms: false,
        sessions: 0,
        waiting: VecDeque::new(),
    };
    match agent.run(&options.script) {
        Ok(()) | Err(Gone::InputEnded) => 0,
        Err(Gone::Exit(status)) => status,
    }
}

impl Agent<'_> {
    fn run(&mut self, script: &str) -> Result<(), Gone> {
        if script == "noise" {
            self.wire.raw(scripts::NOISE)?;
            let _ = writeln!(std::io::stderr(), "\u{1b}[31mred alert\u{1b}[0m on stderr");
        }
        loop {
            if let Some((id, params)) = self.waiting.pop_front() {
                self.prompt(&id, &params, script)?;
                continue;
            }
            let incoming = self.wire.receive()?;
            self.between_turns(incoming)?;
        }
    }

    /// Handles what is no part of a turn's conversation.
    pub(crate) fn between_turns(&mut self, incoming: Incoming) -> Result<(), Gone> {
        match incoming {
            Incoming::Request { id, method, params } => match method.as_str() {
                "initialize" => {
                    self.takes_forms =
                        params.pointer("/clientCapabilities/elicitation/form").is_some_and(Value::is_object);
                    let result = json!({
                        "protocolVersion": 1,
                        "agentCapabilities": {"promptCapabilities": {"image": false}},
                        "agentInfo": {"name": self.name, "version": self.version},
                        "authMethods": [],
                    });
                    self.wire.respond(&id, &result)
                }
                "session/new" => {
                    self.sessions += 1;
                    let session = format!("sess-{}", self.sessions);
                    self.wire.respond(&id, &json!({"sessionId": session}))
                }
                "session/prompt" => {
                    self.waiting.push_back((id, params));
                    Ok(())
                }
                _ => self.wire.fail(&id, -32601, "Method not found"),
            },
            // A cancel without a turn, and answers that come too late, are nobody's business any more.
            Incoming::Notification { .. } | Incoming::Response { .. } => Ok(()),
        }
    }

    fn prompt(&mut self, id: &Value, params: &Value, fallback: &str) -> Result<(), Gone> {
        let text: String = params["prompt"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|block| block["text"].as_str())
            .collect();
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let named = scripts::find(&text).map(|script| (script, text.as_str()));
        let Some((script, words)) =
            named.or_else(|| scripts::find(fallback).map(|script| (script, fallback)))
        else {
            return self.wire.fail(id, -32602, "no such script");
        };
        let argument = words.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim()).to_owned();
        let prompt = Prompt { id: id.clone(), session, text: text.clone(), argument };
        let mut turn = Turn::new(self, prompt);
        let stop = (script.run)(&mut turn)?;
        match stop {
            Stop::Because(reason) => {
                let reason = if turn.is_cancelled() { "cancelled" } else { reason };
                turn.end(reason)
            }
            Stop::Failed => self.wire.fail(id, -32603, "Internal error"),
            Stop::Already => Ok(()),
        }
    }
}
