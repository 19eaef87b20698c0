//! How much memory long-lived processes hold, and whether that is flat.

use std::fmt::Write as _;

/// A run is flat when memory grows by less than this over the window in which it is judged: what an allocator moves by
/// itself, plus what holders and inboxes keep of ended asks for a while on purpose.
const FLAT_KIB: f64 = 8.0 * 1024.0;
/// What one of the inbox's connections to SQLite caches of the database at most, in KiB
/// (crates/handraise-store/src/sqlite.rs).
const CACHE_KIB: f64 = 8.0 * 1024.0;
/// How many connections it has.
const CONNECTIONS: f64 = 5.0;
/// The share of a series that is left out as warm-up.
const WARM_UP: f64 = 0.25;
/// How many samples a judgement needs.
const ENOUGH: usize = 20;

/// The memory of one process over time.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    /// Seconds since the run's start, and KiB.
    samples: Vec<(f64, f64)>,
}

/// What a series says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    /// KiB in the beginning of the window, in its end, and the most of the whole series.
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) most: f64,
    /// KiB a minute, by least squares.
    pub(super) slope: f64,
    /// Minutes.
    pub(super) window: f64,
}

impl Series {
    pub(super) fn push(&mut self, seconds: f64, kib: f64) {
        self.samples.push((seconds, kib));
    }

    /// The trend after the warm-up; `None` when there is too little to say.
    pub(super) fn trend(&self) -> Option<Trend> {
        let (start, end) = (self.samples.first()?.0, self.samples.last()?.0);
        let from = start + (end - start) * WARM_UP;
        let window: Vec<(f64, f64)> = self.samples.iter().copied().filter(|(at, _)| *at >= from).collect();
        if window.len() < ENOUGH {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "as many samples as seconds")]
        let count = window.len() as f64;
        let mean_at = window.iter().map(|(at, _)| at).sum::<f64>() / count;
        let mean = window.iter().map(|(_, kib)| kib).sum::<f64>() / count;
        let over: f64 = window.iter().map(|(at, kib)| (at - mean_at) * (kib - mean)).sum();
        let under: f64 = window.iter().map(|(at, _)| (at - mean_at).powi(2)).sum();
        Some(Trend {
            first: window.first()?.1,
            last: window.last()?.1,
            most: self.samples.iter().map(|(_, kib)| *kib).fold(0.0, f64::max),
            slope: if under > 0.0 { over / under * 60.0 } else { 0.0 },
            window: (end - from) / 60.0,
        })
    }

    /// Its samples, one a line.
    pub(super) fn text(&self) -> String {
        self.samples.iter().fold(String::new(), |mut text, (at, kib)| {
            let _ = writeln!(text, "{at:.1} {kib:.0}");
            text
        })
    }
}

impl Trend {
    /// What it grew by in the window, in KiB.
    pub(super) fn growth(&self) -> f64 {
        self.slope * self.window
    }

    /// What the caches of a database of this size may still take up in the window, in KiB; nothing once it is larger
    /// than they are.
    pub(super) fn cached(&self) -> f64 {
        (self.last.min(CACHE_KIB) - self.first.min(CACHE_KIB)).max(0.0) * CONNECTIONS
    }

    /// Why it is not flat, with so many KiB of caches that were not full yet.
    pub(super) fn violation(&self, name: &str, cached: f64) -> Option<String> {
        let flat = FLAT_KIB + cached;
        (self.growth() > flat).then(|| {
            format!(
                "{name} grew by {:.0} KiB in {:.1} minutes, {:.0} a minute; flat is below {flat:.0}",
                self.growth(),
                self.window,
                self.slope
            )
        })
    }
}

/// What a process holds, in KiB; `None` when it has gone.
pub(super) fn resident(id: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten minutes, a sample a second: 40 MiB, noise, and a leak of so many KiB a second.
    fn series(leak: f64) -> Series {
        let mut series = Series::default();
        for second in 0..600_u32 {
            let noise = f64::from(second * 7919 % 13) * 40.0;
            series.push(f64::from(second), 40_960.0 + noise + leak * f64::from(second));
        }
        series
    }

    #[test]
    fn a_leak_is_found_and_noise_is_none() {
        assert_eq!(series(0.0).trend().unwrap().violation("up", 0.0), None);
        let trend = series(25.0).trend().unwrap();
        assert!((trend.slope - 1500.0).abs() < 10.0, "{trend:?}");
        assert!(trend.violation("up", 0.0).unwrap().starts_with("up grew by "), "{trend:?}");
    }

    #[test]
    fn what_is_only_reached_in_the_beginning_is_no_leak() {
        let mut series = Series::default();
        for second in 0..600_u32 {
            series.push(f64::from(second), 20_000.0 + f64::from(second.min(100)) * 300.0);
        }
        assert_eq!(series.trend().unwrap().violation("up", 0.0), None);
    }

    #[test]
    fn a_few_samples_say_nothing() {
        let mut series = Series::default();
        (0..10_u32).for_each(|second| series.push(f64::from(second), 1.0));
        assert_eq!(series.trend(), None);
    }

    #[test]
    fn caches_of_a_large_database_are_full() {
        let database = |first, last| Trend { first, last, most: last, slope: 0.0, window: 1.0 };
        assert!((database(1_000.0, 3_000.0).cached() - 10_000.0).abs() < 1.0);
        assert!((database(7_192.0, 90_000.0).cached() - 5_000.0).abs() < 1.0);
        assert!(database(9_000.0, 90_000.0).cached().abs() < 1.0);
        let leak = series(25.0).trend().unwrap();
        assert_eq!(leak.violation("up", 5_000.0), None);
    }
}
