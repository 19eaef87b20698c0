//! A client of `handraise mcp`, over any way: raw frames out, and lines back.

use std::{
    ops::{Deref, DerefMut},
    sync::mpsc::{Receiver, RecvTimeoutError},
};

use serde_json::{Value, json};

use super::{BOUND, Witness, initialize};

/// How a client's frames get to `handraise mcp`.
pub(crate) trait Way {
    /// Sends lines.
    fn write(&mut self, bytes: &[u8]);

    /// The request that calls a tool.
    fn call(&self, id: &Value, params: &Value) -> Value;

    /// From now on nothing is sent: lines end with the last answer.
    fn send_no_more(&self) {}

    fn witness(&self) -> &Witness;
}

/// A client with what comes back to it.
pub(crate) struct Client<W> {
    way: W,
    lines: Receiver<Vec<u8>>,
}

impl<W: Way> Client<W> {
    pub(super) fn new(way: W, lines: Receiver<Vec<u8>>) -> Self {
        Self { way, lines }
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.way.write(bytes);
    }

    /// Sends a frame.
    pub(crate) fn send(&mut self, frame: &Value) {
        self.write(format!("{frame}\n").as_bytes());
    }

    /// The next line with its end, as it came.
    #[track_caller]
    pub(crate) fn line(&self) -> Vec<u8> {
        match self.lines.recv_timeout(BOUND) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no line; the log: {}", self.log()),
            Err(RecvTimeoutError::Disconnected) => panic!("nothing more comes; the log: {}", self.log()),
        }
    }

    /// The next frame.
    #[track_caller]
    pub(crate) fn receive(&self) -> Value {
        let line = self.line();
        serde_json::from_slice(&line).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&line)))
    }

    /// Every line that still comes until the end.
    #[track_caller]
    pub(crate) fn rest(&self) -> Vec<u8> {
        self.way.send_no_more();
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(line) => rest.extend(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end; the log: {}", self.log()),
            }
        }
    }

    /// Opens a session of the legacy era with these capabilities.
    #[track_caller]
    pub(crate) fn initialize(&mut self, version: &str, capabilities: &Value) {
        self.send(&initialize(version, capabilities));
        let answer = self.receive();
        assert_eq!(answer["id"], "init", "{answer}");
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, id: &Value, tool: &str, arguments: &Value) {
        let frame = self.way.call(id, &json!({"name": tool, "arguments": arguments}));
        self.send(&frame);
    }

    /// Calls a tool and waits for its answer.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: &Value, tool: &str, arguments: &Value) -> Value {
        self.call(id, tool, arguments);
        let answer = self.receive();
        assert_eq!(answer["id"], *id, "{answer}");
        answer
    }

    fn log(&self) -> String {
        self.way.witness().log.text()
    }
}

impl<W> Deref for Client<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.way
    }
}

impl<W> DerefMut for Client<W> {
    fn deref_mut(&mut self) -> &mut W {
        &mut self.way
    }
}
