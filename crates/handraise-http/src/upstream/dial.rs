//! Connections to the server: TCP, and TLS where the URL says so. Redirects are not followed.

use std::{
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Uri;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection, HttpConnector},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::oneshot,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower::Service;

use super::{Target, failure::Failure, room::Reading};

/// How long a connection may take until it is usable.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(30);
/// After how long a silent peer is looked for, and how often, before it counts as gone: a little over a minute.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 4);

/// Sends requests to one server, over connections that are kept.
pub(crate) type Http = Client<Connector, Outgoing>;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A client for the target.
///
/// # Errors
/// When there is no trust for TLS on this machine, or the host has no name that TLS knows.
pub(crate) fn client(target: &Target) -> io::Result<Http> {
    let mut tcp = HttpConnector::new();
    let (after, every, times) = KEEP_ALIVE;
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(after));
    tcp.set_keepalive_interval(Some(every));
    tcp.set_keepalive_retries(Some(times));
    tcp.set_connect_timeout(Some(CONNECT));
    let tls = if target.is_encrypted() { Some(tls(target.host())?) } else { None };
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    Ok(builder.build(Connector { tcp, tls }))
}

/// TLS with the roots that this machine trusts.
fn tls(host: &str) -> io::Result<(TlsConnector, ServerName<'static>)> {
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::warn!("a root certificate of this machine cannot be used: {error}");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(io::Error::other(
            "this machine has no root certificates; install them (ca-certificates)",
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.tcp.call(uri);
        let tls = self.tls.clone();
        let connected = async move {
            let stream = connecting.await?.into_inner();
            let Some((connector, name)) = tls else { return Ok(TokioIo::new(Stream::Plain(stream))) };
            let stream = connector.connect(name, stream).await?;
            Ok(TokioIo::new(Stream::Tls(Box::new(stream))))
        };
        Box::pin(async move {
            let slow = || io::Error::new(io::ErrorKind::TimedOut, "it took too long to connect");
            timeout(CONNECT, connected).await.map_err(|_| slow())?
        })
    }
}

/// A connection.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    /// Without it hyper copies a body, and lets go of the body itself, which counts as queued, before it has been sent.
    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// The body of a request, which tells when it has left.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Option<Bytes>,
    has_left: Option<oneshot::Sender<()>>,
}

impl Outgoing {
    pub(crate) fn new(bytes: Bytes, has_left: Option<oneshot::Sender<()>>) -> Self {
        Self { bytes: Some(bytes), has_left }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let bytes = self.bytes.take();
        if let Some(has_left) = self.has_left.take() {
            // Who does not wait for it does not mind.
            let _ = has_left.send(());
        }
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Why a body was not read whole.
#[derive(Debug)]
pub(crate) enum NotCollected {
    /// It is longer than the bound.
    TooLong,
    /// There is no room for it.
    Full(Failure),
    /// It broke off.
    Broken,
}

/// Reads a body whole, of at most `limit` bytes.
///
/// # Errors
/// [`NotCollected`].
pub(crate) async fn collect(
    body: hyper::body::Incoming,
    limit: usize,
    reading: &mut Reading<'_>,
) -> Result<Vec<u8>, NotCollected> {
    let mut body = body;
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if expected > limit {
        return Err(NotCollected::TooLong);
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| NotCollected::Broken)?.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > limit {
            return Err(NotCollected::TooLong);
        }
        if length > bytes.capacity() {
            // Twice as much every time, and no more than there can be.
            let most = if expected == 0 { limit } else { expected };
            let wanted = (2 * bytes.capacity()).min(most).max(length);
            reading.hold(wanted).map_err(NotCollected::Full)?;
            bytes.reserve_exact(wanted - bytes.len());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
