//! Concurrency limits, whose keys have what calls hold now.

use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Error, Limiter, Registry, concurrency_limit};
use serde_json::{Value, json};

use crate::command::{Run, run, run_with_input, slow_bucket};
use crate::support::server::Server;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(30);

// Known without a call.
#[allow(dead_code)]
#[concurrency_limit(3, key = tenant, name = "holds::attribute")]
async fn attribute(tenant: u64) -> Result<(), Error> {
    Ok(())
}

/// A program that reports its holds every third of a second.
async fn program(server: &Server, namespace: &str) -> Registry {
    let builder = Registry::builder().namespace(namespace).deadline(Duration::from_millis(250));
    let builder = builder.hold_ttl(Duration::from_secs(1));
    builder.overrides_in_redis().connect(&server.url()).await.unwrap()
}

async fn until_used(limiter: &Limiter, expected: u64) {
    until("the holds are as they should be", WITHIN, async || {
        let decision = limiter.peek("tenant 7").await.map_err(|error| error.to_string())?;
        let used = decision.limit - decision.remaining;
        if used == expected { Ok(()) } else { Err(format!("{used} are held")) }
    })
    .await;
}

fn inventory() -> String {
    json!([{"name": "jobs", "attribute": "concurrency_limit", "algorithm": "semaphore", "arguments": "max = 2"}])
        .to_string()
}

#[tokio::test]
async fn permits_that_calls_hold_are_shown() {
    let (server, namespace) = (Server::shared(), "holds-shown");
    let jobs = program(&server, namespace).await.limiter("jobs", ConcurrencyLimit::new(2)).unwrap();
    let run = |arguments: &[&str]| {
        let arguments = [arguments, &["--namespace", namespace, "--inventory", "-"]].concat();
        run_with_input(&server.url(), &arguments, &inventory())
    };
    let peek = ["peek", "jobs", "tenant 7"];
    let absent = run(&peek);
    assert!(absent.code == 1 && absent.err.contains("or nothing held"), "{absent:?}");
    let held = [jobs.try_acquire("tenant 7").await.unwrap(), jobs.try_acquire("tenant 7").await.unwrap()];

    let peeked = run(&peek).success();
    let lines: Vec<&str> = peeked.lines().collect();
    let expected = [
        "policy       jobs",
        "algorithm    semaphore",
        "key          'tenant 7'",
        "held         2",
        "held by      1 process: 2",
        "remaining    0",
        "limit        2",
        "retry after  unknown",
    ];
    assert_eq!((lines.len(), &lines[..8]), (9, &expected[..]), "{peeked}");
    assert!(lines[8].starts_with("redis key    holds-shown::jobs:cl1:{"), "{peeked}");
    let peeked = run(&[&peek[..], &["--json"]].concat()).json();
    let state = &peeked["states"][0];
    assert_eq!((&state["limited"], &state["used"]), (&json!(true), &json!(2)), "{state}");
    assert_eq!((&state["retry_after_seconds"], &state["reset_after_seconds"]), (&Value::Null, &Value::Null));

    let listed = run(&["list", "--json"]).json();
    let row = &listed["policies"][0];
    assert_eq!((&row["algorithm"], &row["keys"]), (&json!("semaphore"), &json!(1)), "{row}");
    assert_eq!((&row["limited"], &row["unknown"]), (&json!(1), &json!(0)), "{row}");
    let top = run(&["top"]).success();
    assert!(top.lines().nth(1).is_some_and(|row| row.contains("unknown")), "{top}");

    // Where the inventory lacks the policy, its limit is unknown. More may be held than one that was lowered.
    let peek_by = |inventory: &str| {
        let arguments = [&peek[..], &["--json", "--namespace", namespace, "--inventory", "-"]].concat();
        run_with_input(&server.url(), &arguments, inventory).json()["states"][0].clone()
    };
    let state = peek_by("[]");
    assert_eq!((&state["used"], &state["limit"], &state["limited"]), (&json!(2), &Value::Null, &Value::Null));
    let state = peek_by(&inventory().replace("max = 2", "max = 1"));
    assert_eq!((&state["used"], &state["remaining"], &state["limit"]), (&json!(2), &json!(0), &json!(1)));

    drop(held);
    until_used(&jobs, 0).await;
    assert_eq!(run(&peek).code, 1);
}

/// What `peek` says of who holds permits: the line, and the permits of each process by its number.
fn holders(server: &Server, namespace: &str) -> (String, Vec<(String, u64)>) {
    let peek = ["peek", "jobs", "tenant 7", "--namespace", namespace];
    let peeked = run(&server.url(), &peek).success();
    let line = peeked.lines().find_map(|line| line.strip_prefix("held by      ")).unwrap_or("no line");
    let peeked = run(&server.url(), &[&peek[..], &["--json"]].concat()).json();
    let holders =
        peeked["states"][0]["holders"].as_array().expect("a list").iter().map(|holder| {
            (holder["process"].as_str().unwrap().to_owned(), holder["permits"].as_u64().unwrap())
        });
    (line.to_owned(), holders.collect())
}

#[tokio::test]
async fn processes_that_hold_permits_are_shown() {
    let (server, namespace) = (Server::shared(), "holds-holders");
    let [one, other] = [program(&server, namespace).await, program(&server, namespace).await];
    let [one, other] =
        [one, other].map(|registry| registry.limiter("jobs", ConcurrencyLimit::new(9)).unwrap());
    let first = one.try_acquire("tenant 7").await.unwrap();
    let second = other.try_acquire_n("tenant 7", 3).await.unwrap();
    let (line, both) = holders(&server, namespace);
    assert_eq!(line, "2 processes: 3, 1");
    assert!(matches!(&both[..], [(other, 3), (one, 1)] if one != other), "{both:?}");
    assert!(both.iter().all(|(process, _)| u64::from_str_radix(process, 16).is_ok()), "{both:?}");

    // Of a process that has died, Redis has what it said last.
    let packed = |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
    let key: Vec<String> = server.command(&["KEYS", &format!("{namespace}::jobs:*")]).await;
    let (process, share) = (packed(&[7.0, 0.0]), packed(&[4.0, 1.0, 0.0, 1.0]));
    let mut connection = server.connect().await;
    let expired = redis::cmd("HSET").arg(&key[0]).arg(process).arg(share).take();
    let () = expired.query_async(&mut connection).await.unwrap();
    assert_eq!(holders(&server, namespace), (line, both.clone()));

    drop(second);
    until_used(&one, 1).await;
    assert_eq!(holders(&server, namespace), ("1 process: 1".to_owned(), both[1..].to_vec()));

    let garbage = redis::cmd("HSET").arg(&key[0]).arg("field").arg("value").take();
    let () = garbage.query_async(&mut connection).await.unwrap();
    let peeked = run(&server.url(), &["peek", "jobs", "tenant 7", "--namespace", namespace]);
    assert!(peeked.code == 3 && peeked.err.contains("is no state of a policy"), "{peeked:?}");
    drop(first);
}

#[tokio::test]
async fn concurrency_limits_cannot_be_paused() {
    let (server, namespace) = (Server::shared(), "holds-pause");
    let jobs = program(&server, namespace).await.limiter("jobs", ConcurrencyLimit::new(2)).unwrap();
    let assert_refused = |paused: Run| {
        let problem = "is a concurrency limit, which cannot be paused";
        assert!(paused.code == 2 && paused.err.contains(problem), "{paused:?}");
    };
    let attributes = serde_json::to_string(&ratelimits::policies()).unwrap();
    let pause = ["pause", "holds::attribute", "7", "1s", "--namespace", namespace, "--inventory", "-"];
    assert_refused(run_with_input(&server.url(), &pause, &attributes));
    let _held = jobs.try_acquire("tenant 7").await.unwrap();
    let pause = ["pause", "jobs", "tenant 7", "1s", "--namespace", namespace, "--inventory", "-"];
    assert_refused(run_with_input(&server.url(), &pause, "[]"));
    assert_eq!(jobs.peek("tenant 7").await.unwrap().remaining, 1);
}

#[tokio::test]
async fn holds_are_back_after_a_reset() {
    let (server, namespace) = (Server::shared(), "holds-reset");
    let registry = program(&server, namespace).await;
    let jobs = registry.limiter("jobs", ConcurrencyLimit::new(2)).unwrap();
    let held = jobs.try_acquire("tenant 7").await.unwrap();
    let reset = run(&server.url(), &["reset", "jobs", "tenant 7", "--namespace", namespace]);
    assert!(reset.err.contains("calls that run go on") && reset.out == "deleted 1 key\n", "{reset:?}");
    until_used(&jobs, 1).await;
    drop(held);
    until_used(&jobs, 0).await;
    let bucket = registry.limiter("bucket", slow_bucket(2)).unwrap();
    bucket.try_acquire("tenant 7").await.unwrap();
    let reset = run(&server.url(), &["reset", "bucket", "tenant 7", "--namespace", namespace]);
    assert_eq!((&*reset.err, &*reset.out), ("", "deleted 1 key\n"));
}

#[tokio::test]
async fn overrides_change_how_many_calls_run() {
    let (server, namespace) = (Server::shared(), "holds-override");
    let registry = program(&server, namespace).await;
    let jobs = registry.limiter("jobs", ConcurrencyLimit::new(2)).unwrap();
    let mut held = vec![jobs.try_acquire("tenant 7").await.unwrap()];
    let run = |arguments: &[&str]| run(&server.url(), &[arguments, &["--namespace", namespace]].concat());
    until("the program has published its policies", WITHIN, async || {
        let dry = run(&["override", "set", "jobs", "max=1", "--dry-run", "--json"]).json();
        if dry["refused"] == 1 { Ok(()) } else { Err(dry.to_string()) }
    })
    .await;
    run(&["override", "set", "jobs", "max=3"]).success();
    until("the override is in force", WITHIN, async || match jobs.try_acquire("tenant 7").await {
        Ok(decision) => {
            held.push(decision);
            Err("not full yet".to_owned())
        }
        Err(_) if held.len() == 3 => Ok(()),
        Err(error) => Err(error.to_string()),
    })
    .await;
    let state = run(&["peek", "jobs", "tenant 7", "--json"]).json()["states"][0].clone();
    assert_eq!((&state["used"], &state["in_use"]), (&json!(3), &json!(true)), "{state}");
    // Calls go on that run already.
    run(&["override", "set", "jobs", "max=1"]).success();
    held.truncate(1);
    until("the override is in force", WITHIN, async || {
        let decision = jobs.peek("tenant 7").await.map_err(|error| error.to_string())?;
        if (decision.limit, decision.remaining) == (1, 0) { Ok(()) } else { Err(format!("{decision:?}")) }
    })
    .await;
    let wrong = run(&["override", "set", "jobs", "limit=3"]);
    assert!(wrong.code == 2 && wrong.err.contains("`concurrency_limit`"), "{wrong:?}");
    run(&["override", "clear", "jobs"]).success();
}
