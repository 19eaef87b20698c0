//! Listening, and the connections.

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::yield_now,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Front,
    door::Place,
    paced::Paced,
    plain::{self, Rest},
    quick::{Quick, Shared},
    reply::Refusal,
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
/// How long a client may be gone unnoticed.
const VANISHED: Duration = Duration::from_secs(90);
/// The congestion control that every Linux has, and that sends what there is.
#[cfg(target_os = "linux")]
const UNPACED: &str = "reno";
/// How long to wait after the operating system refused a connection, such as for want of file descriptors.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the end.
pub(crate) async fn accept(front: Arc<Front>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    if let Err(error) = look_after(&listener, VANISHED) {
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

/// Has connections looked after whose clients say nothing: one that is gone is noticed after [`VANISHED`], or where
/// something is on its way to it, after `unacknowledged` without a word that it has arrived. Those that are accepted have
/// it from the socket that listens.
fn look_after(listener: &TcpListener, unacknowledged: Duration) -> io::Result<()> {
    const IDLE: Duration = Duration::from_secs(60);
    const EACH: Duration = Duration::from_secs(10);
    // They end together with `VANISHED`.
    const PROBES: u32 = 3;
    sockopt::set_tcp_keepidle(listener, IDLE)?;
    sockopt::set_tcp_keepintvl(listener, EACH)?;
    sockopt::set_tcp_keepcnt(listener, PROBES)?;
    sockopt::set_socket_keepalive(listener, true)?;
    await_word(listener, unacknowledged)
}

/// While anything is on its way the system sends no probes, and would try for a quarter of an hour; streams are written to
/// more often than probes would begin.
#[cfg(target_os = "linux")]
fn await_word(listener: &TcpListener, unacknowledged: Duration) -> io::Result<()> {
    let millis = u32::try_from(unacknowledged.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(listener, millis)?)
}

/// Elsewhere the system decides.
#[cfg(not(target_os = "linux"))]
fn await_word(_: &TcpListener, _: Duration) -> io::Result<()> {
    Ok(())
}

/// Sets what makes answers quick; without it they only take longer.
fn tune(stream: &TcpStream, is_local: bool) {
    // Somebody waits for every answer.
    let _ = stream.set_nodelay(true);
    if is_local {
        do_not_pace(stream);
    }
}

/// Within this machine nothing gets lost, and nothing is to be paced: where the system's own choice is BBR, an answer of 1 MB
/// takes 1.4 times as long.
#[cfg(target_os = "linux")]
fn do_not_pace(stream: &TcpStream) {
    let _ = sockopt::set_tcp_congestion(stream, UNPACED);
}

#[cfg(not(target_os = "linux"))]
fn do_not_pace(_: &TcpStream) {}

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
        if front.shutdown.is_cancelled() {
            return Ok::<_, Infallible>(Refusal::Ending.reply(None).into());
        }
        Ok(service::handle(front, request, place, is_local).await)
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
            // What has come is heard of with the next turn, and is answered then rather than cut off.
            yield_now().await;
            tokio::select! {
                biased;
                ended = connection.as_mut() => ended,
                () = std::future::ready(()) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of a listener, and its connection as it was accepted.
    async fn connected(unacknowledged: Duration) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        look_after(&listener, unacknowledged).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        (client, accepted)
    }

    #[tokio::test]
    async fn s37_a_client_that_vanishes_is_looked_for_whatever_it_waits_for() {
        let (_client, accepted) = connected(VANISHED).await;
        assert!(sockopt::socket_keepalive(&accepted).unwrap());
        let idle = sockopt::tcp_keepidle(&accepted).unwrap();
        let each = sockopt::tcp_keepintvl(&accepted).unwrap();
        let longest = idle + each * sockopt::tcp_keepcnt(&accepted).unwrap();
        assert_eq!(longest, Duration::from_secs(90));
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&accepted).unwrap(), 90_000);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn s37_a_client_that_vanishes_is_noticed_while_something_is_on_its_way_to_it() {
        use socket2::{SockFilter, SockRef};
        use tokio::io::AsyncWriteExt as _;
        /// What a filter does that lets nothing through: it returns a length of nothing.
        const RETURN: u16 = 6;
        /// Sooner than the first probe.
        const SOON: Duration = Duration::from_secs(45);
        let (client, mut accepted) = connected(Duration::from_secs(1)).await;
        // Nothing reaches it any more, and nothing says so.
        SockRef::from(&client).attach_filter(&[SockFilter::new(RETURN, 0, 0, 0)]).unwrap();
        accepted.write_all(b"a sign of life").await.unwrap();
        let ended = timeout(SOON, accepted.read(&mut [0])).await.expect("it is noticed");
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(client);
    }
}
