//! What happens in a simulation, in the order of its time, and what the network makes of messages.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::support::random::Random;

pub(super) const MILLISECOND: u64 = 1000;
pub(super) const SECOND: u64 = 1_000_000;
/// The longest time that a message takes.
pub(super) const LATEST: u64 = 5 * SECOND;

/// Events at their times, in microseconds.
pub(super) struct Schedule<E> {
    pub(super) now: u64,
    pub(super) random: Random,
    /// With the number of the event, by which those of one time are in order.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    events: Vec<Option<E>>,
}

/// Of 100 messages, how many do not arrive as they should.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) lost: u64,
    pub(super) late: u64,
    pub(super) doubled: u64,
}

/// What becomes of a message to the store and of the reply: the times after which they arrive.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) arrives_after: Vec<u64>,
    pub(super) reply_after: Option<u64>,
}

impl<E> Schedule<E> {
    pub(super) fn new(random: Random) -> Self {
        Schedule { now: 0, random, next: BinaryHeap::new(), events: Vec::new() }
    }

    pub(super) fn after(&mut self, delay: u64, event: E) {
        self.next.push(Reverse((self.now + delay, self.events.len())));
        self.events.push(Some(event));
    }

    /// Goes on to the next event.
    pub(super) fn next(&mut self) -> Option<E> {
        let Reverse((time, number)) = self.next.pop()?;
        self.now = time;
        self.events[number].take()
    }

    /// Returns a time around the mean, mostly shorter, sometimes much longer.
    pub(super) fn around(&mut self, mean: u64) -> u64 {
        let random = (self.random.below(1 << 32) + 1) as f64 / (1_u64 << 32) as f64;
        (-random.ln() * mean as f64) as u64
    }

    pub(super) fn passage(&mut self, network: Network) -> Passage {
        let random = &mut self.random;
        let mut usual = || random.between(500, 2 * MILLISECOND);
        let (there, back, again) = (usual(), usual(), usual());
        let late = random.between(300 * MILLISECOND, LATEST);
        let mut passage = Passage { arrives_after: vec![there], reply_after: Some(back) };
        let chance = random.below(100);
        if chance < network.lost {
            match random.below(2) {
                0 => passage = Passage { arrives_after: Vec::new(), reply_after: None },
                _ => passage.reply_after = None,
            }
        } else if chance < network.lost + network.late {
            match random.below(2) {
                0 => passage.arrives_after = vec![late],
                _ => passage.reply_after = Some(late),
            }
        } else if chance < network.lost + network.late + network.doubled {
            let second = if random.percent(50) { again } else { late };
            passage.arrives_after.push(there + second);
        }
        passage
    }
}
