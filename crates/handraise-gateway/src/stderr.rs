//! The server's stderr, on a thread of its own once it says something.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    os::fd::AsFd as _,
    sync::mpsc::{Sender, channel},
    thread,
    time::Duration,
};

use handraise_transport::complaints::{Complaints, LONGEST};

use crate::{run::Gateway, waiter::Who};

/// How long the server's last words may take to reach the log.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Gateway {
    /// From now on a thread reads the server's stderr: the log may have to be waited for.
    pub(crate) fn log_complaints(&mut self) {
        let Some(complaints) = self.complaints.take() else { return };
        self.waiter.leave(Who::Complaints, complaints.as_fd());
        let (said_all_sender, said_all) = channel();
        let thread = thread::Builder::new().name("log".to_owned());
        match thread.spawn(move || log(complaints, said_all_sender)) {
            Ok(_) => self.said_all = Some(said_all),
            Err(error) => tracing::error!("nobody logs what the MCP server complains about: {error}"),
        }
    }

    /// What the server complained about stands in the log after this.
    pub(crate) fn log_last_words(&mut self) {
        self.log_complaints();
        let _ = self.said_all.as_ref().map(|said_all| said_all.recv_timeout(LAST_WORDS));
    }
}

/// Logs each line until the end. `_ended` is dropped then.
fn log(stderr: File, _ended: Sender<()>) {
    let mut reader = BufReader::new(stderr);
    let mut complaints = Complaints::default();
    let mut line = Vec::new();
    while let Ok(1..) = (&mut reader).take(LONGEST).read_until(b'\n', &mut line) {
        complaints.log(&line);
        line.clear();
    }
}
