//! How soon Redis decides again after what stood in its way is gone, and what becomes of calls until then: each ends in
//! time, and a server that is down is left in peace. The times are asserted at five times what they should be, for busy
//! machines, and printed.

mod calls;
mod cluster;
mod half_open;
mod login;
mod sentinels;
mod servers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{RedisStore, Store};

use self::calls::Calls;

/// A call comes so often, where nothing else is said.
const OFTEN: Duration = Duration::from_millis(10);

fn store(url: &str) -> Store {
    Store::Redis(Arc::new(RedisStore::lazy(url).expect("the URL is right")))
}

/// Tells how long it took from then until Redis decided again.
async fn recovers(what: &str, target: Duration, since: Instant, calls: &Calls) -> Duration {
    let took = calls.answered_after(since).await;
    println!("recovery: {what}: {} ms", took.as_millis());
    assert!(took < target * 5 + calls.stalled(), "{what}: {took:?}");
    let (longest, stalled) = (calls.longest(), calls.stalled());
    assert!(
        longest < Duration::from_secs(2) + stalled,
        "{what}: a call took {longest:?}, and the machine stalled for {stalled:?}"
    );
    took
}
