//! The states of policies whose numbers an operator has changed.

use std::time::Duration;

use ratelimits::{
    Decision, Error, FixedWindow, LeakyBucket, Limiter, Policy, Rate, Registry, TokenBucket, rate_limit,
};

use super::{DAY, Overrides, WITHIN, in_force, on_each_registry};
use crate::support::until::until;

const BUCKETS: usize = 6;

#[rate_limit(rate = "10/d", burst = 10, key = id, name = "numbers.bucket")]
async fn bucket(id: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "1/d", burst = 10, borrow, cost = 25, name = "numbers.debt")]
async fn borrows() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "10/d", burst = burst, name = "numbers.computed")]
async fn computed(burst: u64) -> Result<(), Error> {
    Ok(())
}

/// Limiters for buckets of each kind, in which hardly anything refills during a test, and a window. With each the number that an
/// override changes.
fn limiters(registry: &Registry) -> [(Limiter, &'static str); BUCKETS + 1] {
    let rate = Rate::new(1, DAY);
    let bucket = TokenBucket::new(rate);
    let policies: [(&str, Policy, &str); BUCKETS + 1] = [
        ("numbers.borrows", bucket.borrow().burst(10).into(), "burst"),
        ("numbers.continuous", bucket.burst(10).into(), "burst"),
        ("numbers.intervals", bucket.interval_refill().burst(10).into(), "burst"),
        ("numbers.meter", LeakyBucket::new(10, rate).into(), "capacity"),
        ("numbers.queue", LeakyBucket::new(9, rate).queue().into(), "capacity"),
        ("numbers.warms-up", bucket.warmup(10 * DAY).into(), "warmup"),
        ("numbers.window", FixedWindow::new(10, DAY).into(), "limit"),
    ];
    policies.map(|(name, policy, argument)| (registry.limiter(name, policy).unwrap(), argument))
}

/// Overrides each limiter, and waits until that is in force.
async fn override_all(file: &Overrides, limiters: &[(Limiter, &str)], number: u64) {
    let before = peek_all(limiters).await;
    let text = limiters.iter().map(|(limiter, argument)| {
        let number = if *argument == "warmup" { format!("\"{number}d\"") } else { number.to_string() };
        format!("[\"{}\"]\n{argument} = {number}\n", limiter.name())
    });
    file.replace(&text.collect::<String>());
    until("the numbers are in force", WITHIN, async || {
        let now = peek_all(limiters).await;
        let is_changed = now.iter().zip(&before).all(|(now, before)| now.limit != before.limit);
        if is_changed { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
}

async fn peek_all(limiters: &[(Limiter, &str)]) -> Vec<Decision> {
    let mut peeked = Vec::new();
    for (limiter, _) in limiters {
        peeked.push(limiter.peek(7).await.unwrap());
    }
    peeked
}

/// Returns the permits that each has used.
async fn used(limiters: &[(Limiter, &str)]) -> Vec<u64> {
    peek_all(limiters).await.iter().map(|decision| decision.limit - decision.remaining).collect()
}

#[tokio::test]
async fn overridden_buckets_have_a_state_of_their_own() {
    on_each_registry("# none\n", async |registry, file| {
        let limiters = limiters(registry);
        let charge = async |cost| {
            for (limiter, _) in &limiters {
                limiter.try_acquire_n(7, cost).await.unwrap();
            }
        };
        charge(4).await;
        let as_written = used(&limiters).await;
        assert_eq!(as_written[..5], [4; 5]);

        override_all(file, &limiters, 20).await;
        let fresh = used(&limiters).await;
        assert_eq!((&fresh[..BUCKETS], fresh[BUCKETS]), (&[0; BUCKETS][..], 4));
        charge(3).await;
        let overridden = used(&limiters).await;
        assert_eq!((&overridden[..5], overridden[BUCKETS]), (&[3; 5][..], 7));

        // The next override keeps it.
        override_all(file, &limiters, 30).await;
        let still = used(&limiters).await;
        assert_eq!((&still[..5], still[BUCKETS]), (&[3; 5][..], 7));
        let reset_after = peek_all(&limiters).await[5].reset_after;
        assert!(!reset_after.is_zero());

        // Without one, what was charged before is missing as far as it has not refilled.
        file.replace("# none\n");
        in_force(registry, &[]).await;
        let after = used(&limiters).await;
        assert_eq!((&after[..BUCKETS], after[BUCKETS]), (&as_written[..BUCKETS], 7));
    })
    .await;
}

#[tokio::test]
async fn override_without_numbers_keeps_the_state() {
    on_each_registry("# none\n", async |registry, file| {
        let limiters = limiters(registry);
        for (limiter, _) in &limiters {
            limiter.try_acquire_n(7, 4).await.unwrap();
        }
        let before = used(&limiters).await;
        for switch in ["shadow", "off"] {
            let text =
                limiters.iter().map(|(limiter, _)| format!("[\"{}\"]\n{switch} = true\n", limiter.name()));
            file.replace(&text.collect::<String>());
            until("the switch is in force", WITHIN, async || match &registry.overrides()[..] {
                [first, ..] if first.settings() == [format!("{switch} = true")] => Ok(()),
                overrides => Err(format!("{overrides:?}")),
            })
            .await;
            assert_eq!(used(&limiters).await, before, "{switch}");
        }
    })
    .await;
}

#[tokio::test]
async fn handles_look_at_the_state_in_force() {
    on_each_registry("# none\n", async |registry, file| {
        let policy = registry.policy("numbers.bucket").unwrap();
        for _ in 0..4 {
            registry.scope(bucket(1)).await.unwrap();
        }
        assert_eq!((policy.peek(1).await.unwrap().remaining, policy.usage(1).await.unwrap().used), (6, 4));

        file.replace("[\"numbers.bucket\"]\nburst = 5\n");
        in_force(registry, &["numbers.bucket"]).await;
        let decision = policy.peek(1).await.unwrap();
        assert_eq!((decision.limit, decision.remaining), (5, 5));
        let usage = policy.usage(1).await.unwrap();
        assert_eq!((usage.used, usage.reset_after), (0, Duration::ZERO));
        assert!(!policy.reset(1).await.unwrap());
        for _ in 0..5 {
            registry.scope(bucket(1)).await.unwrap();
        }
        assert!(registry.scope(bucket(1)).await.unwrap_err().is_limited());
        assert_eq!((policy.peek(1).await.unwrap().remaining, policy.usage(1).await.unwrap().used), (0, 5));
        let limiter = policy.limiter().unwrap();
        limiter.refund(1, 2).await.unwrap();
        assert_eq!(limiter.peek(1).await.unwrap().remaining, 2);
        limiter.try_acquire_n(1, 2).await.unwrap().refund().await.unwrap();
        assert_eq!(limiter.peek(1).await.unwrap().remaining, 2);
        assert!(policy.reset(1).await.unwrap());
        assert_eq!(policy.peek(1).await.unwrap().remaining, 5);

        file.replace("# none\n");
        in_force(registry, &[]).await;
        assert_eq!((policy.peek(1).await.unwrap().remaining, policy.usage(1).await.unwrap().used), (6, 4));
    })
    .await;
}

#[tokio::test]
async fn usage_counts_what_is_borrowed() {
    on_each_registry("# none\n", async |registry, file| {
        let policy = registry.policy("numbers.debt").unwrap();
        registry.scope(borrows()).await.unwrap();
        assert_eq!(policy.usage(()).await.unwrap().used, 25);

        file.replace("[\"numbers.debt\"]\nburst = 5\n");
        in_force(registry, &["numbers.debt"]).await;
        assert_eq!(policy.usage(()).await.unwrap().used, 0);
        registry.scope(borrows()).await.unwrap();
        assert_eq!(policy.usage(()).await.unwrap().used, 25);
    })
    .await;
}

#[tokio::test]
async fn computed_numbers_and_overrides_share_the_state() {
    on_each_registry("# none\n", async |registry, file| {
        let policy = registry.policy("numbers.computed").unwrap();
        for _ in 0..4 {
            registry.scope(computed(10)).await.unwrap();
        }
        file.replace("[\"numbers.computed\"]\nburst = 5\n");
        in_force(registry, &["numbers.computed"]).await;
        assert_eq!(policy.usage(()).await.unwrap().used, 4);
        registry.scope(computed(10)).await.unwrap();
        assert!(registry.scope(computed(10)).await.unwrap_err().is_limited());
    })
    .await;
}

#[tokio::test]
async fn calls_wait_by_the_numbers_of_the_override() {
    let text = "[\"numbers.faster\"]\nrate = \"20/s\"\n[\"numbers.slower\"]\nrate = \"1/d\"\n";
    on_each_registry(text, async |registry, _| {
        let [faster, slower] =
            [("numbers.faster", Rate::new(1, DAY)), ("numbers.slower", Rate::per_second(20))]
                .map(|(name, rate)| registry.limiter(name, TokenBucket::new(rate).burst(1)).unwrap());
        in_force(registry, &["numbers.faster", "numbers.slower"]).await;
        faster.acquire(()).await.unwrap();
        slower.acquire(()).await.unwrap();
        for acquired in [faster.acquire(()).await, faster.acquire_timeout((), WITHIN).await] {
            let waited = acquired.unwrap().waited;
            assert!(waited <= Duration::from_millis(50), "{waited:?}");
        }
        let error = slower.acquire_timeout((), WITHIN).await.unwrap_err();
        assert!(error.retry_after().is_some_and(|wait| wait > WITHIN), "{error}");
    })
    .await;
}
