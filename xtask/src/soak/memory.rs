//! How much memory long-lived processes hold, and whether that is flat.
//!
//! Flat is measured by what was asked meanwhile: whoever keeps anything of an ask that has ended keeps its id at least,
//! which takes a hundred bytes with its place in a map. What is kept on purpose and up to a bound is made small enough to be
//! full before the judgement begins, or is allowed for by name.

use std::fmt::Write as _;

/// What `up` may keep of each ask, in bytes: less than a map needs for its id.
pub(super) const UP_KEEPS: f64 = 96.0;
/// What a holder keeps of each of its last 10,000 ended asks, so that it can repeat its verdict
/// (crates/handraise-core/src/holder/ledger.rs): its entry, its answerer, and their places.
pub(super) const HOLDER_KEEPS: f64 = 1_024.0;
/// What an allocator moves by itself, in KiB: its heap ends where the last piece lies.
const MOVES: f64 = 512.0;
/// The share of a series that is left out as warm-up.
const WARM_UP: f64 = 0.25;
/// How many samples a judgement needs.
const ENOUGH: usize = 20;

/// The memory of one process over time.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    /// Seconds since the run's start, KiB, and how many asks it had had by then.
    samples: Vec<(f64, f64, usize)>,
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
    /// Asks in the window.
    pub(super) asks: usize,
}

impl Series {
    pub(super) fn push(&mut self, seconds: f64, kib: f64, asks: usize) {
        self.samples.push((seconds, kib, asks));
    }

    /// The trend after the warm-up; `None` when there is too little to say.
    pub(super) fn trend(&self) -> Option<Trend> {
        let (start, end) = (self.samples.first()?.0, self.samples.last()?.0);
        let from = start + (end - start) * WARM_UP;
        let window: Vec<(f64, f64, usize)> =
            self.samples.iter().copied().filter(|(at, ..)| *at >= from).collect();
        if window.len() < ENOUGH {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "as many samples as seconds")]
        let count = window.len() as f64;
        let mean_at = window.iter().map(|(at, ..)| at).sum::<f64>() / count;
        let mean = window.iter().map(|(_, kib, _)| kib).sum::<f64>() / count;
        let over: f64 = window.iter().map(|(at, kib, _)| (at - mean_at) * (kib - mean)).sum();
        let under: f64 = window.iter().map(|(at, ..)| (at - mean_at).powi(2)).sum();
        let (first, last) = (window.first()?, window.last()?);
        Some(Trend {
            first: first.1,
            last: last.1,
            most: self.samples.iter().map(|(_, kib, _)| *kib).fold(0.0, f64::max),
            slope: if under > 0.0 { over / under * 60.0 } else { 0.0 },
            window: (end - from) / 60.0,
            asks: last.2.saturating_sub(first.2),
        })
    }

    /// Its samples, one a line.
    pub(super) fn text(&self) -> String {
        self.samples.iter().fold(String::new(), |mut text, (at, kib, asks)| {
            let _ = writeln!(text, "{at:.1} {kib:.0} {asks}");
            text
        })
    }
}

impl Trend {
    /// What it grew by in the window, in KiB.
    pub(super) fn growth(&self) -> f64 {
        self.slope * self.window
    }

    /// What it grew by for each ask of the window, in bytes.
    pub(super) fn an_ask(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "asks of one run")]
        let asks = self.asks.max(1) as f64;
        self.growth() * 1024.0 / asks
    }

    /// Why it is not flat, when it may keep so many bytes of each ask.
    pub(super) fn violation(&self, name: &str, keeps: f64) -> Option<String> {
        #[expect(clippy::cast_precision_loss, reason = "asks of one run")]
        let flat = MOVES + self.asks as f64 * keeps / 1024.0;
        (self.growth() > flat).then(|| {
            format!(
                "{name} grew by {:.0} KiB in {:.1} minutes, {:.0} bytes for each of {} asks; flat is below {flat:.0} KiB",
                self.growth(),
                self.window,
                self.an_ask(),
                self.asks
            )
        })
    }
}

/// What a process has written in memory of its own, in KiB: not what it maps of files, such as the program itself, which
/// comes in as it is used. `None` when it has gone.
pub(super) fn own(id: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten minutes, a sample a second and ten asks: 40 MiB, noise of half a mebibyte, and a leak of so many bytes an ask.
    fn series(leak: f64) -> Series {
        let mut series = Series::default();
        for second in 0..600_u32 {
            let noise = f64::from(second * 7919 % 13) * 40.0;
            let kib = 40_960.0 + noise + leak * 10.0 / 1024.0 * f64::from(second);
            series.push(f64::from(second), kib, usize::try_from(second).unwrap() * 10);
        }
        series
    }

    #[test]
    fn a_leak_of_a_small_string_an_ask_is_found_and_noise_is_none() {
        assert_eq!(series(0.0).trend().unwrap().violation("up", UP_KEEPS), None);
        let trend = series(256.0).trend().unwrap();
        assert!((trend.an_ask() - 256.0).abs() < 10.0, "{trend:?}");
        assert!(trend.violation("up", UP_KEEPS).unwrap().starts_with("up grew by "), "{trend:?}");
        // What a holder keeps on purpose is none.
        assert_eq!(trend.violation("elder", HOLDER_KEEPS), None);
    }

    #[test]
    fn what_is_only_reached_in_the_beginning_is_no_leak() {
        let mut series = Series::default();
        for second in 0..600_u32 {
            series.push(f64::from(second), 20_000.0 + f64::from(second.min(100)) * 300.0, 0);
        }
        assert_eq!(series.trend().unwrap().violation("up", UP_KEEPS), None);
    }

    #[test]
    fn a_few_samples_say_nothing() {
        let mut series = Series::default();
        (0..10_u32).for_each(|second| series.push(f64::from(second), 1.0, 0));
        assert_eq!(series.trend(), None);
    }
}
