//! Whose turn it is: when a side is looked at that nobody has said is ready.

/// How many looks follow each other before everybody is asked again: signals, complaints and ends have to be seen.
pub(crate) const MOST_TURNS: usize = 32;
/// How many looks are left out after one that found nothing.
const PAUSE: u8 = 31;

/// One side of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Whether looks at a side find something. That goes by how the system runs its processes: an answer is there at once where
/// whoever is written to runs before us on the same processor, and hardly ever where everybody has one.
#[derive(Debug)]
pub(crate) struct Luck {
    /// A read of the side never waits. Of another one, nothing is expected.
    never_waits: bool,
    /// How many looks are still left out.
    pause: u8,
}

impl Luck {
    pub(crate) fn new(never_waits: bool) -> Self {
        Self { never_waits, pause: 0 }
    }

    /// Whether a look may be worth it.
    pub(crate) fn is_expected(&mut self) -> bool {
        let is_expected = self.pause == 0 && self.never_waits;
        self.pause = self.pause.saturating_sub(1);
        is_expected
    }

    /// Notes what a look has found.
    pub(crate) fn note(&mut self, has_come: bool) {
        self.pause = if has_come { 0 } else { PAUSE };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_go_on_while_they_find_something_and_are_tried_again_after_a_while() {
        let mut luck = Luck::new(true);
        for _ in 0..100 {
            assert!(luck.is_expected());
            luck.note(true);
        }
        luck.note(false);
        assert_eq!((0..100).position(|_| luck.is_expected()), Some(usize::from(PAUSE)));
        assert!(!Luck::new(false).is_expected(), "it would wait");
    }
}
