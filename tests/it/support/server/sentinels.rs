//! A master, its replica, and three sentinels that make the replica the master when the master is gone.

use std::collections::HashMap;
use std::time::Duration;

use super::Server;
use crate::support::until::until;

/// What the sentinels call the master.
pub(crate) const NAME: &str = "limits";

const WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Sentinels {
    servers: [Server; 2],
    sentinels: [Server; 3],
}

impl Sentinels {
    /// Returns when a failover could begin.
    pub(crate) async fn start() -> Sentinels {
        let master = Server::start();
        let replica = Server::start_with(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
        replica.follows().await;
        let sentinels = [(); 3].map(|()| sentinel(&master));
        for sentinel in &sentinels {
            hurry(sentinel).await;
        }
        let started = Sentinels { servers: [master, replica], sentinels };
        until("the sentinels know the servers and each other", WITHIN, async || {
            for sentinel in &started.sentinels {
                let seen = known(sentinel).await;
                let number = |of: &str| seen.get(of).map_or("none", String::as_str);
                if [number("num-slaves"), number("num-other-sentinels")] != ["1", "2"] {
                    return Err(format!("{} knows {seen:?}", sentinel.port()));
                }
            }
            Ok(())
        })
        .await;
        started
    }

    /// Where the sentinels are, as `host:port`.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.sentinels.iter().map(Server::address).collect()
    }

    /// The master, as all sentinels say.
    pub(crate) async fn master(&self) -> &Server {
        let port = until("the sentinels agree", WITHIN, async || self.named().await).await;
        self.server(port)
    }

    /// The master, once all sentinels name another one than this, and it is one.
    pub(crate) async fn master_after(&self, former: &Server) -> &Server {
        until("the sentinels name another master", WITHIN, async || {
            let port = self.named().await?;
            if port == former.port() {
                return Err(format!("they still name {port}"));
            }
            let master = self.server(port);
            match master.role().await?.as_str() {
                "master" => Ok(master),
                role => Err(format!("{port} is still a {role}")),
            }
        })
        .await
    }

    fn server(&self, port: u16) -> &Server {
        self.servers.iter().find(|server| server.port() == port).expect("the sentinels know no other")
    }

    async fn named(&self) -> Result<u16, String> {
        let mut named = Vec::new();
        for sentinel in &self.sentinels {
            let mut command = redis::cmd("SENTINEL");
            command.arg(&["GET-MASTER-ADDR-BY-NAME", NAME]);
            let (_, port): (String, u16) =
                command.query_async(&mut sentinel.connect().await).await.expect("a sentinel answers");
            named.push(port);
        }
        if named.iter().all(|port| *port == named[0]) { Ok(named[0]) } else { Err(format!("{named:?}")) }
    }
}

fn sentinel(master: &Server) -> Server {
    Server::start_by(|port, dir| {
        let file = dir.join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir \"{}\"\n\
             sentinel monitor {NAME} 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds {NAME} 500\n\
             sentinel failover-timeout {NAME} 1500\n",
            dir.display(),
            master.port(),
        );
        std::fs::write(&file, text).expect("the directory can be written");
        vec![file.display().to_string(), "--sentinel".into()]
    })
}

/// Sentinels look for each other every 2 s and for replicas every 10. From Redis 7.0 they can be told to do so more often.
/// The period of their pings stays: a replica that they have not heard from for five of these they do not promote, and while
/// the master is down they ask it once a second. They also do nothing for 30 s when the machine has kept them waiting for 2.
async fn hurry(sentinel: &Server) {
    let mut command = redis::cmd("SENTINEL");
    command.arg("DEBUG").arg(&["PUBLISH-PERIOD", "100", "INFO-PERIOD", "200"]);
    command.arg(&["ASK-PERIOD", "100", "TILT-TRIGGER", "20000"]);
    let _: Result<(), _> = command.query_async(&mut sentinel.connect().await).await;
}

async fn known(sentinel: &Server) -> HashMap<String, String> {
    let mut command = redis::cmd("SENTINEL");
    command.arg(&["MASTER", NAME]);
    command.query_async(&mut sentinel.connect().await).await.expect("a sentinel answers")
}
