//! Redis replies that it cannot run the script, or not now: an error at once, nothing charged, and no policy charged without
//! the others.

use std::path::Path;
use std::time::Duration;

use super::fixture::{CountingClient, Fixture, LONG_DEADLINE};
use crate::support::until::until;

const MOMENT: Duration = Duration::from_millis(300);
const WITHIN: Duration = Duration::from_secs(10);

/// Calls between `begin` and `end`. None succeeds, and most errors contain `code`; the others come while the breaker is open.
/// Alternatives for servers that differ are separated by `|`.
pub(super) async fn assert_refused(
    fixture: &Fixture,
    code: &str,
    begin: impl AsyncFnOnce(),
    end: impl AsyncFnOnce(),
) {
    let remaining = fixture.recovers().await;
    let before = fixture.client.counts();
    begin().await;
    let calls = fixture.crowd(8, MOMENT).await;
    let succeeded = calls.iter().find(|call| call.remaining.is_ok());
    assert!(succeeded.is_none(), "{code}: {succeeded:?}");
    let errors = calls.iter().filter_map(|call| call.remaining.as_ref().err());
    let with_code =
        errors.filter(|error| code.split('|').any(|code| error.to_uppercase().contains(code))).count();
    let first = &calls[0].remaining;
    assert!(with_code * 2 > calls.len(), "{with_code} of {} errors contain {code}: {first:?}", calls.len());
    end().await;
    let charged = remaining - fixture.recovers().await;
    let since = fixture.client.counts().since(before);
    let possible = since.succeeded..=since.succeeded + since.timed_out;
    assert!(possible.contains(&charged), "{code}: {charged} charged, {possible:?} possible");
}

#[tokio::test]
async fn oom_without_eviction() {
    let fixture = Fixture::start().await;
    let memory = async |size: &str| fixture.server.configure("maxmemory", size).await;
    assert_refused(&fixture, "OOM", async || memory("1").await, async || memory("0").await).await;
}

#[tokio::test]
async fn misconf_after_failed_save() {
    let fixture = Fixture::start().await;
    let dir: Vec<String> = fixture.server.command(&["CONFIG", "GET", "dir"]).await;
    let obstacle = Path::new(&dir[1]).join("dump.rdb");
    let begin = async || {
        std::fs::create_dir(&obstacle).expect("the directory is writable");
        fixture.server.configure("save", "3600 1000000").await;
        fixture.server.command::<()>(&["BGSAVE"]).await;
        until("the save fails", WITHIN, async || {
            let info: String = fixture.server.command(&["INFO", "persistence"]).await;
            if info.contains("rdb_last_bgsave_status:err") { Ok(()) } else { Err(info) }
        })
        .await;
    };
    let end = async || {
        fixture.server.configure("save", "").await;
        std::fs::remove_dir(&obstacle).expect("it is empty");
    };
    assert_refused(&fixture, "MISCONF", begin, end).await;
}

#[tokio::test]
async fn noreplicas_without_replicas() {
    let fixture = Fixture::start().await;
    let required = async |count: &str| fixture.server.configure("min-replicas-to-write", count).await;
    assert_refused(&fixture, "NOREPLICAS", async || required("1").await, async || required("0").await).await;
}

#[tokio::test]
async fn busy_during_an_endless_script() {
    let fixture = Fixture::start().await;
    fixture.server.configure("lua-time-limit", "1").await;
    let mut connection = fixture.server.connect().await;
    let begin = async || {
        tokio::spawn(async move {
            let endless =
                redis::cmd("EVAL").arg("while true do end").arg(0).exec_async(&mut connection).await;
            endless.expect_err("it is killed");
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let end = async || {
        // A Redis client would fail with BUSY as it connects.
        let mut stream =
            tokio::net::TcpStream::connect(fixture.server.address()).await.expect("it accepts connections");
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"SCRIPT KILL\r\n").await.expect("it reads");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_refused(&fixture, "BUSY", begin, end).await;
}

async fn assert_refused_by_replica(fixture: &Fixture, code: &str) {
    let demote = async || fixture.server.replicate(Some("127.0.0.1:1")).await;
    assert_refused(fixture, code, demote, async || fixture.server.replicate(None).await).await;
    fixture.assert_one_connection().await;
}

#[tokio::test]
async fn readonly_after_demotion() {
    assert_refused_by_replica(&Fixture::start().await, "READONLY").await;
}

#[tokio::test]
async fn masterdown_after_demotion() {
    let fixture = Fixture::start().await;
    fixture.server.configure("replica-serve-stale-data", "no").await;
    assert_refused_by_replica(&fixture, "MASTERDOWN").await;
}

#[tokio::test]
async fn loading_after_restart() {
    let mut fixture = Fixture::start_with(&["--key-load-delay", "300", "--rdbcompression", "no"]).await;
    // A loading server replies only every 2 MB, and before Redis 7.0 this cannot be changed.
    let client = CountingClient::new(&fixture.url(), LONG_DEADLINE);
    fixture.replace_client(client).await;
    fixture.server.command::<()>(&["DEBUG", "POPULATE", "4000", "key", "8000"]).await;
    let remaining = fixture.recovers().await;
    fixture.server.command::<()>(&["SAVE"]).await;
    fixture.client.expect_data_loss();
    let (calls, ()) = tokio::join!(fixture.crowd(8, 5 * MOMENT), fixture.server.restart());
    let errors = calls.iter().filter_map(|call| call.remaining.as_ref().err());
    let loading = errors.filter(|error| error.to_uppercase().contains("LOADING")).count();
    assert!(loading > 5, "{loading} of {} failed with LOADING", calls.len());
    let after = fixture.recovers().await;
    assert!(after < remaining, "saved charges are kept: {after} remain after {remaining}");
    fixture.assert_one_connection().await;
}
