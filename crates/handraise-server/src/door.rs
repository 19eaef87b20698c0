//! Who may stay connected: places for everybody, few of them for strangers, and a share for each token (S37).
//!
//! A connection is a stranger's until a request on it has shown a good token. When strangers have as many places as they
//! may have, the one that came first makes place for the one that comes: whoever opens connections and says nothing
//! pushes out others like that, and nobody who sends a request at once, or is known.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// One token may have one place in so many.
const SHARE: usize = 2;

/// The places of one listener.
#[derive(Debug)]
pub(crate) struct Door {
    most: usize,
    most_strangers: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    all: usize,
    last: u64,
    /// In the order in which they came, each with what ends it.
    strangers: BTreeMap<u64, CancellationToken>,
    by_token: HashMap<String, usize>,
}

/// What coming in came to.
#[derive(Debug)]
pub(crate) enum Entrance {
    /// There is a place. Set when a stranger was sent away for it.
    In(Arc<Place>, bool),
    /// Every place is taken by somebody who is known.
    Full,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    door: Arc<Door>,
    number: u64,
    /// Cancelled when it has to go.
    pub(crate) away: CancellationToken,
    /// Whose it is, when that was shown.
    token: Mutex<Option<String>>,
}

impl Door {
    pub(crate) fn new(most: usize, most_strangers: usize) -> Arc<Self> {
        Arc::new(Self { most, most_strangers: most_strangers.min(most).max(1), inside: Mutex::default() })
    }

    /// Lets a stranger in.
    pub(crate) fn enter(self: &Arc<Self>) -> Entrance {
        let mut inside = lock(&self.inside);
        let crowded = inside.strangers.len() >= self.most_strangers || inside.all >= self.most;
        let mut sent_away = false;
        if crowded {
            let Some((_, first)) = inside.strangers.pop_first() else { return Entrance::Full };
            first.cancel();
            sent_away = true;
        }
        inside.all += 1;
        inside.last += 1;
        let (number, away) = (inside.last, CancellationToken::new());
        inside.strangers.insert(number, away.clone());
        drop(inside);
        Entrance::In(
            Arc::new(Place { door: Arc::clone(self), number, away, token: Mutex::default() }),
            sent_away,
        )
    }
}

impl Place {
    /// A good token was shown on it, the first of which counts. Returns whether that one may have one more place.
    pub(crate) fn is_of(&self, token: impl FnOnce() -> String) -> bool {
        let mut own = lock(&self.token);
        if own.is_some() {
            return true;
        }
        let token = token();
        let mut inside = lock(&self.door.inside);
        let places = inside.by_token.entry(token.clone()).or_default();
        if *places >= (self.door.most / SHARE).max(1) {
            return false;
        }
        *places += 1;
        inside.strangers.remove(&self.number);
        *own = Some(token);
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let token = lock(&self.token).take();
        let mut inside = lock(&self.door.inside);
        inside.all -= 1;
        inside.strangers.remove(&self.number);
        if let Some(token) = token
            && let Some(places) = inside.by_token.get_mut(&token)
        {
            *places -= 1;
            if *places == 0 {
                inside.by_token.remove(&token);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(door: &Arc<Door>) -> (Arc<Place>, bool) {
        match door.enter() {
            Entrance::In(place, sent_away) => (place, sent_away),
            Entrance::Full => panic!("there is a place"),
        }
    }

    #[test]
    fn s37_the_first_stranger_goes_and_who_is_known_stays() {
        let door = Door::new(8, 3);
        let known = enter(&door).0;
        assert!(known.is_of(|| "a".into()));
        let first = enter(&door).0;
        let others: Vec<_> = (0..2).map(|_| enter(&door)).collect();
        assert!(others.iter().all(|(_, sent_away)| !sent_away));
        let (last, sent_away) = enter(&door);
        assert!(sent_away && first.away.is_cancelled());
        assert!(!known.away.is_cancelled() && !last.away.is_cancelled());
        assert!(others.iter().all(|(place, _)| !place.away.is_cancelled()));
        drop((first, others, last));
        assert!(!enter(&door).1, "their places are free");
    }

    #[test]
    fn s37_a_full_house_takes_strangers_only_in_place_of_strangers() {
        let door = Door::new(2, 2);
        let (a, b) = (enter(&door).0, enter(&door).0);
        assert!(a.is_of(|| "a".into()));
        let c = enter(&door);
        assert!(c.1 && b.away.is_cancelled());
        drop(b);
        assert!(c.0.is_of(|| "c".into()));
        assert!(matches!(door.enter(), Entrance::Full));
        drop(a);
        assert!(matches!(door.enter(), Entrance::In(_, false)));
    }

    #[test]
    fn s37_a_token_has_a_share_of_the_places() {
        let door = Door::new(4, 4);
        let places: Vec<_> = (0..3).map(|_| enter(&door).0).collect();
        assert_eq!(
            places.iter().map(|place| place.is_of(|| "a".into())).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert!(places[0].is_of(|| "a".into()), "a place is shown to be theirs once");
        assert!(places[2].is_of(|| "b".into()));
        drop(places);
        let again: Vec<_> = (0..2).map(|_| enter(&door).0).collect();
        assert!(again.iter().all(|place| place.is_of(|| "a".into())));
        assert_eq!(lock(&door.inside).by_token.len(), 1);
    }
}
