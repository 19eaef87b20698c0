//! Samples of a duration and their quantiles.

/// Durations in nanoseconds.
#[derive(Default)]
pub(super) struct Samples(Vec<u64>);

impl Samples {
    /// Adds one.
    pub(super) fn push(&mut self, nanos: u64) {
        self.0.push(nanos);
    }

    /// The value that this share of the samples does not exceed, in microseconds.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "an index of a list that fits into memory, and a share between 0 and 1"
        )]
        let index = (last as f64 * share).round() as usize;
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of less than a month are exact")]
        let nanos = sorted.get(index).copied().unwrap_or(0) as f64;
        nanos / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let mut samples = Samples::default();
        (1..=101).for_each(|n| samples.push(n * 1000));
        assert!((samples.quantile(0.5) - 51.0).abs() < f64::EPSILON);
        assert!((samples.quantile(1.0) - 101.0).abs() < f64::EPSILON);
        assert!(Samples::default().quantile(0.5).abs() < f64::EPSILON);
    }
}
