//! A running inbox in a throw-away directory, and a client for its API.

mod events;
mod holder;
mod samples;

use std::{path::Path, sync::Arc, time::Duration};

use handraise_server::{InboxFile, Ready, ServeError, Settings, serve};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Bytes, body::Incoming};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{TcpStream, UnixStream},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_tungstenite::{client_async, tungstenite::client::IntoClientRequest as _};

pub(crate) use self::{
    events::Events,
    holder::Holder,
    samples::{answer, ask, permission, question, settled},
};

/// Longer than anything here takes, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Rig {
    pub(crate) dir: Arc<TempDir>,
    pub(crate) ready: Ready,
    pub(crate) file: InboxFile,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), ServeError>>,
}

pub(crate) fn settings(dir: &Path) -> Settings {
    Settings::new(dir.join("data"), ([127, 0, 0, 1], 0).into())
}

pub(crate) async fn rig() -> Rig {
    rig_with(|_| {}).await
}

pub(crate) async fn rig_with(change: impl FnOnce(&mut Settings)) -> Rig {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    start(dir, change).await
}

pub(crate) async fn start(dir: Arc<TempDir>, change: impl FnOnce(&mut Settings)) -> Rig {
    let mut settings = settings(dir.path());
    change(&mut settings);
    let data_dir = settings.data_dir.clone();
    let (tell, ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let running =
        tokio::spawn(serve(
            settings,
            move |ready| drop(tell.send(ready)),
            async move { drop(stopped.await) },
        ));
    let ready = within(ready).await.expect("the inbox is up");
    let file = InboxFile::read(&data_dir).unwrap();
    Rig { dir, ready, file, stop: Some(stop), running }
}

/// Fails the test when it takes too long.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Rig {
    pub(crate) async fn stop(mut self) -> Arc<TempDir> {
        drop(self.stop.take());
        within(self.running).await.unwrap().unwrap();
        self.dir
    }

    /// A request with every header that is given, over TCP.
    pub(crate) async fn raw(&self, request: Request<Full<Bytes>>) -> http::Response<Incoming> {
        let stream = TcpStream::connect(self.ready.address).await.unwrap();
        exchange(stream, request).await
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: Option<Value>,
    ) -> Response {
        let stream = TcpStream::connect(self.ready.address).await.unwrap();
        collect(exchange(stream, request(method, &self.host(), path, token, body)).await).await
    }

    pub(crate) async fn call_locally(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: Option<Value>,
    ) -> Response {
        let stream = UnixStream::connect(&self.ready.socket).await.unwrap();
        collect(exchange(stream, request(method, "localhost", path, token, body)).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.call(Method::GET, path, &self.file.admin_token, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        self.call(Method::POST, path, &self.file.admin_token, Some(body)).await
    }

    pub(crate) fn host(&self) -> String {
        self.ready.address.to_string()
    }

    /// A token of a scope.
    pub(crate) async fn token(&self, scope: &str, name: &str) -> String {
        let made = self.post("/tokens", json!({"scope": scope, "name": name})).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json());
        made.json()["token"].as_str().unwrap().to_owned()
    }

    /// A signed-in page of an operator.
    pub(crate) async fn page(&self, name: &str) -> String {
        let secret = self.token("operator", name).await;
        let signed_in = self.call(Method::POST, "/login", "", Some(json!({"secret": secret}))).await;
        assert_eq!(signed_in.status, StatusCode::OK, "{}", signed_in.json());
        signed_in.json()["token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn answer(&self, token: &str, id: &str, option: &str) -> Response {
        self.call(Method::POST, &format!("/asks/{id}/answer"), token, Some(answer(option))).await
    }

    /// Asks again until it says what is wanted.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        within(async {
            loop {
                let got = self.get(path).await.json();
                if wanted(&got) {
                    return got;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }

    pub(crate) async fn events(&self, token: &str, last: Option<&str>) -> Events {
        let mut request = request(Method::GET, &self.host(), "/events", token, None);
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.parse().unwrap());
        }
        let response = self.raw(request).await;
        assert_eq!(response.status(), StatusCode::OK);
        Events::new(response.into_body())
    }

    /// A stream of events, unless there is no place for one.
    pub(crate) async fn try_events(&self, token: &str) -> Option<Events> {
        let response = self.raw(request(Method::GET, &self.host(), "/events", token, None)).await;
        (response.status() == StatusCode::OK).then(|| Events::new(response.into_body()))
    }

    /// A holder that has said hello and sent an empty snapshot.
    pub(crate) async fn holder(&self) -> Holder {
        let mut holder = self.dial(&self.file.holder_token).await;
        holder.hello(None).await;
        holder.snapshot(&[], &[]).await;
        holder
    }

    pub(crate) async fn dial(&self, token: &str) -> Holder {
        let mut request = format!("ws://{}/api/v1/holder", self.host()).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let stream = TcpStream::connect(self.ready.address).await.unwrap();
        let (socket, _) = within(client_async(request, stream)).await.unwrap();
        Holder::new(socket)
    }
}

fn request(method: Method, host: &str, path: &str, token: &str, body: Option<Value>) -> Request<Full<Bytes>> {
    let path = path.strip_prefix("/!").map_or_else(|| format!("/api/v1{path}"), str::to_owned);
    let mut request = Request::builder().method(method).uri(path).header("host", host);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
    request.body(Full::new(body)).unwrap()
}

async fn exchange(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> http::Response<Incoming> {
    let (mut sender, connection) =
        within(hyper::client::conn::http1::handshake(TokioIo::new(stream))).await.unwrap();
    tokio::spawn(connection);
    within(sender.send_request(request)).await.unwrap()
}

pub(crate) async fn collect(response: http::Response<Incoming>) -> Response {
    let (parts, body) = response.into_parts();
    let bytes = within(body.collect()).await.unwrap().to_bytes();
    Response { status: parts.status, headers: parts.headers, bytes }
}
