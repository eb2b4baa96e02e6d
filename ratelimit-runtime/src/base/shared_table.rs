//! Numbers by hashes, which many threads read together and one at a time replaces: a hash table under a sequence lock.

use super::shared_numbers::SharedNumbers;
// Not one that a model replaces, as it is the same in all of its runs.
use std::sync::atomic::AtomicUsize;

use super::sync::{AtomicU64, OnceLock, Ordering, fence};

/// Numbers that are remembered for some keys, which are hashes. Readers write nothing.
///
/// Places come in groups of seven, each with a word: the tags of its keys, and whether keys that had no place there are in the next
/// one. So most keys which are not there are told by a single word.
#[derive(Debug)]
pub(crate) struct SharedTable {
    /// How often the keys were replaced, and in the lowest bits the index of their table, [`NONE`] while they are being replaced, and if
    /// there is no room for them.
    replaced: AtomicU64,
    /// The version of the keys.
    version: AtomicU64,
    /// A table for each size that was needed. The next one has twice as many groups.
    tables: [OnceLock<Table>; 1 << INDEX_BITS],
}

const INDEX_BITS: u32 = 4;

/// The index of no table. The largest of the others has a place for more keys than may have overrides.
const NONE: usize = (1 << INDEX_BITS) - 1;

const GROUP: usize = 7;

/// How many of its places a group uses on average, at most.
const LOAD: usize = 4;

/// What is remembered for a key.
pub(crate) type Remembered = [u64; 5];

/// What that was computed from, if it was. All zeros are not nothing.
pub(crate) type Given = [u64; 8];

#[derive(Debug)]
struct Table {
    /// A byte for each place of a group: the tag of its key, or 0.
    tags: Box<[AtomicU64]>,
    places: Box<[Place]>,
    /// Made once something is remembered that was computed.
    given: OnceLock<Box<[SharedGiven]>>,
    _reserved: Reserved,
}

/// Places that count as those of all tables of the process.
#[derive(Debug)]
struct Reserved(usize);

/// How many of them there may be, so that they take at most 32 MiB with what was given.
const MOST_RESERVED: usize = 1 << 18;

/// Tables of so few places do not count.
const FEW: usize = 4 * GROUP;

static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// A cache line: a key, and what is remembered for it.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place {
    key: [AtomicU64; 2],
    remembered: SharedNumbers<5>,
}

/// A key that was found.
pub(crate) struct Found<'a> {
    of: &'a SharedTable,
    table: &'a Table,
    at: usize,
    place: &'a Place,
    /// Which keys are read, and the version of what is remembered for this one.
    read: [u64; 2],
}

/// Written only while nothing is remembered for the key.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct SharedGiven([AtomicU64; 8]);

impl SharedTable {
    /// Looks for a key: `None` if it is not known whether it is one of this version of the keys, and `Some(None)` if it is none.
    #[inline(always)]
    pub(crate) fn find(&self, version: u64, key: [u64; 2]) -> Option<Option<Found<'_>>> {
        let replaced = self.replaced.load(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) != version {
            return None;
        }
        let table = self.table(replaced)?;
        match table.find(key) {
            None => self.is_still(replaced).then_some(None),
            Some((at, place)) => {
                let remembered = place.remembered.begin();
                Some(Some(Found { of: self, table, at, place, read: [replaced, remembered] }))
            }
        }
    }

    /// Replaces the keys. Nothing is remembered for them. Only one thread at a time may write.
    pub(crate) fn replace(&self, version: u64, keys: &[[u64; 2]]) {
        let replaced = self.replaced.load(Ordering::Relaxed) & !(NONE as u64);
        self.replaced.store(replaced | NONE as u64, Ordering::Relaxed);
        fence(Ordering::Release);
        let index = keys.len().div_ceil(LOAD).next_power_of_two().ilog2() as usize;
        let Some(table) = self.tables[..NONE].get(index) else { return };
        if table.get().is_none()
            && let Some(reserved) = Reserved::new(GROUP << index)
        {
            table.get_or_init(|| Table::new(1 << index, reserved));
        }
        if let Some(table) = table.get() {
            table.fill(keys);
            self.version.store(version, Ordering::Relaxed);
            self.replaced.store((replaced + (1 << INDEX_BITS)) | index as u64, Ordering::Release);
        }
    }

    /// Remembers numbers for a key of this version of the keys, unless there is no such key. Only one thread at a time may write.
    pub(crate) fn remember(&self, version: u64, key: [u64; 2], given: Option<Given>, numbers: Remembered) {
        if let Some(table) = self.table(self.replaced.load(Ordering::Relaxed))
            && self.version.load(Ordering::Relaxed) == version
            && let Some((at, place)) = table.find(key)
        {
            table.remember(at, place, given, numbers);
        }
    }

    /// Returns the table of the keys.
    #[inline(always)]
    fn table(&self, replaced: u64) -> Option<&Table> {
        self.tables[replaced as usize % (1 << INDEX_BITS)].get()
    }

    /// Whether the keys have not been replaced since this was read.
    #[inline(always)]
    fn is_still(&self, replaced: u64) -> bool {
        // Whoever has read a key of a replacement sees that it has begun.
        fence(Ordering::Acquire);
        self.replaced.load(Ordering::Relaxed) == replaced
    }
}

/// No keys of any version.
impl Default for SharedTable {
    fn default() -> Self {
        SharedTable {
            replaced: AtomicU64::new(NONE as u64),
            version: AtomicU64::new(0),
            tables: [const { OnceLock::new() }; 1 << INDEX_BITS],
        }
    }
}

impl Table {
    fn new(groups: usize, reserved: Reserved) -> Self {
        let (tags, places) = (defaults(groups), defaults(groups * GROUP));
        Table { tags, places, given: OnceLock::new(), _reserved: reserved }
    }

    /// Returns the place of a key, if it is there.
    #[inline(always)]
    fn find(&self, key: [u64; 2]) -> Option<(usize, &Place)> {
        let group = key[0] as usize & (self.tags.len() - 1);
        let tags = self.tags[group].load(Ordering::Relaxed);
        // Only the lowest of these bits is sure to stand for a byte that is zero: a tag that is alike, or the mark of a group that keys
        // were left out of.
        let other = tags ^ (tag(key) * LOWEST);
        let alike = other.wrapping_sub(LOWEST | OPEN) & !other & ((LOWEST | OPEN) << 7);
        if alike == 0 {
            return None;
        }
        let i = alike.trailing_zeros() as usize / 8;
        let at = group * GROUP + i;
        // At the mark, the first place of the next group, which may have the key as well. It never has one of an earlier version then,
        // because keys that were left out of a group have taken it, or found it taken.
        match self.places.get(at).filter(|place| place.is_of(key)) {
            Some(place) => Some((at, place)),
            None => self.search(key),
        }
    }

    /// Returns the same as `find`, which ends at the first group for most keys.
    #[inline(never)]
    fn search(&self, key: [u64; 2]) -> Option<(usize, &Place)> {
        let tag = tag(key) * LOWEST;
        for group in self.groups(key) {
            let tags = self.tags[group].load(Ordering::Relaxed);
            let mut alike = zeros(tags ^ tag);
            while alike != 0 {
                let at = group * GROUP + alike.trailing_zeros() as usize / 8;
                if self.places[at].is_of(key) {
                    return Some((at, &self.places[at]));
                }
                alike &= alike - 1;
            }
            if tags & OPEN != 0 {
                return None;
            }
        }
        None
    }

    fn remember(&self, at: usize, place: &Place, given: Option<Given>, numbers: Remembered) {
        let place = &place.remembered;
        place.set(None);
        if let Some(given) = given {
            self.given.get_or_init(|| defaults(self.places.len()))[at].set(given);
        }
        place.set(Some(numbers));
    }

    fn fill(&self, keys: &[[u64; 2]]) {
        self.tags.iter().for_each(|tags| tags.store(OPEN, Ordering::Relaxed));
        for &key in keys {
            if self.find(key).is_none()
                && let Some((group, tags)) = self.groups(key).find_map(|group| {
                    let tags = self.tags[group].load(Ordering::Relaxed);
                    let is_free = zeros(tags) != 0;
                    if !is_free {
                        self.tags[group].store(tags & !OPEN, Ordering::Relaxed);
                    }
                    is_free.then_some((group, tags))
                })
            {
                let free = zeros(tags).trailing_zeros() as usize / 8;
                self.tags[group].store(tags | tag(key) << (8 * free), Ordering::Relaxed);
                self.places[group * GROUP + free].set(key);
            }
        }
    }

    /// Returns the groups in which a key is looked for, until one had a place for all of its keys.
    #[inline]
    fn groups(&self, [first, _]: [u64; 2]) -> impl Iterator<Item = usize> {
        // Their number is a power of 2.
        let last = self.tags.len() - 1;
        (0..=last).map(move |i| (first as usize).wrapping_add(i) & last)
    }
}

impl Found<'_> {
    /// Returns what is remembered for the key. Like all that is read of it, that counts if it [is still known](Self::is_still_known).
    pub(crate) fn numbers(&self) -> Remembered {
        [self.number::<0>(), self.number::<1>(), self.number::<2>(), self.number::<3>(), self.number::<4>()]
    }

    /// Returns one of these numbers.
    #[inline(always)]
    pub(crate) fn number<const I: usize>(&self) -> u64 {
        self.place.remembered.number::<I>()
    }

    /// Returns what they were computed from, if anything has been.
    #[inline(always)]
    pub(crate) fn given(&self) -> Option<&SharedGiven> {
        self.table.given.get()?.get(self.at)
    }

    /// Returns what is remembered for the key, if that is known: for all calls, or as computed from words that are all this number.
    #[cfg(any(test, ratelimits_loom))]
    pub(crate) fn remembered_for(&self, given: Option<u64>) -> Option<Remembered> {
        let numbers = self.numbers();
        let is_given = |given| self.given().is_some_and(|words| (0..8).all(|i| words.word(i) == given));
        (given.is_none_or(is_given) && self.is_still_known()).then_some(numbers)
    }

    /// Whether what was read is what is remembered for the key.
    #[inline(always)]
    pub(crate) fn is_still_known(&self) -> bool {
        let [replaced, remembered] = self.read;
        self.place.remembered.is_still(remembered) && self.of.is_still(replaced)
    }
}

impl Reserved {
    fn new(places: usize) -> Option<Self> {
        let places = if places > FEW { places } else { 0 };
        let with = |reserved: usize| Some(reserved + places).filter(|sum| *sum <= MOST_RESERVED);
        RESERVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).ok()?;
        Some(Reserved(places))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

impl Place {
    #[inline]
    fn is_of(&self, key: [u64; 2]) -> bool {
        self.key.iter().zip(key).all(|(shared, word)| shared.load(Ordering::Relaxed) == word)
    }

    fn set(&self, key: [u64; 2]) {
        self.remembered.set(None);
        self.key.iter().zip(key).for_each(|(shared, word)| shared.store(word, Ordering::Relaxed));
    }
}

impl SharedGiven {
    /// Returns one of the words; 0 if there are fewer.
    #[inline(always)]
    pub(crate) fn word(&self, i: usize) -> u64 {
        self.0.get(i).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn set(&self, given: Given) {
        self.0.iter().zip(given).for_each(|(shared, word)| shared.store(word, Ordering::Relaxed));
    }
}

/// The lowest bit of the tag of each place, and all but the highest.
const LOWEST: u64 = (u64::MAX >> 8) / 255;
const LOWER: u64 = LOWEST * 0x7f;

/// Set in a group that has a place for all of its keys.
const OPEN: u64 = 1 << 56;

/// Returns the highest bit of each tag that is zero. Nothing is carried from one byte to the next: a place that is free may still have
/// the key of an earlier version, and so must not be taken for one that has the tag.
#[inline]
fn zeros(bytes: u64) -> u64 {
    !(((bytes & LOWER) + LOWER) | bytes) & (LOWER + LOWEST)
}

/// Returns a byte of a key that does not tell its group, and is not 0.
#[inline]
fn tag([_, second]: [u64; 2]) -> u64 {
    second & 0xff | 1
}

fn defaults<T: Default>(len: usize) -> Box<[T]> {
    (0..len).map(|_| T::default()).collect()
}

#[cfg(test)]
mod tests;
