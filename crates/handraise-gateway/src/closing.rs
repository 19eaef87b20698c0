//! What the decision about the end has to know, and what it brings.

use std::process::ExitStatus;

use crate::{
    ending::{Progress, Situation},
    run::Gateway,
};

/// Exit status when it is not known how the server ended, or when a signal cut its end short.
pub(crate) const UNKNOWN: u8 = 1;

impl Gateway {
    pub(crate) fn situation(&self) -> Situation {
        Situation {
            progress: self.progress,
            has_exited: self.status.is_some(),
            is_drained: self.down.outlet.is_empty(),
            open_requests: self.envelope.open_requests(),
            asked_to_end: self.asked_to_end.is_some(),
        }
    }

    /// Notes whose last words have gone on.
    pub(crate) fn note_ends(&mut self) {
        let waits = !self.up.outlet.is_empty();
        let Progress { client_ended, client_gone, .. } = self.progress;
        // A guarded call needs the server until its confirmation is settled. Each has a time limit of its own.
        let is_needed = self.envelope.guarded_calls() > 0 && !client_gone;
        if self.up.has_ended && !waits && !is_needed && !client_ended {
            self.progress.client_ended = true;
            self.up.outlet.close();
        }
        self.progress.last_frames_wait =
            (waits && self.client_sends_no_more()).then(|| self.up.outlet.taken());
        self.progress.last_words_wait =
            (!self.down.outlet.is_empty() && self.client_sends_no_more()).then(|| self.down.outlet.taken());
        self.progress.upstream_ended = self.down.has_ended && self.down.outlet.is_empty();
    }

    /// The client reads no more: nobody can answer, and nobody hears of an answer.
    pub(crate) fn client_is_gone(&mut self) {
        if !self.progress.client_gone {
            tracing::debug!("the client reads no more");
            self.progress.client_gone = true;
            self.close_client();
        }
    }

    /// A signal asks for the end.
    pub(crate) fn end_in_order(&mut self) {
        tracing::info!("ending in order; another signal after half a second ends at once");
        self.asked_to_end = Some(self.now.boot);
        self.close_client();
    }

    fn close_client(&mut self) {
        self.envelope.client_closed(self.now, &mut self.out);
        self.carry_out();
        self.flush();
    }

    /// Tells the client how its open calls end.
    pub(crate) fn report(&mut self) {
        let how = match &self.status {
            Some(Ok(status)) => describe(*status),
            Some(Err(_)) => "it is unknown how".to_owned(),
            // It lives on, and is of no use.
            None if self.progress.upstream_deaf => "it closed its stdin".to_owned(),
            None => "it was told to end, and does not".to_owned(),
        };
        if self.status.is_some() {
            // What it complained about stands in the log before this.
            self.log_last_words();
        }
        let open = self.envelope.open_requests();
        self.envelope.upstream_ended(&how, self.now, &mut self.out);
        self.carry_out();
        self.flush();
        let Progress { client_ended, client_gone, .. } = self.progress;
        if client_ended || client_gone || self.asked_to_end.is_some() {
            tracing::debug!(open_calls = open, "the MCP server has ended: {how}");
        } else {
            tracing::warn!(open_calls = open, "the MCP server has ended: {how}");
        }
    }

    pub(crate) fn exit_status(&self) -> u8 {
        match &self.status {
            Some(Ok(status)) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(UNKNOWN),
            Some(Err(_)) | None => UNKNOWN,
        }
    }
}

/// How the server ended, for the client: the exit status and nothing else (S33).
fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit status {code}"),
        None => "its supervisor was killed".to_owned(),
    }
}
