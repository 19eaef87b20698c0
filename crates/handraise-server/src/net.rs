//! Listeners and connections.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::Semaphore,
};
use tower::ServiceExt as _;

use crate::{
    inbox::App,
    metrics::Refused,
    peer::{Landed, Peer},
};

/// How long the head of a request may take to arrive, the wait of an idle connection included.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// Longest head of a request, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;
/// How long to wait after the operating system refused a connection, such as for want of file descriptors.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Accepts TCP connections until the inbox goes down.
pub(crate) async fn accept_tcp(app: App, listener: TcpListener, router: Router, places: Arc<Semaphore>) {
    loop {
        let accepted = tokio::select! {
            () = app.shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                // Frames are small and somebody waits for each.
                let _ = stream.set_nodelay(true);
                let landed = stream.local_addr().ok().map(Landed);
                enter(&app, stream, Peer::Tcp(address), landed, &router, &places);
            }
            Err(error) => refused(&error).await,
        }
    }
}

/// Accepts connections on the socket file until the inbox goes down.
pub(crate) async fn accept_local(app: App, listener: UnixListener, router: Router, places: Arc<Semaphore>) {
    loop {
        let accepted = tokio::select! {
            () = app.shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => enter(&app, stream, Peer::Socket, None, &router, &places),
            Err(error) => refused(&error).await,
        }
    }
}

async fn refused(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(REFUSED_PAUSE).await;
}

fn enter<S>(
    app: &App,
    stream: S,
    peer: Peer,
    landed: Option<Landed>,
    router: &Router,
    places: &Arc<Semaphore>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok(place) = Arc::clone(places).try_acquire_owned() else {
        app.metrics.refused(Refused::Connections);
        return;
    };
    let (router, shutdown) = (router.clone(), app.shutdown.clone());
    app.tasks.spawn(async move {
        let service = service_fn(move |request: Request<Incoming>| {
            let router = router.clone();
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(peer);
                if let Some(landed) = landed {
                    request.extensions_mut().insert(landed);
                }
                router.oneshot(request).await.map_err(|never: Infallible| never)
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_PATIENCE)
            .max_headers(64)
            // What one connection may make us keep before it has shown a token.
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
        drop(place);
    });
}
