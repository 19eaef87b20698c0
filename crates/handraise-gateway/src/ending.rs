//! When a gateway ends: one decision, made anew whenever something has changed.

use std::time::Duration;

use handraise_core::Moment;

/// How long a server may take to end once its stdin is closed and no call is open.
pub(crate) const LEAVE: Duration = Duration::from_secs(2);
/// How long calls that are open when the client ends may take. A pipe into a server that has to be installed first
/// still gets its answers.
pub(crate) const LAST_CALLS: Duration = Duration::from_secs(60);
/// How long a server that has closed its stdout may go on running.
pub(crate) const SILENT: Duration = Duration::from_secs(1);
/// How long a server that takes nothing more may go on before its open calls get their errors: one that ends is better
/// known by its exit status.
pub(crate) const DEAF: Duration = Duration::from_millis(400);
/// How long a server may go on once its client reads nothing more: with the supervisor's grace less than two seconds.
pub(crate) const GONE: Duration = Duration::from_millis(500);
/// How long what is written to the client at the end may take.
pub(crate) const FLUSH: Duration = Duration::from_secs(5);
/// How long everything may take once a signal has asked for the end, and the server's end once it is asked for: the
/// supervisor's grace and a moment.
pub(crate) const AFTER_SIGNAL: Duration = Duration::from_millis(1800);

/// How far each direction has come.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    /// The client sends nothing more, and all that it sent is with the server.
    pub(crate) client_ended: bool,
    /// The client reads nothing more.
    pub(crate) client_gone: bool,
    /// The server says nothing more, and all that it said is with the client.
    pub(crate) upstream_ended: bool,
    /// The server takes nothing more: what was sent to it last is lost.
    pub(crate) upstream_deaf: bool,
    /// The client sends nothing more, and something that it sent waits for the server: how many bytes that has taken.
    pub(crate) last_frames_wait: Option<u64>,
    /// The client sends nothing more, and something waits for it to read on: how many bytes it has taken.
    pub(crate) last_words_wait: Option<u64>,
}

/// What the decision is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    pub(crate) progress: Progress,
    /// The server's process, and its supervisor, have ended.
    pub(crate) has_exited: bool,
    /// Everything for the client has been written.
    pub(crate) is_drained: bool,
    pub(crate) open_requests: usize,
    /// A signal has asked for the end.
    pub(crate) asked_to_end: bool,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing; to be asked again when something changes, or then.
    Wait(Option<Moment>),
    /// Ask the supervisor for the end, once.
    Terminate,
    /// Tell the client how its open calls end, once; nothing more will come from the server.
    Report,
    /// It is over.
    Exit,
}

/// How far the end has come.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// Until when the supervisor, which was asked for the end, may take for it.
    terminated: Option<Moment>,
    reported: bool,
    /// Since when what it waits for now is waited for.
    since: Option<(Phase, Moment)>,
    signalled: Option<Moment>,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The last answers to a client that has ended.
    LastCalls,
    /// A server that takes more of what such a client has sent than so many bytes.
    LastFrames(u64),
    /// Such a client that takes more than so many bytes, once the server has ended.
    LastWords(u64),
    /// The server's end, after its client is gone.
    Gone,
    /// The server's end, after its stdin was closed.
    Leave,
    /// The server's end, after it closed its stdout.
    Silent,
    /// The server's end, after it closed its stdin.
    Deaf,
    /// The end of its stdout, after the server has ended.
    Stdout,
    /// What is written to the client.
    Flush,
}

impl Ending {
    /// What to do now.
    pub(crate) fn next(&mut self, now: Moment, situation: &Situation) -> Step {
        if situation.asked_to_end && self.signalled.is_none() {
            self.signalled = Some(now);
        }
        let hard_end = self.signalled.map(|since| since + AFTER_SIGNAL);
        if hard_end.is_some_and(|end| now >= end) {
            return Step::Exit;
        }
        match self.judge(now, situation) {
            Step::Wait(until) => Step::Wait([until, hard_end].into_iter().flatten().min()),
            step => step,
        }
    }

    fn judge(&mut self, now: Moment, situation: &Situation) -> Step {
        if self.reported {
            return self.after_report(now, situation);
        }
        if situation.has_exited {
            return self.after_exit(now, situation);
        }
        if let Some(until) = self.terminated {
            return if now < until { Step::Wait(Some(until)) } else { self.report() };
        }
        if situation.asked_to_end {
            return self.terminate(now);
        }
        let Progress { client_ended, client_gone, upstream_ended, upstream_deaf, last_frames_wait, .. } =
            situation.progress;
        let deadline = if client_gone {
            self.wait(Phase::Gone, GONE, now)
        } else if upstream_deaf {
            return match self.wait(Phase::Deaf, DEAF, now) {
                None => self.report(),
                until => Step::Wait(until),
            };
        } else if upstream_ended {
            self.wait(Phase::Silent, SILENT, now)
        } else if client_ended && situation.open_requests > 0 {
            self.wait(Phase::LastCalls, LAST_CALLS, now)
        } else if client_ended {
            self.wait(Phase::Leave, LEAVE, now)
        } else if let Some(taken) = last_frames_wait {
            self.wait(Phase::LastFrames(taken), LAST_CALLS, now)
        } else {
            return Step::Wait(None);
        };
        match deadline {
            None => self.terminate(now),
            until => Step::Wait(until),
        }
    }

    /// The server's process has ended, and its last words may still be on their way.
    fn after_exit(&mut self, now: Moment, situation: &Situation) -> Step {
        if situation.progress.upstream_ended || situation.progress.client_gone {
            return self.report();
        }
        // What it said last is still being written.
        let deadline = match situation.progress.last_words_wait {
            Some(taken) => self.wait(Phase::LastWords(taken), LAST_CALLS, now),
            None if !situation.is_drained => return Step::Wait(Some(now + SILENT)),
            None => self.wait(Phase::Stdout, SILENT, now),
        };
        match deadline {
            None => self.report(),
            until => Step::Wait(until),
        }
    }

    /// The client has been told how its calls end.
    fn after_report(&mut self, now: Moment, situation: &Situation) -> Step {
        if !situation.has_exited {
            match self.terminated {
                None => return self.terminate(now),
                Some(until) if now < until => return Step::Wait(Some(until)),
                // It cannot end now. It will see our end.
                Some(_) => {}
            }
        }
        if situation.progress.client_gone || situation.is_drained {
            return Step::Exit;
        }
        match self.wait(Phase::Flush, FLUSH, now) {
            None => Step::Exit,
            until => Step::Wait(until),
        }
    }

    fn terminate(&mut self, now: Moment) -> Step {
        self.terminated = Some(now + AFTER_SIGNAL);
        Step::Terminate
    }

    fn report(&mut self) -> Step {
        self.reported = true;
        Step::Report
    }

    /// Until when a phase lasts; `None` when that has passed.
    fn wait(&mut self, phase: Phase, span: Duration, now: Moment) -> Option<Moment> {
        let since = match self.since {
            Some((current, since)) if current == phase => since,
            _ => now,
        };
        self.since = Some((phase, since));
        Some(since + span).filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Situation {
        Situation {
            progress: Progress::default(),
            has_exited: false,
            is_drained: true,
            open_requests: 0,
            asked_to_end: false,
        }
    }

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    #[test]
    fn a_server_that_exits_is_reported_once_its_words_are_through() {
        let mut ending = Ending::default();
        assert_eq!(ending.next(at(0), &running()), Step::Wait(None));
        let mut situation = Situation { has_exited: true, ..running() };
        assert_eq!(ending.next(at(0), &situation), Step::Wait(Some(at(1000))));
        situation.is_drained = false;
        assert_eq!(ending.next(at(5000), &situation), Step::Wait(Some(at(6000))));
        situation.progress.upstream_ended = true;
        assert_eq!(ending.next(at(7000), &situation), Step::Report);
        assert_eq!(ending.next(at(7000), &situation), Step::Wait(Some(at(12_000))));
        situation.is_drained = true;
        assert_eq!(ending.next(at(7001), &situation), Step::Exit);
    }

    #[test]
    fn a_client_that_reads_no_more_does_not_keep_us() {
        let mut ending = Ending::default();
        let mut situation = running();
        situation.progress.client_gone = true;
        situation.open_requests = 1;
        assert_eq!(ending.next(at(0), &situation), Step::Wait(Some(at(500))));
        // The server takes what was sent last, and sees its end: that is no reason to wait anew.
        situation.progress.client_ended = true;
        assert_eq!(ending.next(at(499), &situation), Step::Wait(Some(at(500))));
        assert_eq!(ending.next(at(500), &situation), Step::Terminate);
        assert_eq!(ending.next(at(501), &situation), Step::Wait(Some(at(2300))));
        situation.has_exited = true;
        assert_eq!(ending.next(at(502), &situation), Step::Report);
        situation.is_drained = false;
        assert_eq!(ending.next(at(502), &situation), Step::Exit);
    }

    #[test]
    fn a_client_that_neither_sends_nor_reads_does_not_keep_us_once_its_server_has_ended() {
        let mut ending = Ending::default();
        let mut situation = Situation { has_exited: true, is_drained: false, ..running() };
        situation.progress.last_words_wait = Some(1_000);
        assert_eq!(ending.next(at(0), &situation), Step::Wait(Some(at(60_000))));
        // However slowly it reads.
        situation.progress.last_words_wait = Some(1_001);
        assert_eq!(ending.next(at(60_000), &situation), Step::Wait(Some(at(120_000))));
        assert_eq!(ending.next(at(120_000), &situation), Step::Report);
        assert_eq!(ending.next(at(120_000), &situation), Step::Wait(Some(at(125_000))));
        assert_eq!(ending.next(at(125_000), &situation), Step::Exit);
    }

    #[test]
    fn a_server_that_takes_nothing_does_not_keep_a_client_that_sends_no_more() {
        let mut ending = Ending::default();
        let mut situation = running();
        situation.open_requests = 1;
        situation.progress.last_frames_wait = Some(65_536);
        assert_eq!(ending.next(at(0), &situation), Step::Wait(Some(at(60_000))));
        assert_eq!(ending.next(at(59_999), &situation), Step::Wait(Some(at(60_000))));
        // However slowly it takes them.
        situation.progress.last_frames_wait = Some(65_537);
        assert_eq!(ending.next(at(60_000), &situation), Step::Wait(Some(at(120_000))));
        assert_eq!(ending.next(at(120_000), &situation), Step::Terminate);
    }

    #[test]
    fn the_last_calls_of_a_client_that_has_ended_get_a_while_and_the_server_a_moment() {
        let mut ending = Ending::default();
        let mut situation = running();
        situation.progress.client_ended = true;
        situation.open_requests = 1;
        assert_eq!(ending.next(at(0), &situation), Step::Wait(Some(at(60_000))));
        situation.open_requests = 0;
        assert_eq!(ending.next(at(30_000), &situation), Step::Wait(Some(at(32_000))));
        assert_eq!(ending.next(at(31_999), &situation), Step::Wait(Some(at(32_000))));
        assert_eq!(ending.next(at(32_000), &situation), Step::Terminate);
    }

    #[test]
    fn a_call_that_hangs_does_not_keep_a_client_that_has_ended() {
        let mut ending = Ending::default();
        let mut situation = running();
        situation.progress.client_ended = true;
        situation.open_requests = 1;
        ending.next(at(0), &situation);
        assert_eq!(ending.next(at(60_000), &situation), Step::Terminate);
    }

    #[test]
    fn a_signal_ends_everything_in_bounded_time() {
        let mut ending = Ending::default();
        let situation = Situation { asked_to_end: true, is_drained: false, ..running() };
        assert_eq!(ending.next(at(0), &situation), Step::Terminate);
        assert_eq!(ending.next(at(1), &situation), Step::Wait(Some(at(1800))));
        let situation = Situation { has_exited: true, ..situation };
        assert_eq!(ending.next(at(1500), &situation), Step::Wait(Some(at(1800))));
        assert_eq!(ending.next(at(1800), &situation), Step::Exit);
    }

    #[test]
    fn a_server_that_takes_nothing_more_is_answered_for_and_ended() {
        let mut ending = Ending::default();
        let mut situation = running();
        situation.progress.upstream_deaf = true;
        situation.open_requests = 1;
        assert_eq!(ending.next(at(0), &situation), Step::Wait(Some(at(400))));
        assert_eq!(ending.next(at(400), &situation), Step::Report);
        situation.open_requests = 0;
        assert_eq!(ending.next(at(400), &situation), Step::Terminate);
        assert_eq!(ending.next(at(401), &situation), Step::Wait(Some(at(2200))));
        situation.has_exited = true;
        assert_eq!(ending.next(at(1300), &situation), Step::Exit);
    }

    #[test]
    fn a_server_that_closes_its_stdout_has_a_second_to_end() {
        let mut ending = Ending::default();
        let mut situation = running();
        situation.progress.upstream_ended = true;
        assert_eq!(ending.next(at(0), &situation), Step::Wait(Some(at(1000))));
        assert_eq!(ending.next(at(1000), &situation), Step::Terminate);
    }

    #[test]
    fn a_server_that_cannot_be_ended_keeps_nobody() {
        let mut ending = Ending::default();
        let mut situation = running();
        situation.progress.upstream_ended = true;
        situation.open_requests = 1;
        ending.next(at(0), &situation);
        assert_eq!(ending.next(at(1000), &situation), Step::Terminate);
        assert_eq!(ending.next(at(2799), &situation), Step::Wait(Some(at(2800))));
        assert_eq!(ending.next(at(2800), &situation), Step::Report);
        situation.is_drained = false;
        assert_eq!(ending.next(at(2800), &situation), Step::Wait(Some(at(7800))));
        assert_eq!(ending.next(at(7800), &situation), Step::Exit);
    }
}
