//! What calls get while Redis fails, and that limits still hold.

mod chaos;
mod load;
mod on_store_error;
mod outage;
mod recovery;
mod storm;

use std::time::{Duration, SystemTime};

/// No decision takes longer than this, on a busy machine too.
const MAX_LATENCY: Duration = Duration::from_secs(2);
/// Decisions come from Redis again this soon after a fault ends.
const RECOVERS_WITHIN: Duration = Duration::from_secs(5);

/// The machine's clock in microseconds, which is the server's clock too.
pub(crate) fn unix_micros() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    since.as_micros() as u64
}
