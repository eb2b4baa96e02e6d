//! Overrides in a Redis that loses its data.

use ratelimits::{FixedWindow, Limiter, Registry};

use super::{DAY, WITHIN, in_force, reported};
use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;
use crate::support::until::until;

const NAME: &str = "lost.limiter";

/// A registry with overrides in Redis, and a limiter with one.
struct Program {
    registry: Registry,
    limiter: Limiter,
    namespace: String,
}

impl Program {
    async fn start(server: &Server) -> Program {
        let namespace = namespace();
        let builder = Registry::builder().deadline(LONG_DEADLINE).namespace(&namespace).overrides_in_redis();
        let registry = builder.connect_lazy(&server.url()).unwrap();
        let limiter = registry.limiter(NAME, FixedWindow::new(5, DAY)).unwrap();
        let program = Program { registry, limiter, namespace };
        program.write(server, "7", &format!("[\"{NAME}\"]\nlimit = 1\n")).await;
        in_force(&program.registry, &[NAME]).await;
        program
    }

    async fn write(&self, server: &Server, version: &str, text: &str) {
        let key = format!("{}:overrides", self.namespace);
        let _: u64 = server.command(&["HSET", &key, "version", version, "toml", text]).await;
    }

    /// Waits until a problem is reported, with which the override is still in force.
    async fn keeps_its_override(&self, problem: &str) {
        let problem = format!("the key `{}:overrides` {problem}", self.namespace);
        until("the loss is reported", WITHIN, async || {
            let reported = reported();
            if reported.contains(&problem) { Ok(()) } else { Err(reported) }
        })
        .await;
        assert_eq!(self.registry.overrides().len(), 1);
        assert_eq!(self.limiter.peek("a").await.unwrap().limit, 1);
    }

    /// Waits until overrides end as they should, and no problem is left.
    async fn clear(&self, server: &Server, version: &str) {
        self.write(server, version, "").await;
        in_force(&self.registry, &[]).await;
        let key = format!("`{}:overrides`", self.namespace);
        until("no loss is reported", WITHIN, async || match reported() {
            reported if reported.contains(&key) => Err(reported),
            _ => Ok(()),
        })
        .await;
    }
}

#[tokio::test]
async fn overrides_outlive_lost_data() {
    let server = Server::start();
    let program = Program::start(&server).await;
    let _: () = server.command(&["FLUSHALL"]).await;
    program.keeps_its_override("is gone").await;
    let inventory = format!("{}:inventory", program.namespace);
    until("the process says what it has in force", WITHIN, async || {
        match server.command::<u64>(&["HEXISTS", &inventory, "overrides"]).await {
            1 => Ok(()),
            _ => Err("it does not".to_owned()),
        }
    })
    .await;
    // Another process cannot know them, but that they are gone.
    let restarted = Registry::builder().deadline(LONG_DEADLINE).namespace(&program.namespace);
    let restarted = restarted.overrides_in_redis().connect_lazy(&format!("{}/0", server.url())).unwrap();
    until("the loss is reported to a new process", WITHIN, async || match reported() {
        reported if reported.contains("version 7 of") => Ok(()),
        reported => Err(reported),
    })
    .await;
    assert_eq!(restarted.overrides(), []);
    drop(restarted);
    // The next version is by the time of the server, and later in any case.
    program.clear(&server, "8").await;
    let _: () = server.command(&["FLUSHALL"]).await;
    program.write(&server, "9", &format!("[\"{NAME}\"]\nlimit = 1\n")).await;
    in_force(&program.registry, &[NAME]).await;

    // Without persistence.
    server.kill();
    server.restart().await;
    program.keeps_its_override("is gone").await;
    program.clear(&server, "10").await;
}

#[tokio::test]
async fn stale_replicas_change_no_override() {
    let (master, replica) = (Server::start(), Server::start());
    let program = Program::start(&master).await;
    replica.replicate(Some(&master.address())).await;
    let key = format!("{}:overrides", program.namespace);
    until("the replica has the first version", WITHIN, async || {
        match replica.command(&["EXISTS", &key]).await {
            1 => Ok(()),
            found => Err(format!("{found}")),
        }
    })
    .await;
    replica.replicate(None).await;
    program.write(&master, "8", &format!("[\"{NAME}\"]\nlimit = 1\nshadow = true\n")).await;
    let settings = || program.registry.overrides()[0].settings().len();
    until("the last change is in force", WITHIN, async || match settings() {
        2 => Ok(()),
        _ => Err(format!("{:?}", program.registry.overrides())),
    })
    .await;
    // The data of the replica takes the place of the master's.
    master.replicate(Some(&replica.address())).await;
    program.keeps_its_override("has version 7, which is earlier than 8").await;
    assert_eq!(settings(), 2);
    master.replicate(None).await;
    program.clear(&master, "9").await;
}
