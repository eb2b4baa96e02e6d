//! What only the holder of the table's lock reads of a slot.

use std::ops::{Index, IndexMut};

use super::segments::Segments;
use super::slots::{LINE, LineId, SlotId};

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

impl Owners {
    /// Adds a line behind the last of its kind. Returns its number.
    pub(super) fn add(&mut self, is_extra: bool) -> u32 {
        let lines = if is_extra { &mut self.extra_lines } else { &mut self.lines };
        lines.push(Default::default());
        lines.len() as u32 - 1
    }

    /// Returns the number of lines of both kinds.
    pub(super) fn lines(&self) -> u32 {
        (self.lines.len() + self.extra_lines.len()) as u32
    }

    /// Returns one of all lines. The extra ones, many of which are unused, are spread evenly among the others.
    pub(super) fn line(&self, number: u32) -> LineId {
        let (extra, all) = (self.extra_lines.len() as u64, u64::from(self.lines()));
        let extra_before = |number: u32| (u64::from(number) * extra / all) as u32;
        let before = extra_before(number);
        if extra_before(number + 1) > before { LineId::extra(before) } else { LineId::new(number - before) }
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
