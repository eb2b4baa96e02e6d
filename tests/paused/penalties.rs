//! Keys that a refusal pauses, longer each time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratelimits::observe::CallOutcome;
use ratelimits::{
    Error, FixedWindow, OnStoreError, Registry, count_limit, funnel_limit, rate_limit, window_limit,
};
use tokio::time::advance;
use tracing::instrument::WithSubscriber;

use super::log_capture::LogCapture;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

#[count_limit(2, "10s", key = user, name = "penalties.log_in", penalty = ["1m", "5m", "1h"])]
async fn log_in(user: &str) -> Result<(), Error> {
    Ok(())
}

/// Runs a test on a registry of its own.
async fn isolated(test: impl AsyncFnOnce(&Registry)) {
    let registry = Registry::in_memory();
    registry.scope(test(&registry)).await;
}

async fn step(registry: &Registry, policy: &str, key: &str) -> u64 {
    registry.policy(policy).unwrap().usage(key).await.unwrap().penalty_step
}

/// Uses the window up, and returns how long the next call has to wait.
async fn exceed(user: &str) -> Duration {
    for _ in 0..2 {
        log_in(user).await.unwrap();
    }
    log_in(user).await.unwrap_err().retry_after().unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_refusal_pauses_the_key_for_longer() {
    isolated(async |_| {
        for expected in [MINUTE, 5 * MINUTE, HOUR, HOUR] {
            assert_eq!(exceed("ada").await, expected);
            log_in("grace").await.unwrap();
            advance(expected - Duration::from_micros(1)).await;
            assert_eq!(log_in("ada").await.unwrap_err().retry_after(), Some(Duration::from_micros(1)));
            advance(Duration::from_micros(1)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_step_is_forgiven_for_each_longest_duration() {
    isolated(async |registry| {
        for expected in [MINUTE, 5 * MINUTE, HOUR] {
            assert_eq!(exceed("ada").await, expected);
            advance(expected).await;
        }
        assert_eq!(step(registry, "penalties.log_in", "ada").await, 3);
        advance(HOUR - Duration::from_micros(1)).await;
        assert_eq!(step(registry, "penalties.log_in", "ada").await, 3);
        advance(Duration::from_micros(1)).await;
        assert_eq!(step(registry, "penalties.log_in", "ada").await, 2);
        assert_eq!(exceed("ada").await, HOUR);
        advance(4 * HOUR).await;
        assert_eq!(step(registry, "penalties.log_in", "ada").await, 0);
        assert_eq!(exceed("ada").await, MINUTE);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn limiters_of_the_policy_pause_keys_too() {
    isolated(async |registry| {
        let limiter = registry.policy("penalties.log_in").unwrap().limiter().unwrap();
        let numbers = FixedWindow::new(2, 10 * SECOND);
        let derived = [
            limiter.clone(),
            limiter.on_store_error(OnStoreError::Deny),
            limiter.with_numbers(numbers).unwrap(),
            limiter.on_store_error(OnStoreError::Allow).with_numbers(numbers).unwrap(),
        ];
        for (user, limiter) in derived.iter().enumerate() {
            while limiter.try_acquire(user).await.is_ok() {}
            assert_eq!(step(registry, "penalties.log_in", &user.to_string()).await, 1, "{user}");
        }
    })
    .await;
}

#[count_limit(2, "1h", key = user, name = "penalties.slow", penalty = ["1m", "5m"])]
async fn slow(user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn retries_add_nothing_before_the_key_has_admitted_a_call() {
    isolated(async |registry| {
        for _ in 0..2 {
            slow("ada").await.unwrap();
        }
        assert_eq!(slow("ada").await.unwrap_err().retry_after(), Some(HOUR));
        for minutes in 1..60 {
            advance(MINUTE).await;
            assert_eq!(slow("ada").await.unwrap_err().retry_after(), Some(HOUR - minutes * MINUTE));
            assert_eq!(
                step(registry, "penalties.slow", "ada").await,
                u64::from(minutes < 6),
                "after {minutes} minutes"
            );
        }
        advance(MINUTE).await;
        for _ in 0..2 {
            slow("ada").await.unwrap();
        }
        assert_eq!(slow("ada").await.unwrap_err().retry_after(), Some(HOUR));
        assert_eq!(step(registry, "penalties.slow", "ada").await, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn reset_forgets_penalties() {
    isolated(async |registry| {
        exceed("ada").await;
        let policy = registry.policy("penalties.log_in").unwrap();
        assert!(policy.reset("ada").await.unwrap());
        assert_eq!(step(registry, "penalties.log_in", "ada").await, 0);
        assert_eq!(exceed("ada").await, MINUTE);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn handles_penalize_as_their_function() {
    isolated(async |registry| {
        let limiter = registry.policy("penalties.log_in").unwrap().limiter().unwrap();
        for _ in 0..2 {
            limiter.try_acquire("ada").await.unwrap();
        }
        assert_eq!(limiter.try_acquire("ada").await.unwrap_err().retry_after(), Some(MINUTE));
        assert_eq!(log_in("ada").await.unwrap_err().retry_after(), Some(MINUTE));
        let peeked = limiter.peek("ada").await.unwrap();
        assert_eq!((peeked.penalty_step(), peeked.paused()), (1, Some(MINUTE)));
    })
    .await;
}

#[count_limit(5, "10s", key = user, cost = cost, name = "penalties.costly", penalty = ["1m"])]
async fn costly(user: &str, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn costs_that_never_fit_are_no_penalty() {
    isolated(async |_| {
        costly("ada", 1).await.unwrap();
        assert!(costly("ada", 6).await.unwrap_err().is_unsatisfiable());
        costly("ada", 4).await.unwrap();
        assert_eq!(costly("ada", 1).await.unwrap_err().retry_after(), Some(MINUTE));
    })
    .await;
}

#[count_limit(1, "10s", key = user, timeout = "1m", name = "penalties.patient", penalty = ["5m"])]
async fn patient(user: &str) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1/10s", key = user, timeout = "1m", name = "penalties.bucket", penalty = ["5m"])]
async fn patient_bucket(user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn calls_that_can_wait_are_no_penalty() {
    isolated(async |registry| {
        for _ in 0..3 {
            patient("ada").await.unwrap();
            patient_bucket("ada").await.unwrap();
        }
        assert_eq!(step(registry, "penalties.patient", "ada").await, 0);
        let calls: Vec<_> = (0..7)
            .map(|_| {
                let registry = registry.clone();
                tokio::spawn(async move { registry.scope(patient_bucket("ada")).await })
            })
            .collect();
        let mut refused = 0;
        for call in calls {
            refused += u32::from(call.await.unwrap().is_err());
        }
        // The line is as long as a call waits, and the others wait for the end of the pause no longer than that.
        assert!(refused > 0);
        assert_eq!(step(registry, "penalties.bucket", "ada").await, 1);
    })
    .await;
}

#[count_limit(2, "10s", key = user, name = "penalties.first", penalty = ["1m"])]
#[window_limit(1, "1h", key = user, name = "penalties.second")]
async fn stacked(user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn refusals_by_other_policies_are_no_penalty() {
    isolated(async |registry| {
        stacked("ada").await.unwrap();
        for _ in 0..3 {
            assert_eq!(stacked("ada").await.unwrap_err().retry_after(), Some(HOUR));
        }
        assert_eq!(step(registry, "penalties.first", "ada").await, 0);
        let first = registry.policy("penalties.first").unwrap().limiter().unwrap();
        first.try_acquire("ada").await.unwrap();
        // Both refuse, and one has a penalty.
        assert_eq!(stacked("ada").await.unwrap_err().retry_after(), Some(HOUR));
        assert_eq!(step(registry, "penalties.first", "ada").await, 1);
    })
    .await;
}

#[count_limit(2, "10s", key = user, charge_when = |good| matches!(good, Ok(false)), name = "penalties.failed", penalty = ["1m"])]
async fn check_password(user: &str, is_right: bool) -> Result<bool, Error> {
    Ok(is_right)
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_not_charged_are_no_penalty() {
    isolated(async |_| {
        for _ in 0..10 {
            check_password("ada", true).await.unwrap();
        }
        check_password("ada", false).await.unwrap();
        check_password("ada", true).await.unwrap();
        check_password("ada", false).await.unwrap();
        assert_eq!(check_password("ada", true).await.unwrap_err().retry_after(), Some(MINUTE));
    })
    .await;
}

#[funnel_limit(2, "1/s", key = user, name = "penalties.funnel", penalty = ["1m"])]
async fn funnel(user: &str) -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = limit, period = "10s", key = user, name = "penalties.computed", penalty = ["1m"])]
async fn computed(user: &str, limit: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1/s", burst = 2, borrow, key = user, name = "penalties.borrow", penalty = ["1m"])]
async fn borrowing(user: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(2, "10s", key = user, name = "penalties.plain", penalty = ["1m"])]
fn plain(user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn all_algorithms_and_plain_functions_penalize() {
    isolated(async |registry| {
        for _ in 0..2 {
            funnel("ada").await.unwrap();
            computed("ada", 2).await.unwrap();
            plain("ada").unwrap();
        }
        // A bucket stands still meanwhile, and what it lacks takes as long as before.
        assert_eq!(funnel("ada").await.unwrap_err().retry_after(), Some(MINUTE + SECOND));
        assert_eq!(computed("ada", 2).await.unwrap_err().retry_after(), Some(MINUTE));
        assert_eq!(computed("ada", 9).await.unwrap_err().retry_after(), Some(MINUTE));
        assert_eq!(plain("ada").unwrap_err().retry_after(), Some(MINUTE));
        while borrowing("ada").await.is_ok() {}
        assert_eq!(step(registry, "penalties.borrow", "ada").await, 1);
        advance(MINUTE + SECOND).await;
        plain("ada").unwrap();
        funnel("ada").await.unwrap();
        borrowing("ada").await.unwrap();
        computed("ada", 1).await.unwrap();
    })
    .await;
}

#[rate_limit("1/h", key = user, name = "penalties.impatient", penalty = ["1m"])]
#[count_limit(1, "10s", key = user, timeout = "1m", name = "penalties.beside", penalty = ["5m"])]
async fn impatient(user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn policies_with_a_timeout_do_not_penalize_refusals_by_others() {
    isolated(async |registry| {
        impatient("ada").await.unwrap();
        impatient("ada").await.unwrap_err();
        let steps = ["penalties.impatient", "penalties.beside"].map(|name| step(registry, name, "ada"));
        let [impatient, beside] = steps;
        assert_eq!((impatient.await, beside.await), (1, 0));
    })
    .await;
}

#[rate_limit("1/h", burst = 2, key = user, timeout = "5s", name = "penalties.waiting", penalty = ["1s", "1h"])]
fn waiting(user: &str) -> Result<(), Error> {
    Ok(())
}

#[test]
fn plain_functions_that_may_wait_penalize() {
    let registry = Registry::in_memory();
    registry.sync_scope(|| {
        for _ in 0..2 {
            waiting("ada").unwrap();
        }
        // A call that is decided anew is given no slot after the pause, although it could wait for that.
        let refused = waiting("ada").unwrap_err();
        assert!(refused.retry_after() > Some(HOUR - MINUTE), "{refused}");
    });
    let usage = registry.policy("penalties.waiting").unwrap().limiter().unwrap().blocking_try_acquire("ada");
    assert!(usage.is_err());
}

#[tokio::test(start_paused = true)]
async fn penalties_are_logged_and_observed() {
    /// Of a policy of its own, because penalties of one policy are logged once a second, whichever test is penalized.
    #[count_limit(2, "10s", key = user, name = "penalties.logged", penalty = ["1m"])]
    async fn logged(user: &str) -> Result<(), Error> {
        Ok(())
    }

    let logs = LogCapture::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of = Arc::clone(&seen);
    let registry = Registry::builder()
        .observer(move |it| {
            let key = it.key().join(":");
            of.lock().unwrap().push((it.policy.to_owned(), it.outcome, key, it.paused()));
        })
        .in_memory();
    let calls = async {
        logged("ada").await.unwrap();
        logged("ada").await.unwrap();
        logged("ada").await.unwrap_err();
        logged("ada").await.unwrap_err();
    };
    registry.scope(calls).with_subscriber(logs.clone()).await;
    let outcomes: Vec<_> = seen.lock().unwrap().iter().map(|(_, outcome, ..)| *outcome).collect();
    let expected = [
        CallOutcome::Admitted,
        CallOutcome::Admitted,
        CallOutcome::Paused,
        CallOutcome::Limited,
        CallOutcome::Limited,
    ];
    assert_eq!(outcomes, expected);
    let paused = ("penalties.logged".to_owned(), CallOutcome::Paused, "ada".to_owned(), Some(MINUTE));
    assert_eq!(seen.lock().unwrap()[2], paused);
    let lines = logs.text();
    assert!(lines.contains("paused a key as a penalty"), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn policies_of_another_registry_are_apart() {
    let registry = Registry::in_memory();
    isolated(async |_| assert_eq!(exceed("ada").await, MINUTE)).await;
    registry.scope(log_in("ada")).await.unwrap();
    let other = registry.limiter("penalties.log_in", FixedWindow::new(2, 10 * SECOND)).unwrap();
    assert_eq!(other.peek("ada").await.unwrap().penalty_step(), 0);
}
