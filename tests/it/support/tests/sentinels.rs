use std::time::Duration;

use redis::{ErrorKind, ServerErrorKind};

use crate::support::client::increment;
use crate::support::server::sentinels::Sentinels;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(90);

#[tokio::test]
async fn replica_of_killed_master_is_promoted() {
    let sentinels = Sentinels::start().await;
    let former = sentinels.master().await;
    increment(&mut former.connect().await, "a").await.unwrap();
    former.replicated_to(sentinels.other(former)).await;
    former.kill();
    let master = sentinels.master_after(former).await;
    assert_ne!(master.port(), former.port());
    assert_eq!(sentinels.master().await.port(), master.port());
    assert_eq!(increment(&mut master.connect().await, "a").await.unwrap(), 2);

    former.restart().await;
    former.follows().await;
    until("the former master rejects writes", WITHIN, async || {
        let mut connection = former.try_connect().await.map_err(|error| error.to_string())?;
        match increment(&mut connection, "a").await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) => Ok(()),
            result => Err(format!("{result:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn resumed_master_becomes_a_replica() {
    let sentinels = Sentinels::start().await;
    let former = sentinels.master().await;
    former.pause();
    let master = sentinels.master_after(former).await;
    former.resume();
    former.follows().await;
    assert_eq!(former.role().await.unwrap(), "slave");
    increment(&mut master.connect().await, "a").await.unwrap();
    assert_eq!(sentinels.master().await.port(), master.port());
    assert_eq!(sentinels.addresses().len(), 3);
}
