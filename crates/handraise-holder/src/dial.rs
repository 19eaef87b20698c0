//! From an address to an open WebSocket: socket, TCP or TLS, the inbox's proof, then the token (S43).
//!
//! Proof and token go over **one** connection: whoever proved that it knows the token gets it, nobody who took the
//! port over in between. Redirects are an error like every other status.

mod error;
mod proof;

use std::{io, net::SocketAddr, sync::Arc};

use futures_util::{SinkExt, StreamExt};
use handraise_api::frame::{Hello, MAX_FRAME_BYTES, PROTOCOL, Welcome, action};
use http_body_util::Empty;
use hyper::{
    Method, Request, StatusCode,
    body::Bytes,
    header::{self, HeaderValue},
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::{client::generate_key, derive_accept_key},
        protocol::{Role, WebSocketConfig},
    },
};

pub use self::error::ConnectError;
use self::proof::prove;
use crate::{
    HolderSettings, InboxAddress, Token,
    wire::{self, Incoming, shorten},
};

/// An open stream to the inbox.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Most bytes of the names in a welcome.
const NAME_BYTES: usize = 256;

/// Who this holder was on its last connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identity {
    pub(crate) instance: Option<String>,
    pub(crate) resume_secret: Option<String>,
}

/// Reaches the inbox again and again.
#[derive(Debug)]
pub(crate) struct Dialer {
    settings: HolderSettings,
    tls: Option<Arc<rustls::ClientConfig>>,
    identity: Identity,
}

impl Dialer {
    pub(crate) fn new(settings: HolderSettings) -> Self {
        Self { settings, tls: None, identity: Identity::default() }
    }

    /// Dials and greets: one connection, ready for the snapshot.
    pub(crate) async fn dial(&mut self) -> Result<(Socket, Welcome), ConnectError> {
        let after = self.settings.timing.handshake;
        let inbox = self.settings.inbox.clone();
        let (socket, welcome) = tokio::time::timeout(after, self.greet())
            .await
            .map_err(|_| ConnectError::Silent { inbox, after })??;
        // An instance of which the inbox knows nothing any more is replaced by a new one, with its own secret.
        if self.identity.instance.as_deref() != Some(&welcome.instance) || welcome.resume_secret.is_some() {
            self.identity.resume_secret.clone_from(&welcome.resume_secret);
        }
        self.identity.instance = Some(welcome.instance.clone());
        Ok((socket, welcome))
    }

    async fn greet(&mut self) -> Result<(Socket, Welcome), ConnectError> {
        let mut socket = self.open().await?;
        let HolderSettings { kind, version, host, .. } = &self.settings;
        let Identity { instance, resume_secret } = self.identity.clone();
        let hello = Hello {
            protocol: PROTOCOL,
            kind: *kind,
            instance,
            resume_secret,
            version: version.clone(),
            host: host.clone(),
        };
        let hello = wire::request(0, action::HELLO, &wire::json(&hello));
        socket.send(Message::text(hello)).await.map_err(|error| self.rejected(error))?;
        loop {
            let text = match socket.next().await {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Close(frame))) => {
                    let reason = frame.map(|frame| frame.reason.to_string()).unwrap_or_default();
                    return Err(self.rejected(if reason.is_empty() {
                        "it hung up"
                    } else {
                        reason.as_str()
                    }));
                }
                Some(Ok(Message::Binary(_) | Message::Frame(_))) => {
                    return Err(self.rejected("it sent a binary frame"));
                }
                Some(Err(error)) => return Err(self.rejected(error)),
                None => return Err(self.rejected("it hung up")),
            };
            let frame =
                Incoming::read(&text).ok_or_else(|| self.rejected("it sent something that is no frame"))?;
            if let Some(failure) = frame.failure() {
                let reason = failure.message.unwrap_or_else(|| "it did not say why".into());
                return Err(self.rejected(reason));
            }
            if frame.action != action::WELCOME {
                return Err(
                    self.rejected(format_args!("it said `{}` instead of welcome", shorten(&frame.action)))
                );
            }
            let welcome: Welcome = frame.payload().map_err(|error| self.rejected(error))?;
            if welcome.protocol != PROTOCOL {
                let reason = format_args!(
                    "it speaks protocol {}, this is {PROTOCOL}; update the older one",
                    welcome.protocol
                );
                return Err(self.rejected(reason));
            }
            let secret = welcome.resume_secret.as_deref().unwrap_or("");
            if welcome.instance.is_empty() || welcome.instance.len().max(secret.len()) > NAME_BYTES {
                return Err(self.rejected("its welcome names an instance that is empty or too long"));
            }
            return Ok((socket, welcome));
        }
    }

    fn rejected(&self, reason: impl std::fmt::Display) -> ConnectError {
        ConnectError::Rejected { inbox: self.settings.inbox.clone(), reason: shorten(&reason.to_string()) }
    }

    /// An open WebSocket, before anything was said on it.
    async fn open(&mut self) -> Result<Socket, ConnectError> {
        let inbox = self.settings.inbox.clone();
        let (stream, authority) = self.connect().await?;
        let io_error = |error: hyper::Error| ConnectError::Unreachable {
            inbox: inbox.clone(),
            source: io::Error::other(error),
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io_error)?;
        // It ends when the sender and the upgraded stream are gone; its error comes out of the request as well.
        tokio::spawn(async move { drop(connection.with_upgrades().await) });
        if matches!(inbox, InboxAddress::Loopback { .. }) {
            prove(&mut sender, &inbox, &authority, &self.settings.token).await?;
        }
        let key = generate_key();
        let request = upgrade_request(&authority, &key, &self.settings.token).ok_or_else(|| {
            ConnectError::Unauthorized { inbox: inbox.clone(), status: StatusCode::UNAUTHORIZED.as_u16() }
        })?;
        sender.ready().await.map_err(io_error)?;
        let response = sender.send_request(request).await.map_err(io_error)?;
        let status = response.status().as_u16();
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(ConnectError::Unauthorized { inbox, status });
            }
            _ => return Err(ConnectError::Status { inbox, status }),
        }
        let accept = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
        if accept.is_none_or(|accept| accept.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes()) {
            return Err(ConnectError::Status { inbox, status });
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(io_error)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_FRAME_BYTES))
            .max_frame_size(Some(MAX_FRAME_BYTES))
            .max_write_buffer_size(4 * MAX_FRAME_BYTES);
        Ok(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await)
    }

    /// A connection, and what it is called in `Host`. On loopback that is the address itself: a name can lead to
    /// somebody else's address, and the proof is for what was dialled (S43).
    async fn connect(&mut self) -> Result<(Box<dyn Stream>, String), ConnectError> {
        let inbox = self.settings.inbox.clone();
        let unreachable = |source| ConnectError::Unreachable { inbox: inbox.clone(), source };
        match &inbox {
            InboxAddress::Socket(path) => {
                let stream = tokio::net::UnixStream::connect(path).await.map_err(unreachable)?;
                Ok((Box::new(stream), "localhost".to_owned()))
            }
            InboxAddress::Loopback { host, port } => {
                let stream =
                    tcp(host, *port, |address| address.ip().is_loopback()).await.map_err(unreachable)?;
                let address = stream.peer_addr().map_err(unreachable)?;
                Ok((Box::new(stream), address.to_string()))
            }
            InboxAddress::Tls { host, port } => {
                let stream = tcp(host, *port, |_| true).await.map_err(unreachable)?;
                let tls = |reason: String| ConnectError::Tls { inbox: inbox.clone(), reason };
                let name = rustls::pki_types::ServerName::try_from(unbracketed(host).to_owned())
                    .map_err(|error| tls(error.to_string()))?;
                let config = self.tls_config().await.map_err(tls)?;
                let stream = tokio_rustls::TlsConnector::from(config)
                    .connect(name, stream)
                    .await
                    .map_err(|error| tls(untrusted(&error)))?;
                Ok((Box::new(stream), format!("{host}:{port}")))
            }
        }
    }

    /// The certificates this machine trusts, read once.
    async fn tls_config(&mut self) -> Result<Arc<rustls::ClientConfig>, String> {
        if let Some(config) = &self.tls {
            return Ok(Arc::clone(config));
        }
        let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs)
            .await
            .map_err(|error| error.to_string())?;
        let mut roots = rustls::RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(loaded.certs);
        if added == 0 {
            return Err("this system has no certificates to trust; install ca-certificates".into());
        }
        let config = trusting(roots).map_err(|error| error.to_string())?;
        Ok(Arc::clone(self.tls.insert(Arc::new(config))))
    }
}

/// What is wrong with a TLS handshake.
fn untrusted(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidMessage(_)) => {
            "what listens there does not speak TLS; an inbox of this machine is at http://127.0.0.1:PORT, or at its socket"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// TLS as a client that trusts `roots`.
fn trusting(roots: rustls::RootCertStore) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// What a connection runs on.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Connects to the first address of `host` that is wanted and answers.
async fn tcp(
    host: &str,
    port: u16,
    wanted: impl Fn(&SocketAddr) -> bool,
) -> io::Result<tokio::net::TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no usable address");
    for address in tokio::net::lookup_host((unbracketed(host), port)).await?.filter(wanted) {
        match tokio::net::TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn upgrade_request(authority: &str, key: &str, token: &Token) -> Option<Request<Empty<Bytes>>> {
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.as_str())).ok()?;
    bearer.set_sensitive(true);
    Request::builder()
        .method(Method::GET)
        .uri("/api/v1/holder")
        .header(header::HOST, authority)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, key)
        .header(header::AUTHORIZATION, bearer)
        .body(Empty::new())
        .ok()
}

#[cfg(test)]
mod tests {
    use handraise_api::words::{HolderKind, Who};
    use handraise_transport::clock::SystemClock;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio::net::TcpListener;

    use super::*;
    use crate::Timing;

    // Made for this test and good for nothing else: P-256, self-signed for `localhost`, valid until 2126.
    const CERTIFICATE: &[u8] = include_bytes!("../testdata/cert.der");
    const KEY: &[u8] = include_bytes!("../testdata/key.der");

    #[test]
    fn an_inbox_without_tls_is_named_as_such() {
        let plain = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        let said = untrusted(&io::Error::new(io::ErrorKind::InvalidData, plain));
        assert!(said.starts_with("what listens there does not speak TLS"), "{said}");
        let other = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let said = untrusted(&io::Error::new(io::ErrorKind::InvalidData, other));
        assert!(said.contains("certificate"), "{said}");
    }

    fn dialer(inbox: &str) -> Dialer {
        Dialer::new(HolderSettings {
            inbox: inbox.parse().unwrap(),
            token: Token::new("token"),
            kind: HolderKind::Agent,
            who: Who::Operator,
            version: "0".into(),
            host: "test".into(),
            clock: SystemClock::shared(),
            timing: Timing::default(),
        })
    }

    /// An inbox with a certificate for `localhost`: serves one greeting.
    async fn tls_inbox() -> (u16, tokio::task::JoinHandle<Option<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], PrivateKeyDer::try_from(KEY).unwrap())
            .unwrap();
        let serve = async move {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = tokio_rustls::TlsAcceptor::from(Arc::new(config)).accept(stream).await.ok()?;
            let mut socket = tokio_tungstenite::accept_async(stream).await.ok()?;
            let hello = socket.next().await?.ok()?.into_text().ok()?.to_string();
            let welcome = concat!(
                r#"{"id":"0","type":"response","action":"holder.welcome","payload":{"protocol":1,"instance":"i","#,
                r#""resume_secret":"s","epoch":1,"flags":{"acp_elicitation":true,"elicitation":true,"#,
                r#""adaptive_profiles":false},"limits":{"open_asks":1,"open_bytes":1,"session_open_asks":1,"#,
                r#""session_parked_asks":1,"asks_per_second":1}}}"#
            );
            socket.send(Message::text(welcome)).await.ok()?;
            Some(hello)
        };
        (port, tokio::spawn(serve))
    }

    #[tokio::test]
    async fn beyond_this_machine_the_stream_runs_over_tls() {
        let (port, server) = tls_inbox().await;
        let mut dialer = dialer(&format!("wss://localhost:{port}"));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(CERTIFICATE)).unwrap();
        dialer.tls = Some(Arc::new(trusting(roots).unwrap()));
        let (_socket, welcome) = dialer.dial().await.unwrap();
        assert_eq!((welcome.instance.as_str(), dialer.identity.resume_secret.as_deref()), ("i", Some("s")));
        assert!(server.await.unwrap().unwrap().contains("holder.hello"));
    }

    #[tokio::test]
    async fn a_certificate_that_nobody_vouches_for_ends_the_attempt_before_the_token() {
        let (port, server) = tls_inbox().await;
        let mut dialer = dialer(&format!("wss://localhost:{port}"));
        dialer.tls = Some(Arc::new(trusting(rustls::RootCertStore::empty()).unwrap()));
        let error = dialer.dial().await.unwrap_err();
        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
        assert_eq!(server.await.unwrap(), None);
    }
}
