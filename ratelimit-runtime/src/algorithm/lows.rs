//! What a bucket has lacked at least since some of its charges: as much could have been missing from them without a difference to
//! what came later, as long as the bucket would never have been full.

/// The number of lows that a bucket remembers. Calls that take longer than its burst lasts get nearly all back that three allow, and
/// more only make the state larger.
pub(super) const REMEMBERED: usize = 3;

/// Lows in order of their times, and so of what was missing. Those that are all 0 are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lows([Low; REMEMBERED]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Low {
    /// When the first charge was made that this is for. The next low is for those from its own time on.
    since: u64,
    /// The least that was missing since then, before a later charge or at the slot of one.
    missing: u64,
}

impl Lows {
    /// Returns what has been missing at least since the charge that was made then, which is not the last one.
    pub(super) fn since(&self, made: u64) -> u64 {
        let low = self.0.iter().rfind(|low| low.since <= made);
        low.map_or(0, |low| low.missing)
    }

    /// Adds the low since the last charge, made then, when so much is missing before the `next` one.
    pub(super) fn add(&mut self, made: u64, missing: u64, next: u64) {
        let [first, second, third] = self.0.map(|low| Low { missing: low.missing.min(missing), ..low });
        let last = Low { since: made, missing };
        // What the charges get less that one is for, if the one before it stands in: as much, for as long.
        let loss = |before: Low, low: Low, until: u64| {
            (low.missing - before.missing) as f64 * until.saturating_sub(low.since) as f64
        };
        let losses = [
            loss(Low::default(), first, second.since),
            loss(first, second, third.since),
            loss(second, third, made),
            loss(third, last, next),
        ];
        let least = losses.into_iter().fold(f64::INFINITY, f64::min);
        self.0 = if losses[0] == least {
            [second, third, last]
        } else if losses[1] == least {
            [first, third, last]
        } else if losses[2] == least {
            [first, second, last]
        } else {
            [first, second, third]
        };
    }

    /// Returns them for a clock that has stepped back by so much.
    pub(super) fn back(self, back: u64) -> Self {
        Lows(self.0.map(|low| Low { since: low.since.saturating_sub(back), ..low }))
    }

    /// Lowers all by what is given back of the charge that was made then. What is left since that charge bounds those before it.
    pub(super) fn lower(&mut self, made: u64, credit: u64, left: u64) {
        for low in &mut self.0 {
            low.missing =
                if low.since <= made { low.missing.min(left) } else { low.missing.saturating_sub(credit) };
        }
    }
}
