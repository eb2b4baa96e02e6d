//! A server that refuses to write, or to run a script at all.

use std::time::Duration;

use ratelimit_runtime::store::{Charge, Outcome};

use super::acl::is_whole;
use super::cases::CASES;
use super::{Bench, is_defect, lists, text};

/// Of every algorithm one that nobody waits for is told to be limited once all is taken, whether the server can write or not.
async fn is_limited(bench: &mut Bench, code: &str, begin: &[&str], end: &[&str]) {
    for case in CASES {
        bench.prepare("nothing").await;
        let charge = [Charge { wait: 0, ..case.charge() }];
        let mut admitted = 0;
        while bench.decide(&charge).await.unwrap().admitted {
            admitted += 1;
            assert!(admitted < 100, "{} is never empty", case.name);
        }
        let before = bench.held().await;
        for command in begin {
            bench.send(command).await;
        }
        let outcome = bench.decide(&charge).await;
        for command in end {
            bench.send(command).await;
        }
        let told = outcome.as_ref().map_err(text);
        assert!(told.as_ref().is_ok_and(|told| !told.admitted), "{code}, {}: {told:?}", case.name);
        assert_eq!(before, bench.held().await, "{code}, {}", case.name);
    }
}

/// While the server is in this trouble nothing is charged and nothing is given back, and afterwards all goes on.
async fn charges_nothing(bench: &mut Bench, code: &str, begin: &[&str], end: &[&str]) {
    is_limited(bench, code, begin, end).await;
    for state in ["nothing", "charged", "ended", "future"] {
        for list in lists() {
            bench.prepare(state).await;
            let before = bench.held().await;
            for command in begin {
                bench.send(command).await;
            }
            let outcome = bench.decide(&list).await;
            let mut refunds = Vec::new();
            if state == "charged" {
                let case = CASES.iter().find(|case| case.key() == list[0].key).unwrap();
                refunds.push(bench.store.refund(&case.key(), &case.spec(), 1, None).await);
            }
            for command in end {
                bench.send(command).await;
            }
            let after = bench.held().await;
            match &outcome {
                Err(error) => {
                    let told = text(error);
                    assert!(told.contains(code) && !is_defect(error), "{state}: {told}");
                    assert!(!told.contains("rl:"), "{told}");
                }
                // All that would write are in shadow, or one refused. Or a state from the future made room first.
                Ok(outcome) if state != "charged" => is_whole(&list, outcome, &before, &after, state, code),
                Ok(outcome) => {
                    let shadows = list.iter().filter(|charge| charge.shadow).count();
                    assert!(!outcome.admitted || shadows == list.len(), "{outcome:?}");
                }
            }
            if state != "future" && refunds.iter().all(Result::is_err) {
                assert_eq!(before, after, "{code}, {state}: {list:?}");
            }
            bench.forget_trouble();
            let outcome = bench.decide(&list).await.unwrap();
            assert!(outcome.failed.is_empty(), "{outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_server_without_memory() {
    let mut bench = Bench::start().await;
    charges_nothing(&mut bench, "OOM", &["CONFIG SET maxmemory 1"], &["CONFIG SET maxmemory 0"]).await;
}

#[tokio::test]
async fn a_server_that_has_become_a_replica() {
    let mut bench = Bench::start().await;
    charges_nothing(&mut bench, "READONLY", &["REPLICAOF 127.0.0.1 1"], &["REPLICAOF NO ONE"]).await;
}

#[tokio::test]
async fn a_server_that_misses_its_replicas() {
    let mut bench = Bench::start().await;
    let (begin, end) = (["CONFIG SET min-replicas-to-write 1"], ["CONFIG SET min-replicas-to-write 0"]);
    charges_nothing(&mut bench, "NOREPLICAS", &begin, &end).await;
}

#[tokio::test]
async fn a_server_that_cannot_save() {
    let mut bench = Bench::start().await;
    let (_, dir): (String, String) =
        redis::cmd("CONFIG").arg(&["GET", "dir"]).query_async(&mut bench.admin).await.unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    bench.send("BGSAVE").await;
    loop {
        let told: String = redis::cmd("INFO").arg("persistence").query_async(&mut bench.admin).await.unwrap();
        if told.contains("rdb_last_bgsave_status:err") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Only a server that is to save by itself minds.
    let saves = ["SET", "save", "1000000 1000000"];
    let _: () = redis::cmd("CONFIG").arg(&saves).query_async(&mut bench.admin).await.unwrap();
    let on = ["CONFIG SET stop-writes-on-bgsave-error yes"];
    let off = ["CONFIG SET stop-writes-on-bgsave-error no"];
    bench.send(off[0]).await;
    charges_nothing(&mut bench, "MISCONF", &on, &off).await;
}

#[tokio::test]
async fn a_server_that_is_busy_with_another_script() {
    let mut bench = Bench::start().await;
    bench.send("CONFIG SET busy-reply-threshold 1").await;
    for list in lists().into_iter().step_by(7) {
        bench.prepare("charged").await;
        let before = bench.held().await;
        let mut other = bench.server.connect().await;
        let endless = tokio::spawn(async move {
            let _: Result<(), _> =
                redis::cmd("EVAL").arg("while true do end").arg(0).query_async(&mut other).await;
        });
        while redis::cmd("PING").query_async::<String>(&mut bench.admin).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let error = bench.decide(&list).await.unwrap_err();
        let told = text(&error);
        assert!(told.to_lowercase().contains("busy") && !is_defect(&error), "{told}");
        bench.send("SCRIPT KILL").await;
        endless.await.unwrap();
        assert_eq!(before, bench.held().await);
        bench.forget_trouble();
        bench.decide(&list).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_loading() {
    let mut bench = Bench::start().await;
    for list in lists().into_iter().step_by(17) {
        bench.prepare("charged").await;
        bench.send("DEBUG POPULATE 2000 other").await;
        bench.send("CONFIG SET key-load-delay 1000").await;
        bench.send("CONFIG SET loading-process-events-interval-bytes 1024").await;
        let before = bench.held().await;
        let mut other = bench.server.connect().await;
        let reloads = tokio::spawn(async move {
            redis::cmd("DEBUG").arg("RELOAD").query_async::<()>(&mut other).await.unwrap();
        });
        while redis::cmd("GET").arg("other:0").query_async::<Option<String>>(&mut bench.admin).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let error = bench.decide(&list).await.unwrap_err();
        let told = text(&error);
        assert!(told.to_lowercase().contains("loading") && !is_defect(&error), "{told}");
        reloads.await.unwrap();
        assert_eq!(before, bench.held().await);
        bench.forget_trouble();
        bench.decide(&list).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_forgets_scripts_charges_once() {
    let mut bench = Bench::start().await;
    let left = |outcome: &Outcome| -> Vec<_> {
        outcome.verdicts.iter().map(|verdict| (verdict.admitted, verdict.remaining)).collect()
    };
    for list in lists() {
        bench.prepare("charged").await;
        let known = left(&bench.decide(&list).await.unwrap());
        bench.prepare("charged").await;
        bench.send("SCRIPT FLUSH").await;
        assert_eq!(known, left(&bench.decide(&list).await.unwrap()));
        bench.send("SCRIPT FLUSH").await;
        bench.store.refund(&list[0].key, &list[0].spec, 1, None).await.unwrap();
    }
}
