//! A list that never copies more than one small segment when it grows.

use std::mem;
use std::ops::{Index, IndexMut};

/// The elements of a segment.
const SEGMENT: usize = 1024;

/// A list in segments.
#[derive(Debug)]
pub(super) struct Segments<T> {
    /// All but the last are full.
    segments: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Segments<T> {
    fn default() -> Self {
        Segments { segments: Vec::new(), len: 0 }
    }
}

impl<T> Segments<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, element: T) {
        if self.len == self.segments.len() * SEGMENT {
            // The first segment starts small, because most stores are.
            let capacity = if self.len == 0 { 0 } else { SEGMENT };
            self.segments.push(Vec::with_capacity(capacity));
        }
        if let Some(last) = self.segments.last_mut() {
            last.push(element);
            self.len += 1;
        }
    }

    /// Removes the last element.
    pub(super) fn pop(&mut self) -> Option<T> {
        let last_segment = self.segments.last_mut()?;
        let last = last_segment.pop()?;
        if last_segment.is_empty() {
            self.segments.pop();
        }
        self.len -= 1;
        Some(last)
    }

    /// Removes an element, whose place the last one takes.
    pub(super) fn swap_remove(&mut self, index: u32) -> Option<T> {
        let last = self.pop()?;
        Some(if index as usize == self.len { last } else { mem::replace(&mut self[index], last) })
    }
}

impl<T> Index<u32> for Segments<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.segments[index as usize / SEGMENT][index as usize % SEGMENT]
    }
}

impl<T> IndexMut<u32> for Segments<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.segments[index as usize / SEGMENT][index as usize % SEGMENT]
    }
}
