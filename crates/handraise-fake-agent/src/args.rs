//! Command line options.

use std::{ffi::OsString, path::PathBuf};

/// How to call the agent.
pub const USAGE: &str = "\
A scripted ACP agent. Speaks ACP over stdin and stdout.

  --script 'NAME [ARG]'   what a prompt does that names no script itself (default: echo)
  --as NAME@VERSION       what it calls itself (default: fake-agent@0.1.0)
  --record FILE           append every line received to FILE
  --list                  print the scripts, one a line, and exit";

/// What the agent was told on its command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// A script's name and arguments, as in a prompt.
    pub(crate) script: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) record: Option<PathBuf>,
    pub(crate) list: bool,
}

pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Options, String> {
    let mut options = Options {
        script: "echo".to_owned(),
        name: "fake-agent".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        record: None,
        list: false,
    };
    let mut args = args.into_iter();
    while let Some(name) = args.next() {
        let name = name.to_string_lossy().into_owned();
        let mut value = || args.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--script" => options.script = value()?.to_string_lossy().into_owned(),
            "--record" => options.record = Some(value()?.into()),
            "--list" => options.list = true,
            "--as" => {
                let identity = value()?.to_string_lossy().into_owned();
                let (name, version) = identity
                    .rsplit_once('@')
                    .filter(|(name, version)| !name.is_empty() && !version.is_empty())
                    .ok_or_else(|| format!("--as wants NAME@VERSION, not {identity}"))?;
                (options.name, options.version) = (name.to_owned(), version.to_owned());
            }
            _ => return Err(format!("unknown argument {name}")),
        }
    }
    if crate::scripts::find(&options.script).is_none() {
        return Err(format!("no script is called {}; --list prints them", options.script));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Options, String> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn a_scoped_package_name_keeps_its_first_at_sign() {
        let options = parsed(&["--as", "@agentclientprotocol/claude-agent-acp@0.65.0"]).unwrap();
        assert_eq!(options.name, "@agentclientprotocol/claude-agent-acp");
        assert_eq!(options.version, "0.65.0");
    }

    #[test]
    fn what_it_does_not_know_is_refused_by_name() {
        assert_eq!(parsed(&["--srcipt"]).unwrap_err(), "unknown argument --srcipt");
        assert_eq!(
            parsed(&["--script", "nope"]).unwrap_err(),
            "no script is called nope; --list prints them"
        );
        assert_eq!(parsed(&["--record"]).unwrap_err(), "--record needs a value");
        assert_eq!(parsed(&["--as", "x"]).unwrap_err(), "--as wants NAME@VERSION, not x");
    }
}
