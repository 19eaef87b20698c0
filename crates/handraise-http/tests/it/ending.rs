//! The end of the listening side, in the very moment in which a request comes.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use handraise_http::front::{self, Caps, FrontSettings};
use handraise_mcp::{
    envelope::{EnvelopeConfig, Process},
    record::{Record, Recorder},
    seal::{ClockId, Keyring},
};
use handraise_transport::spawn::Supervisor;
use tokio::sync::oneshot;

struct Nowhere;

impl Recorder for Nowhere {
    fn record(&self, _: &Record) {}
}

pub(crate) fn settings() -> FrontSettings {
    let config = EnvelopeConfig::new("a server".to_owned(), Keyring::single(&[7; 32]), ClockId([7; 16]));
    FrontSettings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        tls: None,
        insecure_behind_proxy: false,
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        callers: Vec::new(),
        upstream: None,
        command: vec!["none is started".into()],
        environment: Vec::new(),
        supervisor: Supervisor::other("none is started", []),
        reload: Box::new(|| ()),
        process: Arc::new(Process::new(config)),
        max_frame: 1 << 20,
        caps: Caps::default(),
        recorder: Box::new(Nowhere),
        spent: None,
        inbox: None,
    }
}

/// A call of a session that there is not, with another header.
fn request(also: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: none\r\n{also}\
         Content-Length: 40\r\n\r\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}"
    )
    .into_bytes()
}

/// Reads until `enough` says so, without keeping the runtime from its work.
async fn read(client: &TcpStream, enough: impl Fn(&str) -> bool + Send + 'static) -> String {
    let mut client = client.try_clone().unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let reading = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        let mut place = [0; 4096];
        while !enough(&text) {
            match client.read(&mut place).expect("an orderly end") {
                0 => break,
                count => text.push_str(&String::from_utf8_lossy(&place[..count])),
            }
        }
        text
    });
    reading.await.unwrap()
}

#[tokio::test]
async fn what_a_client_sends_in_the_moment_of_the_end_is_answered_and_not_cut_off() {
    ends_in_order(&request("")).await;
}

#[tokio::test]
async fn what_hyper_reads_in_the_moment_of_the_end_is_answered_and_not_cut_off() {
    ends_in_order(&request("Connection: keep-alive, x-nothing\r\n")).await;
}

async fn ends_in_order(request: &[u8]) {
    let (tell, told) = oneshot::channel();
    let (end, ending) = oneshot::channel::<()>();
    let serving = tokio::spawn(async {
        let ready = |address| tell.send(address).unwrap();
        front::serve(settings(), ready, async { drop(ending.await) }).await.unwrap();
    });
    let address = told.await.unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(request).unwrap();
    let first = read(&client, |text| text.ends_with('}')).await;
    assert!(first.starts_with("HTTP/1.1 404 "), "{first}");
    // Nobody has heard of it when the end comes.
    client.write_all(request).unwrap();
    end.send(()).unwrap();
    let last = read(&client, |_| false).await;
    assert!(last.starts_with("HTTP/1.1 503 ") && last.contains("\r\nconnection: close\r\n"), "{last}");
    assert!(last.ends_with(r#""message":"handraise mcp is ending"}}"#), "{last}");
    drop(client);
    tokio::time::timeout(Duration::from_secs(30), serving).await.unwrap().unwrap();
}
