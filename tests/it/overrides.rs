//! Limits that operators change at run time.

mod blocked;
mod keys;
mod lost;
mod names;
mod numbers;
mod shared;
mod switches;
mod versions;

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use ratelimits::{Error, FixedWindow, Registry, RegistryBuilder, TokenBucket, count_limit, rate_limit};

use crate::support::log_capture::LogCapture;
use crate::support::processes::{self, Child};
use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;
use crate::support::until::until;

const DAY: Duration = Duration::from_secs(86_400);
const WITHIN: Duration = Duration::from_secs(60);
const PROCESSES: usize = 4;

#[rate_limit(rate = "10/d", burst = 10, key = id, name = "overrides.bucket", timeout = "1s")]
async fn bucket(id: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = limit, period = "1d", name = "overrides.window", prefix = "o", charge_when = |_| true)]
async fn window(limit: u64) -> Result<(), Error> {
    Ok(())
}

// Known without a call.
#[allow(dead_code)]
#[rate_limit(rate = "10/d", name = "overrides.shadow", shadow)]
async fn in_shadow() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "10/d", burst = 10, name = "overrides.first")]
#[count_limit(limit = 1, period = "1d", name = "overrides.second")]
async fn stack() -> Result<(), Error> {
    Ok(())
}

/// A file of overrides, which is removed in the end.
pub(crate) struct Overrides(PathBuf);

impl Overrides {
    fn new(text: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("ratelimits-{}-{}.toml", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let file = Overrides(std::env::temp_dir().join(name));
        file.replace(text);
        // As if it had not been written just now.
        let old = SystemTime::now() - Duration::from_secs(10);
        File::options().write(true).open(&file.0).unwrap().set_modified(old).unwrap();
        file
    }

    /// Replaces the file at once.
    pub(crate) fn replace(&self, text: &str) {
        let new = self.0.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, &self.0).unwrap();
    }
}

impl Drop for Overrides {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs a test on a registry in process, and on one on Redis, both with these overrides.
pub(crate) async fn on_each_registry(text: &str, test: impl AsyncFn(&Registry, &Overrides)) {
    on_each_of(text, Registry::builder, test).await;
}

/// Runs a test on two such registries of these builders.
pub(crate) async fn on_each_of(
    text: &str,
    builder: impl Fn() -> RegistryBuilder,
    test: impl AsyncFn(&Registry, &Overrides),
) {
    let overrides = Overrides::new(text);
    test(&builder().overrides(&overrides.0).in_memory(), &overrides).await;
    let (server, overrides) = (Server::shared(), Overrides::new(text));
    let builder = builder().namespace(namespace()).deadline(LONG_DEADLINE);
    test(&builder.overrides(&overrides.0).connect_lazy(&server.url()).unwrap(), &overrides).await;
}

/// Returns what the check of all policies reports.
fn reported() -> String {
    ratelimits::check_policies().map_or_else(|error| error.to_string(), |()| String::new())
}

/// Waits until these policies have overrides.
pub(crate) async fn in_force(registry: &Registry, policies: &[&str]) {
    until("the overrides are in force", WITHIN, async || {
        let found = registry.overrides();
        let names: Vec<_> = found.iter().map(|it| it.policy()).collect();
        if names == policies { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

#[tokio::test]
async fn overrides_are_in_force_from_the_first_call() {
    let text = "[\"overrides.bucket\"]\nburst = 2\n[\"o:overrides.window\"]\nlimit = 1\n[\"overrides.second\"]\noff = true\n";
    on_each_registry(text, async |registry, _| {
        let calls = async {
            for id in 0..3 {
                bucket(id).await?;
                bucket(id).await?;
                assert!(bucket(id).await.unwrap_err().is_limited());
            }
            // Computed numbers are replaced as well.
            window(100).await?;
            assert!(window(100).await.unwrap_err().is_limited());
            // The other policy of a stack still decides.
            for _ in 0..10 {
                stack().await?;
            }
            let error = stack().await.unwrap_err();
            assert!(error.to_string().contains("overrides.first"), "{error}");
            Ok::<_, Error>(())
        };
        registry.scope(calls).await.unwrap();
        assert_eq!(registry.policy("overrides.second").unwrap().usage(()).await.unwrap().used, 0);
    })
    .await;
}

#[tokio::test]
async fn shadow_reports_and_never_refuses() {
    let log = LogCapture::default();
    let _subscriber = tracing::subscriber::set_default(log.clone());
    on_each_registry("[\"overrides.bucket\"]\nshadow = true\nburst = 1\n", async |registry, _| {
        let before = log.events().len();
        for _ in 0..5 {
            registry.scope(bucket(7)).await.unwrap();
        }
        assert_eq!(registry.policy("overrides.bucket").unwrap().peek(7).await.unwrap().remaining, 0);
        let logged = ("overrides.bucket".to_owned(), "shadow policy would have limited calls".to_owned());
        // At most once a second, by whichever registry.
        assert!(before > 1 || log.events()[before..].contains(&logged), "{:?}", log.events());
    })
    .await;
}

#[tokio::test]
async fn limiters_are_overridden_by_name() {
    on_each_registry("[\"overrides.limiter\"]\nlimit = 1\n", async |registry, file| {
        assert_eq!(registry.overrides(), []);
        let limiter = registry.limiter("overrides.limiter", FixedWindow::new(3, DAY)).unwrap();
        // From its first call.
        limiter.try_acquire("k").await.unwrap();
        assert_eq!(registry.overrides().len(), 1);
        assert!(limiter.try_acquire("k").await.unwrap_err().is_limited());
        assert!(registry.try_acquire_all([limiter.charge("k")]).await.unwrap_err().is_limited());

        file.replace("[\"overrides.limiter\"]\nshadow = true\nlimit = 1\n");
        until("the limiter is in shadow", WITHIN, async || match limiter.try_acquire("k").await {
            Ok(decision) if decision.policies()[0].shadow => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        file.replace("[\"overrides.limiter\"]\noff = true\n");
        until("the limiter is off", WITHIN, async || match limiter.try_acquire_n("k", 2).await {
            Ok(decision) if !decision.policies()[0].shadow => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        let used = 3 - limiter.peek("k").await.unwrap().remaining;
        limiter.try_acquire_n("k", 2).await.unwrap();
        assert_eq!(3 - limiter.peek("k").await.unwrap().remaining, used);
    })
    .await;
}

#[tokio::test]
async fn invalid_override_disarms_only_itself() {
    let log = LogCapture::default();
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let file = Overrides::new("[\"overrides.bucket\"]\nburst = 2\n[\"overrides.missing\"]\noff = true\n");
    let registry = Registry::builder().overrides(&file.0).in_memory();
    assert_eq!(registry.overrides().len(), 1);
    let logged = ("".to_owned(), "overrides that are invalid are ignored".to_owned());
    assert_eq!(log.events().iter().filter(|event| **event == logged).count(), 1);
    assert!(log.text().contains("no policy is named `overrides.missing`"), "{}", log.text());

    // Beside one that is valid.
    for (invalid, problem) in [
        (
            "[\"overrides.buckt\"]\nburst = 3\n",
            "no policy is named `overrides.buckt`; did you mean `overrides.bucket`?",
        ),
        ("[\"overrides.bucket\"]\nburst = 0\n", "`overrides.bucket`: `burst` is 0,"),
        (
            "[\"overrides.bucket\"]\nlimit = 3\noff = true\n",
            "`overrides.bucket`: `limit` is no argument of `rate_limit`;",
        ),
        ("[\"overrides.bucket\"]\nburst = true\n", "`burst` is no number, rate or duration;"),
        ("[\"overrides.window\"]\nlimit = -3\n", "`limit` is negative;"),
        ("[\"overrides.shadow\"]\nshadow = false\nburst = 2\n", "`shadow` is in its attribute;"),
    ] {
        file.replace(&format!("{invalid}[\"overrides.first\"]\nburst = 7\n"));
        until("the problem is reported", WITHIN, async || {
            let reported = reported();
            if reported.contains(problem) { Ok(()) } else { Err(reported) }
        })
        .await;
        let restarted = Registry::builder().overrides(&file.0).in_memory();
        for registry in [&registry, &restarted] {
            let [first] = &registry.overrides()[..] else { panic!("{:?}", registry.overrides()) };
            assert_eq!(first.settings(), ["burst = 7"]);
        }
        let calls = async {
            for _ in 0..10 {
                bucket(7).await?;
            }
            assert!(bucket(7).await.unwrap_err().is_limited());
            in_shadow().await
        };
        restarted.scope(calls).await.unwrap();
    }
    file.replace("[\"overrides.bucket\"\n");
    until("the text is reported", WITHIN, async || {
        let reported = reported();
        if reported.contains("line 1: ") { Ok(()) } else { Err(reported) }
    })
    .await;
    assert_eq!(registry.overrides().len(), 1);
    fs::remove_file(&file.0).unwrap();
    until("the missing file is reported", WITHIN, async || {
        let reported = reported();
        if reported.contains("could not read") { Ok(()) } else { Err(reported) }
    })
    .await;
    assert_eq!(registry.overrides().len(), 1);
    file.replace("# none\n");
    in_force(&registry, &[]).await;
    let path = file.0.display().to_string();
    until("nothing is reported any more", WITHIN, async || {
        let reported = reported();
        if reported.contains(&path) { Err(reported) } else { Ok(()) }
    })
    .await;

    // A registry that is gone reports nothing.
    fs::remove_file(&file.0).unwrap();
    until("the missing file is reported again", WITHIN, async || {
        let reported = reported();
        if reported.contains(&path) { Ok(()) } else { Err(reported) }
    })
    .await;
    drop(registry);
    until("nothing is reported without the registry", WITHIN, async || {
        let reported = reported();
        if reported.contains(&path) { Err(reported) } else { Ok(()) }
    })
    .await;
}

/// Each line of it is a valid file with the lines before.
#[tokio::test]
async fn file_is_not_read_while_it_is_written() {
    let lines = ["[\"overrides.bucket\"]\n", "burst = 2\n", "[\"overrides.first\"]\n", "off = true\n"];
    let file = Overrides::new("# none\n");
    let registry = Registry::builder().overrides(&file.0).in_memory();
    let writer = thread::spawn({
        let path = file.0.clone();
        move || {
            let mut file = File::create(path).unwrap();
            // Longer than the interval in which files are read.
            for _ in 0..15 {
                for line in lines {
                    file.write_all(line.as_bytes()).unwrap();
                    thread::sleep(Duration::from_millis(50));
                }
                file.set_len(0).unwrap();
                std::io::Seek::rewind(&mut file).unwrap();
            }
            file.write_all(lines.concat().as_bytes()).unwrap();
        }
    });
    until("all of the file is in force", WITHIN, async || {
        let found = registry.overrides();
        assert!(found.is_empty() || found.len() == 2, "{found:?}");
        if found.len() == 2 { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    writer.join().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_overrides_in_redis() {
    if let Some(child) = Child::from_env() {
        let registry = Registry::builder().deadline(LONG_DEADLINE).overrides_in_redis();
        let registry = registry.connect(&child.url).await.unwrap();
        let server_time = async || {
            let client = redis::Client::open(&*child.url).unwrap();
            let mut connection = client.get_multiplexed_async_connection().await.unwrap();
            let (seconds, micros): (u64, u64) =
                redis::cmd("TIME").query_async(&mut connection).await.unwrap();
            seconds * 1000 + micros / 1000
        };
        let client = redis::Client::open(&*child.url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut lines = Vec::new();
        for (version, (toml, policies)) in [
            ("[\"overrides.bucket\"]\nburst = 2\n", &["overrides.bucket"][..]),
            ("[\"overrides.unknown\"]\noff = true\n", &[]),
            (
                "[\"overrides.bucket\"]\nburst = 3\n[\"overrides.first\"]\noff = true\n",
                &["overrides.bucket", "overrides.first"],
            ),
            ("", &[]),
        ]
        .into_iter()
        .enumerate()
        {
            if child.barrier(&format!("write{version}"), PROCESSES).await == 0 {
                let fields = [("toml", toml.to_owned()), ("version", version.to_string())];
                let () = redis::cmd("HSET")
                    .arg("rl:overrides")
                    .arg(&fields)
                    .query_async(&mut connection)
                    .await
                    .unwrap();
                let () = redis::cmd("SET")
                    .arg("written")
                    .arg(server_time().await)
                    .query_async(&mut connection)
                    .await
                    .unwrap();
            }
            child.barrier(&format!("written{version}"), PROCESSES).await;
            let written: u64 = redis::cmd("GET").arg("written").query_async(&mut connection).await.unwrap();
            in_force(&registry, policies).await;
            lines.push(format!("{version} {}", server_time().await.saturating_sub(written)));
            // Another registry, as after a restart, finds the same.
            if version == 2 {
                let restarted = Registry::builder().deadline(LONG_DEADLINE).overrides_in_redis();
                in_force(&restarted.connect_lazy(&child.url).unwrap(), policies).await;
            }
        }
        return child.report(lines);
    }
    let server = Server::start();
    let reports =
        processes::run(&server, PROCESSES, module_path!(), "processes_share_overrides_in_redis").await;
    let lines = reports.concat();
    assert_eq!(lines.len(), 4 * PROCESSES);
    println!("milliseconds until overrides are in force: {lines:?}");
}

#[tokio::test]
async fn override_of_a_bucket_needs_no_known_key() {
    // A bucket that was never called, and one with computed numbers.
    let file = Overrides::new("[\"overrides.unused\"]\nrate = \"1/d\"\nburst = 1\n");
    let registry = Registry::builder().overrides(&file.0).in_memory();
    let bucket = TokenBucket::new("10/d".parse().unwrap()).burst(10).adjustable();
    let limiter = registry.limiter("overrides.unused", bucket).unwrap();
    in_force(&registry, &["overrides.unused"]).await;
    limiter.try_acquire(1).await.unwrap();
    assert!(limiter.try_acquire(1).await.unwrap_err().is_limited());
}
