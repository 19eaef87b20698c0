//! `handraise up`: the inbox.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::bail;
use handraise_api::access::FlagSource;
use handraise_config::{Origin, Settings, Sourced};
use handraise_server::{AgentSettings, FlagSetting, FlagSettings, Launcher, Ready};
use handraise_transport::spawn::Supervisor;

use crate::{Context, Exit, browser::Redirect, local::Commands, output, signals};

/// Run the inbox
///
/// Runs the inbox: backend and web page, with SQLite in the data directory. Prints a sign-in link on stdout; it is
/// good once, for ten minutes. Ends in order on SIGINT, SIGTERM, and when its
/// terminal is closed.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise up\n  handraise up --listen 127.0.0.1:8080 --data-dir /srv/handraise --no-open"
)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Where the database and the files are by which this machine's holders find the inbox
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The database; only SQLite in the data directory is there so far
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Do not open a browser
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Listen beyond loopback without TLS, because a proxy in front speaks TLS
    #[arg(long)]
    pub(crate) insecure_behind_proxy: bool,
}

/// How long the redirecting file is left to the browser.
const REDIRECT_LIFE: Duration = Duration::from_secs(60);

pub(crate) fn run(context: &Context) -> Exit {
    refuse_database(&context.settings)?;
    let settings = server_settings(context)?;
    crate::block_on(async {
        let shutdown = signals::shutdown_or_hangup()?;
        handraise_transport::spawn::become_subreaper()?;
        let open_in = opens_browser(context).then(|| settings.data_dir.clone());
        let commands = context.commands.clone();
        let ready = move |ready: Ready| announce(&ready, open_in, &commands);
        handraise_server::serve(settings, ready, shutdown).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The inbox's settings, from ours.
pub(crate) fn server_settings(context: &Context) -> anyhow::Result<handraise_server::Settings> {
    let ours = &context.settings;
    let data_dir = std::path::absolute(ours.data_dir()?)?;
    let mut settings = handraise_server::Settings::new(&data_dir, ours.listen);
    settings.public_name.clone_from(&ours.public_name);
    settings.insecure_behind_proxy = ours.insecure_behind_proxy;
    settings.flags = FlagSettings {
        acp_elicitation: flag(&ours.acp_elicitation),
        elicitation: flag(&ours.elicitation),
        adaptive_profiles: flag(&ours.adaptive_profiles),
    };
    settings.limits = handraise_api::frame::Limits {
        open_asks: ours.limits.open_asks,
        open_bytes: ours.limits.open_bytes,
        session_open_asks: ours.limits.session_open_asks,
        session_parked_asks: ours.limits.session_parked_asks,
        asks_per_second: ours.limits.asks_per_second,
    };
    let caps = &mut settings.caps;
    caps.token_open_asks = ours.shares.token_open_asks;
    caps.token_asks = ours.shares.token_asks;
    caps.token_bytes = ours.shares.token_bytes;
    caps.token_sessions = ours.shares.token_sessions;
    caps.token_instances = ours.shares.token_instances;
    caps.cache_bytes = ours.shares.cache_bytes;
    caps.event_streams = usize::try_from(ours.shares.event_streams)?;
    caps.token_event_streams = usize::try_from(ours.shares.token_event_streams)?;
    settings.agents = ours
        .agents
        .iter()
        .map(|agent| AgentSettings {
            id: agent.id.clone(),
            command: agent.command.clone(),
            cwd: agent.cwd.clone(),
        })
        .collect();
    settings.launcher = Some(launcher(context, data_dir)?);
    settings.caps.connections = settings.caps.connections.min(connections(raise_file_limit()));
    Ok(settings)
}

/// Files that are not connections: the database, agents' pipes, the page of the moment.
const OTHER_FILES: u64 = 512;

/// How many connections fit beside everything else. Without files left, nothing could be stored or started (S37).
fn connections(files: Option<u64>) -> usize {
    let places = files.map_or(u64::MAX, |files| files.saturating_sub(OTHER_FILES).max(64));
    usize::try_from(places).unwrap_or(usize::MAX)
}

/// Lets this process open as many files as it may; returns how many, or `None` for any number.
pub(crate) fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

/// How the inbox starts `handraise agent`: with the same config file and the same data directory.
fn launcher(context: &Context, data_dir: PathBuf) -> anyhow::Result<Launcher> {
    let text = |path: PathBuf| match path.into_os_string().into_string() {
        Ok(text) => Ok(text),
        Err(path) => bail!("the path {} is not UTF-8", path.display()),
    };
    let mut args = vec!["agent".to_owned(), "--data-dir".to_owned(), text(data_dir)?];
    // The inbox reads the agent's last error from what it says, to tell it in its session.
    args.extend(["--log-format", "text"].map(str::to_owned));
    if let Some(config) = &context.config {
        args.extend(["--config".to_owned(), text(std::path::absolute(config)?)?]);
    }
    // `handraise agent` is one of us: it reads our settings, and withholds them from the agent itself (S7).
    let environment = context.environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(Launcher {
        program: std::env::current_exe()?,
        args,
        environment: environment.collect(),
        supervisor: Supervisor::this_binary(),
    })
}

fn flag(flag: &Sourced<bool>) -> FlagSetting {
    let source = match flag.origin {
        Origin::Default => FlagSource::Default,
        Origin::File { .. } => FlagSource::File,
        Origin::Environment(_) | Origin::Flag(_) => FlagSource::Environment,
    };
    FlagSetting { value: flag.value, source }
}

/// A database that this version does not have. Its URL may hold a password, so it is not repeated.
fn refuse_database(settings: &Settings) -> anyhow::Result<()> {
    if let Some(url) = &settings.database_url {
        bail!(
            "{} names a database, but this version keeps its data in SQLite in the data directory only; leave it \
             out, and choose the place with --data-dir",
            url.origin
        );
    }
    Ok(())
}

/// Whether somebody is there to see a browser.
pub(crate) fn opens_browser(context: &Context) -> bool {
    let has_desktop = cfg!(target_os = "macos") || context.environment.has_display();
    context.settings.open_browser && output::has_terminal() && has_desktop
}

/// Tells the operator how to get in.
pub(crate) fn announce(ready: &Ready, open_in: Option<PathBuf>, commands: &Commands) {
    let link = ready.sign_in_link();
    output::complain("Sign in with this link, once, within ten minutes:");
    if let Err(error) = output::print(&link) {
        let create = commands.quoted("token create --scope admin");
        tracing::warn!(%error, "the sign-in link could not be printed; sign in with a token of {create}");
    }
    let Some(data_dir) = open_in else { return };
    match Redirect::write(&data_dir, &link) {
        Ok(redirect) => {
            if let Err(error) = redirect.open() {
                tracing::info!(error = format!("{error:#}"), "no browser was opened; use the link");
                return;
            }
            tokio::spawn(async move {
                tokio::time::sleep(REDIRECT_LIFE).await;
                drop(redirect);
            });
        }
        Err(error) => tracing::info!(error = format!("{error:#}"), "no browser was opened; use the link"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_connections_leave_files_for_everything_else() {
        assert_eq!(connections(Some(1_024)), 512);
        assert_eq!(connections(Some(100)), 64);
        assert_eq!(connections(None), usize::MAX);
    }
}
