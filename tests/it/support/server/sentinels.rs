//! A master, its replica, and three sentinels that promote the replica when the master fails.

use std::collections::HashMap;
use std::time::Duration;

use super::Server;
use crate::support::until::until;

/// The name of the master.
pub(crate) const NAME: &str = "limits";

const WITHIN: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub(crate) struct Sentinels {
    servers: [Server; 2],
    sentinels: [Server; 3],
}

impl Sentinels {
    /// Returns once the sentinels are ready for a failover.
    pub(crate) async fn start() -> Sentinels {
        let master = Server::start();
        let replica = Server::start_with(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
        replica.follows().await;
        let sentinels = [(); 3].map(|()| sentinel(&master));
        for sentinel in &sentinels {
            speed_up(sentinel).await;
        }
        let started = Sentinels { servers: [master, replica], sentinels };
        until("the sentinels know the servers and each other", WITHIN, async || {
            for sentinel in &started.sentinels {
                let known: HashMap<String, String> = sentinel.command(&["SENTINEL", "MASTER", NAME]).await;
                let number = |of: &str| known.get(of).map_or("none", String::as_str);
                if [number("num-slaves"), number("num-other-sentinels")] != ["1", "2"] {
                    return Err(format!("{} knows {known:?}", sentinel.port()));
                }
            }
            Ok(())
        })
        .await;
        started
    }

    /// The addresses of the sentinels as `host:port`.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.sentinels.iter().map(Server::address).collect()
    }

    /// The URL of the master by way of all sentinels.
    pub(crate) fn url(&self) -> String {
        format!("redis+sentinel://{}/{NAME}", self.addresses().join(","))
    }

    /// The sentinels as servers.
    pub(crate) fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// The master, once all sentinels agree on it.
    pub(crate) async fn master(&self) -> &Server {
        let port = until("the sentinels agree", WITHIN, async || self.named().await).await;
        self.server(port)
    }

    /// The server that replaces this master, once all sentinels name it and it reports to be one.
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

    /// The other server.
    pub(crate) fn other(&self, server: &Server) -> &Server {
        self.servers.iter().find(|other| other.port() != server.port()).expect("there are two")
    }

    fn server(&self, port: u16) -> &Server {
        self.servers.iter().find(|server| server.port() == port).expect("the sentinels know two servers")
    }

    async fn named(&self) -> Result<u16, String> {
        let mut ports = Vec::new();
        for sentinel in &self.sentinels {
            let command = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
            let (_, port): (String, u16) = sentinel.command(&command).await;
            ports.push(port);
        }
        if ports.iter().all(|port| *port == ports[0]) { Ok(ports[0]) } else { Err(format!("{ports:?}")) }
    }
}

fn sentinel(master: &Server) -> Server {
    Server::start_by(|port, dir| {
        let file = dir.join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir \"{}\"\n\
             sentinel monitor {NAME} 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds {NAME} 1000\n\
             sentinel failover-timeout {NAME} 2000\n",
            dir.display(),
            master.port(),
        );
        std::fs::write(&file, text).expect("the directory is writable");
        vec![file.display().to_string(), "--sentinel".into()]
    })
}

/// Shortens the periods of discovery (2 s for sentinels, 10 s for replicas) and tolerates a busy machine, which otherwise
/// suspends a sentinel for 30 s. Servers before Redis 7.0 have no such command and take longer to start. The ping period is
/// not configurable: a replica that was silent for five of them is not promoted.
async fn speed_up(sentinel: &Server) {
    let mut command = redis::cmd("SENTINEL");
    command.arg("DEBUG").arg(&["PUBLISH-PERIOD", "100", "INFO-PERIOD", "200"]);
    command.arg(&["ASK-PERIOD", "100", "TILT-TRIGGER", "20000"]);
    let _: Result<(), _> = command.query_async(&mut sentinel.connect().await).await;
}
