//! Which recorder is that of the process.

use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use ::metrics::with_recorder;

/// The address of the recorder that is installed for the process, which never moves or goes; 0 while it is not known.
static OF_PROCESS: AtomicUsize = AtomicUsize::new(0);

/// When to look for it again, and how long after that, in microseconds.
static NEXT_LOOK: AtomicU64 = AtomicU64::new(0);
static PAUSE: AtomicU64 = AtomicU64::new(FIRST_PAUSE);

const FIRST_PAUSE: u64 = 1_000_000;
const MAX_PAUSE: u64 = 64_000_000;

/// Whether this thread records with the recorder of the process, as far as that is known, and not with a local one.
pub(super) fn is_of_process(now: u64) -> bool {
    let current = current();
    let known = OF_PROCESS.load(Ordering::Relaxed);
    if known == 0 && current != 0 {
        look_for_it(now);
    }
    current != 0 && current == known
}

/// Looks for it from a thread that has no local recorder. This one may have one.
#[cold]
fn look_for_it(now: u64) {
    if now < NEXT_LOOK.load(Ordering::Relaxed) {
        return;
    }
    let pause = PAUSE.load(Ordering::Relaxed);
    NEXT_LOOK.store(now + pause, Ordering::Relaxed);
    PAUSE.store((2 * pause).min(MAX_PAUSE), Ordering::Relaxed);
    let thread = thread::Builder::new().name("ratelimits-recorder".to_owned());
    // Without a thread, series are looked up by name.
    drop(thread.spawn(|| OF_PROCESS.store(current(), Ordering::Relaxed)));
}

/// Returns the address of the recorder of this thread; 0 if it has no size, as that of a process without one, and no address.
fn current() -> usize {
    with_recorder(|recorder| match size_of_val(recorder) {
        0 => 0,
        _ => ptr::from_ref(recorder).cast::<()>() as usize,
    })
}
