//! A question to the client of a session that has left: whether it can come back decides.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use handraise_core::words::{Outcome, Provenance};
use handraise_http::{
    front::{self, FrontSettings},
    upstream::{Server, Target},
};
use handraise_mcp::{
    envelope::{EnvelopeConfig, Process},
    record::{Record, Recorder},
    seal::{ClockId, Keyring},
};
use tokio::sync::oneshot;

use crate::{ending::settings, rig::Rig};

/// How long anything may take that has to happen: far less than a question may wait.
const SOON: Duration = Duration::from_secs(30);
const JSON: &str = "Content-Type: application/json\r\n";
const REFUSAL: &str = r#"{"isError":true,"content":[{"type":"text","text":"{\"code\":\"ambiguous_device_target\",\"candidates\":[{\"deviceId\":\"a\"},{\"deviceId\":\"b\"}]}"}]}"#;

struct Told(Sender<Record>);

impl Recorder for Told {
    fn record(&self, record: &Record) {
        let _ = self.0.send(record.clone());
    }
}

/// A client of the listening side, which is in front of a server that the test plays.
struct Client {
    address: SocketAddr,
    session: String,
    rig: Rig,
    records: Receiver<Record>,
}

impl Client {
    fn post(&self, body: &str) -> TcpStream {
        self.send(
            "POST",
            &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()),
            body,
        )
    }

    fn send(&self, method: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let session = &self.session;
        let session =
            if session.is_empty() { String::new() } else { format!("Mcp-Session-Id: {session}\r\n") };
        let head = format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\n{session}{headers}\r\n");
        stream.write_all((head + body).as_bytes()).unwrap();
        stream
    }

    /// Opens a session.
    fn open(&mut self) {
        let opening = self.post(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
        );
        let result = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
        self.rig.next().answer("200 OK", &format!("{JSON}Mcp-Session-Id: s\r\n"), result);
        self.session =
            lines(opening).find_map(|line| Some(line.strip_prefix("mcp-session-id: ")?.to_owned())).unwrap();
        self.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self.rig.next().answer("202 Accepted", "", "");
        self.rig.next().answer("405 Method Not Allowed", "", "");
    }

    /// Leaves a connection, and waits until that has been noticed: what is sent later has been answered.
    fn leaves(&self, connection: TcpStream) {
        drop(connection);
        for _ in 0..2 {
            assert!(
                lines(self.send("GET", "Connection: close\r\nMcp-Session-Id: no\r\n", "")).next().is_some()
            );
        }
    }
}

fn lines(stream: TcpStream) -> impl Iterator<Item = String> {
    BufReader::new(stream).lines().map_while(Result::ok)
}

/// The frame of the next event on a stream, and the event's id.
fn event(lines: &mut impl Iterator<Item = String>) -> (String, String) {
    let id = lines.find_map(|line| Some(line.strip_prefix("id: ")?.to_owned())).expect("an event");
    let data = lines.find_map(|line| Some(line.strip_prefix("data: ")?.to_owned())).expect("its data");
    (id, data)
}

async fn play(script: impl FnOnce(Client) + Send + 'static) {
    let rig = Rig::start();
    let (told, records) = channel();
    let mut config = EnvelopeConfig::new("a server".to_owned(), Keyring::single(&[7; 32]), ClockId([7; 16]));
    config.ask_timeout = Duration::from_secs(300);
    config.min_human = Duration::ZERO;
    let target = Target::new(&rig.url, []).unwrap();
    let server = Server::new(target, 1 << 20, 16, 1 << 24, &std::collections::BTreeSet::new()).unwrap();
    let settings = FrontSettings {
        upstream: Some(Arc::new(server)),
        process: Arc::new(Process::new(config)),
        recorder: Box::new(Told(told)),
        ..settings()
    };
    let (tell, told) = oneshot::channel();
    let (end, ending) = oneshot::channel::<()>();
    let serving = tokio::spawn(async {
        let ready = |address| tell.send(address).unwrap();
        front::serve(settings, ready, async { drop(ending.await) }).await.unwrap();
    });
    let address = told.await.unwrap();
    let playing = tokio::task::spawn_blocking(move || {
        let mut client = Client { address, session: String::new(), rig, records };
        client.open();
        script(client);
    });
    playing.await.unwrap();
    end.send(()).unwrap();
    serving.await.unwrap();
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tap","arguments":{},"_meta":{"progressToken":"p"}}}"#;

fn refusal() -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{REFUSAL}}}"#)
}

#[tokio::test]
async fn a_client_that_has_left_before_anything_was_said_has_not_been_shown_the_question() {
    play(|client| {
        let connection = client.post(CALL);
        let call = client.rig.next();
        client.leaves(connection);
        call.answer("200 OK", JSON, &refusal());
        let record = client.records.recv_timeout(SOON).expect("it does not wait for the deadline");
        assert_eq!((record.outcome, record.provenance), (Outcome::Error, Provenance::NotShown), "{record:?}");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_has_left_and_comes_back_is_asked_and_its_answer_counts() {
    play(|client| {
        let connection = client.post(CALL);
        let mut call = client.rig.next();
        call.begin("200 OK\r\nContent-Type: text/event-stream");
        call.say(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#);
        let (place, _) = event(&mut lines(connection.try_clone().unwrap()));
        client.leaves(connection);
        call.say(&refusal());
        // Longer than it takes to notice that nobody reads.
        let early = client.records.recv_timeout(Duration::from_millis(2500));
        assert!(early.is_err(), "it may come back: {early:?}");
        let resumed = client.send("GET", &format!("Last-Event-ID: {place}\r\n"), "");
        let mut lines = lines(resumed);
        let (_, question) = event(&mut lines);
        let at = question.find("hr-ask-").expect("the question");
        let ask = question[at..].split('"').next().unwrap();
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":"{ask}","result":{{"action":"accept","content":{{"deviceId":"b"}}}}}}"#
        );
        client.post(&answer);
        let again = client.rig.next();
        assert!(again.body.contains(r#""deviceId":"b""#), "{}", again.body);
        let id = again.body.split(r#""id":""#).nth(1).unwrap().split('"').next().unwrap().to_owned();
        again.answer("200 OK", JSON, &format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"content":[]}}}}"#));
        assert_eq!(event(&mut lines).1, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
        let record = client.records.recv_timeout(SOON).unwrap();
        assert_eq!((record.outcome, record.provenance), (Outcome::Accept, Provenance::Client));
    })
    .await;
}
