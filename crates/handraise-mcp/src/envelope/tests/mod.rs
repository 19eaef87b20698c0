//! Tests of the envelope, against a client and an upstream that are written out.

mod bounds;
mod cancel;
mod confirm;
mod hostile;
mod inbox;
mod legacy;
mod model;
mod mrtr;
mod push;
mod scenarios;
mod seed;
mod transparent;

use std::sync::Arc;
use std::time::Duration;

use handraise_core::Moment;
use serde_json::{Value, json};

use self::scenarios::accept;
use super::{Caller, Envelope, EnvelopeConfig, InboxAsk, Out, Process, Route, Spend, Withdrawal};
use crate::Now;
use crate::frame::ClientFrame;
use crate::record::Record;
use crate::seal::{ClockId, Keyring};

const SEED: [u8; 32] = [7; 32];

/// The refusal of two devices, with key order and spelling that no serialiser of ours would choose.
const REFUSAL: &str = r#"{ "isError":true,"content":[{"text":"{\"success\":false,\"error\":\"2 devices match\",\"code\":\"ambiguous_device_target\",\"candidates\":[{\"deviceId\":\"emulator-5554\",\"platform\":\"android\"},{\"deviceId\":\"A1B2\",\"platform\":\"ios\",\"n\":1.0}],\"retryable\":false}","type":"text"}],"x":1e2}"#;

/// One client, one envelope, one upstream.
struct World {
    process: Arc<Process>,
    envelope: Envelope,
    caller: Arc<Caller>,
    now: Now,
    /// What the client has received and no test has looked at.
    client: Vec<String>,
    /// What the upstream has received and no test has looked at.
    upstream: Vec<String>,
    records: Vec<Record>,
    /// What the store of spent nonces is asked, and has not answered.
    spends: Vec<Spend>,
    /// What the inbox is asked, and what is taken back of that.
    inbox: Vec<InboxAsk>,
    withdrawn: Vec<(String, Withdrawal)>,
    /// How many tool calls have reached the upstream: the witness.
    runs: usize,
}

fn config() -> EnvelopeConfig {
    EnvelopeConfig::new("demo".to_owned(), Keyring::single(&[9; 32]), ClockId([1; 16]))
}

impl World {
    fn new(config: EnvelopeConfig) -> Self {
        Self::on(Arc::new(Process::new(config)), SEED)
    }

    fn on(process: Arc<Process>, seed: [u8; 32]) -> Self {
        Self {
            envelope: Envelope::new(Arc::clone(&process), seed),
            process,
            caller: Arc::new(Caller { principal: "stdio".to_owned(), session: None }),
            now: Now { boot: Moment::from_millis(1_000_000), wall_ms: 1_800_000_000_000 },
            client: Vec::new(),
            upstream: Vec::new(),
            records: Vec::new(),
            spends: Vec::new(),
            inbox: Vec::new(),
            withdrawn: Vec::new(),
            runs: 0,
        }
    }

    /// A connection that `initialize` has opened.
    fn push(elicitation: &Value) -> Self {
        let mut world = Self::new(config());
        world.initialize(&json!({"elicitation": elicitation}), "2025-11-25");
        world
    }

    fn initialize(&mut self, capabilities: &Value, version: &str) {
        let info = json!({"name": "client", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        self.client_sends(&json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":params}).to_string());
        let result = json!({"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s"}});
        self.upstream_sends(&json!({"jsonrpc":"2.0","id":0,"result":result}).to_string());
        self.client_sends(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self.client.clear();
        self.upstream.clear();
    }

    fn client_sends(&mut self, text: &str) {
        let mut out = Vec::new();
        let route = match ClientFrame::read(text.as_bytes()) {
            Ok(frame) => self.envelope.client_frame(&frame, &self.caller, self.now, &mut out),
            Err(malformed) => {
                self.envelope.client_malformed(&malformed, self.now, &mut out);
                Route::Consumed
            }
        };
        self.drain(out);
        if route == Route::Forward {
            self.upstream_receives(text.to_owned());
        }
    }

    fn upstream_sends(&mut self, text: &str) {
        let mut out = Vec::new();
        let process = Arc::clone(&self.process);
        let frame = process.read_server_frame(text.as_bytes()).unwrap();
        let route = self.envelope.upstream_frame(&frame, self.now, &mut out);
        self.drain(out);
        if route == Route::Forward {
            self.client.push(text.to_owned());
        }
    }

    fn drain(&mut self, out: Vec<Out>) {
        for out in out {
            match out {
                Out::ToClient { frame, .. } => self.client.push(String::from_utf8(frame).unwrap()),
                Out::ToUpstream(frame) => self.upstream_receives(String::from_utf8(frame).unwrap()),
                Out::Record(record) => self.records.push(record),
                Out::Spend(spend) => self.spends.push(spend),
                Out::Ask(ask) => self.inbox.push(*ask),
                Out::Withdraw { key, why, record } => {
                    self.withdrawn.push((key, why));
                    self.records.push(*record);
                }
            }
        }
    }

    fn upstream_receives(&mut self, text: String) {
        let frame = ClientFrame::read(text.as_bytes()).unwrap();
        if frame.method() == Some("tools/call") {
            self.runs += 1;
        }
        self.upstream.push(text);
    }

    fn advance(&mut self, span: Duration) {
        self.now.boot = self.now.boot + span;
        self.now.wall_ms += span.as_millis() as u64;
    }

    fn tick(&mut self) {
        let mut out = Vec::new();
        self.envelope.tick(self.now, &mut out);
        self.drain(out);
    }

    fn upstream_ends(&mut self) {
        let mut out = Vec::new();
        self.envelope.upstream_ended("exit status 3", self.now, &mut out);
        self.drain(out);
    }

    fn client_closes(&mut self) {
        let mut out = Vec::new();
        self.envelope.client_closed(self.now, &mut out);
        self.drain(out);
    }

    /// The one frame that the client has received since the last look.
    #[track_caller]
    fn client_got(&mut self) -> String {
        assert_eq!(self.client.len(), 1, "{:?}", self.client);
        self.client.remove(0)
    }

    /// The one frame that the upstream has received since the last look.
    #[track_caller]
    fn upstream_got(&mut self) -> String {
        assert_eq!(self.upstream.len(), 1, "{:?}", self.upstream);
        self.upstream.remove(0)
    }

    #[track_caller]
    fn nobody_got_anything(&self) {
        assert_eq!((&self.client, &self.upstream), (&vec![], &vec![]));
    }

    /// The last record, as its outcome and the words beside it.
    #[track_caller]
    fn recorded(&mut self) -> String {
        assert_eq!(self.records.len(), 1, "{:?}", self.records);
        let record = self.records.remove(0);
        let reason = record.reason.map(|reason| format!(" {reason}")).unwrap_or_default();
        format!("{} {}{reason}", record.outcome, record.provenance)
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A call of the push era, spelled with odd white space and numbers.
fn call(id: &str) -> String {
    call_with(id, r#"{"text": "OK", "n": 1.50}"#)
}

fn call_with(id: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {{"name": "tapOn", "arguments": {arguments}}}, "vendor": [1e0]}}"#
    )
}

fn response(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result},"vendor":{{}}}}"#)
}

/// Arguments that cannot be bound (S4), and why.
fn unbindable() -> [(String, &'static str); 4] {
    [
        (r#"{"a":{"b":1,"b":2}}"#.to_owned(), "duplicate-key"),
        (r#"{"a":"\ud800"}"#.to_owned(), "unpaired-surrogate"),
        (r#"{"a":9007199254740993}"#.to_owned(), "inexact-number"),
        (format!(r#"{{"a":{}1{}}}"#, "[".repeat(64), "]".repeat(64)), "nesting-too-deep"),
    ]
}

#[test]
fn a_dead_upstream_answers_every_open_request_once() {
    let mut world = World::new(config());
    for text in [
        r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"a"}}"#,
        r#"{"jsonrpc":"2.0","id":"x\/y","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#,
    ] {
        world.client_sends(text);
        assert_eq!(world.upstream_got(), text);
    }
    world.upstream_sends(r#"{"result":{},"jsonrpc":"2.0","id":3}"#);
    assert_eq!(world.client_got(), r#"{"result":{},"jsonrpc":"2.0","id":3}"#);
    assert_eq!(world.envelope.open_requests(), 2);
    world.upstream_ends();
    let error = r#""error":{"code":-32603,"message":"the MCP server ended: exit status 3"}"#;
    assert_eq!(
        std::mem::take(&mut world.client),
        [
            format!(r#"{{"jsonrpc":"2.0","id":1.0,{error}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":"x\/y",{error}}}"#),
        ]
    );
    world.client_sends(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":5,{error}}}"#));
    assert_eq!(world.process.bytes_in_flight(), 0);
}
