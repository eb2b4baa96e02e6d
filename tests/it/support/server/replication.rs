//! What a server says of its master or its replicas.

use std::time::Duration;

use super::Server;
use crate::support::until::until;

impl Server {
    /// Waits until it has a copy of what its master had, and the link to it is up.
    pub(crate) async fn follows(&self) {
        until("the replica follows its master", Duration::from_secs(20), async || {
            match self.replication().await? {
                seen if seen.contains("master_link_status:up") => Ok(()),
                seen => Err(seen),
            }
        })
        .await;
    }

    /// Waits until a replica has all that this master has now. One that follows may get nothing for a second yet: after a
    /// copy that was never on disk, a master sends what follows when the replica has acknowledged it.
    pub(crate) async fn replicated(&self) {
        // WAIT is for what the same connection did: its offset is that of the last command.
        let mut wait = redis::pipe();
        wait.cmd("PING").ignore().cmd("WAIT").arg(&[1, 20_000]);
        let replicas = wait.query_async(&mut self.connect().await).await;
        let (replicas,): (usize,) = replicas.expect("the server answers");
        assert!(replicas > 0, "no replica of {} has everything", self.port());
    }

    /// `master` or `slave`, as it says itself.
    pub(crate) async fn role(&self) -> Result<String, String> {
        let seen = self.replication().await?;
        Ok(seen.lines().find_map(|line| line.strip_prefix("role:")).unwrap_or_default().to_owned())
    }

    /// Sentinels that give a server another role end its connections.
    async fn replication(&self) -> Result<String, String> {
        let asked = async {
            let mut connection = self.try_connect().await?;
            redis::cmd("INFO").arg("replication").query_async(&mut connection).await
        };
        asked.await.map_err(|error| error.to_string())
    }
}
