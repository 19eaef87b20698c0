//! The supervisor as a program of its own, and a parent that starts it, for the tests.
//!
//! - `… supervise --parent PID -- CMD…` is the supervisor;
//! - `… parent SCRIPT` adopts orphans, starts `sh -c SCRIPT` under a supervisor, says `supervisor PID` and waits;
//! - `… parent SCRIPT OTHER` does the same, but looks at nothing until it is sent a line, then starts `sh -c OTHER` under a
//!   supervisor too, and only then waits for the first.

use std::{ffi::OsString, process::ExitCode};

use handraise_transport::{
    spawn::{Spawn, Supervisor, become_subreaper, spawn},
    supervise,
};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == "supervise" => supervise::run(args),
        Some(word) if word == "parent" => parent(args.next().unwrap_or_default(), args.next()),
        _ => ExitCode::FAILURE,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn parent(script: OsString, other: Option<OsString>) -> ExitCode {
    let start = |script: OsString| {
        let order = Spawn {
            program: "sh".into(),
            args: vec!["-c".into(), script],
            cwd: None,
            environment: std::env::vars_os().collect(),
        };
        spawn(&order, &Supervisor::this_binary())
    };
    let started = become_subreaper().and_then(|()| start(script));
    let Ok(mut child) = started else {
        return ExitCode::FAILURE;
    };
    let said = format!("supervisor {}\n", child.supervisor_id().unwrap_or_default());
    let mut out = tokio::io::stdout();
    let _ = tokio::io::AsyncWriteExt::write_all(&mut out, said.as_bytes()).await;
    let _ = tokio::io::AsyncWriteExt::flush(&mut out).await;
    let _other = other.map(|other| {
        // On the runtime's only thread, so that nobody hears of any child's end meanwhile.
        let _ = std::io::stdin().read_line(&mut String::new());
        start(other)
    });
    let _ = child.wait().await;
    let _ = tokio::io::AsyncWriteExt::write_all(&mut out, b"waited\n").await;
    let _ = tokio::io::AsyncWriteExt::flush(&mut out).await;
    // Stays, so that what is left below it is seen.
    std::future::pending().await
}
