//! A client of the inbox on this machine, over its socket.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use handraise_api::error::ErrorResponse;
use handraise_server::InboxFile;
use handraise_transport::escape;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header,
};
use hyper_util::rt::TokioIo;
use serde::{Serialize, de::DeserializeOwned};
use tokio::net::UnixStream;

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The largest answer that is read, in bytes.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// The inbox of a data directory, with the admin token that it left there.
#[derive(Clone)]
pub(crate) struct Inbox {
    socket: PathBuf,
    token: String,
}

/// What came of a call to an inbox that may not run.
pub(crate) enum Reached<T> {
    /// It answered.
    Answer(T),
    /// Nobody listens on its socket.
    NotRunning,
}

impl Inbox {
    /// The inbox that wrote this file.
    pub(crate) fn new(file: &InboxFile) -> Self {
        Self { socket: file.socket.clone(), token: file.admin_token.clone() }
    }

    /// Whether somebody listens on the socket.
    pub(crate) async fn is_running(&self) -> bool {
        UnixStream::connect(&self.socket).await.is_ok()
    }

    /// Calls with no body.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Reached<T>> {
        self.call::<(), T>(Method::GET, path, None).await
    }

    /// Calls with a JSON body.
    pub(crate) async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> anyhow::Result<Reached<T>> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// Deletes; `false` when there was nothing to delete.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Reached<bool>> {
        let Some(response) = self.send::<()>(Method::DELETE, path, None, None).await? else {
            return Ok(Reached::NotRunning);
        };
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(Reached::Answer(false));
        }
        read(path, response).await?;
        Ok(Reached::Answer(true))
    }

    /// The same inbox with another token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { socket: self.socket.clone(), token: token.to_owned() }
    }

    /// Posts a JSON body and takes the answer, whatever its status is. What was posted and not answered is
    /// [`Unanswered`].
    pub(crate) async fn exchange<B: Serialize>(
        &self,
        path: &str,
        body: &B,
    ) -> anyhow::Result<Reached<(StatusCode, Bytes)>> {
        let exchange = async {
            let Some(response) = self.send(Method::POST, path, Some(body), None).await? else {
                return Ok(Reached::NotRunning);
            };
            let status = response.status();
            Ok(Reached::Answer((status, whole(path, response).await.context(Unanswered)?)))
        };
        // It listens, so that what takes long is its answer.
        tokio::time::timeout(PATIENCE, exchange).await.context(Unanswered)?
    }

    /// Opens the live events: those after `last`, the id of the last one that arrived, or from now on.
    pub(crate) async fn events(&self, last: Option<u64>) -> anyhow::Result<Reached<Incoming>> {
        let path = "/api/v1/events";
        let response = in_time(path, self.send::<()>(Method::GET, path, None, last)).await?;
        let Some(response) = response else {
            return Ok(Reached::NotRunning);
        };
        if !response.status().is_success() {
            read(path, response).await?;
        } else if response.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind != "text/event-stream")
        {
            bail!("the inbox answered {path} with something else than events");
        } else {
            return Ok(Reached::Answer(response.into_body()));
        }
        bail!("the inbox did not open its events")
    }

    async fn call<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
    ) -> anyhow::Result<Reached<T>> {
        let call = async {
            let Some(response) = self.send(method, path, body, None).await? else {
                return Ok(Reached::NotRunning);
            };
            let text = read(path, response).await?;
            let answer = serde_json::from_slice(&text).with_context(|| {
                format!("the inbox's answer to {path} is not understood; are both of one version?")
            })?;
            Ok(Reached::Answer(answer))
        };
        in_time(path, call).await
    }

    /// Sends a request on a connection of its own; `None` when nobody listens.
    async fn send<B: Serialize>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
        last_event: Option<u64>,
    ) -> anyhow::Result<Option<Response<Incoming>>> {
        let Ok(stream) = UnixStream::connect(&self.socket).await else { return Ok(None) };
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // The request that it carries fails with it and says so.
            let _ = connection.await;
        });
        let body = match body {
            Some(body) => serde_json::to_vec(body)?,
            None => Vec::new(),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(last) = last_event {
            request = request.header("last-event-id", last);
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        match sender.try_send_request(request).await {
            Ok(response) => Ok(Some(response)),
            Err(mut error) => {
                // What comes back was not written.
                let is_written = error.take_message().is_none();
                let error = anyhow::Error::from(error.into_error())
                    .context(format!("the inbox at unix:{} does not answer", self.socket.display()));
                Err(if is_written { error.context(Unanswered) } else { error })
            }
        }
    }
}

async fn in_time<T>(path: &str, call: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, call)
        .await
        .with_context(|| format!("the inbox did not answer {path} within {} s", PATIENCE.as_secs()))?
}

/// A request was written, and what became of it is not known: the inbox went away, or is too busy to say.
#[derive(Debug, thiserror::Error)]
#[error("it was sent, and what became of it is not known")]
pub(crate) struct Unanswered;

/// The answer's body.
async fn whole(path: &str, response: Response<Incoming>) -> anyhow::Result<Bytes> {
    let body = Limited::new(response.into_body(), MAX_ANSWER);
    match body.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => bail!("the inbox's answer to {path} broke off: {error}"),
    }
}

/// The answer's body, or the inbox's own words about why not.
async fn read(path: &str, response: Response<Incoming>) -> anyhow::Result<Bytes> {
    let status = response.status();
    let body = whole(path, response).await?;
    if status.is_success() {
        return Ok(body);
    }
    let message = match serde_json::from_slice::<ErrorResponse>(&body) {
        Ok(answer) => escape::shortened(&answer.error.message, 1_000),
        Err(_) => format!("{path} is answered with {status}"),
    };
    Err(Refusal { status, message }.into())
}

/// The inbox's own word that it will not.
#[derive(Debug, thiserror::Error)]
#[error("the inbox says: {message}")]
pub(crate) struct Refusal {
    /// Its status.
    pub(crate) status: StatusCode,
    message: String,
}
