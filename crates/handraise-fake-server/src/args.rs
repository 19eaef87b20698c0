//! Command line options.

use std::{ffi::OsString, path::PathBuf};

use crate::{refusal::Shape, wire::Style};

/// How to call the server.
pub const USAGE: &str = "\
A scripted MCP server with device tools. Speaks MCP over stdin and stdout, or over HTTP.

  --era ERA         legacy, modern, or dual (default)
  --devices A,B,…   the devices there are (default: emulator-5554,A1B2-C3D4)
  --shape SHAPE     how a refusal looks: flat (default), nested, failure, devices, structured, meta, escaped,
                    single, duplicate, none, broken, wide
  --calls FILE      append a JSON line to FILE for each tool call that begins, and for each that is cancelled
  --record FILE     append every byte received to FILE
  --lines STYLE     how lines are written: plain (default), crlf, bom, noise
  --pieces N        write N bytes at a time
  --raw FILE        say nothing but what FILE holds, byte for byte, once --after lines have come
  --after N         see --raw (default: 1)
  --each            with --raw: say a line of FILE for each line that comes, from the Nth on
  --http ADDRESS    speak Streamable HTTP there, at /mcp; the first line of stdout is the URL
  --answers FORM    over HTTP: sse (default) or json
  --cut N           over HTTP: end every stream after N events; it goes on where the client says it was
  --requests FILE   over HTTP: append a JSON line to FILE for each request: method, headers, body
  --forget          over HTTP: know no session that was opened";

/// Which handshakes are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eras {
    Legacy,
    Modern,
    Dual,
}

/// What the server was told on its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) eras: Eras,
    pub(crate) devices: Vec<String>,
    pub(crate) shape: Shape,
    pub(crate) calls: Option<PathBuf>,
    pub(crate) record: Option<PathBuf>,
    pub(crate) style: Style,
    pub(crate) pieces: Option<usize>,
    pub(crate) raw: Option<PathBuf>,
    pub(crate) after: usize,
    pub(crate) each: bool,
    pub(crate) http: Option<Http>,
}

/// How HTTP is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Http {
    pub(crate) address: String,
    /// Whether answers are streams.
    pub(crate) streams: bool,
    pub(crate) cut: Option<usize>,
    pub(crate) requests: Option<PathBuf>,
    pub(crate) forgets: bool,
}

pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Options, String> {
    let mut options = Options {
        eras: Eras::Dual,
        devices: vec!["emulator-5554".to_owned(), "A1B2-C3D4".to_owned()],
        shape: Shape::Flat,
        calls: None,
        record: None,
        style: Style::Plain,
        pieces: None,
        raw: None,
        after: 1,
        each: false,
        http: None,
    };
    let mut http = Http { streams: true, ..Http::default() };
    let mut args = args.into_iter();
    while let Some(name) = args.next() {
        let name = name.to_string_lossy().into_owned();
        let mut value = || args.next().ok_or_else(|| format!("{name} needs a value"));
        let mut word = || value().map(|value| value.to_string_lossy().into_owned());
        match name.as_str() {
            "--era" => {
                options.eras = match word()?.as_str() {
                    "legacy" => Eras::Legacy,
                    "modern" => Eras::Modern,
                    "dual" => Eras::Dual,
                    other => return Err(format!("--era takes legacy, modern or dual, not {other}")),
                }
            }
            "--devices" => {
                options.devices = word()?.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
            }
            "--shape" => options.shape = Shape::named(&word()?)?,
            "--lines" => {
                options.style = match word()?.as_str() {
                    "plain" => Style::Plain,
                    "crlf" => Style::Crlf,
                    "bom" => Style::Bom,
                    "noise" => Style::Noise,
                    other => return Err(format!("--lines takes plain, crlf, bom or noise, not {other}")),
                }
            }
            "--pieces" => options.pieces = Some(number(&name, &word()?)?.max(1)),
            "--after" => options.after = number(&name, &word()?)?,
            "--calls" => options.calls = Some(value()?.into()),
            "--record" => options.record = Some(value()?.into()),
            "--http" => http.address = word()?,
            "--answers" => {
                http.streams = match word()?.as_str() {
                    "sse" => true,
                    "json" => false,
                    other => return Err(format!("--answers takes sse or json, not {other}")),
                }
            }
            "--cut" => http.cut = Some(number(&name, &word()?)?.max(1)),
            "--requests" => http.requests = Some(value()?.into()),
            "--each" => options.each = true,
            "--forget" => http.forgets = true,
            "--raw" => options.raw = Some(value()?.into()),
            _ => return Err(format!("unknown argument {name}")),
        }
    }
    options.http = Some(http).filter(|http| !http.address.is_empty());
    Ok(options)
}

fn number(name: &str, word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("{name} takes a number, not {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Options, String> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn what_it_does_not_know_is_refused_by_name() {
        assert_eq!(parsed(&["--erra"]).unwrap_err(), "unknown argument --erra");
        assert_eq!(parsed(&["--era"]).unwrap_err(), "--era needs a value");
        assert_eq!(parsed(&["--era", "old"]).unwrap_err(), "--era takes legacy, modern or dual, not old");
        assert!(parsed(&["--shape", "round"]).unwrap_err().starts_with("--shape takes one of flat, "));
        assert_eq!(parsed(&["--pieces", "x"]).unwrap_err(), "--pieces takes a number, not x");
    }

    #[test]
    fn every_option_is_read() {
        let options = parsed(&["--era", "modern", "--devices", "a,,b", "--pieces", "0", "--lines", "bom"]);
        let options = options.unwrap();
        assert_eq!(options.eras, Eras::Modern);
        assert_eq!(options.devices, ["a", "b"]);
        assert_eq!((options.pieces, options.style), (Some(1), Style::Bom));
    }
}
