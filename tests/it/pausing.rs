//! Keys that an upstream pauses, in every process.

use std::collections::BTreeMap;
use std::time::Duration;

use ratelimits::{
    DecidedBy, Error, FixedWindow, LeakyBucket, Policy, Registry, SlidingWindow, TokenBucket, rate_limit,
};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

use crate::support::processes::{self, Child};
use crate::support::registries::{LONG_DEADLINE, namespace, on, on_each_registry};
use crate::support::server::Server;
use crate::support::until::until;

const HOUR: Duration = Duration::from_secs(3600);

fn policies() -> [Policy; 10] {
    let bucket = TokenBucket::new("100/h".parse().unwrap()).burst(10);
    [
        bucket.into(),
        bucket.adjustable().into(),
        bucket.settled().into(),
        bucket.borrow().into(),
        bucket.interval_refill().into(),
        TokenBucket::per_second(10).warmup(HOUR).into(),
        LeakyBucket::draining(10, HOUR).queue().into(),
        FixedWindow::new(10, HOUR).into(),
        SlidingWindow::new(10, HOUR).into(),
        SlidingWindow::new(10, HOUR).precision(HOUR / 60).into(),
    ]
}

#[tokio::test]
async fn paused_keys_admit_no_call() {
    on_each_registry(async |registry, _| {
        for (i, policy) in policies().into_iter().enumerate() {
            let limiter = registry.limiter(&i.to_string(), policy).unwrap();
            // Also a key that has no state.
            for key in ["used", "new"] {
                if key == "used" {
                    limiter.try_acquire(key).await.unwrap();
                }
                limiter.pause(key, HOUR).await.unwrap();
                let refused = limiter.try_acquire(key).await.unwrap_err();
                assert!(refused.retry_after() > Some(HOUR - HOUR / 60), "{policy:?} {key} {refused}");
                let Error::Limited(limited) = refused else { panic!("{refused}") };
                assert!(limited.decision().paused() > Some(HOUR - HOUR / 60), "{policy:?} {key} {limited}");
                limiter.refund(key, 5).await.unwrap();
                let peeked = limiter.peek(key).await.unwrap();
                assert!(peeked.paused().unwrap() > HOUR - HOUR / 60, "{policy:?} {key}");
                assert_eq!(peeked.remaining, 0, "{policy:?} {key}");
                assert!(limiter.reset(key).await.unwrap(), "{policy:?} {key}");
                assert_eq!(limiter.try_acquire(key).await.unwrap().paused(), None);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn receipts_from_before_a_pause_give_nothing_back() {
    on_each_registry(async |registry, _| {
        for (i, policy) in policies().into_iter().take(5).enumerate() {
            let limiter = registry.limiter(&i.to_string(), policy).unwrap();
            let decision = limiter.try_acquire_n((), 10).await.unwrap();
            limiter.pause((), Duration::from_millis(1)).await.unwrap();
            decision.refund().await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert_eq!(limiter.peek(()).await.unwrap().remaining, 0, "{policy:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn other_registries_see_a_pause() {
    let (server, namespace) = (Server::shared(), namespace());
    let [one, other] = [(); 2].map(|()| {
        Registry::builder()
            .namespace(&*namespace)
            .deadline(LONG_DEADLINE)
            .connect_lazy(&server.url())
            .unwrap()
    });
    let limiter = |registry: &Registry| registry.limiter("api", TokenBucket::per_second(10)).unwrap();
    limiter(&one).pause("host", HOUR).await.unwrap();
    let refused = limiter(&other).try_acquire("host").await.unwrap_err();
    assert!(refused.is_limited(), "{refused}");
    limiter(&other).reset("host").await.unwrap();
    until("the first one learns it", Duration::from_secs(20), async || {
        limiter(&one).try_acquire("host").await.map_err(|error| error.to_string())
    })
    .await;
}

#[rate_limit("100/s", burst = 10, name = "pausing.outage", pause_when = |out| out.as_ref().ok().copied())]
async fn during_outage(pause: Duration) -> Result<Duration, Error> {
    Ok(pause)
}

#[tokio::test]
async fn processes_without_redis_pause_what_they_decide() {
    let server = Server::start();
    let registry = on(&server);
    drop(server);
    registry.scope(during_outage(HOUR)).await.unwrap();
    until("it is paused", Duration::from_secs(20), async || {
        match registry.scope(during_outage(Duration::ZERO)).await {
            Err(error) if error.retry_after() > Some(HOUR / 2) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[rate_limit("100/s", burst = 10, name = "pausing.later", pause_when = |out| out.as_ref().ok().copied())]
async fn in_redis(pause: Duration) -> Result<Duration, Error> {
    Ok(pause)
}

#[tokio::test]
async fn answers_pause_keys_in_redis() {
    on_each_registry(async |registry, decided_by| {
        registry.scope(in_redis(HOUR)).await.unwrap();
        let policy = registry.policy("pausing.later").unwrap();
        until("it is paused", Duration::from_secs(20), async || {
            let peeked = policy.peek(()).await.unwrap();
            peeked.paused().map(drop).ok_or_else(|| format!("{peeked:?} {decided_by}"))
        })
        .await;
    })
    .await;
}

const PROCESSES: usize = 8;
const CALLS: usize = 25;
/// After so many calls the upstream admits nobody for two seconds.
const TRIPS_AFTER: u64 = 40;

/// An upstream, as Redis sees it: it starts to refuse for two seconds once, and has a bucket of 50 a second and 10 at once. Returns its
/// time and, of a refusal, for how long it refuses.
const UPSTREAM: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local calls, blocked = redis.call('INCR', KEYS[1]), tonumber(redis.call('GET', KEYS[2]) or '0')
if calls == tonumber(ARGV[1]) then
  blocked = now + 2000000
  redis.call('SET', KEYS[2], string.format('%.0f', blocked))
end
if blocked > now then return {now, blocked - now} end
local full = math.max(tonumber(redis.call('GET', KEYS[3]) or '0'), now) + 20000
if full - now > 200000 then return {now, full - now - 200000} end
redis.call('SET', KEYS[3], string.format('%.0f', full))
return {now, 0}
";

/// A call as the upstream has seen it.
#[derive(Clone, Copy, Debug)]
struct Called {
    at: i64,
    refused_for: i64,
}

impl Called {
    /// A `Retry-After` of whole seconds.
    fn retry_after(self) -> Option<Duration> {
        (self.refused_for > 0).then(|| Duration::from_secs(self.refused_for as u64 / 1_000_000 + 1))
    }
}

#[rate_limit(
    "40/s", burst = 2, name = "pausing.upstream", timeout = "60s", registry = registry,
    pause_when = |out| out.as_ref().ok().and_then(|called: &Called| called.retry_after())
)]
async fn call(registry: &Registry, mut connection: MultiplexedConnection) -> Result<Called, Error> {
    let script = redis::Script::new(UPSTREAM);
    let mut call = script.key("calls");
    let call = call.key("blocked").key("bucket").arg(TRIPS_AFTER);
    let (at, refused_for) = call.invoke_async(&mut connection).await.expect("the upstream answers");
    Ok(Called { at, refused_for })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fleet_stops_at_an_answer_and_goes_on_at_its_pace() {
    if let Some(child) = Child::from_env() {
        return call_upstream(&child).await;
    }
    let server = Server::start();
    let test = "fleet_stops_at_an_answer_and_goes_on_at_its_pace";
    let reports = processes::run(&server, PROCESSES, module_path!(), test).await;
    let parse = |line: &String| {
        let (at, refused_for) = line.split_once(' ').unwrap();
        Called { at: at.parse().unwrap(), refused_for: refused_for.parse().unwrap() }
    };
    let reports: Vec<Vec<Called>> = reports.iter().map(|lines| lines.iter().map(parse).collect()).collect();
    let mut all: Vec<Called> = reports.iter().flatten().copied().collect();
    all.sort_by_key(|called| called.at);
    assert_eq!(all.len(), PROCESSES * CALLS);

    let first = all.iter().position(|called| called.refused_for > 0).expect("the upstream refuses");
    assert_eq!(first + 1, TRIPS_AFTER as usize, "nothing was refused before");
    let (tripped, later) = (all[first], &all[first + 1..]);
    // Those on their way, at most one of each process.
    let mut refused = BTreeMap::new();
    for (process, report) in reports.iter().enumerate() {
        let during =
            report.iter().filter(|called| called.at > tripped.at && called.at < tripped.at + 2_000_000);
        refused.insert(process, during.count());
    }
    assert!(refused.values().all(|count| *count <= 1), "{refused:?}");
    // The upstream's own bucket refuses none when it goes on.
    let after = later.iter().filter(|called| called.at >= tripped.at + 2_000_000);
    assert!(after.clone().all(|called| called.refused_for == 0), "{all:?}");
    println!(
        "{} refused, {refused:?}; {} calls afterwards",
        later.len() - after.clone().count() + 1,
        after.count()
    );
}

async fn call_upstream(child: &Child) {
    let registry = Registry::builder().deadline(LONG_DEADLINE).connect(&child.url).await.unwrap();
    let client = redis::Client::open(&*child.url).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    child.barrier("start", PROCESSES).await;
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (registry, connection) = (registry.clone(), connection.clone());
        calls.spawn(async move { call(&registry, connection).await.expect("it may wait long enough") });
    }
    let called = calls.join_all().await;
    child.report(called.iter().map(|Called { at, refused_for }| format!("{at} {refused_for}")));
}

#[rate_limit("1/s", burst = 1, name = "pausing.late", timeout = "1200ms", pause_when = |_| None)]
async fn late() -> Result<(), Error> {
    Ok(())
}

/// It asks whether its key is paused when its slot comes.
#[tokio::test]
async fn call_that_fails_at_its_slot_waits_no_longer_than_its_timeout() {
    const SECOND: Duration = Duration::from_secs(1);
    let server = Server::start();
    let registry = Registry::builder().instances(1).deadline(SECOND).connect_lazy(&server.url()).unwrap();
    let limiter = registry.policy("pausing.late").unwrap().limiter().unwrap();
    let calls = async {
        late().await.unwrap();
        // At its slot, 200 ms are left.
        let waiting = registry.clone();
        let waiting = tokio::spawn(async move { waiting.scope(late()).await });
        until("the call waits", SECOND, async || {
            let peeked = limiter.peek(()).await.unwrap();
            if peeked.retry_after > Some(SECOND) { Ok(()) } else { Err(format!("{peeked:?}")) }
        })
        .await;
        tokio::time::sleep(SECOND / 2).await;
        server.kill();
        // The next one in process comes in a second, which is too late.
        assert_eq!(limiter.try_acquire(()).await.unwrap().source, DecidedBy::Local);
        let refused = waiting.await.unwrap().unwrap_err();
        assert!(refused.is_limited(), "{refused}");
        assert!(registry.store_health().failed_decisions >= 2, "{:?}", registry.store_health());
    };
    registry.scope(calls).await;
}
