//! Guava's `RateLimiter` at a constant rate, written from the comments in its source: permits that are stored while idle, the
//! time of the next free slot, and the curve that gives stored permits their price. Times are whole microseconds, everything
//! else doubles. Like ours, it starts with full storage. Its rate is given as the interval of a permit, as permits per second
//! would be rounded once more.
//!
//! With `borrow` ours keeps no stored permits, so the two share nothing but the promise.

#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// Microseconds per permit at the rate.
    interval: f64,
    /// Idle microseconds in which a permit is stored.
    idle: f64,
    max_permits: f64,
    /// `None` if stored permits are free.
    warmup: Option<Slope>,
    stored: f64,
    /// The slot of the next call, whatever it costs.
    pub(super) next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slope {
    threshold: f64,
    /// The additional microseconds of a permit for each one stored above the threshold.
    climb: f64,
}

impl Reference {
    /// `SmoothBursty`: stores permits for `burst` microseconds, which are free.
    pub(super) fn bursty(interval: f64, burst: u64) -> Self {
        let max_permits = burst as f64 / interval;
        Reference { interval, idle: interval, max_permits, warmup: None, stored: max_permits, next: 0 }
    }

    /// `SmoothWarmingUp` with its cold factor of 3, by the formulas in its source: below the threshold a stored permit takes one
    /// interval, all of these together half the warm-up; from there the curve climbs to three intervals at `max_permits`,
    /// and the area under it is the warm-up. Idle for a warm-up, it is cold again.
    pub(super) fn warming_up(interval: f64, warmup: u64) -> Self {
        let warmup = warmup as f64;
        let cold = 3.0 * interval;
        let threshold = 0.5 * warmup / interval;
        let max_permits = threshold + 2.0 * warmup / (interval + cold);
        let climb = (cold - interval) / (max_permits - threshold);
        let idle = warmup / max_permits;
        let warmup = Some(Slope { threshold, climb });
        Reference { interval, idle, max_permits, warmup, stored: max_permits, next: 0 }
    }

    /// Takes the permits of a call, and returns the microseconds until its slot.
    pub(super) fn acquire(&mut self, now: u64, permits: u64) -> u64 {
        if self.next < now {
            let new = (now - self.next) as f64 / self.idle;
            self.stored = self.max_permits.min(self.stored + new);
            self.next = now;
        }
        let slot = self.next;
        let from_store = self.stored.min(permits as f64);
        let fresh = permits as f64 - from_store;
        self.next += self.time_of_stored(from_store) + whole(fresh * self.interval);
        self.stored -= from_store;
        slot - now
    }

    /// Returns the area under the curve from what is stored to what is left: a trapezoid above the threshold and a rectangle
    /// below it, each cut to whole microseconds.
    fn time_of_stored(&self, permits: f64) -> u64 {
        let Some(Slope { threshold, climb }) = self.warmup else { return 0 };
        let above = (self.stored - threshold).max(0.0);
        let width = permits.min(above);
        let height = |above: f64| self.interval + climb * above;
        let trapezoid = width * (height(above) + height(above - width)) / 2.0;
        whole(trapezoid) + whole((permits - width) * self.interval)
    }
}

/// Cuts off the fraction, as Guava does.
fn whole(micros: f64) -> u64 {
    micros as u64
}
