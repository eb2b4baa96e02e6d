use std::time::Duration;

use redis::{ErrorKind, ServerErrorKind};

use super::increment;
use crate::support::server::sentinels::{NAME, Sentinels};
use crate::support::until::until;

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn sentinels_name_the_replica_when_the_master_is_killed() {
    let sentinels = Sentinels::start().await;
    let former = sentinels.master().await;
    increment(&mut former.connect().await, "a").await.unwrap();
    former.replicated().await;
    former.kill();
    let master = sentinels.master_after(former).await;
    assert_ne!(master.port(), former.port());
    assert_eq!(sentinels.master().await.port(), master.port());
    assert_eq!(increment(&mut master.connect().await, "a").await.unwrap(), 2);

    former.restart().await;
    former.follows().await;
    until("the former master takes no writes", LONG, async || {
        let mut connection = former.try_connect().await.map_err(|error| error.to_string())?;
        match increment(&mut connection, "a").await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) => Ok(()),
            seen => Err(format!("{seen:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_master_that_was_paused_is_a_master_no_more() {
    let sentinels = Sentinels::start().await;
    let former = sentinels.master().await;
    former.pause();
    let master = sentinels.master_after(former).await;
    former.resume();
    former.follows().await;
    assert_eq!(former.role().await.unwrap(), "slave");
    increment(&mut master.connect().await, "a").await.unwrap();
    assert_eq!(sentinels.addresses().len(), 3);
    for sentinel in sentinels.addresses() {
        let client = redis::Client::open(format!("redis://{sentinel}")).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = redis::cmd("SENTINEL");
        command.arg(&["GET-MASTER-ADDR-BY-NAME", NAME]);
        let (host, port): (String, u16) = command.query_async(&mut connection).await.unwrap();
        assert_eq!((host.as_str(), port), ("127.0.0.1", master.port()));
    }
}
