//! One kept-alive HTTP connection, read as simply as the inbox answers.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// How long an answer may take: longer than the inbox waits for a verdict.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to the inbox.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl Connection {
    /// Connects to `http://HOST:PORT`.
    pub(crate) fn open(url: &str, token: &str) -> anyhow::Result<Self> {
        let host = url.strip_prefix("http://").context("not an http URL")?.to_owned();
        let stream = TcpStream::connect(&host)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host, token: token.to_owned() })
    }

    /// Sends a request without waiting for its answer.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<()> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    /// Reads the answer to the oldest request that has none yet, as JSON.
    pub(crate) fn receive(&mut self) -> anyhow::Result<(u16, Value)> {
        let (status, body) = self.receive_text()?;
        Ok((status, serde_json::from_str(&body).unwrap_or(Value::Null)))
    }

    /// Reads the answer to the oldest request that has none yet.
    pub(crate) fn receive_text(&mut self) -> anyhow::Result<(u16, String)> {
        let mut status = 0;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("the inbox closed the connection");
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest.split(' ').next().unwrap_or_default().parse()?;
            } else if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, String::from_utf8(body)?))
    }

    /// What a path outside the API says.
    pub(crate) fn text(&mut self, path: &str) -> anyhow::Result<String> {
        self.send("GET", path, "")?;
        let (status, text) = self.receive_text()?;
        if status != 200 {
            bail!("GET {path} is answered with {status}");
        }
        Ok(text)
    }

    /// One request and its answer, whatever its status.
    pub(crate) fn exchange(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<(u16, Value)> {
        self.send(method, path, body)?;
        self.receive()
    }

    /// One request and its answer, which must be a success.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<Value> {
        let (status, answer) = self.exchange(method, path, body)?;
        if !(200..300).contains(&status) {
            bail!("{method} {path} is answered with {status}: {answer}");
        }
        Ok(answer)
    }
}
