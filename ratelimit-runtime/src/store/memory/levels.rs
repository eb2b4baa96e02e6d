//! An array that grows without moving its elements, so that readers need no lock.

use crate::sync::{OnceLock, Zeroed, zeroed};

/// The number of elements on the first level. Each further level has as many as all before it and the first together.
const FIRST: u64 = 64;

/// Enough levels for every `u32`.
const LEVELS: usize = (u32::BITS - FIRST.ilog2()) as usize + 1;

/// The elements of each level begin at a multiple of this address, so that none that belong together are on two cache lines.
const ALIGNMENT: usize = 128;

/// An array of elements that are all zero at first.
///
/// The system provides zeroed memory page by page as it is touched, so that even a large level is made in no time.
#[derive(Debug)]
pub(super) struct Levels<T> {
    levels: [OnceLock<Level<T>>; LEVELS],
}

#[derive(Debug)]
struct Level<T> {
    elements: Box<[T]>,
    /// The first element at an aligned address.
    first: usize,
}

impl<T: Zeroed> Levels<T> {
    pub(super) fn new() -> Self {
        Levels { levels: [const { OnceLock::new() }; LEVELS] }
    }

    /// Returns an element, or `None` if its level does not exist yet.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        let (level, offset) = place(index);
        let Level { elements, first } = self.levels[level].get()?;
        elements.get(first + offset)
    }

    /// Returns `N` elements from a multiple of `N` on, or `None` if their level does not exist yet. `N` is a power of two of at
    /// most 64.
    #[inline]
    pub(super) fn chunk<const N: usize>(&self, index: u32) -> Option<&[T; N]> {
        let (level, offset) = place(index);
        let Level { elements, first } = self.levels[level].get()?;
        elements.get(first + offset..)?.first_chunk()
    }

    /// Makes the level of an element, if it does not exist yet.
    pub(super) fn grow(&self, index: u32) {
        let (level, _) = place(index);
        self.levels[level].get_or_init(|| {
            let spare = ALIGNMENT / size_of::<T>();
            let elements = zeroed::<T>(((FIRST as usize) << level) + spare);
            let misplaced = elements.as_ptr() as usize % ALIGNMENT;
            Level { elements, first: (ALIGNMENT - misplaced) / size_of::<T>() }
        });
    }
}

#[inline]
fn place(index: u32) -> (usize, usize) {
    let index = u64::from(index) + FIRST;
    let level = index.ilog2() - FIRST.ilog2();
    (level as usize, (index - (FIRST << level)) as usize)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn elements_are_distinct() {
        let levels = Levels::<AtomicU32>::new();
        assert!(levels.get(0).is_none());
        for index in (0..5000).rev() {
            levels.grow(index);
            levels.get(index).unwrap().store(index + 1, Ordering::Relaxed);
        }
        for index in 0..5000 {
            assert_eq!(levels.get(index).unwrap().load(Ordering::Relaxed), index + 1);
        }
        let chunk: &[_; 16] = levels.chunk(4096).unwrap();
        assert_eq!(chunk.each_ref().map(|element| element.load(Ordering::Relaxed))[15], 4112);
        assert_eq!(chunk.as_ptr() as usize % 64, 0);
        assert!(levels.get(9000).is_none() && levels.chunk::<4>(9000).is_none());
        assert_eq!(place(u32::MAX).0, LEVELS - 1);
    }
}
