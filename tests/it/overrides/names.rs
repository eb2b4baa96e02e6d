//! Which policies an override concerns, and what becomes of those that it does not fit.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ratelimits::{
    Error, FixedWindow, Registry, SlidingWindow, TokenBucket, count_limit, policies, rate_limit, window_limit,
};

use super::{DAY, Overrides, WITHIN, in_force, on_each_registry};
use crate::support::log_capture::LogCapture;
use crate::support::until::until;

#[count_limit(limit = 5, period = "1d", name = "names.shared")]
async fn without_prefix() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = "1d", name = "names.shared", prefix = "sms")]
async fn with_prefix() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "1d", name = "names.window")]
async fn window() -> Result<(), Error> {
    Ok(())
}

trait Provided {
    fn id(&self) -> u64 {
        7
    }

    #[allow(async_fn_in_trait)]
    #[rate_limit(rate = "10/d", burst = 10, key = self.id())]
    async fn provided(&self) -> Result<(), Error> {
        Ok(())
    }
}

struct Ping;
struct Pong;

impl Provided for Ping {}
impl Provided for Pong {}

/// Returns how many calls are admitted before one is limited.
async fn admitted(call: impl AsyncFn() -> Result<(), Error>) -> u64 {
    let mut admitted = 0;
    loop {
        match call().await {
            Ok(()) => admitted += 1,
            Err(error) if error.is_limited() => return admitted,
            Err(error) => panic!("{error}"),
        }
        assert!(admitted < 100);
    }
}

#[tokio::test]
async fn prefix_and_name_count_more_than_the_name() {
    let text = "[\"names.shared\"]\nlimit = 1\n[\"sms:names.shared\"]\nlimit = 3\n";
    on_each_registry(text, async |registry, _| {
        assert_eq!(admitted(async || registry.scope(without_prefix()).await).await, 1);
        assert_eq!(admitted(async || registry.scope(with_prefix()).await).await, 3);
    })
    .await;
    on_each_registry("[\":names.shared\"]\nlimit = 2\n", async |registry, _| {
        assert_eq!(admitted(async || registry.scope(without_prefix()).await).await, 2);
        assert_eq!(admitted(async || registry.scope(with_prefix()).await).await, 5);
    })
    .await;
}

#[tokio::test]
async fn limiters_with_a_prefix_are_overridden_from_when_they_are_created() {
    on_each_registry("[\"sms:names.limiter\"]\nlimit = 1\n", async |registry, _| {
        let limiter = registry.limiter("names.limiter", FixedWindow::new(5, DAY)).unwrap();
        in_force(registry, &["sms:names.limiter"]).await;
        let of = |limiter: ratelimits::Limiter| async move {
            admitted(async || limiter.try_acquire(()).await.map(drop)).await
        };
        assert_eq!(of(limiter.prefix("sms")).await, 1);
        assert_eq!(of(limiter).await, 5);
    })
    .await;
}

#[tokio::test]
async fn overridden_limiters_in_lists_keep_their_keys() {
    on_each_registry("[\"names.raised\"]\nlimit = 2\n", async |registry, _| {
        let window = FixedWindow::new(1, DAY);
        let limiters = ["names.raised", "names.beside"].map(|name| registry.limiter(name, window).unwrap());
        in_force(registry, &["names.raised"]).await;
        let [raised, beside] = &limiters;
        for key in ["a", "b"] {
            registry.try_acquire_all([raised.charge_n(key, 2), beside.charge(key)]).await.unwrap();
        }
        for key in ["a", "b"] {
            assert_eq!(raised.peek(key).await.unwrap().remaining, 0, "{key}");
        }
    })
    .await;
}

#[tokio::test]
async fn policies_that_an_override_does_not_fit_decide_as_written() {
    let log = LogCapture::default();
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let file = Overrides::new("[\"names.window\"]\nlimit = 1\nperiod = \"1h\"\n");
    let registry = Registry::builder().overrides(&file.0).in_memory();
    let other = registry.limiter("names.window", TokenBucket::new("10/d".parse().unwrap()).burst(2)).unwrap();
    assert_eq!(admitted(async || other.try_acquire(()).await.map(drop)).await, 2);
    assert_eq!(other.peek(()).await.unwrap().limit, 2);
    let misfit = "override ignored: it is invalid for this policy";
    assert_eq!(log.messages().iter().filter(|message| *message == misfit).count(), 1);

    // The state under another period is what the policy has used.
    assert_eq!(admitted(async || registry.scope(window()).await).await, 1);
    let policy = registry.policy("names.window").unwrap();
    assert_eq!(policy.usage(()).await.unwrap().used, 1);
    assert!(policy.reset(()).await.unwrap());
    assert_eq!(policy.usage(()).await.unwrap().used, 0);
    let log_of_10 = registry.limiter("names.other", SlidingWindow::new(10, DAY)).unwrap();
    assert_eq!(log_of_10.peek(()).await.unwrap().limit, 10);
}

#[tokio::test]
async fn one_name_overrides_a_method_of_all_types() {
    const NAME: &str = "it::overrides::names::Provided::provided";
    const PONG: &str = "it::overrides::names::<Pong as Provided>::provided";
    on_each_registry(&format!("[\"{NAME}\"]\nburst = 2\n"), async |registry, file| {
        assert_eq!(admitted(async || registry.scope(Ping.provided()).await).await, 2);
        assert_eq!(admitted(async || registry.scope(Pong.provided()).await).await, 2);
        assert!(policies().iter().all(|policy| *policy.name != *NAME));

        file.replace(&format!("[\"{NAME}\"]\nburst = 3\n[\"{PONG}\"]\nburst = 4\n"));
        in_force(registry, &[PONG, NAME]).await;
        assert_eq!(admitted(async || registry.scope(Ping.provided()).await).await, 1);
        assert_eq!(admitted(async || registry.scope(Pong.provided()).await).await, 2);
        assert!(registry.policy(PONG).is_ok());
    })
    .await;
}

#[tokio::test]
async fn limiters_in_shadow_are_reported() {
    let log = LogCapture::default();
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let file = Overrides::new("[\"names.shadow\"]\nshadow = true\nlimit = 1\n");
    let registry = Registry::builder().overrides(&file.0).in_memory();
    let limiter = registry.limiter("names.shadow", FixedWindow::new(5, DAY)).unwrap();
    in_force(&registry, &["names.shadow"]).await;
    for _ in 0..3 {
        let decision = limiter.try_acquire(()).await.unwrap();
        assert_eq!(decision.retry_after, None);
    }
    let charged = limiter.try_acquire("b").await.unwrap();
    charged.refund().await.unwrap();
    assert_eq!(limiter.peek("b").await.unwrap().remaining, 1);
    let peeked = limiter.peek(()).await.unwrap();
    assert_eq!((peeked.remaining, peeked.retry_after, peeked.policies()[0].shadow), (0, None, true));
    limiter.try_acquire(()).await.unwrap().refund().await.unwrap();
    assert_eq!(limiter.peek(()).await.unwrap().remaining, 0, "nothing was charged");
    let event = ("names.shadow".to_owned(), "shadow policy would have limited calls".to_owned());
    assert_eq!(log.events().iter().filter(|logged| **logged == event).count(), 1);
}

#[tokio::test]
async fn each_way_to_call_a_limiter_in_shadow_is_reported() {
    let log = LogCapture::default();
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let names = ["names.blocking", "names.list", "names.wait"];
    let text = names.map(|name| format!("[\"{name}\"]\nshadow = true\n")).concat();
    on_each_registry(&text, async |registry, _| {
        let [blocking, list, wait] =
            names.map(|name| registry.limiter(name, FixedWindow::new(1, DAY)).unwrap());
        in_force(registry, &names).await;
        let before = log.events().len();
        for _ in 0..2 {
            let (blocking, log) = (blocking.clone(), log.clone());
            let thread = std::thread::spawn(move || {
                let _subscriber = tracing::subscriber::set_default(log);
                blocking.blocking_acquire(()).map(drop)
            });
            thread.join().unwrap().unwrap();
            registry.try_acquire_all([list.charge(())]).await.unwrap();
            wait.acquire(()).await.unwrap();
        }
        for name in names {
            let event = (name.to_owned(), "shadow policy would have limited calls".to_owned());
            let events = &log.events()[before..];
            assert_eq!(events.iter().filter(|logged| **logged == event).count(), 1, "{events:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn limiters_that_are_off_are_left_out_of_lists() {
    let file = Overrides::new("[\"names.off\"]\noff = true\n");
    let registry = Registry::builder().overrides(&file.0).in_memory();
    let [off, on] =
        ["names.off", "names.on"].map(|name| registry.limiter(name, FixedWindow::new(1, DAY)).unwrap());
    off.try_acquire(()).await.unwrap();
    in_force(&registry, &["names.off"]).await;
    let decision = registry.try_acquire_all([off.charge(()), on.charge(())]).await.unwrap();
    assert_eq!(decision.policies().len(), 1);
    registry.try_acquire_all([off.charge(())]).await.unwrap();
    assert!(registry.try_acquire_all([off.charge(()), on.charge(())]).await.unwrap_err().is_limited());
}

#[tokio::test]
async fn what_is_no_file_of_overrides_changes_nothing() {
    let reported = |registry: &Registry, path: &Path, problem: &str| {
        assert_eq!(registry.overrides(), []);
        let error = ratelimits::check_policies().unwrap_err().to_string();
        assert!(error.contains(&format!("could not read {}: {problem}", path.display())), "{error}");
    };
    let file = Overrides::new(&format!("# {}\n", "x".repeat(4 << 20)));
    let registry = Registry::builder().overrides(&file.0).in_memory();
    reported(&registry, &file.0, "it is larger than 4 MiB");

    let pipe = Overrides(file.0.with_extension("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe.0).status().unwrap().success());
    reported(&Registry::builder().overrides(&pipe.0).in_memory(), &pipe.0, "it is no file");

    let file = Overrides::new("[\"names.window\"]\nlimit = 1\n");
    let registry = Registry::builder().overrides(&file.0).in_memory();
    in_force(&registry, &["names.window"]).await;
    fs::write(&file.0, "").unwrap();
    until("the empty file is reported", WITHIN, async || {
        let error = super::reported();
        if error.contains("it is empty; write a comment") { Ok(()) } else { Err(error) }
    })
    .await;
    assert_eq!(registry.overrides().len(), 1);
}

#[tokio::test]
async fn shadows_in_lists_refuse_nothing_and_say_when_they_would_admit() {
    on_each_registry("[\"names.shadowed\"]\nshadow = true\n", async |registry, _| {
        let limiter = |name, limit| registry.limiter(name, FixedWindow::new(limit, DAY)).unwrap();
        let (shadow, required) = (limiter("names.shadowed", 1), limiter("names.required", 2));
        in_force(registry, &["names.shadowed"]).await;
        let list = || [shadow.charge(()), required.charge(())];
        registry.try_acquire_all(list()).await.unwrap();
        let decision = registry.try_acquire_all(list()).await.unwrap();
        assert_eq!(decision.retry_after, None);
        let [of_shadow, of_required] = decision.policies() else { panic!("{decision:?}") };
        assert!(!of_shadow.admitted && of_shadow.retry_after.is_some(), "{decision:?}");
        assert!(of_required.admitted && of_required.retry_after.is_none(), "{decision:?}");
        let usage = async |limiter: &ratelimits::Limiter| {
            let decision = limiter.peek(()).await.unwrap();
            decision.limit - decision.remaining
        };
        assert_eq!((usage(&shadow).await, usage(&required).await), (1, 2));
        let Err(Error::Limited(limited)) = registry.try_acquire_all(list()).await else { panic!() };
        assert_eq!(limited.policy(), "names.required");
    })
    .await;
}

#[tokio::test]
async fn override_counts_for_the_next_call_of_a_policy_without_one() {
    on_each_registry("[\"names.shared\"]\nlimit = 1\n", async |registry, file| {
        let limiter = registry.limiter("names.late", FixedWindow::new(9, DAY)).unwrap();
        let call = async |i| match i {
            0 => registry.scope(window()).await,
            1 => limiter.try_acquire("one").await.map(drop),
            2 => limiter.acquire_timeout("timeout", Duration::ZERO).await.map(drop),
            _ => registry.try_acquire_all([limiter.charge("list")]).await.map(drop),
        };
        for i in 0..4 {
            call(i).await.unwrap();
            call(i).await.unwrap();
        }
        let text = ["names.late", "names.window"].map(|name| format!("[\"{name}\"]\nlimit = 2\n"));
        file.replace(&text.concat());
        in_force(registry, &["names.late", "names.window"]).await;
        for i in 0..4 {
            assert!(call(i).await.unwrap_err().is_limited(), "{i}");
        }
    })
    .await;
}
