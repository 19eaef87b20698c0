//! The direct server and the relay.

use std::{
    convert::Infallible,
    io::{self, Write as _},
    net::SocketAddr,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use super::{super::server, client};

/// Serves the answers of the stdio server over HTTP, on one thread, until it is ended.
pub(in super::super) fn serve() -> anyhow::Result<()> {
    client::runtime()?.block_on(async {
        let listener = listen().await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move {
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
                // The client has left.
                let _ = connection.await;
            });
        }
    })
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    let Ok(body) = request.into_body().collect().await else {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(response);
    };
    let Some(mut answer) = server::answer_to(&body.to_bytes()) else {
        *response.status_mut() = StatusCode::ACCEPTED;
        return Ok(response);
    };
    // Over HTTP a frame is no line.
    answer.pop();
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
    *response.body_mut() = Full::new(answer.into());
    Ok(response)
}

/// Copies bytes to and from another address, on one thread, until it is ended.
pub(in super::super) fn relay(to: SocketAddr) -> anyhow::Result<()> {
    client::runtime()?.block_on(async {
        let listener = listen().await?;
        loop {
            let (mut near, _) = listener.accept().await?;
            let mut far = TcpStream::connect(to).await?;
            near.set_nodelay(true)?;
            far.set_nodelay(true)?;
            tokio::spawn(async move {
                // One of both has left.
                let _ = copy_bidirectional(&mut near, &mut far).await;
            });
        }
    })
}

async fn listen() -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout().lock(), "http://{}/mcp", listener.local_addr()?)?;
    Ok(listener)
}
