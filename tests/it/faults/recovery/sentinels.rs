//! A master that sentinels replace.

use std::time::{Duration, Instant};

use super::{Traffic, recovers};
use crate::support::server::sentinels::Sentinels;

const TARGET: Duration = Duration::from_secs(1);

#[tokio::test]
async fn successors_of_failed_masters_decide() {
    let sentinels = Sentinels::start().await;
    let traffic = Traffic::start(&sentinels.url()).await;
    let former = sentinels.master().await;
    let down = Instant::now();
    former.kill();
    traffic.failure_after(down).await;
    let master = sentinels.master_after(former).await;
    recovers("sentinels, master killed", TARGET, Instant::now(), &traffic).await;

    // And back again.
    former.restart().await;
    former.follows().await;
    let down = Instant::now();
    master.pause();
    traffic.failure_after(down).await;
    sentinels.master_after(master).await;
    recovers("sentinels, master paused", TARGET, Instant::now(), &traffic).await;
    let back = Instant::now();
    master.resume();
    master.follows().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    recovers("sentinels, former master back", TARGET, Instant::now(), &traffic).await;
    traffic.assert_steady_after(back);
}
