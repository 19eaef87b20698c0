//! `handraise mcp --upstream URL`: a client on stdio in front of a server that speaks Streamable HTTP.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use handraise_http::upstream::{self, Server, Signal, Stdio, Target};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use crate::{Context, Exit, commands::mcp, confirm, signals};

/// How many requests of a client are under way at once; others wait.
const CONCURRENCY: usize = 256;

pub(super) fn run(context: &Context, url: &str) -> Exit {
    let target = target(context, url)?;
    let keyring = mcp::keyring(&context.settings)?;
    let (confirm, spent) = confirm::confirm(&context.settings, &keyring)?;
    let identity = target.identity().to_owned();
    let process = Arc::new(mcp::process(&context.settings, identity, keyring, confirm)?);
    let settings = Stdio {
        reload: mcp::reload(context, &process),
        process,
        server: server(context, target)?,
        recorder: Box::new(mcp::Log),
        spent,
        inbox: mcp::inbox::find(context),
    };
    crate::block_on(async {
        upstream::run(settings, listen_for_signals()?).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Where the server is, and what every request to it carries.
pub(super) fn target(context: &Context, url: &str) -> anyhow::Result<Target> {
    let headers = &context.settings.upstream_headers;
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
    Ok(Target::new(url, headers)?)
}

/// The server, and the connections to it.
pub(super) fn server(context: &Context, target: Target) -> anyhow::Result<Arc<Server>> {
    let in_flight = usize::try_from(context.settings.in_flight).unwrap_or(usize::MAX);
    let callers = context.settings.listening.callers.iter().map(|caller| caller.name.as_str()).collect();
    let server = Server::new(target, context.settings.max_frame, CONCURRENCY, in_flight, &callers);
    Ok(Arc::new(server.context("cannot prepare connections to the MCP server")?))
}

/// SIGTERM and SIGINT end, SIGHUP reads the settings anew.
fn listen_for_signals() -> anyhow::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(4);
    let mut reload = signal(SignalKind::hangup())?;
    let end = signals::shutdown()?;
    tokio::spawn(async move {
        tokio::pin!(end);
        loop {
            let signal = tokio::select! {
                () = &mut end => Signal::End,
                Some(()) = reload.recv() => Signal::Reload,
            };
            if sender.send(signal).await.is_err() || signal == Signal::End {
                // Whoever listens ends everything.
                return std::future::pending().await;
            }
        }
    });
    Ok(receiver)
}
