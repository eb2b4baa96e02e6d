//! The checks of policies, call by call: what each promises of every interval, in whole numbers.
//!
//! A check keeps of each key what the calls so far leave of any interval that ends later, so it takes about as long for each call,
//! however many there are. Times are in nanoseconds, and those of a key do not decrease. Each may be wrong by the clock's error, so an
//! interval may be longer by twice that, the *blur*: an excess is one whatever the times were.

mod aligned_windows;
mod bucket;
mod holds;
mod opened_windows;
mod promised;
mod refills;
mod sliding_window;

use std::collections::HashMap;
use std::fmt;

use ratelimit_runtime::Promise;

use aligned_windows::{AlignedWindows, Windows};
use bucket::Bucket;
use holds::Holds;
use opened_windows::OpenedWindows;
use promised::Promised;
pub(super) use promised::{Call, Interval};
use refills::Refills;
use sliding_window::SlidingWindow;

/// The check of a policy, over all keys. They are numbered from 0 as they come.
pub(super) trait Check: fmt::Debug {
    /// Counts an admitted call.
    fn admit(&mut self, key: usize, call: Call);

    /// Returns whether the policy would have admitted a call that was refused, if a log can tell.
    fn would_admit(&mut self, key: usize, call: Call) -> Option<bool>;

    /// Returns when calls from before a log that begins at this time no longer matter.
    fn settled(&self, first: u64) -> u64;

    /// Returns the worst interval of each key that exceeds the policy.
    fn exceeded(&self) -> &HashMap<usize, Interval>;
}

/// Returns the check of a promise.
pub(super) fn check(promise: Promise, clock_error: u64) -> Box<dyn Check> {
    let blur = 2 * clock_error;
    match promise {
        Promise::Bucket(bucket) => boxed(Bucket { bucket, blur }),
        Promise::Refills { burst, refill, period } => boxed(Refills { burst, refill, period, blur }),
        Promise::OpenedWindows { limit, period } => boxed(OpenedWindows { limit, period, blur }),
        Promise::AlignedWindows { limit, period } => {
            boxed(AlignedWindows { limit, windows: Windows::Aligned(period), clock_error })
        }
        Promise::CalendarWindows { limit, calendar } => {
            boxed(AlignedWindows { limit, windows: Windows::Calendar(calendar), clock_error })
        }
        Promise::SlidingWindow { limit, period, precision } => {
            boxed(SlidingWindow { limit, period, precision, blur })
        }
        Promise::Holds { max } => boxed(Holds { max, blur }),
    }
}

fn boxed<P: Promised + 'static>(promised: P) -> Box<dyn Check> {
    Box::new(Checked { promised, states: Vec::new(), exceeded: HashMap::new() })
}

/// A promise, and the states of its keys.
#[derive(Debug)]
struct Checked<P: Promised> {
    promised: P,
    states: Vec<P::State>,
    exceeded: HashMap<usize, Interval>,
}

impl<P: Promised> Checked<P> {
    fn state(&mut self, key: usize) -> &mut P::State {
        if key >= self.states.len() {
            self.states.resize_with(key + 1, P::State::default);
        }
        &mut self.states[key]
    }
}

impl<P: Promised> Check for Checked<P> {
    fn admit(&mut self, key: usize, call: Call) {
        self.state(key);
        let Some(interval) = self.promised.admit(&mut self.states[key], call) else { return };
        let worst = self.exceeded.entry(key).or_insert(interval);
        if interval.excess() > worst.excess() {
            *worst = interval;
        }
    }

    fn would_admit(&mut self, key: usize, call: Call) -> Option<bool> {
        self.state(key);
        self.promised.would_admit(&mut self.states[key], call)
    }

    fn settled(&self, first: u64) -> u64 {
        self.promised.settled(first)
    }

    fn exceeded(&self) -> &HashMap<usize, Interval> {
        &self.exceeded
    }
}

#[cfg(test)]
mod tests;
