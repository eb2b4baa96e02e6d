//! The version of overrides in Redis.

use ratelimits::{FixedWindow, Registry};

use super::{DAY, WITHIN, in_force};
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use crate::support::until::until;

/// Returns how many times a server was asked for fields of a hash.
async fn reads(server: &Server) -> u64 {
    let stats: String = server.command(&["INFO", "commandstats"]).await;
    let calls = stats.split("cmdstat_hmget:calls=").nth(1).and_then(|rest| rest.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

#[tokio::test]
async fn text_is_read_when_its_version_changes() {
    const NAME: &str = "versions.limiter";
    let server = Server::start();
    let set = async |fields: &[&str]| {
        let _: u64 = server.command(&[&["HSET", "rl:overrides"], fields].concat()).await;
    };
    let text = |limit| format!("[\"{NAME}\"]\nlimit = {limit}\n");
    let settings =
        |registry: &Registry| Vec::from_iter(registry.overrides().iter().flat_map(|it| it.settings()));
    set(&["version", "7", "toml", &text(1)]).await;
    let builder = Registry::builder().deadline(LONG_DEADLINE).overrides_in_redis();
    let registry = builder.connect_lazy(&server.url()).unwrap();
    registry.limiter(NAME, FixedWindow::new(5, DAY)).unwrap();
    in_force(&registry, &[NAME]).await;

    // Each look is for the version alone.
    set(&["toml", &text(2)]).await;
    let before = reads(&server).await;
    until("the watcher has looked twice", WITHIN, async || match reads(&server).await - before {
        0..3 => Err("it has not".to_owned()),
        _ => Ok(()),
    })
    .await;
    assert_eq!(settings(&registry), ["limit = 1"]);

    set(&["version", "8"]).await;
    until("the new text is in force", WITHIN, async || match settings(&registry) {
        settings if settings == ["limit = 2"] => Ok(()),
        settings => Err(format!("{settings:?}")),
    })
    .await;

    // A file of overrides has the same bound.
    set(&["version", "9", "toml", &"# more than 4 MiB\n".repeat(250_000)]).await;
    until("the size is reported", WITHIN, async || {
        let reported = super::reported();
        if reported.contains("rl:overrides is larger than 4 MiB") { Ok(()) } else { Err(reported) }
    })
    .await;
    assert_eq!(settings(&registry), ["limit = 2"]);
}
