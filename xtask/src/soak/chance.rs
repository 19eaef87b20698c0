//! Choices that a seed repeats. Each part of a run has choices of its own, so that threads do not disturb each other's.

/// A sequence of choices (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Chance(u64);

impl Chance {
    /// The sequence of this part of a run.
    pub(super) fn new(seed: u64, part: u64) -> Self {
        let mut chance = Self(seed ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Several in another order.
    pub(super) fn shuffled<T: Copy>(&mut self, several: &[T]) -> Vec<T> {
        let mut keyed: Vec<(u64, T)> = several.iter().map(|one| (self.next(), *one)).collect();
        keyed.sort_by_key(|(key, _)| *key);
        keyed.into_iter().map(|(_, one)| one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_choices_and_parts_differ() {
        let choices = |seed, part| {
            let mut chance = Chance::new(seed, part);
            (0..20).map(|_| chance.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(choices(1, 2), choices(1, 2));
        assert_ne!(choices(1, 2), choices(1, 3));
        assert_ne!(choices(1, 2), choices(2, 2));
        assert!(choices(1, 2).iter().all(|choice| *choice < 1000));
    }

    #[test]
    fn what_is_shuffled_is_all_there() {
        let mut shuffled = Chance::new(1, 2).shuffled(&[1, 2, 3, 4, 5]);
        assert_ne!(shuffled, Chance::new(2, 2).shuffled(&[1, 2, 3, 4, 5]));
        shuffled.sort_unstable();
        assert_eq!(shuffled, [1, 2, 3, 4, 5]);
    }
}
