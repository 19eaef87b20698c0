//! A WebSocket to the inbox, as a holder speaks it: text frames, read one after the other.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

use anyhow::{Context as _, bail};

const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
/// A length of two bytes follows.
const SHORT: u8 = 0x7E;
/// A length of eight bytes follows.
const LONG: u8 = 0x7F;

/// An open WebSocket.
pub(super) struct WebSocket {
    stream: BufReader<TcpStream>,
    outgoing: Vec<u8>,
}

impl WebSocket {
    /// Opens `path` of `http://HOST:PORT`.
    pub(super) fn open(url: &str, path: &str, token: &str) -> anyhow::Result<Self> {
        let host = url.strip_prefix("http://").context("not an http URL")?;
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::with_capacity(64 * 1024, stream);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let mut status = String::new();
        stream.read_line(&mut status)?;
        if !status.starts_with("HTTP/1.1 101") {
            bail!("the inbox takes no holder: {}", status.trim());
        }
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                bail!("the inbox closed the connection");
            }
            if line.trim_end().is_empty() {
                return Ok(Self { stream, outgoing: Vec::new() });
            }
        }
    }

    /// Queues a text frame; [`flush`](Self::flush) sends what is queued.
    pub(super) fn queue(&mut self, text: &str) {
        self.frame(TEXT, text.as_bytes());
    }

    fn frame(&mut self, kind: u8, payload: &[u8]) {
        self.outgoing.push(FINAL | kind);
        if let Ok(length) = u8::try_from(payload.len())
            && length < SHORT
        {
            self.outgoing.push(MASKED | length);
        } else if let Ok(length) = u16::try_from(payload.len()) {
            self.outgoing.push(MASKED | SHORT);
            self.outgoing.extend(length.to_be_bytes());
        } else {
            self.outgoing.push(MASKED | LONG);
            self.outgoing.extend((payload.len() as u64).to_be_bytes());
        }
        // A mask of zeros leaves the payload as it is; masks protect proxies, and none is here.
        self.outgoing.extend([0; 4]);
        self.outgoing.extend(payload);
    }

    /// Sends what is queued.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.get_mut().write_all(&self.outgoing)?;
        self.outgoing.clear();
        Ok(())
    }

    /// Whether more has arrived than was read.
    pub(super) fn has_more(&self) -> bool {
        !self.stream.buffer().is_empty()
    }

    /// The next text.
    pub(super) fn receive(&mut self) -> anyhow::Result<String> {
        loop {
            let [kind, length] = self.bytes::<2>()?;
            let length = match length & !MASKED {
                SHORT => u64::from(u16::from_be_bytes(self.bytes()?)),
                LONG => u64::from_be_bytes(self.bytes()?),
                length => u64::from(length),
            };
            let mut payload = vec![0; usize::try_from(length)?];
            self.stream.read_exact(&mut payload)?;
            match kind & !FINAL {
                TEXT => return Ok(String::from_utf8(payload)?),
                PING => {
                    self.frame(PONG, &payload);
                    self.flush()?;
                }
                PONG => {}
                CLOSE => bail!("the inbox closed the holder's stream"),
                kind => bail!("a frame of kind {kind} came"),
            }
        }
    }

    fn bytes<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
