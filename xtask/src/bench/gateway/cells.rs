//! What a system did in each cell of a table, and how the systems compare.

use crate::bench::samples::Samples;

/// Per cell and repetition: the median latency, and calls a second.
pub(super) struct Cells<const N: usize> {
    latency: [Samples; N],
    rate: [Vec<f64>; N],
}

impl<const N: usize> Default for Cells<N> {
    fn default() -> Self {
        Self {
            latency: std::array::from_fn(|_| Samples::default()),
            rate: std::array::from_fn(|_| Vec::new()),
        }
    }
}

impl<const N: usize> Cells<N> {
    /// Adds what one repetition of a cell came to: the median latency in nanoseconds, and calls a second.
    pub(super) fn push(&mut self, cell: usize, (latency, rate): (u64, f64)) {
        self.latency[cell].push(latency);
        self.rate[cell].push(rate);
    }

    /// A cell of the three systems, beside the first: latencies where one call was open at a time, otherwise calls a second.
    pub(super) fn compared(all: [&Self; 3], cell: usize, at_a_time: usize) -> [String; 3] {
        let latency = all.map(|cells| cells.latency[cell].quantile(0.5));
        let rate = all.map(|cells| median(&cells.rate[cell]));
        [0, 1, 2].map(|system| {
            if at_a_time == 1 {
                format!("{:.1} µs ({:.2}x)", latency[system], latency[system] / latency[0])
            } else {
                format!("{:.0}/s ({:.0} %)", rate[system], 100.0 * rate[system] / rate[0])
            }
        })
    }
}

fn median(rates: &[f64]) -> f64 {
    let mut rates = rates.to_vec();
    rates.sort_unstable_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_compared_with_the_first() {
        let of = |outcomes: [(u64, f64); 3]| {
            let mut cells = Cells::<1>::default();
            for outcome in outcomes {
                cells.push(0, outcome);
            }
            cells
        };
        let [direct, between] = [
            of([(1_000, 10.0), (9_000, 90.0), (2_000, 20.0)]),
            of([(3_000, 15.0), (3_000, 1.0), (8_000, 40.0)]),
        ];
        let compared = |at_a_time| Cells::compared([&direct, &between, &direct], 0, at_a_time);
        assert_eq!(compared(1), ["2.0 µs (1.00x)", "3.0 µs (1.50x)", "2.0 µs (1.00x)"]);
        assert_eq!(compared(16), ["20/s (100 %)", "15/s (75 %)", "20/s (100 %)"]);
    }
}
