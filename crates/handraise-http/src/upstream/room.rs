//! How much of what the server sends is held at once, by all links of the process together (S37), and by those of a caller
//! where several have shares of it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::failure::Failure;
use crate::budget::{Budget, Budgets, Charge};

/// How long a short answer is. A quarter of the room is for these, so that long ones do not end everybody's.
const SMALL: usize = 64 * 1024;

/// The room for answers.
#[derive(Debug)]
pub(crate) struct Room {
    limit: usize,
    budgets: Budgets,
    refused: AtomicU64,
}

/// What of the room one caller's links use.
#[derive(Debug, Clone)]
pub(crate) struct Corner {
    room: Arc<Room>,
    budget: Arc<Budget>,
}

/// An answer or stream that is being read.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    corner: &'a Corner,
    charge: Charge,
}

impl Room {
    /// So much room, for callers with these names. One alone may have it all.
    pub(crate) fn new(limit: usize, callers: &BTreeSet<&str>) -> Arc<Self> {
        Arc::new(Self { limit, budgets: Budgets::new(limit, callers), refused: AtomicU64::new(0) })
    }

    /// What a caller's links use.
    pub(crate) fn of(self: &Arc<Self>, caller: &str) -> Corner {
        Corner { room: Arc::clone(self), budget: Arc::clone(self.budgets.of(caller)) }
    }

    /// Bytes that are held.
    pub(crate) fn used(&self) -> usize {
        self.budgets.used()
    }

    /// How many answers found no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Corner {
    /// Begins to read an answer of which nothing is here.
    pub(crate) fn reading(&self) -> Reading<'_> {
        Reading { corner: self, charge: self.budget.force(0) }
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
        let Corner { room, budget } = self.corner;
        let held = self.charge.bytes();
        let others = room.used().saturating_sub(held);
        // A long answer that is alone may have all of it.
        let leaves_none = others > SMALL && others + bytes > room.limit - room.limit / 4;
        // What is within a share is there for whose it is.
        let is_within = budget.used().saturating_sub(held) + bytes <= budget.share();
        let is_too_much = bytes > held.max(SMALL) && leaves_none && !is_within;
        if is_too_much || !self.charge.set(bytes) {
            room.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Failure::Full(room.limit));
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

    fn room(callers: &[&str]) -> Arc<Room> {
        Room::new(LIMIT, &callers.iter().copied().collect())
    }

    #[test]
    fn s37_answers_of_one_caller_leave_every_other_its_share() {
        let room = room(&["ada", "bob"]);
        let (ada, bob) = (room.of("ada"), room.of("bob"));
        let mut long = ada.reading();
        long.hold(6 * SMALL).unwrap();
        assert_eq!(ada.reading().hold(SMALL), Err(Failure::Full(LIMIT)));
        let (mut own, mut more) = (bob.reading(), bob.reading());
        own.hold(2 * SMALL).unwrap();
        assert_eq!((more.hold(SMALL), room.used()), (Err(Failure::Full(LIMIT)), LIMIT));
        drop(long);
        more.hold(3 * SMALL).unwrap();
    }

    #[test]
    fn s37_long_answers_leave_room_for_short_ones() {
        let room = room(&[]);
        let corner = room.of("local");
        let (mut long, mut next, mut short) = (corner.reading(), corner.reading(), corner.reading());
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
        let room = room(&[]);
        let corner = room.of("local");
        let mut alone = corner.reading();
        alone.hold(LIMIT).unwrap();
        assert_eq!(alone.hold(LIMIT + 1), Err(Failure::Full(LIMIT)));
    }

    #[test]
    fn s37_the_room_is_never_exceeded_by_what_is_read_and_is_free_when_it_was_taken() {
        let room = room(&[]);
        let corner = room.of("local");
        let held: Vec<_> = (0..20)
            .filter_map(|_| {
                let mut reading = corner.reading();
                reading.hold(SMALL).ok().map(|()| reading.done())
            })
            .collect();
        assert_eq!((held.len(), room.used(), room.refused()), (8, LIMIT, 12));
        drop(held);
        assert_eq!(room.used(), 0);
    }
}
