//! Tests of the envelope.

use super::*;

struct Bench {
    envelope: Envelope,
    caller: Arc<Caller>,
    now: Now,
}

impl Bench {
    fn new() -> Self {
        let process = Arc::new(Process::new(EnvelopeConfig::default()));
        Self {
            envelope: Envelope::new(process, [7; 32]),
            caller: Arc::new(Caller { principal: "stdio".to_owned(), session: None }),
            now: Now { boot: Moment::from_millis(1000), wall_ms: 1_800_000_000_000 },
        }
    }

    fn client(&mut self, text: &str) -> (Route, Vec<String>) {
        let mut out = Vec::new();
        let frame = ClientFrame::read(text.as_bytes()).unwrap();
        let route = self.envelope.client_frame(&frame, &self.caller, self.now, &mut out);
        (route, out.into_iter().map(shown).collect())
    }

    fn upstream(&mut self, text: &str) -> (Route, Vec<String>) {
        let mut out = Vec::new();
        let frame = self.envelope.process.read_server_frame(text.as_bytes()).unwrap();
        let route = self.envelope.upstream_frame(&frame, self.now, &mut out);
        drop(frame);
        (route, out.into_iter().map(shown).collect())
    }
}

/// An output in one line: `client` or `upstream`, and the frame.
fn shown(out: Out) -> String {
    match out {
        Out::ToClient { frame, .. } => format!("client {}", String::from_utf8(frame).unwrap()),
        Out::ToUpstream(frame) => format!("upstream {}", String::from_utf8(frame).unwrap()),
        Out::Record(record) => record.to_line(),
    }
}

#[test]
fn a_dead_upstream_answers_every_open_request_once() {
    let mut bench = Bench::new();
    for text in [
        r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"a"}}"#,
        r#"{"jsonrpc":"2.0","id":"x\/y","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#,
    ] {
        assert_eq!(bench.client(text), (Route::Forward, vec![]));
    }
    assert_eq!(bench.upstream(r#"{"result":{},"jsonrpc":"2.0","id":3}"#), (Route::Forward, vec![]));
    assert_eq!(bench.envelope.open_requests(), 2);
    let mut out = Vec::new();
    bench.envelope.upstream_ended("exit status 3", bench.now, &mut out);
    let error = r#""error":{"code":-32603,"message":"the MCP server ended: exit status 3"}"#;
    assert_eq!(
        out.into_iter().map(shown).collect::<Vec<_>>(),
        [
            format!(r#"client {{"jsonrpc":"2.0","id":1.0,{error}}}"#),
            format!(r#"client {{"jsonrpc":"2.0","id":"x\/y",{error}}}"#),
        ]
    );
    let late = bench.client(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
    assert_eq!(late, (Route::Consumed, vec![format!(r#"client {{"jsonrpc":"2.0","id":5,{error}}}"#)]));
}
