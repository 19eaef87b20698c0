//! A map of what is usually few.
//!
//! A tree takes memory for its first entry and gives it back with its last one. Where entries come and go one by one, that is
//! done for every one of them: so the first few stand in a row, whose memory stays.

use std::{borrow::Borrow, collections::BTreeMap};

/// How many stand in a row.
const FEW: usize = 8;

/// A map that takes no memory for entries which come and go, as long as they are few.
#[derive(Debug)]
pub struct Few<K, V> {
    row: Vec<(K, V)>,
    rest: BTreeMap<K, V>,
}

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Self { row: Vec::new(), rest: BTreeMap::new() }
    }
}

impl<K: Ord, V> Few<K, V> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.row.len() + self.rest.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.row.is_empty() && self.rest.is_empty()
    }

    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        self.row.iter().position(|(known, _)| known.borrow() == key)
    }

    /// What stands under a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match self.place(key) {
            Some(place) => Some(&self.row[place].1),
            None => self.rest.get(key),
        }
    }

    /// What stands under a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match self.place(key) {
            Some(place) => Some(&mut self.row[place].1),
            None => self.rest.get_mut(key),
        }
    }

    /// Puts a value under a key; returns what stood there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        if self.row.len() < FEW {
            self.row.push((key, value));
            return None;
        }
        self.rest.insert(key, value)
    }

    /// Takes out what stands under a key.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        match self.place(key) {
            Some(place) => Some(self.row.swap_remove(place).1),
            None => self.rest.remove(key),
        }
    }

    /// Every entry, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.row.iter().map(|(key, value)| (key, value)).chain(&self.rest)
    }

    /// Every entry, to be changed, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.row.iter_mut().map(|(key, value)| (&*key, value)).chain(&mut self.rest)
    }

    /// The highest key whose value is like this.
    pub fn last(&self, is: impl Fn(&V) -> bool) -> Option<&K> {
        let in_row = self.row.iter().filter(|(_, value)| is(value)).map(|(key, _)| key).max();
        let in_rest = self.rest.iter().rev().find(|(_, value)| is(value)).map(|(key, _)| key);
        in_row.max(in_rest)
    }

    /// Empties the map. Values come in the order of their keys.
    pub fn take(&mut self) -> impl Iterator<Item = V> + use<K, V> {
        let Self { row, mut rest } = std::mem::take(self);
        rest.extend(row);
        rest.into_values()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_map_that_a_tree_is(steps in prop::collection::vec((0_u8..20, any::<Option<u8>>()), 0..200)) {
            let (mut few, mut tree) = (Few::default(), BTreeMap::new());
            for (key, step) in steps {
                if let Some(value) = step {
                    prop_assert_eq!(few.insert(key, value), tree.insert(key, value));
                } else {
                    prop_assert_eq!(few.remove(&key), tree.remove(&key));
                }
                prop_assert_eq!((few.len(), few.is_empty()), (tree.len(), tree.is_empty()));
                prop_assert_eq!(few.get(&key), tree.get(&key));
                prop_assert_eq!(few.get_mut(&key).copied(), tree.get(&key).copied());
                let last = tree.iter().rev().find(|(_, value)| **value > 100).map(|(key, _)| key);
                prop_assert_eq!(few.last(|value| *value > 100), last);
                prop_assert_eq!(few.iter().collect::<BTreeMap<_, _>>(), tree.iter().collect());
                prop_assert_eq!(few.iter_mut().map(|(key, value)| (*key, *value)).collect::<BTreeMap<_, _>>(), tree.clone());
            }
            prop_assert_eq!(few.take().collect::<Vec<_>>(), tree.into_values().collect::<Vec<_>>());
            prop_assert!(few.is_empty());
        }
    }
}
