//! Lines out, in the manners that servers have.

use std::{
    io::{self, Write},
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

use crate::args::Options;

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// Ends in CR LF.
    Crlf,
    /// Begins with a byte order mark.
    Bom,
    /// With blank lines and words of no protocol before it.
    Noise,
}

/// The way to the client, shared by the calls.
pub(crate) struct Wire {
    output: Mutex<Box<dyn Write + Send>>,
    style: Style,
    pieces: Option<usize>,
}

impl Wire {
    pub(crate) fn new(output: impl Write + Send + 'static, options: &Options) -> Self {
        Self { output: Mutex::new(Box::new(output)), style: options.style, pieces: options.pieces }
    }

    /// A result, given as JSON text, as the id is.
    pub(crate) fn respond(&self, id: &str, result: &str) -> io::Result<()> {
        self.line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"))
    }

    pub(crate) fn fail(&self, id: &str, code: i32, message: &str) -> io::Result<()> {
        let error = serde_json::json!({"code": code, "message": message});
        self.line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}"))
    }

    pub(crate) fn request(&self, id: &str, method: &str, params: &Value) -> io::Result<()> {
        self.line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}"))
    }

    pub(crate) fn notify(&self, method: &str, params: &Value) -> io::Result<()> {
        self.line(&format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}"))
    }

    fn line(&self, frame: &str) -> io::Result<()> {
        let line = match self.style {
            Style::Plain => format!("{frame}\n"),
            Style::Crlf => format!("{frame}\r\n"),
            Style::Bom => format!("\u{feff}{frame}\n"),
            Style::Noise => {
                format!("Server listening on stdio…\n\n[debug] {{not json\r\n\"words\"\n{frame}\n")
            }
        };
        self.raw(line.as_bytes())
    }

    /// Bytes as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.chunks(self.pieces.unwrap_or(bytes.len()).max(1)) {
            output.write_all(piece)?;
            output.flush()?;
        }
        Ok(())
    }
}
