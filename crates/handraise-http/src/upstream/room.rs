//! How much of what the server sends is held at once, by all links of the process together (S37).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::failure::Failure;
use crate::budget::{Budget, Charge};

/// How long a short answer is. A quarter of the room is for these, so that long ones do not end everybody's.
const SMALL: usize = 64 * 1024;

/// The room for answers.
#[derive(Debug)]
pub(crate) struct Room {
    budget: Arc<Budget>,
    refused: AtomicU64,
}

/// An answer or stream that is being read.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    room: &'a Room,
    charge: Charge,
}

impl Room {
    pub(crate) fn new(limit: usize) -> Self {
        Self { budget: Budget::new(limit), refused: AtomicU64::new(0) }
    }

    /// Bytes that are held.
    pub(crate) fn used(&self) -> usize {
        self.budget.used()
    }

    /// How many answers found no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Begins to read an answer of which nothing is here.
    pub(crate) fn reading(&self) -> Reading<'_> {
        Reading { room: self, charge: self.budget.force(0) }
    }

    /// What has been read, until somebody takes it.
    pub(crate) fn hold(&self, bytes: usize) -> Arc<Charge> {
        Arc::new(self.budget.force(bytes))
    }
}

impl Reading<'_> {
    /// Holds so many bytes from now on.
    ///
    /// # Errors
    /// [`Failure::Full`]: there is no room for them. It is counted.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        let budget = &self.room.budget;
        let others = budget.used().saturating_sub(self.charge.bytes());
        // A long answer that is alone may have all of it.
        let leaves_none = others > SMALL && others + bytes > budget.limit() - budget.limit() / 4;
        let is_too_much = bytes > self.charge.bytes().max(SMALL) && leaves_none;
        if is_too_much || !self.charge.set(bytes) {
            self.room.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Failure::Full(budget.limit()));
        }
        Ok(())
    }

    /// What is held, until somebody takes it.
    pub(crate) fn done(self) -> Arc<Charge> {
        Arc::new(self.charge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 8 * SMALL;

    #[test]
    fn s37_long_answers_leave_room_for_short_ones() {
        let room = Room::new(LIMIT);
        let (mut long, mut next, mut short) = (room.reading(), room.reading(), room.reading());
        long.hold(5 * SMALL).unwrap();
        assert_eq!(next.hold(SMALL + 1), Err(Failure::Full(LIMIT)));
        short.hold(SMALL).unwrap();
        long.hold(2 * SMALL).unwrap();
        next.hold(3 * SMALL).unwrap();
        assert_eq!(long.hold(2 * SMALL + 1), Err(Failure::Full(LIMIT)));
        assert_eq!((room.used(), room.refused()), (6 * SMALL, 2));
    }

    #[test]
    fn s37_a_long_answer_that_is_alone_may_have_all_the_room() {
        let room = Room::new(LIMIT);
        let mut alone = room.reading();
        alone.hold(LIMIT).unwrap();
        assert_eq!(alone.hold(LIMIT + 1), Err(Failure::Full(LIMIT)));
    }

    #[test]
    fn s37_the_room_is_never_exceeded_by_what_is_read_and_is_free_when_it_was_taken() {
        let room = Room::new(LIMIT);
        let held: Vec<_> = (0..20)
            .filter_map(|_| {
                let mut reading = room.reading();
                reading.hold(SMALL).ok().map(|()| reading.done())
            })
            .collect();
        assert_eq!((held.len(), room.used(), room.refused()), (8, LIMIT, 12));
        drop(held);
        assert_eq!(room.used(), 0);
    }
}
