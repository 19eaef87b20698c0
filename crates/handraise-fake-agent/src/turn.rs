//! One turn: what a script can say and ask, and how it hears back.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    session::Agent,
    wire::{Gone, Incoming},
};

/// What the client asked for.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) id: Value,
    pub(crate) session: String,
    pub(crate) text: String,
    /// What follows the script's name.
    pub(crate) argument: String,
}

/// How a script ends its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// With this stop reason, or `cancelled` when the client cancelled meanwhile.
    Because(&'static str),
    /// With a JSON-RPC error.
    Failed,
    /// The prompt was answered by the script itself.
    Already,
}

/// The usual end.
pub(crate) const END_TURN: Stop = Stop::Because("end_turn");

/// A response to a request of the script.
pub(crate) type Reply = Result<Value, Value>;

/// A turn under way.
pub(crate) struct Turn<'t, 'a> {
    agent: &'t mut Agent<'a>,
    pub(crate) prompt: Prompt,
    replies: BTreeMap<u64, Vec<Reply>>,
    cancelled: bool,
}

impl<'t, 'a> Turn<'t, 'a> {
    pub(crate) fn new(agent: &'t mut Agent<'a>, prompt: Prompt) -> Self {
        Self { agent, prompt, replies: BTreeMap::new(), cancelled: false }
    }

    /// The script's numeric argument.
    pub(crate) fn number(&self, default: usize) -> usize {
        self.prompt.argument.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(default)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    pub(crate) fn client_takes_forms(&self) -> bool {
        self.agent.takes_forms
    }

    // --- saying ---

    /// Streams a piece of text.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Gone> {
        self.update(&json!({
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": text},
        }))
    }

    pub(crate) fn update(&mut self, update: &Value) -> Result<(), Gone> {
        let params = json!({"sessionId": self.prompt.session, "update": update});
        self.agent.wire.notify("session/update", &params)
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.agent.wire.raw(bytes)
    }

    /// Answers the prompt.
    pub(crate) fn end(&mut self, reason: &str) -> Result<(), Gone> {
        let id = self.prompt.id.clone();
        self.agent.wire.respond(&id, &json!({"stopReason": reason}))
    }

    // --- asking ---

    /// Asks a form within this session, and waits for the answer.
    pub(crate) fn ask(&mut self, form: &Value) -> Result<Value, Gone> {
        let id = self.send_ask(form)?;
        self.answer(id)
    }

    /// Asks a form within this session; the answer is fetched with [`answer`](Self::answer).
    pub(crate) fn send_ask(&mut self, form: &Value) -> Result<u64, Gone> {
        let mut params = json!({"mode": "form", "sessionId": self.prompt.session});
        if let (Some(params), Some(form)) = (params.as_object_mut(), form.as_object()) {
            params.extend(form.clone());
        }
        self.request("elicitation/create", &params)
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<u64, Gone> {
        self.agent.wire.request(method, params)
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) -> Result<(), Gone> {
        self.agent.wire.notify(method, params)
    }

    /// Requests something and waits for the reply.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Reply, Gone> {
        let id = self.request(method, params)?;
        self.reply(id)
    }

    /// The result of an ask; `{"error": …}` when the client answered with an error.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Gone> {
        Ok(self.reply(id)?.unwrap_or_else(|error| json!({"error": error})))
    }

    /// Waits for the reply to a request.
    pub(crate) fn reply(&mut self, id: u64) -> Result<Reply, Gone> {
        loop {
            if let Some(replies) = self.replies.get_mut(&id)
                && !replies.is_empty()
            {
                return Ok(replies.remove(0));
            }
            self.listen()?;
        }
    }

    /// Waits until the client cancels the turn.
    pub(crate) fn wait_for_cancel(&mut self) -> Result<(), Gone> {
        while !self.cancelled {
            self.listen()?;
        }
        Ok(())
    }

    /// The next request's id, to be set by scripts that misuse ids.
    pub(crate) fn next_id(&mut self) -> &mut u64 {
        &mut self.agent.wire.next_id
    }

    fn listen(&mut self) -> Result<(), Gone> {
        match self.agent.wire.receive()? {
            Incoming::Response { id, outcome } => self.replies.entry(id).or_default().push(outcome),
            Incoming::Notification { method, params }
                if method == "session/cancel" && params["sessionId"] == self.prompt.session.as_str() =>
            {
                self.cancelled = true;
            }
            other => self.agent.between_turns(other)?,
        }
        Ok(())
    }
}
