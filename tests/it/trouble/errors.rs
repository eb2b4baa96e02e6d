//! Redis answers that it cannot, or not now: an error at once, nothing charged, and nothing half charged.

use std::path::Path;
use std::time::Duration;

use super::scene::Scene;
use crate::support::until::until;

const MOMENT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(10);

/// Has some decide from the one to the other: all of them are told this code, or that it is not asked again so soon.
pub(super) async fn refused(scene: &Scene, code: &str, begin: impl AsyncFnOnce(), end: impl AsyncFnOnce()) {
    let left = scene.recovers().await;
    let [answered, waited, _] = scene.caller.counts();
    begin().await;
    let calls = scene.crowd(8, MOMENT).await;
    let wrong = calls.iter().find(|call| call.left.is_ok());
    assert!(wrong.is_none(), "{code}: {wrong:?}");
    let told = calls
        .iter()
        .filter(|call| matches!(&call.left, Err(told) if told.to_uppercase().contains(code)))
        .count();
    let any = &calls[0].left;
    assert!(told * 2 > calls.len(), "{code} was told by {told} of {}, one of them {any:?}", calls.len());
    end().await;
    let now = scene.recovers().await;
    let [after, late, _] = scene.caller.counts();
    let charged = left - now;
    let may_be = after - answered + late - waited;
    assert!(
        (after - answered..=may_be).contains(&charged),
        "{code}: {charged} were charged, {may_be} at most"
    );
}

#[tokio::test]
async fn oom_where_the_memory_is_full_and_nothing_is_evicted() {
    let scene = Scene::set().await;
    let memory = async |size: &str| scene.configure("maxmemory", size).await;
    refused(&scene, "OOM", async || memory("1").await, async || memory("0").await).await;
}

#[tokio::test]
async fn misconf_where_the_disk_takes_no_copy() {
    let scene = Scene::set().await;
    let dir: Vec<String> = scene.operate(&["CONFIG", "GET", "dir"]).await;
    let in_the_way = Path::new(&dir[1]).join("dump.rdb");
    let begin = async || {
        std::fs::create_dir(&in_the_way).expect("it is a directory of ours");
        scene.configure("save", "3600 1000000").await;
        scene.operate::<()>(&["BGSAVE"]).await;
        until("the copy fails", LONG, async || {
            let seen: String = scene.operate(&["INFO", "persistence"]).await;
            if seen.contains("rdb_last_bgsave_status:err") { Ok(()) } else { Err(seen) }
        })
        .await;
    };
    let end = async || {
        scene.configure("save", "").await;
        std::fs::remove_dir(&in_the_way).expect("it is empty");
    };
    refused(&scene, "MISCONF", begin, end).await;
}

#[tokio::test]
async fn noreplicas_where_too_few_have_a_copy() {
    let scene = Scene::set().await;
    let needed = async |count: &str| scene.configure("min-replicas-to-write", count).await;
    refused(&scene, "NOREPLICAS", async || needed("1").await, async || needed("0").await).await;
}

#[tokio::test]
async fn busy_where_somebodys_script_does_not_end() {
    let scene = Scene::set().await;
    scene.configure("lua-time-limit", "1").await;
    let mut connection = scene.server.connect().await;
    let begin = async || {
        tokio::spawn(async move {
            let endless =
                redis::cmd("EVAL").arg("while true do end").arg(0).exec_async(&mut connection).await;
            endless.expect_err("it is killed");
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let end = async || {
        // Those who connect are told so too.
        let mut stream =
            tokio::net::TcpStream::connect(scene.server.address()).await.expect("it takes connections");
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"SCRIPT KILL\r\n").await.expect("it reads");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    refused(&scene, "BUSY", begin, end).await;
}

#[tokio::test]
async fn readonly_where_a_master_has_become_a_replica() {
    let scene = Scene::set().await;
    let follow = async |master: [&str; 2]| scene.operate::<()>(&["REPLICAOF", master[0], master[1]]).await;
    let begin = async || follow(["127.0.0.1", "1"]).await;
    refused(&scene, "READONLY", begin, async || follow(["NO", "ONE"]).await).await;
    scene.has_one_connection().await;
}

#[tokio::test]
async fn masterdown_where_a_replica_has_lost_its_master_and_tells_nothing_old() {
    let scene = Scene::set().await;
    scene.configure("replica-serve-stale-data", "no").await;
    let follow = async |master: [&str; 2]| scene.operate::<()>(&["REPLICAOF", master[0], master[1]]).await;
    let begin = async || follow(["127.0.0.1", "1"]).await;
    refused(&scene, "MASTERDOWN", begin, async || follow(["NO", "ONE"]).await).await;
    scene.has_one_connection().await;
}

#[tokio::test]
async fn loading_where_a_server_that_restarts_reads_what_it_had() {
    let scene =
        Scene::set_with(&["--key-load-delay", "300", "--loading-process-events-interval-bytes", "1024"])
            .await;
    scene.operate::<()>(&["DEBUG", "POPULATE", "4000"]).await;
    let left = scene.recovers().await;
    scene.operate::<()>(&["SAVE"]).await;
    scene.caller.loses();
    let (calls, ()) = tokio::join!(scene.crowd(8, 5 * MOMENT), scene.server.restart());
    let loading = calls
        .iter()
        .filter(|call| matches!(&call.left, Err(told) if told.to_uppercase().contains("LOADING")))
        .count();
    assert!(loading > 5, "{loading} of {} were told", calls.len());
    let now = scene.recovers().await;
    assert!(now < left, "what was saved is there: {now} are left after {left}");
    scene.has_one_connection().await;
}
