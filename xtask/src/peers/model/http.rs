//! HTTP as far as agents speak it to a model: one request a connection.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

/// The longest request that is read, in bytes.
const MOST: u64 = 64 * 1024 * 1024;

/// One request.
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// Reads a request; `None` when the other side says nothing or something else.
pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Asked>> {
    let mut reader = BufReader::new(stream).take(MOST);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let (method, path) = (method.to_owned(), path.to_owned());
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        match line.split_once(':').map(|(name, value)| (name, value.trim())) {
            Some(("content-length", value)) => length = value.parse().unwrap_or(0),
            Some(("transfer-encoding", value)) => is_chunked = value.ends_with("chunked"),
            Some(("expect", "100-continue")) => (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            _ => {}
        }
    }
    let mut body = Vec::new();
    if is_chunked {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size =
                u64::from_str_radix(line.trim().split(';').next().unwrap_or_default(), 16).unwrap_or(0);
            if size == 0 {
                break;
            }
            (&mut reader).take(size).read_to_end(&mut body)?;
            reader.read_line(&mut line)?;
        }
    } else {
        (&mut reader).take(length).read_to_end(&mut body)?;
    }
    Ok(Some(Asked { method, path, body }))
}

/// Answers, and ends the connection.
pub(super) fn write(mut stream: &TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}
