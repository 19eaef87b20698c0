//! What each script puts on the wire.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe},
    thread::{self, JoinHandle},
};

use handraise_fake_agent::{run, scripts::SCRIPTS};
use serde_json::{Value, json};

/// A client that has initialized and opened a session.
struct Client {
    to_agent: Option<PipeWriter>,
    from_agent: BufReader<PipeReader>,
    agent: JoinHandle<u8>,
    next_id: u64,
}

impl Client {
    fn start(args: &[&str]) -> Self {
        let (agent_input, to_agent) = pipe().unwrap();
        let (from_agent, agent_output) = pipe().unwrap();
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let agent = thread::spawn(move || run(args, agent_input, agent_output));
        let from_agent = BufReader::new(from_agent);
        let mut client = Self { to_agent: Some(to_agent), from_agent, agent, next_id: 0 };
        let capabilities = json!({"elicitation": {"form": {}}});
        client.send_request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
        let reply = client.frame();
        assert_eq!(reply["result"]["protocolVersion"], 1);
        client.send_request("session/new", &json!({"cwd": "/", "mcpServers": []}));
        assert_eq!(client.frame()["result"]["sessionId"], "sess-1");
        client
    }

    fn send(&mut self, frame: &Value) {
        writeln!(self.to_agent.as_mut().unwrap(), "{frame}").unwrap();
    }

    fn send_request(&mut self, method: &str, params: &Value) {
        self.next_id += 1;
        let id = format!("c{}", self.next_id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn prompt(&mut self, text: &str) {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send_request("session/prompt", &json!({"sessionId": "sess-1", "prompt": prompt}));
    }

    fn answer(&mut self, id: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.from_agent.read_until(b'\n', &mut line).unwrap();
        line
    }

    fn frame(&mut self) -> Value {
        serde_json::from_slice(&self.line()).unwrap()
    }

    /// The next request, past the updates before it.
    fn request(&mut self) -> Value {
        loop {
            let frame = self.frame();
            if frame.get("id").is_some() && frame.get("method").is_some() {
                return frame;
            }
        }
    }

    /// Reads to the prompt's response: what was said, and the response.
    fn rest_of_turn(&mut self) -> (String, Value) {
        let mut said = String::new();
        loop {
            let frame = self.frame();
            if let Some(text) = frame.pointer("/params/update/content/text").and_then(Value::as_str) {
                said.push_str(text);
            }
            if frame.get("method").is_none() {
                return (said, frame["result"].clone());
            }
        }
    }

    fn finish(mut self) -> u8 {
        self.to_agent = None;
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut self.from_agent, &mut rest).unwrap();
        self.agent.join().unwrap()
    }
}

#[test]
fn forms_equal_what_the_real_bridge_builds() {
    let captured: Value = serde_json::from_str(include_str!("../data/claude-agent-acp-0.65.0.json")).unwrap();
    let mut client = Client::start(&[]);
    for (script, name) in [
        ("single", "ask/single"),
        ("two", "ask/two"),
        ("refusal", "refusal/full"),
        ("passthrough", "mcp/arbitrary-key"),
    ] {
        client.prompt(script);
        let ask = client.request();
        let mut expected = captured["forms"][name].clone();
        expected["sessionId"] = json!("sess-1");
        assert_eq!(ask["method"], "elicitation/create");
        assert_eq!(ask["params"], expected, "{script}");
        client.answer(&ask["id"], &json!({"action": "decline"}));
        let (said, result) = client.rest_of_turn();
        assert_eq!(said, "I was told: {\"action\":\"decline\"}\n", "{script}");
        assert_eq!(result, json!({"stopReason": "end_turn"}));
    }
    assert_eq!(client.finish(), 0);
}

#[test]
fn the_demo_asks_five_forms_in_one_turn_and_says_what_it_was_told() {
    let mut client = Client::start(&["--script", "demo"]);
    client.prompt("please set up my service");
    let mut ids = Vec::new();
    for number in 0..5 {
        let ask = client.request();
        assert_eq!(ask["method"], "elicitation/create");
        ids.push(ask["id"].as_u64().unwrap());
        client.answer(&ask["id"], &json!({"action": "accept", "content": {"n": number}}));
    }
    assert_eq!(ids, [0, 1, 2, 3, 4], "ids start at 0");
    let (said, result) = client.rest_of_turn();
    assert!(said.contains("- {\"n\":0}\n") && said.contains("- {\"n\":4}\n"), "{said}");
    assert_eq!(result["stopReason"], "end_turn");
    client.finish();
}

#[test]
fn a_cancelled_turn_ends_after_its_asks_are_answered() {
    let mut client = Client::start(&[]);
    client.prompt("single");
    let ask = client.request();
    client.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "sess-1"}}));
    client.answer(&ask["id"], &json!({"action": "cancel"}));
    let (_, result) = client.rest_of_turn();
    assert_eq!(result["stopReason"], "cancelled");
    client.finish();
}

#[test]
fn noise_has_no_frame_in_it() {
    let mut client = Client::start(&[]);
    client.prompt("noise");
    let mut frames = Vec::new();
    let mut noise = BTreeSet::new();
    while frames.len() < 2 {
        let line = client.line();
        match serde_json::from_slice::<Value>(&line) {
            Ok(value) if value.get("method").is_some() => frames.push(value),
            _ => {
                noise.insert(line);
            }
        }
    }
    assert_eq!(frames[0]["params"]["update"]["content"]["text"], "before\n");
    assert_eq!(frames[1]["method"], "elicitation/create");
    assert!(noise.contains(&b"\0\n"[..]) && noise.contains(&b"\xFF\xFE\n"[..]), "{noise:?}");
    client.answer(&frames[1]["id"], &json!({"action": "decline"}));
    client.finish();
}

#[test]
fn what_is_received_is_recorded_as_it_came() {
    let file = std::env::temp_dir().join(format!("fake-agent-record-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let mut client = Client::start(&["--record", file.to_str().unwrap()]);
    client.prompt("echo  spaced");
    assert_eq!(client.rest_of_turn().0, "echo  spaced");
    client.finish();
    let record = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let lines: Vec<&str> = record.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[2],
        r#"{"jsonrpc":"2.0","id":"c3","method":"session/prompt","params":{"sessionId":"sess-1","prompt":[{"type":"text","text":"echo  spaced"}]}}"#
    );
}

#[test]
fn exit_statuses_tell_how_it_ended() {
    assert_eq!(run([OsString::from("--nonsense")], std::io::empty(), std::io::sink()), 2);
    let mut client = Client::start(&["--script", "exit-mid-ask"]);
    client.prompt("go");
    client.request();
    assert_eq!(client.agent.join().unwrap(), 3);
}

#[test]
fn the_list_has_one_line_a_script_and_names_are_unique() {
    let mut list = Vec::new();
    assert_eq!(run(["--list".into()], std::io::empty(), &mut list), 0);
    assert_eq!(String::from_utf8(list).unwrap().lines().count(), SCRIPTS.len());
    let names: BTreeSet<&str> = SCRIPTS.iter().map(|script| script.name).collect();
    assert_eq!(names.len(), SCRIPTS.len());
}
