//! The arithmetic of the counter clock, without a clock: what a counter value means in nanoseconds, and how `Instant` corrects
//! it.

#[cfg(test)]
mod properties;

/// For how many counter ticks an anchor is valid: 27 to 134 ms at 5 to 1 GHz.
pub(super) const INTERVAL: u64 = 1 << 27;

/// The paces, in nanoseconds per interval, of counters from 16 GHz down to 250 MHz.
const PACES: std::ops::RangeInclusive<u64> = INTERVAL / 16..=INTERVAL * 4;

/// Both clocks at one moment.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) ticks: u64,
    pub(super) nanos: u64,
}

/// Converts the counter values of one interval to times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Anchor {
    /// The counter at the start of the interval.
    pub(super) ticks: u64,
    /// The time at the start.
    pub(super) nanos: u64,
    /// Nanoseconds per interval.
    pub(super) pace: u64,
}

impl Anchor {
    /// Returns the time at a counter value of the interval.
    #[inline]
    pub(super) fn at(&self, ticks: u64) -> Option<u64> {
        let passed = ticks.wrapping_sub(self.ticks);
        // Below 2^27 · 2^29.
        (passed <= INTERVAL).then(|| self.nanos + ((passed * self.pace) >> INTERVAL.trailing_zeros()))
    }

    /// Returns the time at a counter value that is at most an interval before the start: that of the start. Either another
    /// thread replaced the anchor since this one read the counter, or the counter was set back.
    pub(super) fn before(&self, ticks: u64) -> Option<u64> {
        (self.ticks.wrapping_sub(ticks) <= INTERVAL).then_some(self.nanos)
    }

    /// Returns the time at a counter value that is at most an interval after the end: that of the end. The next anchor starts
    /// no earlier.
    pub(super) fn just_after(&self, ticks: u64) -> Option<u64> {
        (ticks.wrapping_sub(self.ticks) <= 2 * INTERVAL).then(|| self.end())
    }

    fn end(&self) -> u64 {
        self.nanos + self.pace
    }
}

/// Replaces anchors.
///
/// The pace is that of the time since the last correction. It counts once it is the same twice in a row; until then, and
/// whenever something has disturbed one of the clocks (a suspended machine, a move to another one, a counter that was set), the
/// time is that of `Instant`. It never steps back: a clock that is ahead runs slower until the end of the next interval, or
/// stands still if half the pace would not be slow enough.
///
/// So at the end of each anchor the time is at most one interval ahead of `Instant`, whatever the counter does, and after each
/// correction it is not behind.
pub(super) struct Corrector {
    /// `None` while the pace is not known.
    anchor: Option<Anchor>,
    /// Where the current measurement of the pace began.
    since: Reading,
    /// The last pace measured.
    pace: u64,
    /// The last time returned without an anchor.
    latest: u64,
}

impl Corrector {
    pub(super) fn new(reading: Reading) -> Self {
        Corrector { anchor: None, since: reading, pace: 0, latest: 0 }
    }

    pub(super) fn anchor(&self) -> Option<Anchor> {
        self.anchor
    }

    /// Returns the time of a reading, and replaces the anchor if its interval is over.
    pub(super) fn now(&mut self, reading: Reading) -> u64 {
        let by_anchor = |anchor: Anchor| anchor.at(reading.ticks).or_else(|| anchor.before(reading.ticks));
        if let Some(nanos) = self.anchor.and_then(by_anchor) {
            return nanos;
        }
        let end = self.anchor.map_or(0, |anchor| anchor.end());
        let now = reading.nanos.max(self.latest).max(end);
        self.latest = now;
        let ticks = reading.ticks.wrapping_sub(self.since.ticks);
        if self.anchor.is_some() || ticks >= INTERVAL {
            let pace = pace(reading.nanos.saturating_sub(self.since.nanos), ticks);
            let is_known = PACES.contains(&pace) && pace.abs_diff(self.pace) <= self.pace >> 10;
            let is_near = now - reading.nanos <= pace / 2;
            self.anchor = (is_known && is_near).then(|| {
                // Meets `Instant` at the end of the interval.
                Anchor { ticks: reading.ticks, nanos: now, pace: reading.nanos + pace - now }
            });
            (self.since, self.pace) = (reading, pace);
        }
        now
    }
}

/// Returns nanoseconds per interval.
fn pace(nanos: u64, ticks: u64) -> u64 {
    let pace = u128::from(nanos) * u128::from(INTERVAL) / u128::from(ticks.max(1));
    pace.try_into().unwrap_or(u64::MAX)
}
