//! Numbers that many threads read together and one at a time replaces: a sequence lock.

use super::sync::{AtomicU64, Ordering, fence};

/// Some numbers, or none. Readers write nothing.
#[derive(Debug)]
pub(crate) struct SharedNumbers<const N: usize> {
    /// Odd while there are none or they are being replaced.
    version: AtomicU64,
    numbers: [AtomicU64; N],
}

impl<const N: usize> SharedNumbers<N> {
    /// Returns the numbers; `None` also while they are being replaced.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<[u64; N]> {
        let version = self.begin();
        let mut numbers = [0; N];
        for (number, shared) in numbers.iter_mut().zip(&self.numbers) {
            *number = shared.load(Ordering::Relaxed);
        }
        self.is_still(version).then_some(numbers)
    }

    /// Begins to read numbers one by one. They count, like anything else that is written only while there are none, if there
    /// [is still](Self::is_still) the same version of them afterwards.
    #[inline(always)]
    pub(crate) fn begin(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    #[cfg(feature = "overrides")]
    #[inline(always)]
    pub(crate) fn number<const I: usize>(&self) -> u64 {
        const { assert!(I < N) };
        self.numbers[I].load(Ordering::Relaxed)
    }

    /// Whether nothing has been replaced since this version was read.
    #[inline(always)]
    pub(crate) fn is_still(&self, version: u64) -> bool {
        // Whoever has read a number of a replacement sees the odd version that was stored before it.
        fence(Ordering::Acquire);
        version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version
    }

    /// Replaces the numbers. Only one thread at a time may do so.
    pub(crate) fn set(&self, numbers: Option<[u64; N]>) {
        let odd = self.version.load(Ordering::Relaxed) | 1;
        self.version.store(odd, Ordering::Relaxed);
        fence(Ordering::Release);
        if let Some(numbers) = numbers {
            for (shared, number) in self.numbers.iter().zip(numbers) {
                shared.store(number, Ordering::Relaxed);
            }
            self.version.store(odd + 1, Ordering::Release);
        }
    }
}

/// No numbers.
impl<const N: usize> Default for SharedNumbers<N> {
    fn default() -> Self {
        SharedNumbers { version: AtomicU64::new(1), numbers: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn readers_never_see_parts_of_two_replacements() {
        const ROUNDS: u64 = 100_000;
        let (shared, done) = (SharedNumbers::default(), AtomicBool::new(false));
        assert_eq!(shared.get(), None);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let Some([first, second, third]) = shared.get() else { continue };
                        assert_eq!([second, third], [first; 2]);
                        assert!(first >= last, "old numbers came back");
                        last = first;
                    }
                });
            }
            for i in 1..=ROUNDS {
                shared.set((i % 5 > 0).then_some([i; 3]));
            }
            shared.set(Some([ROUNDS; 3]));
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(shared.get(), Some([ROUNDS; 3]));
    }
}
