//! Every fault in random order under load: no decision takes long or panics, limits hold but for one capacity per key and
//! loss of data, and decisions recover soon after the last fault. `RATELIMITS_SEED` repeats an order.

mod events;
mod leases;

use std::time::{Duration, Instant};

use ratelimit_runtime::store::RedisStore;

use self::events::Target;
use super::RECOVERS_WITHIN;
use super::load::{Load, Shape};
use crate::support::budget::budget;
use crate::support::random::Random;
use crate::support::server::run;
use crate::support::store::{store, store_by};
use crate::support::until::until;

/// 60 tasks in all. A key fills up more slowly than data is lost, or a loss would not show.
const SHAPE: Shape = Shape { tasks: 6, keys: 20, full_after: Duration::from_secs(4) };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_under_random_faults() {
    let mut random = Random::seeded();
    let mut target = Target::start().await;
    let url = target.proxy.url();
    let mut stores = [store(&url), store_by(&url, RedisStore::without_batches)];
    if random.percent(50) {
        stores.reverse();
    }
    for (_, store) in (0..budget(1, 8)).zip(stores.iter().cycle()) {
        let load = Load::start(store.clone(), &random.run(random.clone().next()), SHAPE);
        target.play_all(&mut random).await;
        let start = Instant::now();
        load.recovers().await;
        println!("recovered after {:?}", start.elapsed());
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_every_key_expires(&target).await;
        load.finish(&target.losses, |_| true).await;
        until("dead connections close", 2 * RECOVERS_WITHIN, async || match target.proxy.open() {
            0..=2 => Ok(()),
            open => Err(format!("{open} are open")),
        })
        .await;
    }
}

/// Checked under load, as idle keys are soon gone.
async fn assert_every_key_expires(target: &Target) {
    let mut connection = target.server.connect().await;
    let keys: Vec<String> = run(&mut connection, &["KEYS", "*"]).await;
    assert!(!keys.is_empty(), "the load leaves keys");
    for key in keys {
        let ttl: i64 = run(&mut connection, &["PTTL", &key]).await;
        // 0 and -2: it expires right now.
        let max = 2 * SHAPE.full_after.as_millis() as i64;
        assert!((1..=max).contains(&ttl) || ttl == -2 || ttl == 0, "{key} expires in {ttl} ms");
    }
}
