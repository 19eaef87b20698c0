//! A timer that costs nothing while it runs.
//!
//! While a timer of the runtime is armed, each of its waits for something to do is bounded: the kernel arms and disarms a
//! timer of its own for every one of them, several times a call. A timer that is a file of its own is armed once.

use std::{io, time::Duration};

/// A timer of the kernel. It runs through suspend, as the clock of deadlines does.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Alarm(tokio::net::unix::pipe::Receiver);

#[cfg(target_os = "linux")]
impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        // It is read like a pipe, and becomes readable like one.
        tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(timer).map(Self)
    }

    /// Completes after this time.
    pub(crate) async fn after(&mut self, wait: Duration) {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        // Nothing at all would disarm it.
        let wait = wait.max(Duration::from_micros(1));
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let time = Itimerspec { it_interval: once, it_value: value };
        // What has run out before is forgotten with that.
        let set = timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &time);
        if let Err(error) = set {
            tracing::warn!(%error, "a timer could not be set; another one takes its place");
            return tokio::time::sleep(wait).await;
        }
        loop {
            if let Err(error) = self.0.readable().await {
                tracing::warn!(%error, "a timer cannot be waited for; another one takes its place");
                return tokio::time::sleep(wait).await;
            }
            // How often it has run out.
            let read = self.0.try_read(&mut [0; 8]);
            if !read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                return;
            }
        }
    }
}

/// A timer of the runtime.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) struct Alarm;

#[cfg(not(target_os = "linux"))]
impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Completes after this time.
    pub(crate) async fn after(&mut self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::now::now;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_alarm_that_cannot_be_set_goes_off_all_the_same() {
        // A pipe is read like a timer, and is none.
        let (_sender, pipe) = tokio::net::unix::pipe::pipe().unwrap();
        let set = now().boot;
        Alarm(pipe).after(Duration::from_millis(20)).await;
        let took = set.until(now().boot);
        assert!((Duration::from_millis(20)..Duration::from_secs(300)).contains(&took), "{took:?}");
    }

    #[tokio::test]
    async fn an_alarm_goes_off_when_it_was_set_for_last() {
        let mut alarm = Alarm::new().unwrap();
        let set = now().boot;
        tokio::select! {
            biased;
            () = alarm.after(Duration::from_secs(600)) => panic!("too soon"),
            () = std::future::ready(()) => {}
        }
        alarm.after(Duration::from_millis(20)).await;
        alarm.after(Duration::ZERO).await;
        let took = set.until(now().boot);
        assert!((Duration::from_millis(20)..Duration::from_secs(300)).contains(&took), "{took:?}");
    }
}
