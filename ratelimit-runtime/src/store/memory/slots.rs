//! The slots of all keys. Their number grows by a few at a time, so no insertion takes long.

use super::levels::Levels;
use super::slot::{Cells, Content, Slot};
use super::states::States;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::key::Fingerprint;

/// The highest number of keys.
pub(super) const MAX_KEYS: usize = 1 << 29;

/// The slots of a line. Two share a cache line, and processors fetch two of these at a time.
pub(super) const LINE: u32 = 4;

/// The number of lines of an empty table.
const FIRST_LINES: u32 = 2;

/// How many keys there are for each four lines: so many that few lines are too short for their keys.
const KEYS_PER_FOUR_LINES: u64 = 13;

/// How many lines a reader looks at. The chain may change under it, so that it might go on forever.
const STEPS: usize = 16;

/// A hash table by linear hashing (Litwin, 1980): each key hashes to a line of slots, and a line is split in two as the table
/// grows. The few keys that do not fit into their line are in a chain of extra lines behind it.
///
/// Any thread finds a key without a lock. Only the holder of the table's lock adds, moves and removes keys. A reader may miss
/// one that is on its way, and asks again under that lock.
#[derive(Debug)]
pub(super) struct Slots {
    lines: Lines,
    extra_lines: Lines,
    /// The states that do not fit.
    pub(super) states: States,
    /// The number of lines without the extra ones, and in the upper half, one less than the next power of two.
    count: AtomicU64,
}

/// The memory of lines.
#[derive(Debug)]
struct Lines {
    cells: Levels<AtomicU64>,
    /// For each line the extra line behind it, plus one; 0 if there is none.
    next: Levels<AtomicU32>,
}

/// Where a slot is: a line, and the position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId(u32);

/// A line: its number, and whether it is an extra one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineId(u32);

/// The atomics of a line.
const CELLS: usize = LINE as usize * (size_of::<Cells>() / size_of::<AtomicU64>());

const EXTRA: u32 = 1 << 31;

impl LineId {
    pub(super) fn new(number: u32) -> Self {
        LineId(number)
    }

    pub(super) fn extra(number: u32) -> Self {
        LineId(number | EXTRA)
    }

    pub(super) fn is_extra(self) -> bool {
        self.0 & EXTRA != 0
    }

    /// Returns its number among those of its kind.
    pub(super) fn number(self) -> u32 {
        self.0 & !EXTRA
    }

    pub(super) fn slot(self, position: u32) -> SlotId {
        SlotId(self.0 & EXTRA | (self.number() * LINE + position))
    }
}

impl SlotId {
    pub(super) fn line(self) -> LineId {
        LineId(self.0 & EXTRA | ((self.0 & !EXTRA) / LINE))
    }

    pub(super) fn position(self) -> u32 {
        self.0 % LINE
    }
}

impl Slots {
    /// The slots of up to `max_keys` keys.
    pub(super) fn new(max_keys: usize) -> Self {
        let max_keys = max_keys.min(MAX_KEYS) as u64;
        let lines = (max_keys * 4).div_ceil(KEYS_PER_FOUR_LINES) + u64::from(FIRST_LINES);
        Slots {
            lines: Lines::new(lines),
            // Each has at least one key, except for those of a line that is being split.
            extra_lines: Lines::new(max_keys + 64),
            states: States::new(max_keys as u32 + 1),
            count: AtomicU64::new(with_mask(FIRST_LINES)),
        }
    }

    /// Makes the lines of an empty table. A store that is never used has none.
    pub(super) fn make_first_lines(&self) {
        (0..FIRST_LINES).for_each(|line| self.lines.grow(line));
    }

    /// Returns the slot that [may be](Slot::may_be_of) a key's, or `None` if the key is not there or on its way.
    #[inline(always)]
    pub(super) fn find(&self, key: Fingerprint) -> Option<Slot<'_>> {
        let home = self.home(key);
        let line = self.lines.cells.chunk(home.0 * CELLS as u32)?;
        find_in(line, key).or_else(|| self.find_behind(home, key))
    }

    /// Returns the slot that may be a key's in the extra lines behind a line.
    #[inline(never)]
    fn find_behind(&self, mut line: LineId, key: Fingerprint) -> Option<Slot<'_>> {
        for _ in 0..STEPS {
            line = self.next(line)?;
            let found = find_in(self.cells(line)?, key);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Returns the slot of a key, for the holder of the table's lock.
    pub(super) fn locate(&self, key: Fingerprint) -> Option<SlotId> {
        self.find_in_chain(self.home(key), |slot| slot.is_of(key))
    }

    /// Returns the first slot of a line, or of the extra lines behind it, that passes, for the holder of the table's lock.
    #[inline]
    pub(super) fn find_in_chain(&self, home: LineId, passes: impl Fn(Slot<'_>) -> bool) -> Option<SlotId> {
        let mut line = home;
        loop {
            let cells = self.cells(line)?.as_chunks().0;
            if let Some(position) = cells.iter().position(|cells| passes(Slot::new(cells))) {
                return Some(line.slot(position as u32));
            }
            line = self.next(line)?;
        }
    }

    /// Returns a slot that exists.
    pub(super) fn slot(&self, slot: SlotId) -> Slot<'_> {
        self.get(slot).expect("a slot that is known exists")
    }

    fn get(&self, slot: SlotId) -> Option<Slot<'_>> {
        let cells = self.cells(slot.line())?.as_chunks().0;
        Some(Slot::new(cells.get(slot.position() as usize)?))
    }

    /// Lets the processor fetch a line.
    #[inline]
    pub(super) fn prefetch(&self, line: LineId) {
        let cells = self.cells(line).map(|cells| cells.as_chunks().0).unwrap_or_default();
        // Two slots share a cache line.
        cells.iter().step_by(2).for_each(|cells| Slot::new(cells).prefetch());
    }

    /// Returns what the slots of a line hold.
    pub(super) fn contents_of(&self, line: LineId) -> impl Iterator<Item = Content> {
        let cells = self.cells(line).expect("a line that is known exists").as_chunks().0;
        cells.iter().map(|cells| Slot::new(cells).read().content)
    }

    /// Returns all slots of a line.
    pub(super) fn slots_of(&self, line: LineId) -> impl Iterator<Item = SlotId> + use<> {
        (0..LINE).map(move |position| line.slot(position))
    }

    /// Returns the slots of a line and of the extra lines behind it.
    pub(super) fn chain(&self, home: LineId) -> impl Iterator<Item = SlotId> {
        self.lines_from(home).flat_map(|line| self.slots_of(line))
    }

    /// Returns a line and the extra lines behind it.
    pub(super) fn lines_from(&self, home: LineId) -> impl Iterator<Item = LineId> {
        std::iter::successors(Some(home), |line| self.next(*line))
    }

    /// Returns the line that a key hashes to.
    #[inline]
    pub(super) fn home(&self, Fingerprint(hash, _): Fingerprint) -> LineId {
        let count = self.count.load(Ordering::Acquire);
        let (count, mask) = (count as u32, (count >> 32) as u32);
        let line = hash as u32 & mask;
        // The upper lines do not all exist yet. Their keys are in the line that will be split.
        LineId(if line < count { line } else { line & (mask >> 1) })
    }

    /// Returns the number of lines without the extra ones.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire) as u32
    }

    /// Whether there are more keys than the lines are for.
    pub(super) fn is_crowded(&self, keys: usize) -> bool {
        keys as u64 * 4 > u64::from(self.count()) * KEYS_PER_FOUR_LINES
    }

    /// Adds a line. Returns the line whose keys are to be divided between both.
    pub(super) fn add_line(&self) -> LineId {
        let (new, split) = (self.count(), self.next_split());
        self.lines.grow(new);
        self.count.store(with_mask(new + 1), Ordering::Release);
        split
    }

    /// Returns the line that is split when the next one is added.
    pub(super) fn next_split(&self) -> LineId {
        let new = self.count();
        LineId(new & (mask(new + 1) >> 1))
    }

    /// Returns the extra line behind a line.
    #[inline]
    pub(super) fn next(&self, line: LineId) -> Option<LineId> {
        let next = self.lines_of(line).next.get(line.number())?.load(Ordering::Acquire);
        Some(LineId::extra(next.checked_sub(1)?))
    }

    /// Sets the extra line behind a line.
    pub(super) fn set_next(&self, line: LineId, next: Option<LineId>) {
        if let Some(link) = self.lines_of(line).next.get(line.number()) {
            link.store(next.map_or(0, |next| next.number() + 1), Ordering::Release);
        }
    }

    /// Makes an extra line, the number of which is one more than that of the last.
    pub(super) fn grow_extra(&self, number: u32) -> LineId {
        self.extra_lines.grow(number);
        LineId::extra(number)
    }

    /// Moves a key to an unused slot.
    pub(super) fn relocate(&self, from: SlotId, to: SlotId) {
        let (from, to) = (self.slot(from).lock(), self.slot(to).lock());
        to.set_fingerprint(from.fingerprint());
        to.set(from.content());
        from.clear();
    }

    #[inline]
    fn cells(&self, line: LineId) -> Option<&[AtomicU64; CELLS]> {
        self.lines_of(line).cells.chunk(line.number() * CELLS as u32)
    }

    #[inline]
    fn lines_of(&self, line: LineId) -> &Lines {
        if line.is_extra() { &self.extra_lines } else { &self.lines }
    }
}

impl Lines {
    fn new(lines: u64) -> Self {
        let cells = lines * CELLS as u64;
        Lines {
            cells: Levels::new(cells.try_into().unwrap_or(u32::MAX)),
            next: Levels::new(lines.try_into().unwrap_or(u32::MAX)),
        }
    }

    fn grow(&self, line: u32) {
        self.cells.grow(line * CELLS as u32);
        self.next.grow(line);
    }
}

/// Returns the slot in a line that may be a key's.
///
/// Looks at all slots at once. Which one it is cannot be guessed, and both halves of the line are fetched together.
#[inline]
fn find_in(line: &[AtomicU64; CELLS], key: Fingerprint) -> Option<Slot<'_>> {
    let cells = line.as_chunks().0;
    let mut found = cells.len();
    for (position, cells) in cells.iter().enumerate() {
        found = if Slot::new(cells).may_be_of(key) { position } else { found };
    }
    cells.get(found).map(Slot::new)
}

#[inline]
fn with_mask(lines: u32) -> u64 {
    u64::from(mask(lines)) << 32 | u64::from(lines)
}

/// One less than the next power of two from the number of lines on.
#[inline]
fn mask(lines: u32) -> u32 {
    u32::MAX >> (lines - 1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_in_order() {
        assert_eq!([2, 3, 4, 5, 64, 65].map(mask), [1, 3, 3, 7, 63, 127]);
        let slots = Slots::new(100);
        let split: Vec<_> = (0..20).map(|_| slots.add_line().number()).collect();
        assert_eq!(split[..6], [0, 1, 0, 1, 2, 3]);
        assert_eq!(split[6..14], *(0..8).collect::<Vec<_>>());
    }

    #[test]
    fn ids_are_lines_and_positions() {
        for line in [LineId(7), LineId::extra(7)] {
            let slot = line.slot(3);
            assert_eq!((slot.line(), slot.position()), (line, 3));
        }
    }
}
