//! Logs: to stderr, as text or JSON, with everything escaped that could move a terminal (S42).

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use anyhow::Context as _;
use handraise_config::{LogFormat, Settings};
use handraise_transport::escape::is_hazardous;
use tracing_subscriber::{
    EnvFilter, filter::LevelFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// Starts logging as the settings say.
///
/// # Errors
/// When the filter is none; the error names where it comes from.
pub(crate) fn start(settings: &Settings) -> anyhow::Result<()> {
    // A level needs no filter of its own: a gateway starts with every client, and stays small without.
    let (level, filter) = if let Ok(level) = settings.log.value.parse() {
        (level, None)
    } else {
        let filter = directives(settings)?;
        (filter.max_level_hint().unwrap_or(LevelFilter::TRACE), Some(filter))
    };
    let lines = fmt().with_max_level(level).with_ansi(false);
    let started = match settings.log_format {
        LogFormat::Text => {
            lines.with_writer(|| Escaped::new(io::stderr(), Style::Text)).finish().with(filter).try_init()
        }
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .with_writer(|| Escaped::new(io::stderr(), Style::Json))
            .finish()
            .with(filter)
            .try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot be started: {error}"))
}

/// A filter by target, span and level.
fn directives(settings: &Settings) -> anyhow::Result<EnvFilter> {
    // A bare word would be taken for a target, at every level, and all others would fall silent.
    let mut words = settings.log.value.split(',').map(str::trim);
    if let Some(word) = words.find(|word| is_bare(word) && word.parse::<LevelFilter>().is_err()) {
        anyhow::bail!(
            "{} has {word:?}, which is no level; levels are off, error, warn, info, debug and trace, and a part of the \
             program has one behind its name, such as handraise_server=debug",
            settings.log.origin
        );
    }
    EnvFilter::try_new(&settings.log.value).with_context(|| {
        format!(
            "{} is {:?}, but it takes a level such as info, or directives such as info,handraise_server=debug",
            settings.log.origin, settings.log.value
        )
    })
}

/// Whether a directive is one word.
fn is_bare(directive: &str) -> bool {
    !directive.is_empty() && !directive.contains(['=', '[', ']', '{', '}'])
}

/// How an escaped character is written.
#[derive(Clone, Copy)]
enum Style {
    /// `\u{202e}`
    Text,
    /// `\u202e`, which stays JSON.
    Json,
}

/// A stream that gets one log line per write, in which control and bidi characters are made visible. A line that cannot be
/// written is lost: nobody is left to be told, and whoever tries on stderr panics there.
struct Escaped<W> {
    stream: W,
    style: Style,
}

impl<W: Write> Escaped<W> {
    fn new(stream: W, style: Style) -> Self {
        Self { stream, style }
    }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.stream.write_all(escape(&String::from_utf8_lossy(line), self.style).as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.stream.flush();
        Ok(())
    }
}

/// Makes control characters (C0, C1, DEL), line separators and bidi controls visible; the line's own end stays.
fn escape(line: &str, style: Style) -> String {
    let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
    let mut escaped = String::with_capacity(line.len());
    for character in body.chars() {
        if is_hazardous(character) {
            // Writing to a String does not fail.
            let _ = match style {
                Style::Text => write!(escaped, "{}", character.escape_unicode()),
                Style::Json => character
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .try_for_each(|unit| write!(escaped, "\\u{unit:04x}")),
            };
        } else {
            escaped.push(character);
        }
    }
    escaped + end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn s42_logs_escape_c0_c1_del_and_bidi() {
        let line = "a\u{1b}[31m b\u{9b}2J c\u{7f} d\u{202e}e f\ng é 😀\n";
        assert_eq!(escape(line, Style::Text), "a\\u{1b}[31m b\\u{9b}2J c\\u{7f} d\\u{202e}e f\\u{a}g é 😀\n");
        assert_eq!(escape("{\"a\":\"\u{202e}\u{9b}\"}\n", Style::Json), "{\"a\":\"\\u202e\\u009b\"}\n");
    }

    #[test]
    fn a_line_that_nobody_reads_is_lost_and_no_error() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let mut log = Escaped::new(Gone, Style::Text);
        assert_eq!(log.write(b"line\n").unwrap(), 5);
        assert!(log.flush().is_ok());
    }

    proptest! {
        #[test]
        fn s42_nothing_hazardous_is_left(line in "\\PC*|(?s).*") {
            let escaped = escape(&line, Style::Text);
            let body = escaped.strip_suffix('\n').unwrap_or(&escaped);
            prop_assert!(!body.chars().any(is_hazardous));
        }

        #[test]
        fn s42_json_stays_the_same_json(text in "(?s).{0,40}") {
            let line = serde_json::to_string(&text).unwrap();
            let back: String = serde_json::from_str(&escape(&line, Style::Json)).unwrap();
            prop_assert_eq!(back, text);
        }
    }
}
