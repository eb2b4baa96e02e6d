//! An array that grows without moving its elements, so that readers need no lock.

use std::ops::RangeInclusive;

use crate::base::sync::{OnceLock, Zeroed, zeroed};

/// The number of elements on the first level. Each further one has as many as all before it and the first together, up to the
/// largest.
const FIRST: u64 = 64;

/// The bytes of the largest levels, few enough that no call takes long to make one: an allocator that reuses memory has to clear
/// all of it.
const LARGEST_BYTES: u64 = 1 << 19;

/// The highest number of elements on a level.
const MOST: u64 = 1 << 16;

/// The highest number of levels that are smaller than the largest.
const SMALL: usize = (MOST.ilog2() - FIRST.ilog2()) as usize;

/// The elements of each level begin at a multiple of this address, so that none that belong together are on two cache lines.
const ALIGNMENT: usize = 128;

/// An array of elements that are all alike at first.
#[derive(Debug)]
pub(super) struct Levels<T> {
    small: [OnceLock<Level<T>>; SMALL],
    /// The largest levels. Only a store with many keys has them.
    large: OnceLock<Box<[OnceLock<Level<T>>]>>,
    /// All further ones, for keys that a full store keeps because calls hold their permits.
    beyond: OnceLock<Box<[OnceLock<Level<T>>]>>,
    /// The number of elements that it is for, unless they are exceeded.
    len: u32,
}

#[derive(Debug)]
struct Level<T> {
    elements: Box<[T]>,
    /// The first element at an aligned address.
    first: usize,
}

impl<T> Levels<T> {
    /// The number of elements on the largest levels.
    const LARGEST: u64 = {
        let elements = 1 << (LARGEST_BYTES / size_of::<T>() as u64).ilog2();
        if elements < MOST { elements } else { MOST }
    };

    /// The number of levels that are smaller than the largest.
    const SMALL: usize = (Self::LARGEST.ilog2() - FIRST.ilog2()) as usize;

    /// An array for so many elements.
    pub(super) fn new(len: u32) -> Self {
        let (large, beyond) = (OnceLock::new(), OnceLock::new());
        Levels { small: [const { OnceLock::new() }; SMALL], large, beyond, len }
    }

    /// Returns an element, or `None` if its level does not exist yet.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        let (level, offset) = Self::place(index);
        let Level { elements, first } = self.level(level)?;
        elements.get(first + offset)
    }

    /// Returns `N` elements from a multiple of `N` on, or `None` if their level does not exist yet. `N` is a power of two of at
    /// most 64.
    #[inline(always)]
    pub(super) fn chunk<const N: usize>(&self, index: u32) -> Option<&[T; N]> {
        let (level, offset) = Self::place(index);
        let Level { elements, first } = self.level(level)?;
        elements.get(first + offset..)?.first_chunk()
    }

    /// Makes the level of an element by this function, given its length, if it does not exist yet.
    pub(super) fn grow_with(&self, index: u32, make: impl FnOnce(usize) -> Box<[T]>) {
        let (level, _) = Self::place(index);
        let cell = match level.checked_sub(Self::SMALL) {
            None => &self.small[level],
            Some(large) => {
                let known = self.large.get_or_init(|| self.make_large());
                known.get(large).unwrap_or_else(|| {
                    let (last, _) = Self::place(u32::MAX);
                    &self.beyond.get_or_init(|| empty(Self::SMALL + known.len()..=last))[large - known.len()]
                })
            }
        };
        cell.get_or_init(|| {
            let spare = ALIGNMENT / size_of::<T>();
            let elements = make(Self::size(level) as usize + spare);
            let misplaced = elements.as_ptr() as usize % ALIGNMENT;
            Level { elements, first: (ALIGNMENT - misplaced) / size_of::<T>() }
        });
    }

    fn make_large(&self) -> Box<[OnceLock<Level<T>>]> {
        let (last, _) = Self::place(self.len - 1);
        empty(Self::SMALL..=last)
    }

    #[inline(always)]
    fn level(&self, level: usize) -> Option<&Level<T>> {
        match level.checked_sub(Self::SMALL) {
            None => self.small[level].get(),
            Some(large) => match self.large.get()?.get(large) {
                Some(level) => level.get(),
                None => self.level_beyond(large),
            },
        }
    }

    #[cold]
    fn level_beyond(&self, large: usize) -> Option<&Level<T>> {
        let known = self.large.get()?.len();
        self.beyond.get()?.get(large - known)?.get()
    }

    /// Returns the number of elements on a level.
    fn size(level: usize) -> u64 {
        FIRST << level.min(Self::SMALL)
    }

    /// Returns the level of an element, and its place there.
    #[inline(always)]
    fn place(index: u32) -> (usize, usize) {
        let index = u64::from(index) + FIRST;
        if index < Self::LARGEST {
            let level = index.ilog2() - FIRST.ilog2();
            return (level as usize, (index - (FIRST << level)) as usize);
        }
        (Self::SMALL + (index / Self::LARGEST - 1) as usize, (index % Self::LARGEST) as usize)
    }
}

impl<T: Zeroed> Levels<T> {
    /// Makes the level of an element, all zero, if it does not exist yet.
    pub(super) fn grow(&self, index: u32) {
        self.grow_with(index, zeroed);
    }
}

fn empty<T>(levels: RangeInclusive<usize>) -> Box<[OnceLock<Level<T>>]> {
    levels.map(|_| OnceLock::new()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use super::*;

    type Words = Levels<AtomicU64>;

    #[test]
    fn elements_are_distinct() {
        let levels = Levels::<AtomicU32>::new(5000);
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
    }

    #[test]
    fn levels_double_up_to_the_largest() {
        let mut sizes = vec![0; 80];
        for index in 0..70 * MOST as u32 {
            let (level, offset) = Words::place(index);
            assert_eq!(offset, sizes[level]);
            sizes[level] += 1;
        }
        for (level, elements) in sizes.into_iter().enumerate().take_while(|(_, elements)| *elements > 0) {
            assert!(elements as u64 == Words::size(level) || Words::place(70 * MOST as u32).0 == level);
        }
        assert_eq!([0, 1, 10, 11, 1000].map(Words::size), [FIRST, 2 * FIRST, MOST, MOST, MOST]);
        assert_eq!(Words::place(u32::MAX), (SMALL + (1 << 16) - 1, FIRST as usize - 1));
    }

    #[test]
    fn highest_element_has_a_level() {
        for len in [1, 64, 65, MOST as u32 - 64, MOST as u32, 100 * MOST as u32, u32::MAX] {
            let levels = Levels::<AtomicU32>::new(len);
            levels.grow(len - 1);
            assert!(levels.get(len - 1).is_some(), "{len}");
            for beyond in [len, len.saturating_add(3 * MOST as u32), u32::MAX] {
                levels.grow(beyond);
                assert!(levels.get(beyond).is_some(), "{len}, {beyond}");
            }
        }
    }
}
