//! Listeners and connections.

use std::{
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
};
use tower::ServiceExt as _;

use crate::{
    door::{Door, Entrance},
    inbox::App,
    metrics::Refused,
    peer::{Landed, Peer},
};

/// How long the head of a later request may take to arrive, the wait of an idle connection included.
pub(crate) const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// Longest head of a request, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;
/// How long to wait after the operating system refused a connection, such as for want of file descriptors.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Accepts TCP connections until the inbox goes down.
pub(crate) async fn accept_tcp(app: App, listener: TcpListener, router: Router, door: Arc<Door>) {
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
                enter(&app, stream, Peer::Tcp(address), landed, &router, &door);
            }
            Err(error) => refused(&error).await,
        }
    }
}

/// Accepts connections on the socket file until the inbox goes down.
pub(crate) async fn accept_local(app: App, listener: UnixListener, router: Router, door: Arc<Door>) {
    loop {
        let accepted = tokio::select! {
            () = app.shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => enter(&app, stream, Peer::Socket, None, &router, &door),
            Err(error) => refused(&error).await,
        }
    }
}

async fn refused(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(REFUSED_PAUSE).await;
}

fn enter<S>(app: &App, stream: S, peer: Peer, landed: Option<Landed>, router: &Router, door: &Arc<Door>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = match door.enter() {
        Entrance::In(place, sent_away) => {
            if sent_away {
                app.metrics.refused(Refused::Strangers);
            }
            place
        }
        Entrance::Full => {
            app.metrics.refused(Refused::Connections);
            return;
        }
    };
    let (router, shutdown) = (router.clone(), app.shutdown.clone());
    let first_head = app.settings.timing.first_head;
    app.tasks.spawn(async move {
        let has_asked = Arc::new(AtomicBool::new(false));
        let (asked, own) = (Arc::clone(&has_asked), Arc::clone(&place));
        let service = service_fn(move |request: Request<Incoming>| {
            asked.store(true, Ordering::Relaxed);
            let (router, place) = (router.clone(), Arc::clone(&own));
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(peer);
                request.extensions_mut().insert(place);
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
        let says_nothing = async {
            tokio::time::sleep(first_head).await;
            if has_asked.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = place.away.cancelled() => Ok(()),
            () = says_nothing => Ok(()),
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
