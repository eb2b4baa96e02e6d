//! What happened in a schedule.

use std::sync::Arc;

use ratelimits::Decision;

use super::bounds::{Admission, Numbers};
use super::network::Link;

/// A call that was admitted.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) process: usize,
    pub(super) target: usize,
    pub(super) key: u64,
    pub(super) is_local: bool,
    /// What it was charged, before it was settled.
    pub(super) cost: u64,
    pub(super) admission: Admission,
    /// Until it is settled or refunded.
    pub(super) decision: Option<Decision>,
}

/// Permits that were given back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refund {
    pub(super) target: usize,
    pub(super) key: u64,
    pub(super) permits: u64,
    pub(super) at: u64,
    /// When the call began that had taken them, by whose receipt they were given back.
    pub(super) of: Option<u64>,
    /// The process that had decided the call by its share of an outage.
    pub(super) local: Option<usize>,
}

/// Longer than a message takes that is late, in microseconds.
const LATE: u64 = 2_500_000;

/// A call that was refused by its policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub(super) target: usize,
    pub(super) key: u64,
    pub(super) cost: u64,
    pub(super) numbers: Numbers,
    pub(super) at: u64,
}

/// Permits that a call holds, until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) process: usize,
    pub(super) target: usize,
    pub(super) key: u64,
    pub(super) permits: u64,
    /// How many it allows at once.
    pub(super) limit: u64,
    pub(super) start: u64,
    /// When it was known to be admitted.
    pub(super) end: u64,
    /// Until when the server may not know of it.
    pub(super) unknown_until: u64,
    /// Whether its key was reset.
    pub(super) is_reset: bool,
    pub(super) link: Link,
    #[expect(dead_code, reason = "its drop ends the call")]
    pub(super) decision: Arc<Decision>,
}

/// A time in which permits were held, or waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) target: usize,
    pub(super) key: u64,
    pub(super) permits: u64,
    pub(super) from: u64,
    pub(super) until: u64,
}

/// A pause of a key, from when it is known until when it ends at the earliest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    pub(super) target: usize,
    pub(super) key: u64,
    /// Those of the state that is paused.
    pub(super) numbers: Numbers,
    /// When it was set at the earliest.
    pub(super) set: u64,
    pub(super) from: u64,
    pub(super) until: u64,
}

/// A pause of a key because of a call that was refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalty {
    pub(super) target: usize,
    pub(super) key: u64,
    /// When the call began and ended.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) micros: u64,
}

/// A notice to observers that a key has used a share of its limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice {
    pub(super) target: usize,
    pub(super) key: u64,
    pub(super) at: u64,
    /// When the window ends, if the call that found it had just been decided.
    pub(super) ends: u64,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) calls: Vec<Call>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) holds: Vec<Held>,
    /// When permits were held that are released.
    pub(super) held: Vec<Span>,
    /// When calls waited for permits to hold.
    pub(super) waits: Vec<Span>,
    pub(super) pauses: Vec<Pause>,
    pub(super) penalties: Vec<Penalty>,
    /// When keys of all targets may have lost their states.
    pub(super) breaks: Vec<u64>,
    /// Those at which data was lost, and those at which the clock was stepped, by how many microseconds.
    pub(super) losses: Vec<u64>,
    pub(super) steps: Vec<(u64, i64)>,
    /// The same of a key: when it was reset.
    pub(super) resets: Vec<(usize, u64, [u64; 2])>,
    pub(super) refunds: Vec<Refund>,
    pub(super) problems: Vec<String>,
    pub(super) store_errors: u64,
    pub(super) refused: u64,
    pub(super) admitted_holds: u64,
}

impl Refund {
    /// Whether it is made by the receipt of a call whose state may have been lost before, between two of these times.
    pub(super) fn outlives(&self, losses: &[[u64; 2]]) -> bool {
        let is_between =
            |[from, to]: &[u64; 2]| *from <= self.at + LATE && self.of.is_some_and(|of| *to >= of);
        losses.iter().any(is_between)
    }
}

impl Log {
    /// Ends a call that holds permits.
    pub(super) fn release(&mut self, at: usize, now: u64) -> Held {
        let held = self.holds.remove(at);
        let Held { target, key, permits, start, .. } = held;
        self.held.push(Span { target, key, permits, from: start, until: now });
        held
    }
}
