//! The server behind a link: one process under the supervisor (S6, S7, S35), its stdout, its stderr and its end.

use std::{io, os::fd::AsFd, process::ExitStatus, sync::Arc, time::Duration};

use handraise_transport::{
    complaints::{Complaints, LONGEST},
    spawn::{self, Spawn, Supervised},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    net::unix::pipe,
    process::ChildStderr,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{Front, link::Link, stdout::Stdout};

/// How much the pipes to and from a server hold, in bytes.
pub(crate) const PIPE: usize = 256 * 1024;
/// How long memory for large frames is kept while none come.
const KEEP: Duration = Duration::from_secs(1);
/// How long a server may take to end once its stdin is closed.
const LEAVE: Duration = Duration::from_secs(2);
/// How long a server that has closed its stdout may go on running.
const SILENT: Duration = Duration::from_secs(1);
/// How often a reader looks whether there is room again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A process that has been started and is not attended yet.
pub(crate) struct Started {
    stdin: Option<pipe::Sender>,
    stdout: pipe::Receiver,
    stderr: ChildStderr,
    child: Supervised,
}

/// Starts the server.
pub(crate) fn start(front: &Front) -> io::Result<Started> {
    let mut words = front.command.iter().cloned();
    let order = Spawn {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        cwd: None,
        environment: front.environment.clone(),
    };
    let mut child = spawn::spawn(&order, &front.supervisor)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("it has no pipes"));
    };
    let stdin = pipe::Sender::from_owned_fd(widened(stdin.into_owned_fd()?, PIPE))?;
    let stdout = pipe::Receiver::from_owned_fd(widened(stdout.into_owned_fd()?, PIPE))?;
    Ok(Started { stdin: Some(stdin), stdout, stderr, child })
}

impl Started {
    /// The way in, once.
    pub(crate) fn take_stdin(&mut self) -> Option<pipe::Sender> {
        self.stdin.take()
    }
}

/// A pipe that holds more, where the kernel grants it.
pub(crate) fn widened<T: AsFd>(pipe: T, bytes: usize) -> T {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, bytes);
    pipe
}

/// Attends a server until its end. `place` counts it for as long as it lives.
pub(crate) fn attend(link: &Arc<Link>, started: Started, place: impl Send + 'static) {
    let Started { stdout, stderr, child, .. } = started;
    let (tell, told) = oneshot::channel();
    let (front, leave) = (Arc::clone(&link.front), link.leave.clone());
    link.front.tasks.spawn(log(stderr));
    link.front.tasks.spawn(async move {
        let status = wait(child, &leave, &front.shutdown).await;
        drop(place);
        let _ = tell.send(describe(&status));
    });
    let (link, tasks) = (Arc::clone(link), &link.front.tasks);
    let reading = tasks.spawn(read(Arc::clone(&link), stdout, told));
    tasks.spawn(watch(reading, move || {
        link.leave.cancel();
        link.upstream_ended("a fault of the gateway");
    }));
}

/// Waits for the end of what reads a server. One that fails has said nothing: `failed` does, or calls stay open for ever.
async fn watch(reading: JoinHandle<()>, failed: impl FnOnce()) {
    if reading.await.is_err_and(|error| error.is_panic()) {
        tracing::error!("reading a server has failed by a fault of ours; its calls end with an error");
        failed();
    }
}

/// Waits for the end, which comes by itself or is brought about.
async fn wait(
    mut child: Supervised,
    leave: &CancellationToken,
    shutdown: &CancellationToken,
) -> io::Result<ExitStatus> {
    tokio::select! {
        status = child.wait() => return status,
        () = leave.cancelled() => {}
        () = shutdown.cancelled() => return child.stop().await,
    }
    tokio::select! {
        status = child.wait() => return status,
        () = tokio::time::sleep(LEAVE) => {}
        () = shutdown.cancelled() => {}
    }
    child.stop().await
}

/// How a server ended, for clients: the exit status and nothing else (S33).
fn describe(status: &io::Result<ExitStatus>) -> String {
    match status.as_ref().map(ExitStatus::code) {
        Ok(Some(code)) => format!("exit status {code}"),
        Ok(None) => "its supervisor was killed".to_owned(),
        Err(_) => "it is unknown how".to_owned(),
    }
}

/// Reads a server until its end, and then says how it ended.
async fn read(link: Arc<Link>, stdout: pipe::Receiver, mut told: oneshot::Receiver<String>) {
    let mut stdout = Stdout::new(stdout, &link);
    while stdout.read(&link, KEEP).await.is_some() {
        // Those who do not read what is there make their own server wait, and nobody else's.
        while link.budget.is_exhausted() && !link.is_over() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
    stdout.end(&link);
    let how = if let Ok(how) = timeout(SILENT, &mut told).await {
        how
    } else {
        link.leave.cancel();
        told.await
    };
    link.upstream_ended(&how.unwrap_or_else(|_| "it is unknown how".to_owned()));
}

/// Logs each line of stderr until its end.
async fn log(stderr: ChildStderr) {
    let mut reader = BufReader::with_capacity(512, stderr);
    let mut complaints = Complaints::default();
    let mut line = Vec::new();
    while let Ok(1..) = (&mut reader).take(LONGEST).read_until(b'\n', &mut line).await {
        complaints.log(&line);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_fails_while_it_reads_a_server_is_told_and_what_ends_is_not() {
        static TOLD: AtomicUsize = AtomicUsize::new(0);
        let tell = || {
            TOLD.fetch_add(1, Ordering::Relaxed);
        };
        watch(tokio::spawn(async {}), tell).await;
        assert_eq!(TOLD.load(Ordering::Relaxed), 0);
        watch(tokio::spawn(async { panic!("as if there were a fault") }), tell).await;
        assert_eq!(TOLD.load(Ordering::Relaxed), 1);
    }
}
