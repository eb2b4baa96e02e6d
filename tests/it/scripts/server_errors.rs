//! Servers that refuse to write, or to run scripts.

use std::time::Duration;

use ratelimit_runtime::store::{Charge, Outcome, RedisStore};

use super::cases::{CASES, State};
use super::{Fault, Fixture, is_permanent, lists, some_lists, text};

/// Checks that an empty bucket or full window refuses calls even if the server cannot write.
async fn assert_still_limited(fixture: &mut Fixture, code: &str, fault: &Fault) {
    for case in CASES {
        fixture.prepare(State::Absent).await;
        let charge = [Charge { wait: 0, ..case.charge() }];
        let mut admitted = 0;
        while fixture.store.decide(&charge).await.unwrap().admitted {
            admitted += 1;
            assert!(admitted < 100, "{} never refuses", case.name);
        }
        let (outcome, change) = fixture.during(fault, async |store| store.decide(&charge).await).await;
        let context = format!("{code}, {}: {outcome:?}", case.name);
        assert!(outcome.is_ok_and(|outcome| !outcome.admitted), "{context}");
        change.assert_none(&context);
    }
}

/// Checks that nothing is charged or refunded while the server cannot write, and that everything works again afterwards.
async fn assert_nothing_written(code: &str, mut fixture: Fixture, fault: Fault) {
    assert_still_limited(&mut fixture, code, &fault).await;
    for (round, state) in State::ALL.into_iter().enumerate() {
        for list in some_lists(round) {
            fixture.prepare(state).await;
            let case = CASES.iter().find(|case| case.key() == list[0].key).unwrap();
            let calls = async |store: &RedisStore| {
                let outcome = store.decide(&list).await;
                let refund = match state {
                    State::Charged => Some(store.refund(&case.key(), &case.spec(), 1, None).await),
                    _ => None,
                };
                (outcome, refund)
            };
            let ((outcome, refund), change) = fixture.during(&fault, calls).await;
            let context = format!("{code}, {state:?}: {list:?}");
            if state != State::Future && refund.is_none_or(|refund| refund.is_err()) {
                change.assert_none(&context);
            }
            match outcome {
                Err(error) => {
                    let named = text(&error).contains(&code.to_lowercase());
                    assert!(named && !is_permanent(&error), "{context}: {error:?}");
                }
                // Refused, or all charges are in shadow.
                Ok(outcome) if state == State::Charged => {
                    let shadows = list.iter().filter(|charge| charge.shadow).count();
                    assert!(!outcome.admitted || shadows == list.len(), "{outcome:?}");
                }
                Ok(outcome) => change.assert_charged(&list, &outcome, state, &context),
            }
            fixture.reconnect();
            let outcome = fixture.store.decide(&list).await.unwrap();
            assert!(outcome.failed.is_empty(), "{outcome:?}");
        }
    }
}

#[tokio::test]
async fn out_of_memory() {
    let fault = Fault::new("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0");
    assert_nothing_written("OOM", Fixture::start().await, fault).await;
}

#[tokio::test]
async fn demoted_to_replica() {
    let fault = Fault::new("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE");
    assert_nothing_written("READONLY", Fixture::start().await, fault).await;
}

#[tokio::test]
async fn missing_replicas() {
    let fault = Fault::new("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0");
    assert_nothing_written("NOREPLICAS", Fixture::start().await, fault).await;
}

#[tokio::test]
async fn failed_snapshots() {
    let mut fixture = Fixture::start().await;
    let (_, dir): (String, String) =
        redis::cmd("CONFIG").arg(&["GET", "dir"]).query_async(&mut fixture.admin).await.unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    fixture.send("BGSAVE").await;
    loop {
        let info: String =
            redis::cmd("INFO").arg("persistence").query_async(&mut fixture.admin).await.unwrap();
        if info.contains("rdb_last_bgsave_status:err") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Redis only refuses to write if snapshots are enabled.
    let saves = ["SET", "save", "1000000 1000000"];
    let _: () = redis::cmd("CONFIG").arg(&saves).query_async(&mut fixture.admin).await.unwrap();
    let stop_writes = |value: &str| format!("CONFIG SET stop-writes-on-bgsave-error {value}");
    let fault = Fault::new(&stop_writes("yes"), &stop_writes("no"));
    fixture.send(&fault.end).await;
    assert_nothing_written("MISCONF", fixture, fault).await;
}

#[tokio::test]
async fn busy_with_another_script() {
    let mut fixture = Fixture::start().await;
    fixture.send("CONFIG SET lua-time-limit 1").await;
    for list in lists().into_iter().step_by(7) {
        fixture.prepare(State::Charged).await;
        let before = fixture.stored().await;
        let mut other = fixture.server.connect().await;
        let endless = tokio::spawn(async move {
            let _: Result<(), _> =
                redis::cmd("EVAL").arg("while true do end").arg(0).query_async(&mut other).await;
        });
        while redis::cmd("PING").query_async::<String>(&mut fixture.admin).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let error = fixture.store.decide(&list).await.unwrap_err();
        assert!(text(&error).contains("busy") && !is_permanent(&error), "{error:?}");
        fixture.send("SCRIPT KILL").await;
        endless.await.unwrap();
        assert_eq!(before, fixture.stored().await);
        fixture.reconnect();
        fixture.store.decide(&list).await.unwrap();
    }
}

#[tokio::test]
async fn loading_data() {
    let mut fixture = Fixture::start().await;
    for list in lists().into_iter().step_by(17) {
        fixture.prepare(State::Charged).await;
        // While it loads, a server only answers every 2 MB.
        fixture.send("CONFIG SET rdbcompression no").await;
        fixture.send("DEBUG POPULATE 2000 other 4096").await;
        fixture.send("CONFIG SET key-load-delay 1000").await;
        let before = fixture.stored().await;
        let mut other = fixture.server.connect().await;
        let reload = tokio::spawn(async move {
            redis::cmd("DEBUG").arg("RELOAD").query_async::<()>(&mut other).await.unwrap();
        });
        while redis::cmd("GET").arg("other:0").query_async::<Option<String>>(&mut fixture.admin).await.is_ok()
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let error = fixture.store.decide(&list).await.unwrap_err();
        assert!(text(&error).contains("loading") && !is_permanent(&error), "{error:?}");
        reload.await.unwrap();
        assert_eq!(before, fixture.stored().await);
        fixture.reconnect();
        fixture.store.decide(&list).await.unwrap();
    }
}

#[tokio::test]
async fn flushed_scripts_charge_once() {
    let mut fixture = Fixture::start().await;
    let remaining = |outcome: &Outcome| -> Vec<_> {
        outcome.verdicts.iter().map(|verdict| (verdict.admitted, verdict.remaining)).collect()
    };
    for list in lists() {
        fixture.prepare(State::Charged).await;
        let expected = remaining(&fixture.store.decide(&list).await.unwrap());
        fixture.prepare(State::Charged).await;
        fixture.send("SCRIPT FLUSH").await;
        assert_eq!(expected, remaining(&fixture.store.decide(&list).await.unwrap()));
        fixture.send("SCRIPT FLUSH").await;
        fixture.store.refund(&list[0].key, &list[0].spec, 1, None).await.unwrap();
    }
}
