//! The calls of a log, key by key.

/// A call, decided by the clock of the algorithms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) key: usize,
    /// In microseconds since the Unix epoch.
    pub(super) time: u64,
    pub(super) cost: u64,
}

/// All calls of a log, of which the last part is held out.
#[derive(Debug)]
pub(super) struct Demand {
    /// One key after the other, each in the order of times.
    calls: Vec<Call>,
    /// The times of the first call, of the first one that is held out, and of the last.
    pub(super) first: u64,
    pub(super) held_out_from: u64,
    pub(super) last: u64,
    /// How many calls are not held out.
    pub(super) used: u64,
}

/// One of so many calls is held out.
pub(super) const HELD_OUT: usize = 5;

impl Demand {
    /// Sorts calls, which are in the order of their lines. Calls at one time are all held out, or none is. Returns nothing if all
    /// of them are at one time, so that none can be held out.
    pub(super) fn new(mut calls: Vec<Call>) -> Option<Self> {
        calls.sort_by_key(|call| call.time);
        let (first, last) = (calls.first()?.time, calls.last()?.time);
        let held_out_from = calls[calls.len() - calls.len().div_ceil(HELD_OUT)].time;
        let held_out_from = if held_out_from > first {
            held_out_from
        } else {
            calls.iter().find(|call| call.time > first)?.time
        };
        let used = calls.partition_point(|call| call.time < held_out_from) as u64;
        calls.sort_by_key(|call| call.key);
        Some(Demand { calls, first, held_out_from, last, used })
    }

    /// Returns the calls of each key.
    pub(super) fn by_key(&self) -> impl Iterator<Item = &[Call]> {
        self.calls.chunk_by(|a, b| a.key == b.key)
    }

    /// Returns the calls of a key that are not held out, and those that are.
    pub(super) fn parts<'c>(&self, calls: &'c [Call]) -> (&'c [Call], &'c [Call]) {
        calls.split_at(calls.partition_point(|call| call.time < self.held_out_from))
    }

    /// Returns the most permits that the calls of a key take together that are not held out.
    pub(super) fn most_of_a_key(&self) -> u64 {
        let permits =
            |calls| self.parts(calls).0.iter().fold(0u64, |sum, call| sum.saturating_add(call.cost));
        self.by_key().map(permits).max().unwrap_or(0)
    }

    /// Returns how long the part is that is not held out, in microseconds.
    pub(super) fn length(&self) -> u64 {
        self.held_out_from - self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(times: &[u64]) -> Option<Demand> {
        let call = |(i, time): (usize, &u64)| Call { key: i % 2, time: *time, cost: i as u64 };
        Demand::new(times.iter().enumerate().map(call).collect())
    }

    #[test]
    fn the_last_fifth_of_the_calls_is_held_out() {
        let from = |times: &[u64]| demand(times).map(|demand| demand.held_out_from);
        assert_eq!(from(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), Some(9));
        assert_eq!(from(&[10, 1, 9, 2, 8, 3, 7, 4, 6, 5]), Some(9));
        // Those at the same time as the first of them as well.
        assert_eq!(from(&[1, 2, 3, 4, 5, 6, 7, 9, 9, 10]), Some(9));
        assert_eq!(from(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 2]), Some(2));
        assert_eq!(from(&[1, 2]), Some(2));
        assert_eq!((from(&[1, 1, 1]), from(&[1]), from(&[])), (None, None, None));
    }

    #[test]
    fn calls_of_a_key_are_in_the_order_of_times_then_of_lines() {
        let demand = demand(&[5, 1, 3, 3, 3, 3, 2, 9]).unwrap();
        let costs = |calls: &[Call]| calls.iter().map(|call| call.cost).collect::<Vec<_>>();
        let parts = demand.by_key().map(|calls| demand.parts(calls));
        let parts: Vec<_> = parts.map(|(used, held_out)| (costs(used), costs(held_out))).collect();
        assert_eq!(parts, [(vec![6, 2, 4], vec![0]), (vec![1, 3, 5], vec![7])]);
        assert_eq!((demand.first, demand.length(), demand.last), (1, 4, 9));
    }
}
