//! What only the holder of the table's lock reads of a slot.

use std::ops::{Index, IndexMut};

use super::segments::Segments;
use super::slots::{LINE, LineId, SlotId};
use crate::base::prefetch::prefetch;

/// The policy of a key, and the place of its slot among the policy's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owner {
    pub(super) policy: u32,
    pub(super) place: u32,
}

/// The owners of all slots, by line.
#[derive(Debug, Default)]
pub(super) struct Owners {
    lines: Segments<[Owner; LINE as usize]>,
    extra_lines: Segments<[Owner; LINE as usize]>,
}

/// The last line whose turn it was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hand {
    /// The lines before this one.
    passed: u64,
    /// The extra ones before the next one.
    extra_before: u64,
}

impl Owners {
    /// Adds a line behind the last of its kind. Returns its number.
    pub(super) fn add(&mut self, is_extra: bool) -> u32 {
        let lines = if is_extra { &mut self.extra_lines } else { &mut self.lines };
        lines.push(Default::default());
        lines.len() as u32 - 1
    }

    /// Lets the processor fetch the owners of a line.
    #[inline]
    pub(super) fn prefetch(&self, line: LineId) {
        prefetch(&self[line.slot(0)]);
    }

    /// Returns the number of lines of both kinds.
    pub(super) fn lines(&self) -> u32 {
        (self.lines.len() + self.extra_lines.len()) as u32
    }

    /// Returns the next line of all in turn. The extra ones, many of which are unused, are spread evenly among the others.
    pub(super) fn next_line(&self, hand: &mut Hand) -> LineId {
        let (all, extra) = (u64::from(self.lines()), self.extra_lines.len() as u64);
        hand.passed = if hand.passed + 1 < all { hand.passed + 1 } else { 0 };
        if hand.passed == 0 {
            hand.extra_before = 0;
        }
        let Hand { passed, extra_before } = *hand;
        // A comparison of fractions, as a division takes longer than all else here.
        if (passed + 1) * extra >= (extra_before + 1) * all {
            hand.extra_before += 1;
            LineId::extra(extra_before as u32)
        } else {
            LineId::new((passed - extra_before) as u32)
        }
    }
}

impl Index<SlotId> for Owners {
    type Output = Owner;

    fn index(&self, slot: SlotId) -> &Owner {
        let line = slot.line();
        let lines = if line.is_extra() { &self.extra_lines } else { &self.lines };
        &lines[line.number()][slot.position() as usize]
    }
}

impl IndexMut<SlotId> for Owners {
    fn index_mut(&mut self, slot: SlotId) -> &mut Owner {
        let line = slot.line();
        let lines = if line.is_extra() { &mut self.extra_lines } else { &mut self.lines };
        &mut lines[line.number()][slot.position() as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn all_lines_take_turns_with_the_extra_ones_spread_among_them() {
        for extra in 0..20 {
            let mut owners = Owners::default();
            (0..20).for_each(|_| _ = owners.add(false));
            (0..extra).for_each(|_| _ = owners.add(true));
            let mut hand = Hand::default();
            let turn: Vec<_> = (0..owners.lines()).map(|_| owners.next_line(&mut hand)).collect();
            let numbers = |is_extra| {
                let lines = turn.iter().filter(|line| line.is_extra() == is_extra);
                let mut numbers: Vec<_> = lines.map(|line| line.number()).collect();
                numbers.sort_unstable();
                numbers
            };
            assert_eq!(numbers(false), (0..20).collect::<Vec<_>>());
            assert_eq!(numbers(true), (0..extra).collect::<Vec<_>>());
            for (i, _) in turn.iter().enumerate().filter(|(_, line)| line.is_extra()) {
                assert!(!turn.get(i + 1).is_some_and(|next| next.is_extra()), "{turn:?}");
            }
        }
    }

    #[test]
    fn all_lines_take_turns_while_others_are_added() {
        let (mut owners, mut hand) = (Owners::default(), Hand::default());
        owners.add(false);
        for i in 0..100u32 {
            owners.add(i % 7 < i / 30);
            let numbers = |is_extra, lines: usize| (0..lines as u32).map(move |number| (is_extra, number));
            let present = numbers(false, owners.lines.len()).chain(numbers(true, owners.extra_lines.len()));
            let present: HashSet<_> = present.collect();
            let mut seen = HashSet::new();
            // The rest of a turn, and another one, which is longer.
            for step in 0..owners.lines() * 3 {
                if step % 50 == 7 {
                    owners.add(step % 3 == 0);
                }
                let line = owners.next_line(&mut hand);
                let lines = if line.is_extra() { &owners.extra_lines } else { &owners.lines };
                assert!((line.number() as usize) < lines.len());
                seen.insert((line.is_extra(), line.number()));
            }
            assert!(present.is_subset(&seen), "{i}");
        }
    }
}
