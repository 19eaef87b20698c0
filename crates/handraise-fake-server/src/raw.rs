//! The server that answers with the bytes of a file, whatever it is asked.

use std::{
    io::{self, BufRead as _, BufReader, Read, Write},
    path::Path,
};

use crate::{args::Options, wire::Wire, witness::Witness};

pub(crate) fn run(
    options: &Options,
    answer: &Path,
    input: impl Read,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let answer = std::fs::read(answer)?;
    let record = Witness::open(options.record.as_deref())?;
    let wire = Wire::new(output, options);
    let mut input = BufReader::new(input);
    let mut lines = 0_usize;
    let is_end = |byte: &u8| *byte == b'\n';
    let mut line = Vec::new();
    if options.after == 0 {
        wire.raw(&answer)?;
    }
    while input.read_until(b'\n', &mut line)? > 0 {
        record.bytes(&line)?;
        line.clear();
        lines += 1;
        if options.each {
            let next = lines.checked_sub(options.after).and_then(|at| answer.split_inclusive(is_end).nth(at));
            wire.raw(next.unwrap_or_default())?;
        } else if lines == options.after {
            wire.raw(&answer)?;
        }
    }
    Ok(())
}
