//! `handraise mcp --listen`: the gateway over Streamable HTTP.

use std::{ffi::OsString, net::SocketAddr, process::ExitCode, sync::Arc};

use anyhow::bail;
use handraise_config::Settings;
use handraise_http::front::{Caller, Caps, FrontSettings, TlsFiles};
use handraise_transport::{
    program::{self, Missing},
    spawn::Supervisor,
    supervise::{NOT_FOUND, NOT_STARTED},
};

use super::{Log, inbox, keyring, process, reload, search_path, server_environment, upstream};
use crate::{Context, Exit, commands::up::raise_file_limit, confirm, output, signals};

/// Files of this process that are neither connections nor server processes.
const OTHER_FILES: u64 = 64;
/// Files that each server process takes: its pipes, and a moment's more while it starts.
const FILES_OF_A_CHILD: u64 = 8;

pub(super) fn run(
    context: &Context,
    listen: SocketAddr,
    upstream: Option<&str>,
    command: &[OsString],
) -> Exit {
    let ours = &context.settings;
    let target = upstream.map(|url| upstream::target(context, url)).transpose()?;
    if target.is_none()
        && let Err(missing) = program::find(command, &search_path(&context.environment))
    {
        output::fail(ours.log_format, &format!("cannot start the MCP server: {missing}"));
        return Ok(ExitCode::from(match missing {
            Missing::NotFound { .. } => NOT_FOUND,
            Missing::NotExecutable { .. } => NOT_STARTED,
        }));
    }
    let identity = match &target {
        Some(target) => target.identity().to_owned(),
        None => handraise_gateway::identity(command),
    };
    let keyring = keyring(ours)?;
    let (confirm, spent) = confirm::confirm(ours, &keyring)?;
    let process = Arc::new(process(ours, identity, keyring, confirm)?);
    let settings = FrontSettings {
        listen,
        tls: tls(ours)?,
        insecure_behind_proxy: ours.insecure_behind_proxy,
        allowed_hosts: ours.listening.allowed_hosts.clone(),
        allowed_origins: ours.listening.allowed_origins.clone(),
        callers: callers(ours),
        upstream: target.map(|target| upstream::server(context, target)).transpose()?,
        command: command.to_vec(),
        environment: server_environment(context),
        supervisor: Supervisor::this_binary(),
        reload: reload(context, &process),
        process,
        max_frame: ours.max_frame,
        caps: caps(ours),
        recorder: Box::new(Log),
        spent,
        inbox: inbox::find(context),
    };
    // One thread: a call passes several tasks, and a thread that has to be woken costs more than all of them.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let shutdown = signals::shutdown()?;
        let scheme = if ours.listening.tls_cert.is_some() { "https" } else { "http" };
        // Whoever closed our stdout does not want to know.
        let ready = |address: SocketAddr| drop(output::print(&format!("{scheme}://{address}/mcp")));
        handraise_http::front::serve(settings, ready, shutdown).await?;
        Ok(ExitCode::SUCCESS)
    });
    runtime.shutdown_background();
    served
}

fn tls(settings: &Settings) -> anyhow::Result<Option<TlsFiles>> {
    match (&settings.listening.tls_cert, &settings.listening.tls_key) {
        (Some(certificate), Some(key)) => {
            Ok(Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }))
        }
        (None, None) => Ok(None),
        (Some(_), None) => bail!("--tls-cert needs --tls-key: the private key of that certificate"),
        (None, Some(_)) => bail!("--tls-key needs --tls-cert: the certificate chain of that key"),
    }
}

fn callers(settings: &Settings) -> Vec<Caller> {
    let callers = settings.listening.callers.iter();
    callers.map(|caller| Caller { name: caller.name.clone(), token_sha256: caller.token_sha256 }).collect()
}

/// The bounds of the settings, and of what this process may open.
fn caps(settings: &Settings) -> Caps {
    let ours = &settings.listening;
    let files = raise_file_limit().unwrap_or(u64::MAX);
    let children = FILES_OF_A_CHILD.saturating_mul(ours.children as u64);
    let connections = files.saturating_sub(OTHER_FILES).saturating_sub(children).max(64);
    Caps {
        sessions: ours.sessions,
        idle: ours.session_idle,
        children: ours.children,
        bytes_in_flight: usize::try_from(settings.in_flight).unwrap_or(usize::MAX),
        replay_events: ours.replay_events,
        replay_bytes: ours.replay_bytes,
        subscriptions: ours.subscriptions,
        connections: ours.connections.min(usize::try_from(connections).unwrap_or(usize::MAX)),
    }
}
