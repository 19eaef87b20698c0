//! Room for what is kept of calls and refusals while somebody may be asked about them, and for what is remembered of a caller's
//! states (S37).
//!
//! Where several callers are named, half of all room is theirs in equal shares: what a caller keeps beyond its share has to
//! fit into the other half, and what is within it has room whatever the others keep. A call within its caller's share touches
//! one counter, which is its caller's own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handraise_core::Moment;

use crate::envelope::inbox::Turns;
use crate::envelope::ledger::{PassedOn, Spent};

/// Copies whose memory is used again. What is smaller, the allocator has at hand; what is larger is rare.
const SPARED: RangeInclusive<usize> = 2 * 1024..=32 * 1024;

/// How many of them wait for that at most.
const MOST_SPARE: usize = 16;

/// All room of a process.
#[derive(Debug)]
pub(super) struct Rooms {
    common: Arc<Common>,
    /// The room of whoever is not named.
    others: Arc<Room>,
    callers: BTreeMap<Box<str>, Arc<Room>>,
}

/// The room of one caller.
#[derive(Debug)]
pub(super) struct Room {
    /// How many bytes it may keep whatever the others keep.
    share: u64,
    kept: AtomicU64,
    spent: Mutex<Spent>,
    passed_on: Mutex<PassedOn>,
    /// Its questions in the inbox.
    turns: Mutex<Turns>,
    common: Arc<Common>,
}

/// What all rooms have in common.
#[derive(Debug)]
struct Common {
    /// How many bytes may be kept beyond shares.
    limit: u64,
    /// How many are. For a moment less than nothing: what one thread gives back may be heard of before what another took.
    beyond: AtomicI64,
    refused: AtomicU64,
    /// Memory for copies that nobody uses: calls of one size follow each other.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Rooms {
    /// So many bytes, for callers with these names. One alone may keep them all.
    pub(super) fn new(limit: u64, callers: &BTreeSet<String>) -> Self {
        let names: Vec<&String> = if callers.len() > 1 { callers.iter().collect() } else { Vec::new() };
        let number = names.len() as u64;
        let share = if names.is_empty() { limit } else { limit / 2 / number };
        let limit = if names.is_empty() { 0 } else { limit - share * number };
        let (beyond, refused, spare) = Default::default();
        let common = Arc::new(Common { limit, beyond, refused, spare });
        let room = |share| {
            let (kept, spent) = (AtomicU64::new(0), Mutex::new(Spent::of_one_of(names.len())));
            let turns = Mutex::new(Turns::of_one_of(names.len()));
            let (passed_on, common) = (Mutex::default(), Arc::clone(&common));
            Arc::new(Room { share, kept, spent, passed_on, turns, common })
        };
        let others = room(if names.is_empty() { share } else { 0 });
        let callers = names.iter().map(|name| (name.as_str().into(), room(share))).collect();
        Self { common, others, callers }
    }

    /// The room of a caller.
    pub(super) fn of(&self, caller: &str) -> &Arc<Room> {
        self.callers.get(caller).unwrap_or(&self.others)
    }

    /// The room of whoever is not named.
    pub(super) fn others(&self) -> &Arc<Room> {
        &self.others
    }

    /// Bytes that are kept.
    pub(super) fn kept(&self) -> u64 {
        self.all().map(|room| room.kept.load(Ordering::Relaxed)).sum()
    }

    /// How many states were refused because no more of them can be remembered as spent.
    pub(super) fn states_turned_away(&self) -> u64 {
        self.all().map(|room| lock(&room.spent).turned_away()).sum()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Room>> {
        self.callers.values().chain([&self.others])
    }

    /// How often there was no room.
    pub(super) fn refused(&self) -> u64 {
        self.common.refused.load(Ordering::Relaxed)
    }
}

impl Room {
    /// Makes room for `bytes`, for as long as what is returned lives; `None` when there is none.
    pub(super) fn reserve(room: &Arc<Self>, bytes: usize) -> Option<Reserved> {
        let bytes = bytes as u64;
        let before = room.kept.fetch_add(bytes, Ordering::Relaxed);
        let reserved = Reserved { room: Arc::clone(room), bytes };
        let excess = room.excess(before, bytes);
        if excess > 0 {
            let common = &room.common;
            let beyond = common.beyond.fetch_add(signed(excess), Ordering::Relaxed);
            if beyond.saturating_add(signed(excess)) > signed(common.limit) {
                common.refused.fetch_add(1, Ordering::Relaxed);
                return None;
            }
        }
        Some(reserved)
    }

    /// Spends a state of this caller; false when it was spent before.
    pub(super) fn spend(&self, nonce: [u8; 16], now: Moment) -> bool {
        lock(&self.spent).claim(nonce, now)
    }

    /// Whether a state of this caller was spent before.
    pub(super) fn is_spent(&self, nonce: &[u8; 16]) -> bool {
        lock(&self.spent).contains(nonce)
    }

    /// Why this caller may not have the inbox asked once more, if so.
    pub(super) fn turn_bar(&self, now: Moment) -> Option<&'static str> {
        lock(&self.turns).bar(now)
    }

    /// The inbox is asked once more, for as long as what is returned lives.
    pub(super) fn turn(room: &Arc<Self>, now: Moment) -> Turn {
        lock(&room.turns).open(now);
        Turn(Arc::clone(room))
    }

    /// Takes note of a state of the upstream that looks like ours.
    pub(super) fn pass_on(&self, state: &str) {
        lock(&self.passed_on).note(state);
    }

    /// Whether a state that looks like ours is the upstream's.
    pub(super) fn has_passed_on(&self, state: &str) -> bool {
        lock(&self.passed_on).contains(state)
    }

    /// How many of `bytes` that come to so many before them are beyond the share.
    fn excess(&self, before: u64, bytes: u64) -> u64 {
        (before + bytes).saturating_sub(self.share) - before.saturating_sub(self.share)
    }
}

/// Frames are far shorter than half of what 64 bits count.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A question of a caller's in the inbox, until this is gone.
#[derive(Debug)]
pub(super) struct Turn(Arc<Room>);

impl Drop for Turn {
    fn drop(&mut self) {
        lock(&self.0.turns).close();
    }
}

/// Room that is taken, until this is gone.
#[derive(Debug)]
pub(super) struct Reserved {
    room: Arc<Room>,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let before = self.room.kept.fetch_sub(self.bytes, Ordering::Relaxed);
        let excess = self.room.excess(before - self.bytes, self.bytes);
        if excess > 0 {
            self.room.common.beyond.fetch_sub(signed(excess), Ordering::Relaxed);
        }
    }
}

/// Bytes that count as in flight.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    reserved: Reserved,
}

impl Kept {
    /// A copy, if there is room for it and for `more` bytes that are kept beside it.
    pub(super) fn new(room: &Arc<Room>, bytes: &[u8], more: usize) -> Option<Self> {
        let reserved = Room::reserve(room, bytes.len() + more)?;
        Some(Self { bytes: room.common.copy(bytes), reserved })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.reserved.room.common.give_back(std::mem::take(&mut self.bytes));
    }
}

impl Common {
    /// A copy, in memory that was used before where there is some.
    fn copy(&self, bytes: &[u8]) -> Vec<u8> {
        if !SPARED.contains(&bytes.len()) {
            return bytes.to_vec();
        }
        let mut copy = lock(&self.spare).pop().unwrap_or_default();
        copy.clear();
        copy.reserve_exact(bytes.len());
        copy.extend_from_slice(bytes);
        copy
    }

    /// Keeps the memory of a copy for the next one, unless it is small, large, or one of many.
    fn give_back(&self, copy: Vec<u8>) {
        if SPARED.contains(&copy.capacity()) {
            let mut spare = lock(&self.spare);
            if spare.len() < MOST_SPARE {
                spare.push(copy);
            }
        }
    }
}

/// Ledgers are whole after every step, so a panic elsewhere leaves nothing half done.
fn lock<T>(ledger: &Mutex<T>) -> MutexGuard<'_, T> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(limit: u64, callers: usize) -> Rooms {
        Rooms::new(limit, &(0..callers).map(|number| number.to_string()).collect())
    }

    /// All that a caller gets, byte by byte.
    fn flood(rooms: &Rooms, caller: &str) -> Vec<Reserved> {
        let room = rooms.of(caller);
        std::iter::from_fn(|| Room::reserve(room, 1)).take(1000).collect()
    }

    #[test]
    fn s37_a_flood_of_one_caller_leaves_every_other_its_share_of_the_room() {
        for callers in [2, 3, 10] {
            let rooms = rooms(600, callers);
            let share = 300 / callers;
            let taken = flood(&rooms, "0");
            assert_eq!(taken.len(), 300 + share, "of {callers}");
            let names = (1..callers).map(|number| number.to_string());
            let mut others: Vec<_> = names.map(|name| flood(&rooms, &name)).collect();
            assert!(others.iter().all(|taken| taken.len() == share), "of {callers}");
            assert_eq!(rooms.kept(), 600);
            assert_eq!(flood(&rooms, "nobody").len(), 0);
            // What is given back within a share is that caller's again, and what is given back beyond it everybody's.
            others[0].truncate(share - 7);
            assert_eq!((flood(&rooms, "0").len(), flood(&rooms, "1").len()), (0, 7));
            drop(taken);
            assert_eq!(flood(&rooms, "1").len(), 300 + 7);
            drop(others);
            assert_eq!((rooms.kept(), flood(&rooms, "1").len()), (0, 300 + share));
            assert!(rooms.refused() > 0);
        }
    }

    #[test]
    fn s37_who_is_alone_may_keep_everything_and_what_was_refused_takes_nothing() {
        for callers in [0, 1] {
            let rooms = rooms(100, callers);
            assert!(Room::reserve(rooms.others(), 101).is_none());
            let kept = Room::reserve(rooms.of("0"), 60).unwrap();
            assert!(Room::reserve(rooms.of("0"), 41).is_none());
            assert!(Room::reserve(rooms.others(), 40).is_some());
            assert_eq!((rooms.kept(), rooms.refused()), (60, 2));
            drop(kept);
            assert_eq!(flood(&rooms, "0").len(), 100);
        }
    }

    #[test]
    fn s37_states_that_one_caller_has_spent_leave_every_other_its_own() {
        let rooms = rooms(100, 100);
        let now = Moment::from_millis(1);
        let spend = |caller: &str, number: u128| rooms.of(caller).spend(number.to_be_bytes(), now);
        assert_eq!((0..100_000).filter(|number| spend("0", *number)).count(), 16_384);
        assert!(spend("1", 1) && !spend("1", 1) && spend("2", 1));
        assert_eq!(rooms.states_turned_away(), 100_000 - 16_384);
        // The upstream's own are known to whom they were given.
        rooms.of("0").pass_on("hr1.theirs");
        assert!(rooms.of("0").has_passed_on("hr1.theirs") && !rooms.of("1").has_passed_on("hr1.theirs"));
    }

    #[test]
    fn s37_memory_of_copies_is_used_again_and_little_of_it_waits() {
        let rooms = rooms(10_000_000, 0);
        let keep = |bytes: &[u8]| Kept::new(rooms.others(), bytes, 0).unwrap();
        let copies: Vec<_> = (0..30).map(|number| keep(&[number; 10_000])).collect();
        assert!(copies.iter().zip(0..).all(|(copy, number)| *copy.bytes() == [number; 10_000]));
        let place = copies[0].bytes().as_ptr();
        drop(copies);
        for unspared in [1, 100_000] {
            drop(keep(&vec![b'x'; unspared]));
        }
        assert_eq!(lock(&rooms.common.spare).len(), MOST_SPARE);
        let places: Vec<_> = (0..MOST_SPARE).map(|_| keep(&[b'y'; 3_000])).collect();
        assert!(
            places
                .iter()
                .all(|copy| { *copy.bytes() == [b'y'; 3_000] && SPARED.contains(&copy.bytes.capacity()) })
        );
        assert!(places.iter().any(|copy| copy.bytes().as_ptr() == place));
    }
}
