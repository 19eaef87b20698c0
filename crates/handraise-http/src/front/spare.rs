//! Buffers that are lent for a reading: what is at rest holds none, and the same few are used again and again.

use std::{
    ops::{Deref, DerefMut},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How many are kept.
const MOST: usize = 4;

/// Buffers that nobody uses.
#[derive(Debug)]
pub(crate) struct Spare {
    room: usize,
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// A buffer that goes back when this is gone.
#[derive(Debug)]
pub(crate) struct Lent<'a> {
    spare: &'a Spare,
    buffer: Vec<u8>,
}

impl Spare {
    /// Buffers of so many bytes each.
    pub(crate) fn new(room: usize) -> Self {
        Self { room, buffers: Mutex::default() }
    }

    /// An empty buffer with room.
    pub(crate) fn lend(&self) -> Lent<'_> {
        Lent { spare: self, buffer: self.take() }
    }

    /// An empty buffer with room, which somebody [gives back](Self::give).
    pub(crate) fn take(&self) -> Vec<u8> {
        self.lock().pop().unwrap_or_else(|| Vec::with_capacity(self.room))
    }

    /// Takes a buffer back. One that has grown is let go.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        let mut spare = self.lock();
        if spare.len() < MOST && buffer.capacity() == self.room {
            buffer.clear();
            spare.push(buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

impl Deref for Lent<'_> {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.buffer
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.spare.give(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_was_lent_is_lent_again_and_few_are_kept() {
        let spare = Spare::new(100);
        let mut lent = spare.lend();
        lent.extend_from_slice(b"text");
        let place = lent.as_ptr();
        drop(lent);
        let again = spare.lend();
        assert_eq!((again.as_ptr(), again.len(), again.capacity()), (place, 0, 100));
        let many: Vec<_> = (0..10).map(|_| spare.lend()).collect();
        drop((again, many));
        assert_eq!(spare.count(), MOST);
        let mut grown = spare.lend();
        grown.extend_from_slice(&[b'x'; 101]);
        drop(grown);
        assert_eq!(spare.count(), MOST - 1);
    }
}
