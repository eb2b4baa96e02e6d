//! The replication state of a server.

use std::time::Duration;

use super::Server;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(90);

impl Server {
    /// Waits until this replica has synchronized and its link to the master is up.
    pub(crate) async fn follows(&self) {
        until("the replica follows its master", WITHIN, async || match self.replication().await? {
            info if info.contains("master_link_status:up") => Ok(()),
            info => Err(info),
        })
        .await;
    }

    /// Waits until `replica` has every write that this master has now.
    ///
    /// Compares offsets: `WAIT` of Redis 7.2 and newer only covers writes made on the same connection.
    pub(crate) async fn replicated_to(&self, replica: &Server) {
        let offset = self.offset().await.expect("the master answers");
        until("the replica has all writes", WITHIN, async || match replica.offset().await? {
            replicated if replicated >= offset => Ok(()),
            replicated => Err(format!("{replicated} of {offset}")),
        })
        .await;
    }

    /// Returns the role that the server reports, `master` or `slave`.
    pub(crate) async fn role(&self) -> Result<String, String> {
        Ok(field(&self.replication().await?, "role").unwrap_or_default().to_owned())
    }

    /// The end of the replication stream, as this master or replica has it.
    async fn offset(&self) -> Result<u64, String> {
        let info = self.replication().await?;
        let offset = field(&info, "slave_repl_offset").or_else(|| field(&info, "master_repl_offset"));
        offset.and_then(|offset| offset.parse().ok()).ok_or(info)
    }

    /// An error while a failover closes the server's connections.
    async fn replication(&self) -> Result<String, String> {
        let info = async {
            let mut connection = self.try_connect().await?;
            redis::cmd("INFO").arg("replication").query_async(&mut connection).await
        };
        info.await.map_err(|error| error.to_string())
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}
