//! An anchor that many threads read and one at a time replaces: a sequence lock.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::anchor::Anchor;

/// An anchor, or none. Readers write nothing, and share the cache line with nothing that is written more often.
#[repr(align(128))]
pub(super) struct SharedAnchor {
    /// Odd while there is no anchor or it is being replaced.
    version: AtomicU64,
    ticks: AtomicU64,
    nanos: AtomicU64,
    pace: AtomicU64,
}

impl SharedAnchor {
    /// No anchor.
    pub(super) fn new() -> Self {
        let [ticks, nanos, pace] = Default::default();
        SharedAnchor { version: AtomicU64::new(1), ticks, nanos, pace }
    }

    /// Returns the anchor; `None` also while it is being replaced.
    #[inline]
    pub(super) fn get(&self) -> Option<Anchor> {
        let version = self.version.load(Ordering::Acquire);
        let anchor = Anchor {
            ticks: self.ticks.load(Ordering::Relaxed),
            nanos: self.nanos.load(Ordering::Relaxed),
            pace: self.pace.load(Ordering::Relaxed),
        };
        // Whoever has read a value of a replacement sees the odd version that was stored before it.
        fence(Ordering::Acquire);
        (version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version).then_some(anchor)
    }

    /// Replaces the anchor. Only one thread at a time may do so.
    pub(super) fn set(&self, anchor: Option<Anchor>) {
        let odd = self.version.load(Ordering::Relaxed) | 1;
        self.version.store(odd, Ordering::Relaxed);
        fence(Ordering::Release);
        if let Some(Anchor { ticks, nanos, pace }) = anchor {
            self.ticks.store(ticks, Ordering::Relaxed);
            self.nanos.store(nanos, Ordering::Relaxed);
            self.pace.store(pace, Ordering::Relaxed);
            self.version.store(odd + 1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn readers_never_see_parts_of_two_anchors() {
        const ROUNDS: u64 = 100_000;
        let (shared, done) = (SharedAnchor::new(), AtomicBool::new(false));
        assert_eq!(shared.get(), None);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let Some(anchor) = shared.get() else { continue };
                        assert_eq!((anchor.nanos, anchor.pace), (anchor.ticks, anchor.ticks));
                        assert!(anchor.ticks >= last, "an old anchor came back");
                        last = anchor.ticks;
                    }
                });
            }
            for i in 1..=ROUNDS {
                shared.set((i % 5 > 0).then_some(Anchor { ticks: i, nanos: i, pace: i }));
            }
            shared.set(Some(Anchor { ticks: ROUNDS, nanos: ROUNDS, pace: ROUNDS }));
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(shared.get().map(|anchor| anchor.ticks), Some(ROUNDS));
    }
}
