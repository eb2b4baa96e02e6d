//! A key's place in the table: four words that any thread reads, and that one at a time writes.
//!
//! It is a sequence lock. Who writes sets a bit of the word, which every write replaces; who reads takes what it has read for
//! true only if the word is still the same. So a refusal, which only reads, writes nothing that processors share.

use crate::algorithm::holds::FOREVER;
use crate::algorithm::{PlainState, dated_pace};
use crate::base::prefetch::prefetch;
use crate::base::sync::{AtomicU64, Ordering, fence, spin_loop, yield_now};
use crate::key::Fingerprint;

/// The memory of a slot: the fingerprint of its key, the word, and a number.
pub(super) type Cells = [AtomicU64; 4];

/// A slot of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<'a>(&'a Cells);

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// No key.
    Free = 0,
    /// A bucket that is full when it ends.
    Bucket = 1,
    /// A window, and its number.
    Window = 2,
    /// Any other state.
    Other = 3,
    /// A bucket whose rate can change, that is full when it ends, and its number.
    AdjustableBucket = 4,
}

/// What a slot holds, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    kind: Kind,
    /// When the state ends; for a window without permits, when the next may be opened.
    pub(super) ends: u64,
    /// When a bucket was written last, the number of a plain state, or the index of another one.
    number: u64,
}

/// The content of a slot at one moment, if it has not changed since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    word: u64,
    pub(super) content: Content,
}

/// A slot that no other thread writes to. Dropped, it is unlocked: as it was, or with what was written.
#[derive(Debug)]
pub(super) struct LockedSlot<'a> {
    slot: Slot<'a>,
    word: u64,
}

/// The bits of a word: the time, a version that every write increments, the kind, and whether it is being written.
const TIME: u64 = (1 << 53) - 1;
const VERSION: u64 = 0x7f << 53;
const KIND: u32 = 60;
const LOCK: u64 = 1 << 63;

/// The bit of a number that says that a state elsewhere is for the holder of the table's lock: calls wait for it, or are about to.
const OF_TABLE: u64 = 1 << 32;

/// How often a thread looks again before it lets others run. Nobody holds a slot for longer than a few dozen instructions,
/// unless the system stops it there.
const SPINS: u32 = 64;

impl<'a> Slot<'a> {
    #[inline]
    pub(super) fn new(cells: &'a Cells) -> Self {
        Slot(cells)
    }

    #[inline]
    fn word(self) -> &'a AtomicU64 {
        &self.0[2]
    }

    #[inline]
    fn number(self) -> &'a AtomicU64 {
        &self.0[3]
    }

    /// Whether it is the slot of this key. Only the holder of the table's lock, or of this slot, can rely on it.
    #[inline]
    pub(super) fn is_of(self, key: Fingerprint) -> bool {
        self.may_be_of(key) & (self.0[1].load(Ordering::Relaxed) == key.1)
    }

    /// Whether it may be the slot of this key: the first half of the fingerprint is there. Fewer than one key in 2^35 shares that
    /// with another one of its line, and is decided under the table's lock if the slot of the other one is found.
    #[inline]
    pub(super) fn may_be_of(self, Fingerprint(first, _): Fingerprint) -> bool {
        self.0[0].load(Ordering::Relaxed) == first
    }

    /// Returns the key. Only the holder of the table's lock can rely on it.
    pub(super) fn fingerprint(self) -> Fingerprint {
        Fingerprint(self.0[0].load(Ordering::Relaxed), self.0[1].load(Ordering::Relaxed))
    }

    /// Lets the processor fetch the content.
    #[inline]
    pub(super) fn prefetch(self) {
        prefetch(self.word());
    }

    /// Reads the content. What is read holds if [`is_unchanged`](Self::is_unchanged) says so afterwards.
    #[inline(always)]
    pub(super) fn read(self) -> Seen {
        let mut spins = 0;
        loop {
            let word = self.word().load(Ordering::Acquire);
            if word & LOCK == 0 {
                return self.seen(word);
            }
            wait(&mut spins);
        }
    }

    /// Reads the content as [`read`](Self::read) does, unless the slot is locked.
    #[inline(always)]
    pub(super) fn read_unlocked(self) -> Option<Seen> {
        let word = self.word().load(Ordering::Acquire);
        if word & LOCK == 0 { Some(self.seen(word)) } else { None }
    }

    #[inline(always)]
    fn seen(self, word: u64) -> Seen {
        let number = self.number().load(Ordering::Relaxed);
        Seen { word, content: Content::new(word, number) }
    }

    /// Whether the slot still is of this key, and has held what was seen ever since.
    #[inline(always)]
    pub(super) fn is_unchanged(self, seen: Seen, key: Fingerprint) -> bool {
        let is_of = self.is_of(key);
        // Whoever has read what another thread writes finds the word locked or changed.
        fence(Ordering::Acquire);
        is_of & (self.word().load(Ordering::Relaxed) == seen.word)
    }

    /// Locks the slot, unless it is not of this key or has changed since it was seen.
    #[inline(always)]
    pub(super) fn try_lock(self, seen: Seen, key: Fingerprint) -> Option<LockedSlot<'a>> {
        let locked = self.try_lock_word(seen.word)?;
        // The word may be the same again by chance, after as many writes as there are versions.
        let is_as_seen = self.is_of(key) && self.number().load(Ordering::Relaxed) == seen.content.number;
        is_as_seen.then_some(locked)
    }

    /// Locks the slot.
    pub(super) fn lock(self) -> LockedSlot<'a> {
        loop {
            if let Some(locked) = self.try_lock_word(self.read().word) {
                return locked;
            }
        }
    }

    #[inline(always)]
    fn try_lock_word(self, word: u64) -> Option<LockedSlot<'a>> {
        self.word().compare_exchange(word, word | LOCK, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(LockedSlot { slot: self, word })
    }
}

impl LockedSlot<'_> {
    #[inline]
    pub(super) fn content(&self) -> Content {
        Content::new(self.word, self.slot.number().load(Ordering::Relaxed))
    }

    /// Whether it is this slot.
    pub(super) fn is(&self, slot: Slot<'_>) -> bool {
        std::ptr::eq(self.slot.0, slot.0)
    }

    /// Returns the key.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.slot.fingerprint()
    }

    /// Changes the key.
    #[inline]
    pub(super) fn set_fingerprint(&self, Fingerprint(first, second): Fingerprint) {
        for (cell, half) in self.slot.0.iter().zip([first, second]) {
            // Release, after the lock.
            cell.store(half, Ordering::Release);
        }
    }

    /// Removes the key and unlocks the slot.
    pub(super) fn clear(self) {
        // A reader that still comes by finds another key.
        self.set_fingerprint(Fingerprint(0, 0));
        self.set(Content::FREE);
    }

    /// Sets the content and unlocks the slot.
    #[inline(always)]
    pub(super) fn set(mut self, content: Content) {
        self.write(content);
    }

    /// Sets the content. Other threads see it once the slot is unlocked.
    #[inline(always)]
    pub(super) fn write(&mut self, content: Content) {
        // Release, after the lock.
        self.slot.number().store(content.number, Ordering::Release);
        let version = self.word.wrapping_add(1 << 53) & VERSION;
        self.word = (content.kind as u64) << KIND | version | content.ends;
    }
}

impl Drop for LockedSlot<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.word().store(self.word, Ordering::Release);
    }
}

impl Content {
    /// No key.
    const FREE: Content = Content { kind: Kind::Free, ends: 0, number: 0 };

    /// A plain state as of now, unless its numbers are too large for a slot.
    #[inline(always)]
    pub(super) fn of(state: PlainState, now: u64) -> Option<Self> {
        let content = match state {
            PlainState::Bucket { full } => Content { kind: Kind::Bucket, ends: full, number: now },
            PlainState::AdjustableBucket { full, number } => {
                Content { kind: Kind::AdjustableBucket, ends: full, number }
            }
            PlainState::Window { end, number } => Content { kind: Kind::Window, ends: end, number },
        };
        (content.ends <= TIME).then_some(content)
    }

    /// A state that is kept elsewhere, for the holder of this slot.
    pub(super) fn other(index: u32, ends: u64) -> Self {
        Content { kind: Kind::Other, ends: ends.min(TIME), number: index.into() }
    }

    /// A state that is kept elsewhere, for the holder of the table's lock.
    pub(super) fn of_table(index: u32, ends: u64) -> Self {
        let content = Content::other(index, ends);
        Content { number: content.number | OF_TABLE, ..content }
    }

    /// The same, with a state that ends at this time.
    pub(super) fn ending(self, ends: u64) -> Self {
        Content { ends: ends.min(TIME), ..self }
    }

    /// What a slot holds once its state is gone, until the key is used again or removed.
    pub(super) fn ended(self, now: u64) -> Self {
        let (ends, number) = match self.kind {
            Kind::Bucket | Kind::AdjustableBucket => (0, now),
            // One that was empty already keeps since when.
            Kind::Window if self.number == 0 => (self.ends, 0),
            Kind::Window => (now.min(TIME), 0),
            Kind::Free | Kind::Other => (0, self.number),
        };
        Content { ends, number, ..self }
    }

    /// What a slot holds once a reset has forgotten its holds, if it has any: they are released by when the first of them began, so the
    /// next ones begin later. A key that has none keeps when that is.
    pub(super) fn without_holds(self) -> Option<Self> {
        match self.kind {
            Kind::Window if self.number == 0 => Some(self),
            Kind::Window => Some(Content { ends: self.ends.checked_sub(FOREVER)? + 1, number: 0, ..self }),
            _ => None,
        }
    }

    /// Whether it is a state that has not ended.
    pub(super) fn is_live(self, now: u64) -> bool {
        self.ends > now && (self.kind != Kind::Window || self.number > 0)
    }

    /// Returns the state, if it is plain.
    #[inline(always)]
    pub(super) fn plain(self) -> Option<PlainState> {
        match self.kind {
            Kind::Bucket => Some(PlainState::Bucket { full: self.ends }),
            Kind::Window => Some(PlainState::Window { end: self.ends, number: self.number }),
            Kind::AdjustableBucket => {
                Some(PlainState::AdjustableBucket { full: self.ends, number: self.number })
            }
            Kind::Free | Kind::Other => None,
        }
    }

    /// Whether a bucket was written later than now, and so is not to be decided as of now.
    #[inline]
    pub(super) fn is_later_than(self, now: u64) -> bool {
        match self.kind {
            Kind::AdjustableBucket if self.ends > 0 => dated_pace(self.ends, self.number).0 > now,
            Kind::Bucket | Kind::AdjustableBucket => self.number > now,
            Kind::Free | Kind::Window | Kind::Other => false,
        }
    }

    /// Whether only the holder of the table's lock decides it.
    #[inline]
    pub(super) fn is_of_table(self) -> bool {
        match self.kind {
            Kind::Bucket | Kind::AdjustableBucket | Kind::Window => false,
            Kind::Free => true,
            Kind::Other => self.number & OF_TABLE != 0,
        }
    }

    /// Returns the index of the state, if it is kept elsewhere.
    #[inline]
    pub(super) fn as_other(self) -> Option<u32> {
        (self.kind == Kind::Other).then_some(self.number as u32)
    }

    /// Whether it is of a key whose state had ended by then.
    #[inline]
    pub(super) fn has_ended(self, by: u64) -> bool {
        !self.is_free() && self.ends <= by
    }

    pub(super) fn is_free(self) -> bool {
        self.kind == Kind::Free
    }

    #[inline(always)]
    fn new(word: u64, number: u64) -> Self {
        let kind = match word >> KIND & 7 {
            0 => Kind::Free,
            1 => Kind::Bucket,
            2 => Kind::Window,
            4 => Kind::AdjustableBucket,
            _ => Kind::Other,
        };
        Content { kind, ends: word & TIME, number }
    }
}

/// Waits a moment for another thread.
#[cold]
fn wait(spins: &mut u32) {
    if *spins < SPINS {
        *spins += 1;
        spin_loop();
    } else {
        yield_now();
    }
}
