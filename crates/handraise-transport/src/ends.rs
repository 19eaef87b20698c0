//! What is kept of a line that is too long.

/// How many bytes are kept of each end.
pub const KEPT: usize = 4096;

/// Both ends of a line that is too long to be held: enough to see whose it is. What stands between is thrown away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends {
    /// Its first bytes, at most 4 KiB.
    pub head: Vec<u8>,
    /// Its last bytes without the line end, at most 4 KiB. They overlap the head of a line that is not much longer.
    pub tail: Vec<u8>,
}

impl Ends {
    /// The ends of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut ends = Self::default();
        ends.add(bytes);
        ends
    }

    /// Takes what comes next of the line.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = KEPT - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let last = &bytes[bytes.len().saturating_sub(KEPT)..];
        let excess = (self.tail.len() + last.len()).saturating_sub(KEPT);
        self.tail.drain(..excess);
        self.tail.extend_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn s37_the_ends_are_those_of_the_line_however_it_comes(
            sizes in prop::collection::vec(prop_oneof![0_usize..20, 0_usize..6000], 0..12),
        ) {
            let line: Vec<u8> = (0..sizes.iter().sum()).map(|at: usize| at.to_le_bytes()[at % 2]).collect();
            let mut ends = Ends::default();
            let mut rest = &line[..];
            for size in sizes {
                let (piece, after) = rest.split_at(size);
                ends.add(piece);
                rest = after;
            }
            prop_assert_eq!(&ends.head, &line[..line.len().min(KEPT)]);
            prop_assert_eq!(&ends.tail, &line[line.len().saturating_sub(KEPT)..]);
        }
    }
}
