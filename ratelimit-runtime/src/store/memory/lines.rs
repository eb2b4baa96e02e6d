//! The lines of the table, as the holder of its lock changes them.

use std::sync::Arc;

use super::owners::Owner;
use super::slots::{LineId, SlotId};
use super::table::Table;
use crate::key::Fingerprint;

impl Table {
    /// Returns an unused slot for a key, in a new extra line if there is none.
    pub(super) fn unused_slot(&mut self, key: Fingerprint) -> SlotId {
        let home = self.slots.home(key);
        self.unused_slot_in_chain(home).unwrap_or_else(|| self.add_extra_line(home).slot(0))
    }

    /// Adds a line, and moves the keys there that hash to it.
    pub(super) fn split_line(&mut self) {
        self.owners.add(false);
        let slots = Arc::clone(&self.slots);
        let split = slots.add_line();
        // What is moved goes to another chain.
        for slot in slots.chain(split) {
            let key = slots.slot(slot).fingerprint();
            if !self.is_unused(slot) && slots.home(key) != split {
                let to = self.unused_slot(key);
                self.relocate(slot, to);
            }
        }
        self.shorten(split);
        let next = slots.next_split();
        slots.prefetch(next);
        self.owners.prefetch(next);
    }

    /// Moves keys from the end of a chain to unused slots before them, and removes extra lines that are then empty.
    pub(super) fn shorten(&mut self, home: LineId) {
        while let Some(before_last) = self.before_last(home) {
            let Some(last) = self.slots.next(before_last) else { return };
            for slot in self.slots.slots_of(last) {
                if self.is_unused(slot) {
                    continue;
                }
                match self.unused_slot_in_chain(home).filter(|unused| unused.line() != last) {
                    Some(unused) => self.relocate(slot, unused),
                    None => return,
                }
            }
            self.slots.set_next(before_last, None);
            self.slots.set_next(last, self.free_extra_line);
            self.free_extra_line = Some(last);
        }
    }

    /// Returns the line before the last one of a chain, if it has several.
    fn before_last(&self, home: LineId) -> Option<LineId> {
        let (mut before, mut last) = (None, home);
        while let Some(next) = self.slots.next(last) {
            (before, last) = (Some(last), next);
        }
        before
    }

    fn unused_slot_in_chain(&self, home: LineId) -> Option<SlotId> {
        self.slots.find_in_chain(home, |slot| slot.read().content.is_free())
    }

    fn is_unused(&self, slot: SlotId) -> bool {
        self.slots.slot(slot).read().content.is_free()
    }

    fn add_extra_line(&mut self, home: LineId) -> LineId {
        let extra = match self.free_extra_line {
            Some(line) => {
                self.free_extra_line = self.slots.next(line);
                self.slots.set_next(line, None);
                line
            }
            None => self.slots.grow_extra(self.owners.add(true)),
        };
        let last = self.slots.lines_from(home).last().unwrap_or(home);
        self.slots.set_next(last, Some(extra));
        extra
    }

    fn relocate(&mut self, from: SlotId, to: SlotId) {
        self.slots.relocate(from, to);
        let owner @ Owner { policy, place } = self.owners[from];
        self.owners[to] = owner;
        self.shares.relocate(policy, place, to);
    }
}
