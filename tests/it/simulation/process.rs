//! What a process of the simulation knows and does, and what may happen to it.

use std::collections::HashMap;

use ratelimit_runtime::store::account::Account;

use super::schedule::{Network, SECOND};
use super::store::TTL;
use crate::support::random::Random;

/// What may fail in a schedule, and how often.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    pub(super) network: Network,
    pub(super) stalls: Option<u64>,
    pub(super) deaths: Option<u64>,
    pub(super) losses: Option<u64>,
    pub(super) failovers: Option<u64>,
}

impl Faults {
    pub(super) fn random(random: &mut Random) -> Faults {
        let mut percent = || random.pick(&[0, 0, 1, 3, 7]);
        let network = Network { lost: percent(), late: percent(), doubled: percent() };
        let mut mean = |every: u64| random.percent(30).then_some(every * SECOND);
        Faults { network, stalls: mean(20), deaths: mean(10), losses: mean(20), failovers: mean(15) }
    }
}

pub(super) struct Process {
    pub(super) account: Account,
    pub(super) is_dead: bool,
    /// What happens to it before happens then.
    pub(super) stalled_until: u64,
    pub(super) calls: HashMap<usize, Call>,
    /// The messages without a reply, and when the store has executed them.
    pub(super) open: HashMap<usize, Option<u64>>,
    /// When the store has believed what it said in this epoch, the last one that the store knows.
    pub(super) contact: u64,
    pub(super) epoch: u64,
    /// When its last call has ended.
    pub(super) ended: u64,
    /// Whether the store has lost data, and may believe less than this process holds.
    pub(super) is_misjudged: bool,
    /// Whether it held nothing when data was lost last, so that nothing had to come back.
    pub(super) held_nothing: bool,
}

impl Process {
    /// Its calls are no longer believed if it has said nothing for so long.
    pub(super) fn forget_if_silent(&mut self, now: u64) {
        let is_silent = now >= self.contact + TTL;
        self.calls.values_mut().for_each(|call| call.is_forgotten |= is_silent);
    }
}

pub(super) struct Call {
    pub(super) permits: u64,
    /// Whether the store may have forgotten it.
    pub(super) is_forgotten: bool,
}
