//! Pages of lists, beside few and beside many settled asks.

use std::path::Path;

use super::{
    super::samples::Samples,
    cycles,
    up::{Up, token},
};
use crate::{
    clock,
    commands::Run,
    http::Connection,
    project::{Project, say},
};

/// Settled asks that stand for few.
const FEW: usize = 1_000;
/// How often each page is read.
const READS: usize = 200;

/// Reads pages of settled asks beside few of them and beside many.
pub(super) fn measure(project: &Project, binary: &Path, folder: &Path, many: usize) -> anyhow::Result<()> {
    let up = Up::start(binary, folder)?;
    let token = token(binary, folder, "operator")?;
    cycles::live(&up, binary, folder, FEW)?;
    let beside_few =
        time(&mut Connection::open(&up.url, &token)?, "settled", &format!("beside {FEW} settled"))?;
    drop(up);
    let data = folder.join("data");
    let data = data.to_string_lossy();
    let count = many.to_string();
    let seed =
        ["run", "--quiet", "--release", "-p", "handraise-store", "--example", "seed", "--", &data, &count];
    Run::cargo(project, &seed).succeed()?;
    let up = Up::start(binary, folder)?;
    let beside_many =
        time(&mut Connection::open(&up.url, &token)?, "settled", &format!("beside {many} more settled"))?;
    say(&format!("ratio of a page of 500: {:.2}", beside_many / beside_few.max(0.001)));
    Ok(())
}

/// Reads first pages of that state and says how long they take. Returns the median of a large one, in microseconds.
pub(super) fn time(connection: &mut Connection, state: &str, beside: &str) -> anyhow::Result<f64> {
    let mut median = 0.0;
    for limit in [50, 500] {
        let mut samples = Samples::default();
        let mut bytes = 0;
        for _ in 0..READS {
            let start = clock::now();
            connection.send("GET", &format!("/api/v1/asks?state={state}&limit={limit}"), "")?;
            bytes = connection.receive_text()?.1.len();
            samples.push(clock::since(start));
        }
        median = samples.quantile(0.5);
        say(&format!(
            "page of {limit} {state} asks {beside}: p50 {:.1} ms, p99 {:.1} ms, {} KiB",
            median / 1000.0,
            samples.quantile(0.99) / 1000.0,
            bytes / 1024
        ));
    }
    Ok(median)
}
