//! Frames: a client's is read as JSON or not at all, and no conversation leaves the envelope with anything in hand.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use handraise_core::Moment;
use handraise_core::words::Provenance;
use handraise_mcp::confirm::{ConfirmConfig, GuardSource, Guards, PreviewSource, Remembers, Spent, Values};
use handraise_mcp::envelope::{InboxEnd, InboxSaid};
use handraise_mcp::seal::{ClockId, Keyring};
use handraise_mcp::{Caller, ClientFrame, Envelope, EnvelopeConfig, Now, Out, Process, Route};
use serde_json::Value;
use serde_json::value::RawValue;

/// Its keys take their time.
static KEYRING: LazyLock<Keyring> = LazyLock::new(|| Keyring::single(&[1; 32]));

/// What stands for the last of what we made up, and how that begins: an ask, a request of ours, a state, a token.
const MADE_UP: [(&str, &str); 4] =
    [("@ASK@", "hr-ask-"), ("@RUN@", "hr-run-"), ("@STATE@", "hr1."), ("@TOKEN@", "mcpu.token.v1.")];

/// Reads bytes as one frame of a client, and as a conversation: each line is what the client says; after `<`, what the
/// server says; `+`: time passes; `!`: the client's end. The server ends last.
pub(crate) fn check(bytes: &[u8]) {
    one_frame(bytes);
    let mut world = World::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = &*world.with_what_was_made_up(line);
        match line.first() {
            Some(b'<') => world.upstream(&line[1..]),
            Some(b'+') => world.later(Duration::from_secs(15)),
            Some(b'!') => world.input(Envelope::client_closed),
            Some(_) => world.client(line),
            None => {}
        }
    }
    world.input(|envelope, now, out| envelope.upstream_ended("exit status 0", now, out));
    assert_eq!(world.envelope.open_requests(), 0);
    drop(world.envelope);
    assert_eq!(world.process.bytes_in_flight(), 0, "bytes that nobody holds");
}

fn one_frame(bytes: &[u8]) {
    match ClientFrame::read(bytes) {
        Ok(frame) => {
            // A raw value is skipped, not read, so that numbers and surrogates have no range.
            assert!(serde_json::from_slice::<&RawValue>(bytes).is_ok(), "no JSON");
            if let Ok(Value::Object(members)) = serde_json::from_slice::<Value>(bytes) {
                let method = members.get("method").and_then(Value::as_str);
                assert_eq!(method, frame.method(), "another method");
            }
        }
        Err(malformed) => json(&malformed.reply()),
    }
}

fn json(frame: &[u8]) {
    let read = serde_json::from_slice::<&RawValue>(frame);
    assert!(read.is_ok(), "we write no JSON: {}", String::from_utf8_lossy(frame));
    assert!(!frame.contains(&b'\n'), "a line end in a line");
}

struct World {
    process: Arc<Process>,
    envelope: Envelope,
    caller: Arc<Caller>,
    now: Now,
    made_up: [String; 4],
}

impl World {
    fn new() -> Self {
        let mut config = EnvelopeConfig::new("server".to_owned(), KEYRING.clone(), ClockId([7; 16]));
        let preview =
            PreviewSource { tool: "draft".to_owned(), is_trusted: true, ..PreviewSource::default() };
        let guard =
            GuardSource { tools: vec!["send*".to_owned()], preview: Some(preview), ..GuardSource::default() };
        let plain = GuardSource { tools: vec!["delete".to_owned()], ..GuardSource::default() };
        let guards = Guards::new(vec![guard, plain]).unwrap();
        let (confirm, _) =
            ConfirmConfig::new(guards, Values::default(), KEYRING.clone(), [2; 32], Remembers::Beyond);
        config.confirm = Some(confirm);
        let process = Arc::new(Process::new(config));
        process.attach_inbox(|| Some(Duration::ZERO));
        Self {
            envelope: Envelope::new(Arc::clone(&process), [7; 32]),
            process,
            caller: Arc::new(Caller { principal: "stdio".to_owned(), session: None }),
            now: Now { boot: Moment::from_millis(5_000), wall_ms: 1_800_000_000_000 },
            made_up: Default::default(),
        }
    }

    /// A line in which the last ask, request, state and token stand where their signs stood.
    fn with_what_was_made_up<'a>(&self, line: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(text) = str::from_utf8(line).ok().filter(|text| text.contains('@')) else {
            return Cow::Borrowed(line);
        };
        let signs = MADE_UP.iter().zip(&self.made_up);
        let text = signs.fold(text.to_owned(), |text, ((sign, _), last)| text.replace(sign, last));
        Cow::Owned(text.into_bytes())
    }

    fn note(&mut self, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame);
        for ((_, begins), last) in MADE_UP.iter().zip(&mut self.made_up) {
            if let Some(at) = text.rfind(begins) {
                let end = text[at..].find(['"', '\\']).map_or(text.len(), |length| at + length);
                *last = text[at..end].to_owned();
            }
        }
    }

    fn client(&mut self, line: &[u8]) {
        match ClientFrame::read(line) {
            Ok(frame) => {
                let caller = Arc::clone(&self.caller);
                self.input(|envelope, now, out| {
                    let _: Route = envelope.client_frame(&frame, &caller, now, out);
                });
            }
            Err(malformed) => {
                self.input(|envelope, now, out| envelope.client_malformed(&malformed, now, out));
            }
        }
    }

    fn upstream(&mut self, line: &[u8]) {
        let process = Arc::clone(&self.process);
        let Ok(frame) = process.read_server_frame(line) else { return };
        // What an upstream says is forwarded unread, and so may be no JSON where we splice it.
        let is_json = serde_json::from_slice::<&RawValue>(line).is_ok();
        self.judged(is_json, |envelope, now, out| {
            let _: Route = envelope.upstream_frame(&frame, now, out);
        });
    }

    fn later(&mut self, by: Duration) {
        self.now.boot = self.now.boot + by;
        self.now.wall_ms += u64::try_from(by.as_millis()).unwrap();
        self.input(Envelope::tick);
    }

    fn input(&mut self, act: impl FnOnce(&mut Envelope, Now, &mut Vec<Out>)) {
        self.judged(true, act);
    }

    fn judged(&mut self, is_json: bool, act: impl FnOnce(&mut Envelope, Now, &mut Vec<Out>)) {
        let mut out = Vec::new();
        act(&mut self.envelope, self.now, &mut out);
        while !out.is_empty() {
            let mut more = Vec::new();
            for out in out.drain(..) {
                match out {
                    Out::ToClient { frame, .. } | Out::ToUpstream(frame) => {
                        self.note(&frame);
                        if is_json {
                            json(&frame);
                        }
                    }
                    Out::Record(record) => assert!(!record.to_line().contains('\n')),
                    Out::Spend(spend) => {
                        self.envelope.spent(spend.ticket, Spent::No, self.now, &mut more);
                    }
                    Out::Ask(ask) => {
                        json(ask.schema.as_bytes());
                        // What is answered may be nothing that was asked for.
                        let end = InboxEnd::Accepted(r#"{"deviceId":"b","confirm":true}"#.to_owned());
                        let said = InboxSaid { end, provenance: Provenance::Human };
                        self.envelope.inbox_said(&ask.key, &said, self.now, &mut more);
                    }
                    Out::Withdraw { .. } => {}
                }
            }
            out = more;
        }
    }
}
