//! The client: one session, and a connection for each call at a time.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, runtime::Runtime, time::timeout};

use super::super::load::{Work, outcome};
use crate::{bench::samples::Samples, clock};

/// How long an answer may take.
const STALL: Duration = Duration::from_secs(6);
/// How long everything is left alone before memory is read.
const REST: Duration = Duration::from_secs(3);

type Sender = http1::SendRequest<Full<Bytes>>;

/// What clients run on.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Lets everything come to rest.
pub(super) async fn rest() {
    tokio::time::sleep(REST).await;
}

/// Where calls go, and in which session.
struct Place {
    address: String,
    session: Option<String>,
}

impl Place {
    async fn connect(&self) -> anyhow::Result<Sender> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // Whoever waits for an answer hears of its end.
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// Sends a frame, and waits for the head of the answer.
    async fn send(&self, connection: &mut Sender, frame: String) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::post("/mcp")
            .header("host", &self.address)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25");
        }
        let request = request.body(Full::new(frame.into()))?;
        let answer = timeout(STALL, connection.send_request(request)).await.context("it stands still")??;
        if !answer.status().is_success() {
            bail!("it is answered {}", answer.status());
        }
        Ok(answer)
    }
}

/// A client with a session.
pub(super) struct Client {
    place: Arc<Place>,
    connections: Vec<Sender>,
    next_id: u64,
}

impl Client {
    pub(super) async fn open(address: &str) -> anyhow::Result<Self> {
        let mut place = Place { address: address.to_owned(), session: None };
        let mut connection = place.connect().await?;
        let hello = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}";
        let answer = place.send(&mut connection, hello.to_owned()).await?;
        let session = answer.headers().get("mcp-session-id").and_then(|session| session.to_str().ok());
        place.session = session.map(str::to_owned);
        answer.collect().await?;
        let initialized = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
        place.send(&mut connection, initialized.to_owned()).await?.collect().await?;
        Ok(Self { place: Arc::new(place), connections: vec![connection], next_id: 1 })
    }

    /// Keeps so many calls open for so long; the median latency in nanoseconds, and calls per second.
    pub(super) async fn run(
        &mut self,
        work: Work,
        at_a_time: usize,
        nanos: u64,
    ) -> anyhow::Result<(u64, f64)> {
        while self.connections.len() < at_a_time {
            self.connections.push(self.place.connect().await?);
        }
        let end = clock::now() + nanos;
        let start = clock::now();
        let first = self.next_id;
        let running: Vec<_> = (first..)
            .zip(self.connections.drain(..at_a_time))
            .map(|(first, connection)| {
                let ids = (first..).step_by(at_a_time);
                tokio::spawn(call(Arc::clone(&self.place), connection, work, ids, end))
            })
            .collect();
        let mut latencies = Samples::default();
        let mut done = 0_u32;
        for running in running {
            let (connection, last, took) = running.await??;
            done += u32::try_from(took.len())?;
            for nanos in took {
                latencies.push(nanos);
            }
            self.connections.push(connection);
            self.next_id = self.next_id.max(last + 1);
        }
        Ok(outcome(&latencies, done, start))
    }
}

/// Calls under these ids until `end`; returns the connection, the last id, and how long each call took in nanoseconds.
async fn call(
    place: Arc<Place>,
    mut connection: Sender,
    work: Work,
    ids: impl Iterator<Item = u64>,
    end: u64,
) -> anyhow::Result<(Sender, u64, Vec<u64>)> {
    let (params, least) = work.call();
    let mut took = Vec::with_capacity(1 << 14);
    let mut last = 0;
    for id in ids {
        last = id;
        let frame =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}");
        connection.ready().await?;
        let start = clock::now();
        let mut answer = place.send(&mut connection, frame).await?;
        let mut length = 0;
        while let Some(frame) = answer.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        took.push(clock::since(start));
        if length < least {
            bail!("the answer to call {id} is too short");
        }
        if clock::now() >= end {
            break;
        }
    }
    Ok((connection, last, took))
}
