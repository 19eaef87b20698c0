//! The handraise command: one file per subcommand, and what they share.
//!
//! This is the root of the program: it takes the arguments and the environment once, turns them into settings, and
//! passes values down. It is a library so that its documentation can be generated from the very same definitions
//! (`examples/describe.rs`).
//!
//! stdout carries only the product: answers, tokens, links, reports. Everything else goes to stderr.

mod abandoned;
mod arguments;
mod asking;
mod browser;
mod commands;
mod config_file;
mod confirm;
mod holding;
mod inbox;
mod live;
mod local;
mod logging;
mod offline;
mod output;
pub mod pages;
mod signals;

use std::{
    ffi::{OsStr, OsString},
    process::ExitCode,
    sync::Arc,
};

use clap::CommandFactory as _;
use handraise_config::{Environment, LogFormat, Settings};

use crate::{
    arguments::{Arguments, Command},
    local::Commands,
};

/// A command's end that is no error: its exit status.
pub(crate) type Exit = anyhow::Result<ExitCode>;

/// What every command gets: the settings, and the environment for the children it starts.
pub(crate) struct Context {
    /// The settings, judged.
    pub(crate) settings: Settings,
    /// Our environment.
    pub(crate) environment: Arc<Environment>,
    /// The config file that was named, to be passed on to children.
    pub(crate) config: Option<std::path::PathBuf>,
    /// Our commands for the same inbox.
    pub(crate) commands: Commands,
}

impl Context {
    /// The same, in another data directory.
    pub(crate) fn in_data_dir(&self, folder: &std::path::Path) -> Self {
        let settings = Settings { data_dir: Some(folder.to_owned()), ..self.settings.clone() };
        Self {
            settings,
            environment: Arc::clone(&self.environment),
            config: self.config.clone(),
            commands: Commands::of(Some(&folder.to_string_lossy())),
        }
    }
}

/// The command line's definition.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Runs the program; returns its exit status.
///
/// 0 success, 1 an error, 2 a command line that makes no sense, 141 a reader of stdout that has gone; commands add their
/// own. `environment` is asked for once at most: a supervisor passes its own on unread.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl FnOnce() -> Environment,
) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // Three programs of our own that other processes start. They read their arguments themselves: the supervisor
    // stands between every agent and us and has to start at once.
    match arguments.get(1).and_then(|name| name.to_str()) {
        Some("supervise") => return handraise_transport::supervise::run(arguments.into_iter().skip(2)),
        Some("fake-agent") => {
            let status =
                handraise_fake_agent::run(arguments.into_iter().skip(2), std::io::stdin(), std::io::stdout());
            return ExitCode::from(status);
        }
        Some("fake-server") => {
            let status = handraise_fake_server::run(
                arguments.into_iter().skip(2),
                std::io::stdin(),
                std::io::stdout(),
            );
            return ExitCode::from(status);
        }
        _ => {}
    }
    let program = arguments.first().map(OsString::as_os_str);
    let arguments = match Arguments::read(&arguments) {
        Ok(arguments) => arguments,
        Err(mut error) => {
            if let Some(complaint) = arguments::not_text(&arguments, &error) {
                output::complain(&complaint);
                return ExitCode::from(2);
            }
            arguments::hint_at_dashes(&arguments, &mut error);
            arguments::hint_at_upstream(&arguments, &mut error);
            // Help goes to stdout, mistakes to stderr; nobody is left to tell when that fails.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let environment = environment();
    let mut format = LogFormat::before_the_file(&arguments.flags(), &environment);
    let failed = arguments.failed();
    match dispatch(arguments, program, environment, &mut format) {
        Ok(status) => status,
        Err(error) if output::reader_has_gone(&error) => {
            ExitCode::from(failed.unwrap_or(output::READER_GONE))
        }
        Err(error) => {
            output::fail(format, &output::told(&error));
            failed.map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}

/// Runs the command. `format` is how its last error is to be written, as far as that is known; `program` is the name by which
/// we were called.
fn dispatch(
    arguments: Arguments,
    program: Option<&OsStr>,
    environment: Environment,
    format: &mut LogFormat,
) -> Exit {
    if let Command::Completions(completions) = &arguments.command {
        return commands::completions::run(completions);
    }
    let file = config_file::read(arguments.global.config.as_deref(), &environment)?;
    let flags = arguments.flags();
    let commands = Commands::of(flags.value(&handraise_config::registry::DATA_DIR));
    let mut settings = handraise_config::load(&flags, &environment, file.as_ref())?;
    settings.warnings.extend(file.as_ref().and_then(config_file::exposed));
    settings.warnings.extend(settings.listening.tls_key.as_deref().and_then(config_file::exposed_key));
    *format = settings.log_format;
    logging::start(&settings)?;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let environment = Arc::new(environment);
    let context =
        Context { settings, environment, config: file.map(|file| file.path().to_owned()), commands };
    match arguments.command {
        Command::Up(_) => commands::up::run(&context),
        Command::Agent(agent) => commands::agent::run(&context, &agent),
        Command::Mcp(mcp) => commands::mcp::run(&context, &mcp),
        Command::Ask(ask) => commands::ask::run(&context, &ask),
        Command::Hook(hook) => commands::hook::run(&context, &hook, &arguments.global, program),
        Command::Tool(tool) => commands::tool::run(context, &tool),
        Command::Demo(_) => commands::demo::run(&context),
        Command::Inbox(inbox) => commands::inbox::run(&context, &inbox),
        Command::Report(report) => commands::report::run(&context, &report),
        Command::Token(token) => commands::token::run(&context, &token),
        Command::Backup(backup) => commands::backup::run(&context, &backup),
        Command::Doctor(_) => commands::doctor::run(&context),
        Command::Completions(completions) => commands::completions::run(&completions),
    }
}

/// Runs a command's future on a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    block_on_runtime(tokio::runtime::Builder::new_multi_thread(), future)
}

/// The same with one thread, for what is small and passes several tasks: to wake a thread costs more than all
/// of them.
pub(crate) fn block_on_one_thread<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    block_on_runtime(tokio::runtime::Builder::new_current_thread(), future)
}

fn block_on_runtime<T>(
    mut runtime: tokio::runtime::Builder,
    future: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let runtime = runtime.enable_all().build()?;
    let outcome = runtime.block_on(future);
    // A blocked read of stdin must not keep a finished program.
    runtime.shutdown_background();
    outcome
}
