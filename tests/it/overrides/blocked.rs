//! Keys that an operator has blocked, or for which a policy is off.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use ratelimits::observe::CallOutcome;
use ratelimits::{DecidedBy, Decision, Error, FixedWindow, Registry, count_limit, rate_limit};

use super::{DAY, Overrides, on_each_of, on_each_registry};

#[count_limit(limit = 2, period = "1d", key = tenant, name = "blocked.window")]
async fn window(tenant: &str) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "9/d", burst = 9, key = tenant, name = "blocked.first")]
#[count_limit(limit = 2, period = "1d", key = tenant, name = "blocked.second")]
async fn stack(tenant: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 2, period = "1d", key = tenant, name = "blocked.bound", bind = decision)]
async fn bound(tenant: &str) -> Result<Decision, Error> {
    Ok(decision)
}

#[tokio::test]
async fn blocked_keys_are_refused_without_the_store() {
    let until = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + 1000;
    let text = format!(
        "[\"blocked.window\".keys.x]\nblocked = true\n[\"blocked.window\".keys.y]\nblocked = true\nuntil = {until}\n\
         [\"blocked.second\".keys.x]\nblocked = true\n[\"blocked.limiter\".keys.x]\nblocked = true\n[\"blocked.bound\".keys.x]\nblocked = true\n"
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let builder = || {
        let seen = Arc::clone(&seen);
        Registry::builder().observer(move |it| {
            seen.lock().unwrap().push((it.policy.to_owned(), it.outcome, it.key().concat()));
        })
    };
    on_each_of(&text, builder, async |registry, _| {
        let limiter = registry.limiter("blocked.limiter", FixedWindow::new(2, DAY)).unwrap();
        registry
            .scope(async {
                let error = window("x").await.unwrap_err();
                assert_eq!(
                    error.to_string(),
                    "limited by policy `blocked.window` (fixed window); an operator has blocked its key"
                );
                assert_eq!((error.retry_after(), error.is_unsatisfiable()), (None, false));
                let Error::Limited(limited) = &error else { panic!("{error}") };
                assert_eq!(limited.key(), Some(&["x".to_owned()][..]));
                assert_eq!((limited.decision().limit, limited.decision().remaining), (0, 0));
                let retry_after = window("y").await.unwrap_err().retry_after().unwrap();
                assert!(
                    retry_after > Duration::from_secs(900) && retry_after <= Duration::from_secs(1001),
                    "{retry_after:?}"
                );
                // The others of a stack are charged nothing.
                assert!(stack("x").await.unwrap_err().to_string().contains("`blocked.second`"));
                assert_eq!(registry.policy("blocked.first").unwrap().usage("x").await.unwrap().used, 0);
                assert!(bound("x").await.unwrap_err().is_limited());
            })
            .await;
        assert!(limiter.try_acquire("x").await.unwrap_err().is_limited());
        // However long it may wait, and whatever stands beside it in a list.
        assert!(limiter.acquire("x").await.unwrap_err().is_limited());
        assert!(limiter.blocking_acquire("x").unwrap_err().is_limited());
        let charges = [limiter.charge("z"), limiter.charge("x")];
        assert!(registry.try_acquire_all(charges).await.unwrap_err().is_limited());
        assert_eq!(limiter.peek("z").await.unwrap().remaining, 2);
        let peeked = limiter.peek("x").await.unwrap();
        assert_eq!((peeked.limit, peeked.remaining, peeked.policies()[0].admitted), (0, 0, false));
        // A call that costs nothing passes.
        limiter.try_acquire_n("x", 0).await.unwrap();
        assert!(!limiter.reset("x").await.unwrap());
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        let first = ("blocked.window".to_owned(), CallOutcome::Limited, "x".to_owned());
        assert_eq!(seen[0], first);
    })
    .await;
}

#[tokio::test]
async fn blocked_keys_are_refused_during_an_outage() {
    let file = Overrides::new(
        "[\"blocked.window\".keys.x]\nblocked = true\n[\"blocked.window\".keys.off]\noff = true\n",
    );
    let registry = Registry::builder().overrides(&file.0).connect_lazy("redis://127.0.0.1:1").unwrap();
    registry
        .scope(async {
            assert!(window("x").await.unwrap_err().is_limited());
            window("off").await.unwrap();
        })
        .await;
}

#[tokio::test]
async fn decisions_are_bound_without_a_policy_that_is_off() {
    on_each_registry("[\"blocked.bound\".keys.off]\noff = true\n", async |registry, _| {
        registry
            .scope(async {
                let decision = bound("off").await.unwrap();
                assert_eq!((decision.policies().len(), decision.source), (0, DecidedBy::Skipped));
                assert_eq!(bound("a").await.unwrap().remaining, 1);
            })
            .await;
    })
    .await;
}

#[tokio::test]
async fn free_charges_hide_no_blocked_key() {
    let until = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + 1000;
    let text = format!(
        "[\"blocked.limiter\".keys.x]\nblocked = true\n[\"blocked.limiter\".keys.y]\nblocked = true\nuntil = {until}\n"
    );
    on_each_registry(&text, async |registry, _| {
        let limiter = registry.limiter("blocked.limiter", FixedWindow::new(2, DAY)).unwrap();
        for (free, blocked) in [("x", "y"), ("y", "x"), ("x", "x")] {
            let charges = || [limiter.charge_n(free, 0), limiter.charge(blocked)];
            for list in [Vec::from(charges()), charges().into_iter().rev().collect()] {
                assert!(registry.try_acquire_all(list).await.unwrap_err().is_limited(), "{free}, {blocked}");
            }
        }
        let free = [limiter.charge_n("x", 0), limiter.charge_n("y", 0), limiter.charge("z")];
        registry.try_acquire_all(free).await.unwrap();
    })
    .await;
}
