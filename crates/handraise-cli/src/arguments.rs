//! The command line's definition, and which flags are settings.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Args, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use handraise_config::{Flags, registry};

use crate::commands;

/// Agents raise a hand; a human answers; the same call goes on.
#[derive(Parser)]
#[command(name = "handraise", version, propagate_version = false, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The same definitions, of one command alone.
#[derive(Parser)]
struct Mcp {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    mcp: commands::mcp::Arguments,
}

impl Arguments {
    /// Reads a command line. `handraise mcp` stands between every client and its server, has to start at once, and stays
    /// as long as they do. Without options there is nothing to parse; otherwise it is read without the definitions of all
    /// other commands; where that fails, all together say why.
    ///
    /// # Errors
    /// A mistake, or help that was asked for.
    pub(crate) fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        if let [_, mcp, dashes, command @ ..] = words
            && (mcp == "mcp" && dashes == "--" && !command.is_empty())
        {
            let mcp = commands::mcp::Arguments::in_front_of(command.to_vec());
            return Ok(Self { global: Global::default(), command: Command::Mcp(mcp) });
        }
        if words.get(1).is_some_and(|name| name == "mcp")
            && let Ok(Mcp { global, mcp }) = Mcp::try_parse_from(&words[1..])
        {
            return Ok(Self { global, command: Command::Mcp(mcp) });
        }
        Self::try_parse_from(words)
    }
}

/// Flags of every command.
#[derive(Args, Default)]
pub(crate) struct Global {
    /// The config file; otherwise HANDRAISE_CONFIG, otherwise handraise/handraise.toml in the XDG config directory
    #[arg(long, global = true, value_name = "FILE", help_heading = "Common options")]
    pub(crate) config: Option<PathBuf>,
    /// What is logged on stderr: error, warn, info, debug, trace, or directives such as info,handraise_server=debug
    #[arg(long, global = true, value_name = "FILTER", help_heading = "Common options")]
    pub(crate) log: Option<String>,
    /// How log lines are written: text or json
    #[arg(long, global = true, value_name = "FORMAT", help_heading = "Common options")]
    pub(crate) log_format: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Up(commands::up::Arguments),
    Agent(commands::agent::Arguments),
    Mcp(commands::mcp::Arguments),
    Ask(commands::ask::Arguments),
    Tool(commands::tool::Arguments),
    Hook(commands::hook::Arguments),
    Demo(commands::demo::Arguments),
    Inbox(commands::inbox::Arguments),
    Report(commands::report::Arguments),
    Token(commands::token::Arguments),
    Backup(commands::backup::Arguments),
    Doctor(commands::doctor::Arguments),
    Completions(commands::completions::Arguments),
}

impl Arguments {
    /// The exit status of whatever error, where that is not the usual one: some callers take 1 for leave to go on.
    pub(crate) fn failed(&self) -> Option<u8> {
        match &self.command {
            Command::Hook(hook) => hook.failed(),
            _ => None,
        }
    }

    /// The flags that are settings (docs/configuration.md).
    pub(crate) fn flags(&self) -> Flags {
        let flags = Flags::default()
            .with(&registry::LOG, self.global.log.clone())
            .with(&registry::LOG_FORMAT, self.global.log_format.clone());
        match &self.command {
            Command::Up(up) => flags
                .with(&registry::LISTEN, up.listen.clone())
                .with(&registry::DATA_DIR, path(up.data_dir.as_ref()))
                .with(&registry::DATABASE_URL, up.database.clone())
                .with(&registry::OPEN_BROWSER, up.no_open.then_some("off"))
                .with(&registry::INSECURE_BEHIND_PROXY, up.insecure_behind_proxy.then_some("on")),
            Command::Agent(agent) => flags
                .with(&registry::INBOX, agent.inbox.clone())
                .with(&registry::WHO, agent.who.clone())
                .with(&registry::ALLOW_TERMINAL, agent.allow_terminal.then_some("on"))
                .with(&registry::DATA_DIR, path(agent.data_dir.as_ref())),
            Command::Ask(ask) => flags
                .with(&registry::INBOX, ask.inbox.clone())
                .with(&registry::WHO, ask.who.clone())
                .with(&registry::DATA_DIR, path(ask.data_dir.as_ref())),
            Command::Tool(tool) => flags
                .with(&registry::INBOX, tool.inbox.clone())
                .with(&registry::WHO, tool.who.clone())
                .with(&registry::DATA_DIR, path(tool.data_dir.as_ref())),
            Command::Hook(hook) => {
                let commands::hook::Client::Claude(claude) = &hook.client;
                flags
                    .with(&registry::INBOX, claude.inbox.clone())
                    .with(&registry::WHO, claude.who.clone())
                    .with(&registry::DATA_DIR, path(claude.data_dir.as_ref()))
            }
            Command::Demo(demo) => flags
                .with(&registry::LISTEN, demo.listen.clone())
                .with(&registry::OPEN_BROWSER, demo.no_open.then_some("off")),
            Command::Inbox(inbox) => flags.with(&registry::DATA_DIR, path(inbox.data_dir.as_ref())),
            Command::Report(report) => flags.with(&registry::DATA_DIR, path(report.data_dir.as_ref())),
            Command::Token(token) => flags.with(&registry::DATA_DIR, path(token.data_dir())),
            Command::Backup(backup) => flags.with(&registry::DATA_DIR, path(backup.data_dir.as_ref())),
            Command::Doctor(doctor) => flags.with(&registry::DATA_DIR, path(doctor.data_dir.as_ref())),
            Command::Mcp(mcp) => flags
                .with(&registry::INBOX, mcp.inbox.clone())
                .with(&registry::DATA_DIR, path(mcp.data_dir.as_ref()))
                .with(&registry::TLS_CERT, path(mcp.tls_cert.as_ref()))
                .with(&registry::TLS_KEY, path(mcp.tls_key.as_ref()))
                .with(&registry::INSECURE_BEHIND_PROXY, mcp.insecure_behind_proxy.then_some("on")),
            Command::Completions(_) => flags,
        }
    }
}

/// A path as the text of a flag. What is not UTF-8 is shown with replacements, and refused where it is opened.
fn path(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.to_string_lossy().into_owned())
}

/// Says that `--` is missing, where a command to be run stands bare: `handraise mcp npx x`.
pub(crate) fn hint_at_dashes(arguments: &[OsString], error: &mut clap::Error) {
    let Some(name @ ("mcp" | "agent")) = arguments.get(1).and_then(|name| name.to_str()) else { return };
    if error.kind() != ErrorKind::UnknownArgument || arguments.iter().any(|word| word == "--") {
        return;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return };
    if word.starts_with('-') {
        return;
    }
    let tip = format!("-- is missing before the command: handraise {name} -- {word} …");
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// Says what `handraise mcp` stands in front of, where nothing was named.
pub(crate) fn hint_at_upstream(arguments: &[OsString], error: &mut clap::Error) {
    if error.kind() != ErrorKind::MissingRequiredArgument || arguments.get(1).is_none_or(|name| name != "mcp")
    {
        return;
    }
    let tip = "name a server: handraise mcp -- CMD … runs one, handraise mcp --upstream URL goes to one";
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// Which argument is no text, where that is what is wrong.
pub(crate) fn not_text(arguments: &[OsString], error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidUtf8 {
        return None;
    }
    // What stands behind `--` is a command, and may be any bytes.
    let ours = arguments.iter().take_while(|argument| *argument != "--");
    let (place, argument) = ours.enumerate().find(|(_, argument)| argument.to_str().is_none())?;
    Some(format!(
        "error: argument {place}, \"{}\", is not UTF-8; write it in UTF-8",
        argument.to_string_lossy()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateways_command_line_means_the_same_when_it_is_read_alone() {
        for line in [
            "handraise mcp -- npx -y server",
            "handraise mcp -- --",
            "handraise mcp -- --help",
            "handraise mcp -- npx -- --log debug",
            "handraise mcp --log debug --config /a/b -- npx --log warn -- x",
            "handraise mcp --log-format=json -- x",
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (alone, together) = (Arguments::read(&words), Arguments::try_parse_from(&words));
            let [alone, together] = [alone, together].map(|arguments| {
                let Arguments { global, command: Command::Mcp(mcp) } = arguments.unwrap() else { panic!() };
                assert!(!mcp.insecure_behind_proxy, "{line}");
                let tls = (mcp.tls_cert, mcp.tls_key);
                (global.config, global.log, global.log_format, mcp.command, mcp.upstream, mcp.listen, tls)
            });
            assert_eq!(alone, together, "{line}");
        }
        for line in [
            "handraise mcp",
            "handraise mcp --",
            "handraise mcp x",
            "handraise mcp --help",
            "handraise mcp --version",
            "handraise",
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let [alone, together] = [Arguments::read(&words), Arguments::try_parse_from(&words)]
                .map(|arguments| arguments.err().unwrap().to_string());
            assert_eq!(alone, together, "{line}");
        }
    }
}
