//! Time by the processor's counter, which costs half of [`Instant::now`] to read. `Instant` corrects it every few dozen
//! milliseconds, so the two stay within a microsecond of each other over any length of time.

use std::fmt;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use std::fs::File;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use std::io::{BufRead, BufReader};
use std::sync::{LazyLock, Mutex, PoisonError, TryLockError};
use std::time::{Instant, SystemTime};

use super::anchor::{Anchor, Corrector, Reading};
use super::shared_anchor::SharedAnchor;

/// How many counter ticks a reading of both clocks may take. A longer one was probably interrupted.
const MAX_READING: u64 = 1 << 12;

/// A clock that reads the processor's counter.
pub(super) struct CounterClock {
    /// The corrector's anchor, if it has one.
    anchor: SharedAnchor,
    corrector: Mutex<Corrector>,
}

impl CounterClock {
    /// Returns the clock of this process, or `None` where the counter is of no use.
    pub(super) fn of_process() -> Option<&'static Self> {
        static CLOCK: LazyLock<Option<CounterClock>> = LazyLock::new(|| {
            is_usable().then(|| CounterClock {
                anchor: SharedAnchor::default(),
                corrector: Mutex::new(Corrector::new(read_both())),
            })
        });
        CLOCK.as_ref()
    }

    /// Returns the nanoseconds since the epoch.
    ///
    /// The times of an anchor lie between its start and its end, and the next one starts no earlier than it ends. So the time
    /// never steps back, however long a thread takes between the two reads.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.at(ticks())
    }

    /// As [`now`](Self::now), read after everything that this thread has read before.
    pub(super) fn now_in_order(&self) -> u64 {
        self.at(ticks_in_order())
    }

    #[inline(always)]
    fn at(&self, ticks: u64) -> u64 {
        let anchor = self.anchor.get();
        match anchor.as_ref().and_then(|anchor| anchor.at(ticks)) {
            Some(nanos) => nanos,
            None => self.corrected(anchor, ticks),
        }
    }

    /// Returns the time where the anchor does not give it, and replaces the anchor if it is due.
    #[cold]
    #[inline(never)]
    fn corrected(&self, anchor: Option<Anchor>, ticks: u64) -> u64 {
        if let Some(nanos) = anchor.as_ref().and_then(|anchor| anchor.before(ticks)) {
            return nanos;
        }
        let mut corrector = match self.corrector.try_lock() {
            Ok(corrector) => corrector,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                // The time stands still while another thread replaces the anchor.
                if let Some(nanos) = anchor.as_ref().and_then(|anchor| anchor.just_after(ticks)) {
                    return nanos;
                }
                self.corrector.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        let old = corrector.anchor();
        let nanos = corrector.now(read_both());
        if corrector.anchor() != old {
            self.anchor.set(corrector.anchor());
        }
        nanos
    }
}

impl fmt::Debug for CounterClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterClock").finish_non_exhaustive()
    }
}

/// Returns the nanoseconds since the epoch by std's clock. The epoch is read once, so setting the system's time does not
/// move it.
pub(super) fn monotonic() -> u64 {
    static START: LazyLock<(Instant, u64)> = LazyLock::new(|| {
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        (Instant::now(), epoch.map_or(0, |epoch| epoch.as_nanos() as u64))
    });
    let (instant, epoch) = *START;
    epoch + instant.elapsed().as_nanos() as u64
}

/// Reads both clocks as close to each other as a few attempts can.
fn read_both() -> Reading {
    let mut best = None;
    for _ in 0..4 {
        let start = ticks();
        let nanos = monotonic();
        let took = ticks().wrapping_sub(start);
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, Reading { ticks: start.wrapping_add(took / 2), nanos }));
        }
        if took <= MAX_READING {
            break;
        }
    }
    best.map_or(Reading { ticks: 0, nanos: 0 }, |(_, reading)| reading)
}

/// Reads the counter, in no order with the loads around it. Waiting for them would cost more than the reading.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline]
fn ticks() -> u64 {
    safe_arch::read_timestamp_counter()
}

/// Reads the counter after all loads before it.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn ticks_in_order() -> u64 {
    safe_arch::read_timestamp_counter_p(&mut 0)
}

/// Says whether the kernel itself keeps time by the counter. It does so only where the counter runs at one pace, in all states
/// of the processor, and is the same on all processors; and then `Instant` reads it too, in this process.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn is_usable() -> bool {
    const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read(CLOCKSOURCE).is_ok_and(|name| name.trim_ascii() == b"tsc") && can_read_in_order()
}

/// Says whether the processor has the instruction of [`ticks_in_order`], which came later than the other one.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn can_read_in_order() -> bool {
    let Ok(processors) = File::open("/proc/cpuinfo") else { return false };
    let mut lines = BufReader::new(processors).lines().map_while(Result::ok);
    let flags = lines.find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "rdtscp"))
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[inline]
fn ticks() -> u64 {
    0
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn ticks_in_order() -> u64 {
    0
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn is_usable() -> bool {
    false
}
