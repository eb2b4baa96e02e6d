//! What Guava's `RateLimiter` does while its rate stays, written from what its source says about itself: permits that are stored
//! while nobody calls, the time of the next free slot, and the curve that stored permits are paid by. Times are whole
//! microseconds, everything else doubles. It begins as ours does: bursty with a full store, warming up cold. Its rate is told by
//! the interval of a permit: as permits per second it would be rounded once more, which can move a whole number by one.
//!
//! Ours keeps no stored permits where calls borrow, so there the two have nothing in common but what they promise.

#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// The microseconds of a permit at the rate.
    interval: f64,
    /// The microseconds without a call in which one is stored.
    idle: f64,
    /// The most permits that can be stored.
    most: f64,
    /// From so many stored permits on a stored one takes time, and ever more; none does where it is not warming up.
    warming_up: Option<Slope>,
    stored: f64,
    /// When the next call gets its slot, whatever it costs.
    pub(super) next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slope {
    threshold: f64,
    /// The microseconds that a permit takes longer for each one stored above the threshold.
    climb: f64,
}

impl Reference {
    /// `SmoothBursty`: the store holds `burst` microseconds' worth, and stored permits cost nothing.
    pub(super) fn bursty(interval: f64, burst: u64) -> Self {
        let most = burst as f64 / interval;
        Reference { interval, idle: interval, most, warming_up: None, stored: most, next: 0 }
    }

    /// `SmoothWarmingUp` with its cold factor of 3, by the formulas that its source explains: below the threshold a stored
    /// permit takes one interval, and all of these together half the warm-up; from there the curve climbs to three
    /// intervals at the most that can be stored, and the area under it is the warm-up. Cold again it is after a warm-up.
    pub(super) fn warming_up(interval: f64, warmup: u64) -> Self {
        let warmup = warmup as f64;
        let cold = 3.0 * interval;
        let threshold = 0.5 * warmup / interval;
        let most = threshold + 2.0 * warmup / (interval + cold);
        let climb = (cold - interval) / (most - threshold);
        let warming_up = Some(Slope { threshold, climb });
        Reference { interval, idle: warmup / most, most, warming_up, stored: most, next: 0 }
    }

    /// The microseconds that a call now has to wait, which takes its permits.
    pub(super) fn acquire(&mut self, now: u64, permits: u64) -> u64 {
        if self.next < now {
            let new = (now - self.next) as f64 / self.idle;
            self.stored = self.most.min(self.stored + new);
            self.next = now;
        }
        let slot = self.next;
        let from_store = self.stored.min(permits as f64);
        let fresh = permits as f64 - from_store;
        self.next += self.time_of_stored(from_store) + whole(fresh * self.interval);
        self.stored -= from_store;
        slot - now
    }

    /// The area under the curve between what is stored and what is left: a trapezoid above the threshold and a rectangle
    /// below it, of each its whole microseconds.
    fn time_of_stored(&self, permits: f64) -> u64 {
        let Some(Slope { threshold, climb }) = self.warming_up else { return 0 };
        let above = (self.stored - threshold).max(0.0);
        let width = permits.min(above);
        let height = |above: f64| self.interval + climb * above;
        let trapezoid = width * (height(above) + height(above - width)) / 2.0;
        whole(trapezoid) + whole((permits - width) * self.interval)
    }
}

/// Cut off, as Guava does it.
fn whole(micros: f64) -> u64 {
    micros as u64
}
