//! `handraise mcp`: the gateway in front of an MCP server, for a client's stdio or over HTTP.

mod inbox;
mod listen;
mod upstream;

use std::{
    ffi::OsString,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use handraise_config::{Environment, Flags, RefusalEntry, Settings, Sourced};
use handraise_gateway::{GatewayError, GatewaySettings};
use handraise_mcp::{
    confirm::ConfirmConfig,
    envelope::{EnvelopeConfig, Limits, Process, Upstream, Waits},
    rails::{Asked, Ladder},
    record::{Record, Recorder},
    refusal::{Entry, Rule, RuleSource, Rules},
    seal::{ClockId, Keyring},
};
use handraise_transport::{
    ids,
    program::Missing,
    spawn::{self, Supervisor},
    supervise::{NOT_FOUND, NOT_STARTED},
};

use crate::{Context, Exit, config_file, confirm, output};

/// Run an MCP server behind the gateway
///
/// Runs an MCP server (stdio), or goes to one at a URL (--upstream), and passes every frame on as it is. When a tool refuses
/// a call because several things fit and offers them, the client's own prompt asks which, and the same call goes on with
/// the answer. Tools that a [[confirm]] of the config file names run only once they were confirmed (docs/confirm.md). Exits
/// with the server's exit status; 127 when the server's program is not there, 126 when it cannot be executed, 1 on an
/// error; with --upstream 0 once the client has ended.
///
/// What a server at a URL wants to see with every request, such as a token, goes into the config file: [upstream] headers.
///
/// With --listen it serves Streamable HTTP at /mcp instead of stdio: one server process (with --upstream, one session) for
/// each session of clients up to 2025-11-25, and one for each caller of 2026-07-28. Callers are the [[caller]]s of the config file; without any,
/// everybody on this machine. It then runs until SIGINT or SIGTERM.
///
/// SIGHUP reads the setting `elicitation` again: `off` lets refusals through.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise mcp -- npx -y some-mcp-server --its-own-flag\n  handraise mcp -- handraise fake-server\n  HANDRAISE_ELICITATION=off handraise mcp -- uvx some-mcp-server\n  handraise mcp --listen 127.0.0.1:7400 -- npx -y some-mcp-server\n  handraise mcp --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem -- some-mcp-server\n  handraise mcp --upstream https://tickets.example/mcp\n  claude mcp add devices -- handraise mcp -- npx -y some-mcp-server"
)]
pub(crate) struct Arguments {
    /// Serve Streamable HTTP here instead of stdio; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// The certificate chain, PEM, to speak TLS with
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen beyond loopback without TLS, because a proxy in front speaks TLS
    #[arg(long, requires = "listen")]
    pub(crate) insecure_behind_proxy: bool,
    /// The server's program and its arguments
    #[arg(
        last = true,
        required_unless_present = "upstream",
        conflicts_with = "upstream",
        value_name = "CMD"
    )]
    pub(crate) command: Vec<OsString>,
    /// The inbox for what the client cannot be asked: https://HOST, http://127.0.0.1:PORT, unix:SOCKET, or none; otherwise
    /// the one of the data directory
    #[arg(long, value_name = "URL")]
    pub(crate) inbox: Option<String>,
    /// The data directory of the inbox on this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The URL of a server that speaks Streamable HTTP: https://, or http:// to this machine
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
}

impl Arguments {
    /// `-- CMD…` without any option.
    pub(crate) fn in_front_of(command: Vec<OsString>) -> Self {
        Self {
            listen: None,
            tls_cert: None,
            tls_key: None,
            insecure_behind_proxy: false,
            command,
            upstream: None,
            inbox: None,
            data_dir: None,
        }
    }
}

/// Where to listen.
///
/// # Errors
/// What it should have been, from what it is.
fn address(text: &str) -> Result<SocketAddr, String> {
    let takes = "it takes an IP address and a port";
    text.parse().map_err(|_| match text.rsplit_once(':').unwrap_or(("", text)) {
        (name, port) if port.parse::<u16>().is_ok() && ["", "localhost"].contains(&name) => {
            format!("{takes}: --listen 127.0.0.1:{port}")
        }
        _ => match text.parse::<IpAddr>() {
            Ok(address) => format!("{takes}: --listen {}", SocketAddr::new(address, 7400)),
            Err(_) => format!("{takes}, such as --listen 127.0.0.1:7400"),
        },
    })
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Exit {
    match (arguments.listen, &arguments.upstream) {
        (Some(address), url) => return listen::run(context, address, url.as_deref(), &arguments.command),
        (None, Some(url)) => return upstream::run(context, url),
        (None, None) => {}
    }
    let keyring = keyring(&context.settings)?;
    let (confirm, spent) = confirm::confirm(&context.settings, &keyring)?;
    let command = arguments.command.clone();
    let upstream = Upstream::named_by(move || handraise_gateway::identity(&command));
    let process = Arc::new(process(&context.settings, upstream, keyring, confirm)?);
    let settings = GatewaySettings {
        command: arguments.command.clone(),
        environment: server_environment(context),
        search_path: search_path(&context.environment),
        supervisor: Supervisor::this_binary(),
        reload: reload(context, &process),
        process,
        max_frame: context.settings.max_frame,
        recorder: Box::new(Log),
        spent,
        inbox: inbox::find(context),
    };
    let format = context.settings.log_format;
    match handraise_gateway::run(settings) {
        Ok(status) => Ok(ExitCode::from(status)),
        Err(error) => {
            let status = match &error {
                GatewayError::Missing(Missing::NotFound { .. }) => NOT_FOUND,
                GatewayError::Missing(Missing::NotExecutable { .. }) => NOT_STARTED,
                GatewayError::Spawn { .. } | GatewayError::Prepare(_) | GatewayError::Random(_) => {
                    return Err(error.into());
                }
            };
            output::fail(format, &error.to_string());
            Ok(ExitCode::from(status))
        }
    }
}

/// What all connections share. `upstream` is what states say that they are about.
fn process(
    settings: &Settings,
    upstream: impl Into<Upstream>,
    keyring: Keyring,
    confirm: Option<ConfirmConfig>,
) -> anyhow::Result<Process> {
    let mut clock = [0; 16];
    clock.copy_from_slice(&ids::random()?[..16]);
    let config = EnvelopeConfig {
        upstream: upstream.into(),
        keyring,
        clock: ClockId(clock),
        rules: rules(&settings.refusals)?,
        confirm,
        ask_timeout: settings.ask_timeout,
        min_human: settings.ask_min_human,
        refusal_rails: ladder(Asked::Refusal, &settings.rails_refusal)?,
        confirm_rails: ladder(Asked::Confirm, &settings.rails_confirm)?,
        waits: waits(settings),
        limits: Limits { bytes_in_flight: settings.in_flight, ..Limits::default() },
        callers: settings.listening.callers.iter().map(|caller| caller.name.clone()).collect(),
    };
    let process = Process::new(config);
    process.set_elicitation(settings.elicitation.value);
    Ok(process)
}

/// How long calls wait for the inbox.
fn waits(settings: &Settings) -> Waits {
    Waits {
        plain: settings.ask_wait,
        with_progress: settings.ask_wait_with_progress,
        in_all: settings.ask_max_blocked,
    }
}

/// In which order a kind of question is tried.
fn ladder(of: Asked, rails: &Sourced<Vec<String>>) -> anyhow::Result<Ladder> {
    Ladder::parse(of, rails.value.iter().map(String::as_str))
        .with_context(|| format!("{} is no order of rails", rails.origin))
}

/// The keys of the settings, or one that dies with us.
pub(crate) fn keyring(settings: &Settings) -> anyhow::Result<Keyring> {
    match &settings.state_secret {
        Some(secret) => {
            Keyring::parse(secret.value.expose()).with_context(|| format!("{} cannot be used", secret.origin))
        }
        None => Ok(Keyring::single(&ids::random()?)),
    }
}

/// The rules of the config file, beside the built-in ones.
pub(crate) fn rules(entries: &[RefusalEntry]) -> anyhow::Result<Rules> {
    let entries: Vec<Entry> = entries
        .iter()
        .map(|entry| {
            let name = entry.name.clone();
            let Some(rule) = entry.rule.clone() else { return Ok(Entry::Disabled(name)) };
            let source = RuleSource {
                name,
                code: rule.code,
                code_at: rule.code_at,
                candidates_at: rule.candidates_at,
                value: rule.value,
                title: rule.title,
                argument: rule.argument,
                message: rule.message,
                candidates_tool: rule.candidates_tool,
            };
            Ok(Entry::Rule(Box::new(Rule::new(source)?)))
        })
        .collect::<anyhow::Result<_>>()
        .context("a [[refusal]] of the config file cannot be used")?;
    Ok(Rules::configured(entries))
}

fn server_environment(context: &Context) -> Vec<(OsString, OsString)> {
    let environment = context.environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    spawn::clean_environment(environment, &context.settings.pass_env)
}

fn search_path(environment: &Environment) -> Vec<PathBuf> {
    environment.get("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default()
}

/// Reads the switch again, from where it was read at the start, and moves it.
fn reload(context: &Context, process: &Arc<Process>) -> Box<dyn Fn() + Send> {
    let (path, environment) = (context.config.clone(), context.environment.clone());
    let process = Arc::clone(process);
    Box::new(move || {
        let read = || -> anyhow::Result<bool> {
            let file = config_file::read(path.as_deref(), &environment)?;
            Ok(handraise_config::load(&Flags::default(), &environment, file.as_ref())?.elicitation.value)
        };
        match read() {
            Ok(is_on) => {
                process.set_elicitation(is_on);
                let elicitation = if is_on { "on" } else { "off" };
                tracing::info!(elicitation, "the settings were read again");
            }
            Err(error) => tracing::error!("the settings stay as they are: {}", output::told(&error)),
        }
    })
}

/// Records go to the log.
struct Log;

impl Recorder for Log {
    fn record(&self, record: &Record) {
        tracing::info!("{}", record.to_line());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use handraise_config::ConfigFile;

    use super::*;

    fn read(text: &str) -> anyhow::Result<Vec<String>> {
        let file = ConfigFile::parse("/h.toml", text)?;
        let settings = handraise_config::load(&Flags::default(), &Environment::default(), Some(&file))?;
        Ok(rules(&settings.refusals)?.iter().map(|rule| rule.name().to_owned()).collect())
    }

    const TABLES: &str = "[[refusal]]\nname = 'which_table'\ncode = 'ambiguous'\ncode_at = ['/code']\n\
         candidates_at = ['/tables']\nvalue = '/name'\ntitle = '{name}'\nargument = 'table'\nmessage = 'Which?'\n";

    #[test]
    fn rules_of_the_file_stand_beside_the_built_in_one() {
        assert_eq!(read("").unwrap(), ["ambiguous_device_target"]);
        assert_eq!(read(TABLES).unwrap(), ["ambiguous_device_target", "which_table"]);
        let off = "[[refusal]]\nname = 'ambiguous_device_target'\nenabled = false\n";
        assert_eq!(read(&format!("{off}{TABLES}")).unwrap(), ["which_table"]);
    }

    #[test]
    fn an_address_that_is_none_is_told_with_what_would_be_one() {
        for (text, expected) in [
            ("7400", "--listen 127.0.0.1:7400"),
            (":7401", "--listen 127.0.0.1:7401"),
            ("localhost:80", "--listen 127.0.0.1:80"),
            ("0.0.0.0", "--listen 0.0.0.0:7400"),
            ("::1", "--listen [::1]:7400"),
            ("99999", "such as --listen 127.0.0.1:7400"),
            ("mcp.example:80", "such as --listen 127.0.0.1:7400"),
            ("", "such as --listen 127.0.0.1:7400"),
        ] {
            let error = address(text).unwrap_err();
            assert!(error.ends_with(expected), "{text}: {error}");
        }
        assert_eq!(address("[::1]:0"), Ok("[::1]:0".parse().unwrap()));
    }

    #[test]
    fn the_settings_of_rails_and_waits_reach_the_gateway() {
        let with = |variables: &[(&'static str, &'static str)]| {
            let environment: Environment = variables.iter().copied().collect();
            handraise_config::load(&Flags::default(), &environment, None).unwrap()
        };
        let usual = with(&[]);
        assert_eq!(waits(&usual), Waits::default());
        assert_eq!(ladder(Asked::Refusal, &usual.rails_refusal).unwrap(), Ladder::usual(Asked::Refusal));
        assert_eq!(ladder(Asked::Confirm, &usual.rails_confirm).unwrap(), Ladder::usual(Asked::Confirm));
        let settings = with(&[
            ("HANDRAISE_ASK_WAIT", "1s"),
            ("HANDRAISE_ASK_WAIT_WITH_PROGRESS", "2m"),
            ("HANDRAISE_ASK_MAX_BLOCKED", "1h"),
            ("HANDRAISE_RAILS__REFUSAL", "inbox, form"),
        ]);
        let (plain, with_progress, in_all) =
            (Duration::from_secs(1), Duration::from_mins(2), Duration::from_hours(1));
        assert_eq!(waits(&settings), Waits { plain, with_progress, in_all });
        let rails = Ladder::parse(Asked::Refusal, ["inbox", "form"]).unwrap();
        assert_eq!(ladder(Asked::Refusal, &settings.rails_refusal).unwrap(), rails);
        let wrong = with(&[("HANDRAISE_RAILS__REFUSAL", "form,token")]);
        let error = ladder(Asked::Refusal, &wrong.rails_refusal).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "HANDRAISE_RAILS__REFUSAL is no order of rails: \"token\" is none of its rails: form, inbox, refuse"
        );
    }

    #[test]
    fn a_secret_that_is_none_refuses_the_start_and_is_not_shown() {
        for wrong in ["short-hunter2", "${SECRET_hunter2}", "null", "x", ",", "undefined,hunter2"] {
            let environment = Environment::from_iter([("HANDRAISE_STATE_SECRET", wrong)]);
            let settings = handraise_config::load(&Flags::default(), &environment, None).unwrap();
            let error = format!("{:#}", keyring(&settings).unwrap_err());
            assert!(error.starts_with("HANDRAISE_STATE_SECRET cannot be used: key "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    /// What a shell makes of a variable that was never set, and a template of a value that is missing.
    #[test]
    fn an_empty_secret_refuses_the_start_and_says_what_to_do() {
        let says = "cannot be used: it is empty: give keys of at least 32 characters, or leave it out altogether to have random ones";
        for empty in ["", " "] {
            let environment = Environment::from_iter([("HANDRAISE_STATE_SECRET", empty)]);
            let file = ConfigFile::parse("/h.toml", &format!("state_secret = '{empty}'\n")).unwrap();
            let good =
                ConfigFile::parse("/h.toml", &format!("state_secret = '{}'\n", "x".repeat(32))).unwrap();
            // A good one in the file does not stand in for the variable, which wins.
            for (environment, file, origin) in [
                (&environment, None, "HANDRAISE_STATE_SECRET"),
                (&environment, Some(&good), "HANDRAISE_STATE_SECRET"),
                (&Environment::default(), Some(&file), "/h.toml"),
            ] {
                let settings = handraise_config::load(&Flags::default(), environment, file).unwrap();
                let error = format!("{:#}", keyring(&settings).unwrap_err());
                assert!(error.contains(origin) && error.ends_with(says), "{error}");
            }
        }
        let settings = handraise_config::load(&Flags::default(), &Environment::default(), None).unwrap();
        assert!(keyring(&settings).is_ok(), "without the setting there are random ones");
    }

    #[test]
    fn a_rule_that_cannot_work_is_named() {
        let error = read(&TABLES.replace("'/name'", "'name'")).unwrap_err();
        assert!(format!("{error:#}").contains("refusal \"which_table\": value: "), "{error:#}");
    }
}
