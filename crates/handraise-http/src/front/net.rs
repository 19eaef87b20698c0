//! Listening, and the connections.

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Front,
    door::Place,
    paced::Paced,
    plain::{self, Rest},
    quick::{Quick, Shared},
    service,
};

/// The longest head of a request, in bytes, and what is read at once.
const LARGEST_HEAD: usize = 64 * 1024;
/// How much of a request is read at once at most.
const LARGEST_READ: usize = 256 * 1024;
/// How many headers a request may have.
const MOST_HEADERS: usize = 100;
/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The congestion control that every Linux has, and that sends what there is.
const UNPACED: &str = "reno";
/// How long to wait after the operating system refused a connection, such as for want of file descriptors.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the end.
pub(crate) async fn accept(front: Arc<Front>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    if let Err(error) = keep_alive(&listener) {
        tracing::warn!(%error, "clients that vanish are noticed later than they should be");
    }
    loop {
        let accepted = tokio::select! {
            () = front.shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let is_local = peer.ip().to_canonical().is_loopback();
                tune(&stream, is_local);
                let Some(place) = front.door.enter(&front.metrics) else { continue };
                let (tasks, front, tls) = (front.tasks.clone(), Arc::clone(&front), tls.clone());
                match tls {
                    None => tasks.spawn(async move {
                        let stream = Arc::new(stream);
                        let quick = Arc::new(Quick::new(&front, &stream, &place));
                        serve(&front, Shared(stream), &place, is_local, Some(quick)).await;
                    }),
                    Some(tls) => {
                        tasks.spawn(async move { encrypted(&front, &tls, stream, &place, is_local).await })
                    }
                };
            }
            Err(error) => refused(&error).await,
        }
    }
}

/// Has connections looked after whose clients are silent: one that is gone is noticed within a minute and a half, also where
/// nothing is written to it. Those that are accepted have it from the socket that listens.
fn keep_alive(listener: &TcpListener) -> io::Result<()> {
    sockopt::set_tcp_keepidle(listener, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(listener, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(listener, 3)?;
    Ok(sockopt::set_socket_keepalive(listener, true)?)
}

/// Sets what makes answers quick; without it they only take longer.
fn tune(stream: &TcpStream, is_local: bool) {
    // Somebody waits for every answer.
    let _ = stream.set_nodelay(true);
    if is_local {
        // Within this machine nothing gets lost, and nothing is to be paced: where the system's own choice is BBR, an answer
        // of 1 MB takes 1.4 times as long.
        let _ = sockopt::set_tcp_congestion(stream, UNPACED);
    }
}

async fn refused(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(REFUSED_PAUSE).await;
}

async fn encrypted(
    front: &Arc<Front>,
    tls: &TlsAcceptor,
    stream: TcpStream,
    place: &Arc<Place>,
    is_local: bool,
) {
    let handshake = tokio::select! {
        handshake = timeout(HANDSHAKE, tls.accept(stream)) => handshake,
        () = place.away.cancelled() => return,
        () = front.shutdown.cancelled() => return,
    };
    match handshake {
        Ok(Ok(stream)) => serve(front, stream, place, is_local, None).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn serve<S>(
    front: &Arc<Front>,
    stream: S,
    place: &Arc<Place>,
    is_local: bool,
    quick: Option<Arc<Quick>>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = Paced::new(stream, place, quick.as_ref().map(|quick| quick.socket()));
    let leaving = pin!(place.leaving.cancelled());
    if let Some(Rest { stream, read }) = plain::serve(front, stream, place, is_local, quick, leaving).await {
        let (reading, writing) = tokio::io::split(stream);
        let stream = tokio::io::join(io::Cursor::new(read).chain(reading), writing);
        serve_others(front, stream, place, is_local).await;
    }
}

/// Serves every kind of request.
async fn serve_others<S>(front: &Arc<Front>, stream: S, place: &Arc<Place>, is_local: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, Infallible>(service::handle(front, request, place, is_local).await)
    });
    let connection = http1::Builder::new()
        .max_headers(MOST_HEADERS)
        .max_header_size(LARGEST_HEAD)
        .max_buf_size(LARGEST_READ)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        // In this order: the others are looked at only while nothing is to be done.
        biased;
        ended = connection.as_mut() => ended,
        () = place.away.cancelled() => return,
        () = front.shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn s37_a_client_that_vanishes_is_looked_for_whatever_it_waits_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        keep_alive(&listener).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        assert!(sockopt::socket_keepalive(&accepted).unwrap());
        let idle = sockopt::tcp_keepidle(&accepted).unwrap();
        let each = sockopt::tcp_keepintvl(&accepted).unwrap();
        let longest = idle + each * sockopt::tcp_keepcnt(&accepted).unwrap();
        assert_eq!(longest, Duration::from_secs(90));
    }
}
