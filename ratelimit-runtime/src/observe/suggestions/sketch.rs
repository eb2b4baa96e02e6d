//! What the numbers that are tried refuse of some keys, which stand for all.
//!
//! While few enough keys are in use, all are followed. When there is no room for another one, keys go that are like new ones, because
//! they were not called for so long: to drop them changes nothing. If too many are left, the share of followed keys is halved, by their
//! hashes, and each key that stays counts twice from then on. Those with the most calls stay without that, because without one of them
//! the others would say little. So the expected weight of a key is 1 at all times, whatever it does, and weighted counts are
//! estimates of those of all keys without bias (Horvitz and Thompson, 1952).
//!
//! How far off they may be is seen from random groups of the followed keys: those that count once are left out, as nothing of them is
//! estimated (Wolter, "Introduction to Variance Estimation", chapter 2).

use super::ladder::Ladder;
use crate::algorithm::PlainState;
use crate::base::number_map::NumberMap;

/// How many keys are followed at most, and how many of them at most stay because they have many calls.
pub(super) const MAX_KEYS: usize = 1_000;
const MAX_BUSY: usize = MAX_KEYS / 2;

/// How often the share of the followed keys is halved at most.
const MAX_LEVEL: u32 = 40;

const GROUPS: usize = 16;

/// The calls of some keys, decided by all rungs of a ladder.
#[derive(Debug)]
pub(super) struct Sketch {
    pub(super) ladder: Ladder,
    keys: NumberMap<u64, Key>,
    /// How often the share of the followed keys was halved.
    level: u32,
    /// Of keys that count once.
    certain: Counts,
    /// Of the others, by groups of keys.
    groups: [Counts; GROUPS],
    /// How many calls were decided.
    pub(super) calls: u64,
    /// The times of the first call and of the last one.
    times: Option<(u64, u64)>,
}

/// A key that is followed.
#[derive(Debug)]
struct Key {
    states: Box<[PlainState]>,
    last: u64,
    calls: u64,
    /// How many keys it stands for.
    weight: u64,
    is_busy: bool,
}

/// Weighted calls, and those that each rung refuses.
#[derive(Clone, Debug)]
struct Counts {
    calls: u64,
    refused: Box<[u64]>,
}

/// A share of all calls, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) share: f64,
    pub(super) error: f64,
}

impl Estimate {
    /// The largest share that is likely.
    fn at_most(self) -> f64 {
        self.share + 2.0 * self.error
    }
}

impl Sketch {
    pub(super) fn new(ladder: Ladder) -> Self {
        let counts = Counts { calls: 0, refused: vec![0; ladder.rungs().len()].into() };
        Sketch {
            keys: NumberMap::default(),
            level: 0,
            groups: std::array::from_fn(|_| counts.clone()),
            certain: counts,
            calls: 0,
            times: None,
            ladder,
        }
    }

    /// Returns the largest hash of keys that are followed, besides the busy ones.
    pub(super) fn threshold(&self) -> u64 {
        u64::MAX >> self.level
    }

    /// Makes room for the key with this hash, if it is a new one and there is none. Returns whether other keys are followed than before.
    pub(super) fn make_room_for(&mut self, hash: u64, now: u64) -> bool {
        let is_full =
            self.keys.len() >= MAX_KEYS && hash <= self.threshold() && !self.keys.contains_key(&hash);
        if is_full {
            self.make_room(now);
        }
        is_full
    }

    /// Decides a call of the key with this hash. Returns whether that key is followed.
    pub(super) fn count(&mut self, hash: u64, now: u64, cost: u64) -> bool {
        let has_place = hash <= self.threshold() && self.keys.len() < MAX_KEYS;
        if !has_place && !self.keys.contains_key(&hash) {
            return false;
        }
        let (ladder, level) = (&self.ladder, self.level);
        let key = self.keys.entry(hash).or_insert_with(|| Key {
            states: ladder.new_key(),
            last: now,
            calls: 0,
            weight: 1 << level,
            is_busy: false,
        });
        // Calls that waited come after others that did not.
        key.last = key.last.max(now);
        key.calls += 1;
        let counts =
            if key.weight == 1 { &mut self.certain } else { &mut self.groups[hash as usize % GROUPS] };
        counts.calls = counts.calls.saturating_add(key.weight);
        ladder.decide(&mut key.states, key.last, cost, |place| {
            counts.refused[place] = counts.refused[place].saturating_add(key.weight);
        });
        self.calls += 1;
        let (first, last) = self.times.unwrap_or((now, now));
        self.times = Some((first.min(now), last.max(now)));
        true
    }

    /// Drops keys that are like new ones, and halves the share of the followed keys until a quarter of the room is free.
    fn make_room(&mut self, now: u64) {
        let longest = self.ladder.longest;
        self.keys.retain(|_, key| key.last + longest > now);
        while self.keys.len() > MAX_KEYS / 4 * 3 && self.level < MAX_LEVEL {
            self.keep_busy();
            self.level += 1;
            let threshold = self.threshold();
            self.keys.retain(|hash, key| key.is_busy || *hash <= threshold);
            self.keys.values_mut().filter(|key| !key.is_busy).for_each(|key| key.weight *= 2);
        }
    }

    /// Keeps an eighth of the keys whatever their hashes are: those with the most calls.
    fn keep_busy(&mut self) {
        let room = MAX_BUSY - self.keys.values().filter(|key| key.is_busy).count().min(MAX_BUSY);
        let mut others: Vec<_> = self.keys.values_mut().filter(|key| !key.is_busy).collect();
        let kept = (others.len() / 8).min(room);
        others.sort_unstable_by_key(|key| std::cmp::Reverse(key.calls));
        others.into_iter().take(kept).for_each(|key| key.is_busy = true);
    }

    /// Returns the hashes of the keys that are followed although they are above the threshold.
    pub(super) fn above_threshold(&self) -> impl Iterator<Item = u64> {
        self.keys.keys().copied().filter(|hash| *hash > self.threshold())
    }

    /// Returns how many keys are followed now.
    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Returns how long calls were followed, in microseconds.
    pub(super) fn lasts(&self) -> u64 {
        self.times.map_or(0, |(first, last)| last - first)
    }

    /// Returns an estimate of the calls of all keys.
    pub(super) fn all_calls(&self) -> u64 {
        self.all().map(|counts| counts.calls).fold(0, u64::saturating_add)
    }

    /// Returns the share of all calls that a rung refuses.
    pub(super) fn refused(&self, place: usize) -> Estimate {
        let calls = self.all_calls().max(1) as f64;
        let refused: f64 = self.all().map(|counts| counts.refused[place] as f64).sum();
        let share = refused / calls;
        let deviation = |counts: &Counts| counts.refused[place] as f64 - share * counts.calls as f64;
        let mean = self.groups.iter().map(deviation).sum::<f64>() / GROUPS as f64;
        let squares: f64 = self.groups.iter().map(|counts| (deviation(counts) - mean).powi(2)).sum();
        let variance = squares * GROUPS as f64 / (GROUPS - 1) as f64;
        Estimate { share, error: variance.sqrt() / calls }
    }

    /// Returns the place of the smallest rung that, like all larger ones, refuses no larger share than this in 95 of 100 cases: of calls
    /// that take several permits, a smaller rung may refuse fewer.
    pub(super) fn smallest(&self, at_most: f64) -> Option<usize> {
        let suffices = |place: &usize| self.refused(*place).at_most() <= at_most;
        (0..self.ladder.rungs().len()).rev().take_while(suffices).last()
    }

    fn all(&self) -> impl Iterator<Item = &Counts> {
        self.groups.iter().chain([&self.certain])
    }
}
