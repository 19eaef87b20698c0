//! The two clocks of the product: one for deadlines, one for people.
//!
//! Deadlines are measured on `CLOCK_BOOTTIME`: it runs through suspend and never steps, so a laptop that slept for
//! two hours finds its 55 minute deadline passed, and setting the time neither expires nor revives an ask
//! (quality.md, "Reliability"). Wall-clock times are shown, stored and sent, and never compared with a deadline.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// How long a sleeping task trusts its timer before it looks at the boot clock again.
///
/// Timers of the runtime stand still during suspend, the boot clock does not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// A boxed future of [`Clock::sleep_until`].
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A clock that can be shared between tasks.
pub type SharedClock = Arc<dyn Clock>;

/// Where a shell gets the time from.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Milliseconds of `CLOCK_BOOTTIME`. Only differences mean anything.
    fn boot_millis(&self) -> u64;

    /// The wall clock.
    fn wall(&self) -> Timestamp;

    /// The wall clock, in milliseconds since 1970.
    fn wall_millis(&self) -> u64 {
        u64::try_from(self.wall().as_millisecond()).unwrap_or(0)
    }

    /// Completes once [`boot_millis`](Clock::boot_millis) is at or past `millis`, at most five seconds late after
    /// the machine woke up.
    fn sleep_until(&self, millis: u64) -> Sleep;
}

/// The machine's clocks.
///
/// Off Linux the boot clock is `CLOCK_MONOTONIC`, which stands still while the machine sleeps on some systems.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The machine's clocks, ready to be shared.
    pub fn shared() -> SharedClock {
        Arc::new(Self)
    }
}

impl Clock for SystemClock {
    fn boot_millis(&self) -> u64 {
        #[cfg(target_os = "linux")]
        let id = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let id = rustix::time::ClockId::Monotonic;
        millis(rustix::time::clock_gettime(id))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Read by itself, without a calendar: a gateway asks for every frame.
    fn wall_millis(&self) -> u64 {
        millis(rustix::time::clock_gettime(rustix::time::ClockId::Realtime))
    }

    fn sleep_until(&self, millis: u64) -> Sleep {
        let clock = *self;
        Box::pin(async move {
            loop {
                let left = millis.saturating_sub(clock.boot_millis());
                if left == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left).min(LOOK_AGAIN)).await;
            }
        })
    }
}

/// Whole milliseconds of a clock's reading; 0 of one before its beginning.
fn millis(reading: rustix::time::Timespec) -> u64 {
    let seconds = u64::try_from(reading.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(reading.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000)
}

/// A clock that stands still until a test moves it.
///
/// Clones share the time. It starts at one hour after boot, on 2026-01-01T00:00:00Z.
///
/// ```
/// use std::time::Duration;
///
/// use handraise_transport::clock::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let before = clock.boot_millis();
/// clock.advance(Duration::from_secs(55 * 60));
/// assert_eq!(clock.boot_millis() - before, 55 * 60 * 1000);
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    wall: Arc<Mutex<Timestamp>>,
    boot: Arc<watch::Sender<u64>>,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualClock {
    /// A clock at its start.
    pub fn new() -> Self {
        let start = Timestamp::constant(1_767_225_600, 0);
        Self { wall: Arc::new(Mutex::new(start)), boot: Arc::new(watch::Sender::new(3_600_000)) }
    }

    /// Lets time pass on both clocks, and completes the sleeps that are due.
    pub fn advance(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.step_wall(SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX)));
        self.boot.send_modify(|boot| *boot = boot.saturating_add(millis));
    }

    /// Sets the wall clock forward or back, as an administrator or NTP does. Deadlines must not notice.
    pub fn step_wall(&self, by: SignedDuration) {
        let mut wall = self.lock_wall();
        *wall = wall.saturating_add(by).unwrap_or(*wall);
    }

    fn lock_wall(&self) -> MutexGuard<'_, Timestamp> {
        self.wall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn boot_millis(&self) -> u64 {
        *self.boot.borrow()
    }

    fn wall(&self) -> Timestamp {
        *self.lock_wall()
    }

    fn sleep_until(&self, millis: u64) -> Sleep {
        let mut boot = self.boot.subscribe();
        let keep_alive = Arc::clone(&self.boot);
        Box::pin(async move {
            // The sender lives in this future, so that waiting cannot fail.
            let _ = boot.wait_for(|now| *now >= millis).await;
            drop(keep_alive);
        })
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll(sleep: &mut Sleep) -> Poll<()> {
        sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_boot_clock_agrees_with_the_kernels_uptime() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: f64 = uptime.split_whitespace().next().unwrap().parse().unwrap();
        let ours = Duration::from_millis(SystemClock.boot_millis()).as_secs_f64();
        assert!((ours - seconds).abs() < 5.0, "uptime {seconds}, boot clock {ours}");
    }

    #[test]
    fn the_wall_clock_is_one_clock_in_milliseconds_and_as_a_date() {
        let before = SystemClock.wall().as_millisecond();
        let millis = i64::try_from(SystemClock.wall_millis()).unwrap();
        assert!((before..before + 60_000).contains(&millis), "{before}, {millis}");
    }

    #[tokio::test]
    async fn a_sleep_ends_when_the_clock_says_so() {
        let clock = ManualClock::new();
        let mut sleep = clock.sleep_until(clock.boot_millis() + 1000);
        assert_eq!(poll(&mut sleep), Poll::Pending);
        clock.advance(Duration::from_millis(999));
        assert_eq!(poll(&mut sleep), Poll::Pending);
        let sleeper = tokio::spawn(sleep);
        clock.advance(Duration::from_millis(1));
        sleeper.await.unwrap();
    }

    #[tokio::test]
    async fn a_step_of_the_wall_clock_ends_no_sleep() {
        let clock = ManualClock::new();
        let (boot, wall) = (clock.boot_millis(), clock.wall());
        let mut sleep = clock.sleep_until(boot + 1000);
        clock.step_wall(SignedDuration::from_hours(1));
        assert_eq!(poll(&mut sleep), Poll::Pending);
        assert_eq!(clock.boot_millis(), boot);
        assert_eq!(clock.wall(), wall + SignedDuration::from_hours(1));
    }

    #[tokio::test]
    async fn a_system_sleep_ends_at_its_time() {
        let until = SystemClock.boot_millis() + 20;
        SystemClock.sleep_until(until).await;
        assert!(SystemClock.boot_millis() >= until);
    }
}
