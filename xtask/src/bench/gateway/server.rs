//! The server of the measurement: as little work as an honest answer takes.

use std::io::{self, BufRead as _, BufReader, Write as _};

/// How large a big result's text is.
pub(super) const BIG: usize = 1 << 20;

/// Answers until its input ends. It reads only what [`load`](super::load) writes.
pub(super) fn run() -> anyhow::Result<()> {
    let mut input = BufReader::with_capacity(256 * 1024, io::stdin().lock());
    let mut output = io::BufWriter::with_capacity(256 * 1024, io::stdout().lock());
    let big = "abcdefghijklmnop".repeat(BIG / 16);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        answer(&line, &big, &mut output)?;
        line.clear();
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}

fn answer(line: &[u8], big: &str, output: &mut impl io::Write) -> io::Result<()> {
    let after = |what: &[u8]| {
        line.windows(what.len()).position(|window| window == what).map(|at| &line[at + what.len()..])
    };
    let Some(id) = after(b"\"id\":") else { return Ok(()) };
    let id = &id[..id.iter().take_while(|byte| byte.is_ascii_digit()).count()];
    output.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
    output.write_all(id)?;
    match after(b"\"text\":").and_then(|text| text.strip_suffix(b"}}}\n")) {
        Some(text) => {
            output.write_all(b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":")?;
            output.write_all(text)?;
        }
        None if after(b"\"big\"").is_some() => {
            output.write_all(b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"")?;
            output.write_all(big.as_bytes())?;
            output.write_all(b"\"")?;
        }
        None => {
            return output.write_all(
                b",\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n",
            );
        }
    }
    output.write_all(b"}]}}\n")
}
