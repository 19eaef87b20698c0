//! Guarded calls: what runs is what the upstream receives, and it receives nothing else.

mod form;
mod inbox;
mod judged;
mod kinds;
mod listed;
mod preview;
mod rails;
mod retry;
mod stages;
mod storm;
mod token;

use std::collections::BTreeSet;

use super::*;
use crate::confirm::{ConfirmConfig, GuardSource, Guards, PreviewSource, Remembers, Secrets, Spent, Values};

/// The server's tools, unless a test says otherwise.
const TOOLS: &str = r#"[{"name":"send","inputSchema":{"type":"object"}},{"name":"get","annotations":{"readOnlyHint":true}},{"name":"echo","annotations":{"readOnlyHint":true}}]"#;

/// What the preview says, unless a test says otherwise.
const PREVIEW: &str = r#"{"content":[{"type":"text","text":"{\"subject\":\"Hi\",\"etag\":\"1\"}"}]}"#;

const SECRET: &str = "a secret of thirty-two characters";

/// A world in which the server lists its tools, shows previews, and a store keeps what is spent.
struct Scene {
    world: World,
    tools: String,
    /// The result of the preview; nothing: it never answers.
    preview: Option<String>,
    store: Store,
    /// Calls that have reached the upstream and are no preview: what ran.
    ran: Vec<String>,
    /// How often the tools were listed, and the preview was read.
    lists: usize,
    previews: usize,
    next: u32,
}

/// The store of spent nonces.
#[derive(Debug)]
enum Store {
    Of(BTreeSet<[u8; 16]>),
    /// It knows nothing.
    Broken,
    /// It does not answer.
    Silent,
}

/// One table: `send` is guarded, with nothing else.
fn plain_guard() -> GuardSource {
    GuardSource {
        tools: vec!["send".to_owned()],
        action: Some("Send e-mail".to_owned()),
        ..GuardSource::default()
    }
}

/// The same with account, target, preview and revision.
fn whole_guard() -> GuardSource {
    GuardSource {
        account: Some("/account".to_owned()),
        target: Some("/id".to_owned()),
        preview: Some(PreviewSource {
            tool: "get".to_owned(),
            arguments: vec![("draft".to_owned(), "/id".to_owned())],
            revision: Some("/etag".to_owned()),
            is_trusted: false,
        }),
        ..plain_guard()
    }
}

fn confirming(guards: Vec<GuardSource>, values: Values<'_>) -> EnvelopeConfig {
    let guards = Guards::new(guards).unwrap();
    confirming_with(guards, values, Remembers::Beyond)
}

fn confirming_with(guards: Guards, values: Values<'_>, remembers: Remembers) -> EnvelopeConfig {
    let (confirm, _) = ConfirmConfig::new(guards, values, Keyring::single(&[9; 32]), [5; 32], remembers);
    EnvelopeConfig { confirm: Some(confirm), ..config() }
}

/// `send` is guarded, with a store that remembers so long.
fn remembering(remembers: Remembers) -> EnvelopeConfig {
    confirming_with(Guards::new(vec![plain_guard()]).unwrap(), shared_secret(), remembers)
}

fn shared_secret() -> Values<'static> {
    Values { secrets: Secrets { own: Some(SECRET), ..Secrets::default() }, ..Values::default() }
}

impl Scene {
    fn new(guard: GuardSource) -> Self {
        Self::with(vec![guard], shared_secret())
    }

    fn with(guards: Vec<GuardSource>, values: Values<'_>) -> Self {
        Self::on(World::new(confirming(guards, values)))
    }

    fn on(world: World) -> Self {
        Self {
            world,
            tools: TOOLS.to_owned(),
            preview: Some(PREVIEW.to_owned()),
            store: Store::Of(BTreeSet::new()),
            ran: Vec::new(),
            lists: 0,
            previews: 0,
            next: 0,
        }
    }

    /// A session of the push era.
    fn push(guard: GuardSource, elicitation: &Value) -> Self {
        let mut scene = Self::new(guard);
        scene.world.initialize(&json!({"elicitation": elicitation}), "2025-11-25");
        scene
    }

    /// A session whose client cannot be asked.
    fn mute(guard: GuardSource) -> Self {
        let mut scene = Self::new(guard);
        scene.world.initialize(&json!({}), "2025-11-25");
        scene
    }

    fn sends(&mut self, text: &str) {
        self.world.client_sends(text);
        self.settle();
    }

    /// Lets the server and the store answer what they are asked, until nothing more is.
    fn settle(&mut self) {
        loop {
            for spend in std::mem::take(&mut self.world.spends) {
                let was = match &mut self.store {
                    Store::Of(spent) if spend.claims => {
                        if spent.insert(spend.nonce) {
                            Spent::No
                        } else {
                            Spent::Yes
                        }
                    }
                    Store::Of(spent) => {
                        if spent.contains(&spend.nonce) {
                            Spent::Yes
                        } else {
                            Spent::No
                        }
                    }
                    Store::Broken => Spent::Unknown,
                    Store::Silent => continue,
                };
                let mut out = Vec::new();
                self.world.envelope.spent(spend.ticket, was, self.world.now, &mut out);
                self.world.drain(out);
            }
            let received = std::mem::take(&mut self.world.upstream);
            if received.is_empty() && self.world.spends.is_empty() {
                return;
            }
            for text in received {
                self.upstream_takes(&text);
            }
        }
    }

    fn upstream_takes(&mut self, text: &str) {
        let frame = value(text);
        let is_ours = frame["id"].as_str().is_some_and(|id| id.starts_with("hr-run-"));
        match frame["method"].as_str() {
            Some("tools/list") if is_ours => {
                self.lists += 1;
                let result = format!(r#"{{"tools":{}}}"#, self.tools);
                self.world.upstream_sends(&response(&frame["id"].to_string(), &result));
            }
            Some("tools/call") if is_ours => {
                self.previews += 1;
                if let Some(preview) = self.preview.clone() {
                    self.world.upstream_sends(&response(&frame["id"].to_string(), &preview));
                }
            }
            Some("tools/call") => self.ran.push(text.to_owned()),
            _ => {}
        }
    }

    fn id(&mut self) -> String {
        self.next += 1;
        self.next.to_string()
    }

    /// Calls `send` in the push era, or in a connection that nobody opened; what the client gets.
    fn call(&mut self, arguments: &str) -> Value {
        let id = self.id();
        self.sends(&send(&id, arguments));
        self.got()
    }

    /// Calls `send` as a modern client with these capabilities.
    fn modern(&mut self, arguments: &str, more: &str, capabilities: &Value) -> Value {
        let id = self.id();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        self.sends(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"send","arguments":{arguments}{more},"_meta":{meta}}}}}"#
        ));
        self.got()
    }

    /// The one frame that the client got; nothing when it got none.
    #[track_caller]
    fn got(&mut self) -> Value {
        assert!(self.world.client.len() <= 1, "{:?}", self.world.client);
        self.world.client.pop().map_or(Value::Null, |text| value(&text))
    }

    /// Answers the form that was pushed, after a time.
    fn answer(&mut self, question: &Value, after_ms: u64, result: &Value) -> Value {
        assert_eq!(question["method"], "elicitation/create", "{question}");
        self.world.advance(Duration::from_millis(after_ms));
        let id = question["id"].clone();
        self.sends(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
        self.got()
    }

    /// What was recorded since the last look: rail, outcome, provenance, reason.
    fn records(&mut self) -> Vec<String> {
        let records = std::mem::take(&mut self.world.records);
        records
            .iter()
            .map(|record| {
                let reason = record.reason.map(|reason| format!(" {reason}")).unwrap_or_default();
                format!("{} {} {}{reason}", record.rail, record.outcome, record.provenance)
            })
            .collect()
    }

    /// Nothing is left behind: no call, no deadline, no bytes.
    #[track_caller]
    fn is_clean(&mut self) {
        assert_eq!(self.world.envelope.guarded_calls(), 0);
        assert_eq!(self.world.envelope.open_requests(), self.ran.len(), "only what runs is open");
        let ran = std::mem::take(&mut self.ran);
        for call in &ran {
            let id = value(call)["id"].to_string();
            self.world.upstream_sends(&response(&id, r#"{"content":[]}"#));
        }
        self.world.client.clear();
        assert_eq!((self.world.envelope.open_requests(), self.world.envelope.next_deadline()), (0, None));
        assert_eq!(self.world.process.bytes_in_flight(), 0);
        self.ran = ran;
    }
}

fn send(id: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"send","arguments":{arguments}}}}}"#
    )
}

/// The object in the one text block of a result of ours.
#[track_caller]
fn said(answer: &Value) -> Value {
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(content.len(), 1, "{answer}");
    assert!(answer["result"].get("structuredContent").is_none());
    value(content[0]["text"].as_str().unwrap())
}

/// The members of a result of ours that tell the cases apart.
#[track_caller]
fn case(answer: &Value) -> String {
    let object = said(answer);
    assert_eq!((&object["confirmed"], &object["dispatched"]), (&json!(false), &json!(false)), "{answer}");
    let is_error = answer["result"]["isError"] == true;
    let members = ["status", "error", "reason"].map(|name| object[name].as_str().map(str::to_owned));
    let cancelled = (object["cancelled"] == true).then(|| "cancelled".to_owned());
    let error = is_error.then(|| "isError".to_owned());
    let words: Vec<String> =
        error.into_iter().chain(cancelled).chain(members.into_iter().flatten()).collect();
    words.join(" ")
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {"confirm": true}})
}

fn form() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// The members that a retry adds.
fn retried(state: &str, answer: &Value) -> String {
    format!(r#","requestState":"{state}","inputResponses":{{"confirmation":{answer}}}"#)
}

fn state_of(question: &Value) -> String {
    assert_eq!(question["result"]["resultType"], "input_required", "{question}");
    question["result"]["requestState"].as_str().unwrap().to_owned()
}
