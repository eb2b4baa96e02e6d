//! A master that is gone, until Sentinels name another one.

use std::time::{Duration, Instant};

use super::{Calls, OFTEN, recovers, store};
use crate::support::server::sentinels::{NAME, Sentinels};

const TARGET: Duration = Duration::from_secs(1);

async fn begin(sentinels: &Sentinels) -> Calls {
    let url = format!("redis+sentinel://{}/{NAME}", sentinels.addresses().join(","));
    Calls::begin(&store(&url), "a", OFTEN).await
}

#[tokio::test]
async fn the_master_after_one_that_was_killed_decides() {
    let sentinels = Sentinels::start().await;
    let calls = begin(&sentinels).await;
    let former = sentinels.master().await;
    let down = Instant::now();
    former.kill();
    calls.fail_after(down).await;
    sentinels.master_after(former).await;
    recovers("Sentinels, the master killed", TARGET, Instant::now(), &calls).await;

    // And back again.
    former.restart().await;
    former.follows().await;
    let (master, down) = (sentinels.master().await, Instant::now());
    master.kill();
    calls.fail_after(down).await;
    sentinels.master_after(master).await;
    recovers("Sentinels, the master killed", TARGET, Instant::now(), &calls).await;
}

#[tokio::test]
async fn the_master_after_one_that_was_paused_decides() {
    let sentinels = Sentinels::start().await;
    let calls = begin(&sentinels).await;
    let former = sentinels.master().await;
    let down = Instant::now();
    former.pause();
    calls.fail_after(down).await;
    sentinels.master_after(former).await;
    recovers("Sentinels, the master paused", TARGET, Instant::now(), &calls).await;
    let back = Instant::now();
    former.resume();
    former.follows().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    recovers("Sentinels, the former master back", TARGET, Instant::now(), &calls).await;
    calls.hold_after(back);
}
