//! Many keys: no command of the server takes long. `RATELIMITS_TEST_BUDGET=long` makes a million keys; `--nocapture` shows the
//! longest commands.

use std::collections::HashMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use serde_json::json;

use crate::command::run_with_input;
use crate::support::budget::budget;
use crate::support::server::{Server, run};

const KEYS_PER_PIPELINE: u64 = 5000;

/// Returns numbers as the library packs them.
fn packed<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    numbers.map(|number| (number as f64).to_le_bytes()).concat()
}

/// Writes states of four policies as the library does: two buckets, a window, and a log with five entries.
async fn write_states(connection: &mut MultiplexedConnection, count: u64) {
    let time: (u64, u64) = run(connection, &["TIME"]).await;
    let now = time.0 * 1_000_000 + time.1;
    let hours = |hours: u64| now + hours * 3_600_000_000;
    for from in (0..count).step_by(KEYS_PER_PIPELINE as usize) {
        let mut states = redis::pipe();
        for i in from..count.min(from + KEYS_PER_PIPELINE) {
            let key = |shape: &str| format!("rl::many/{shape}:{{{i:016x}}}:u{i}");
            let (key, value) = match i % 4 {
                // Full after 1 to 10 hours, of 10 that it takes.
                0 => {
                    (key("bucket:tb1-3600000000-36000000000"), hours(i / 4 % 10 + 1).to_string().into_bytes())
                }
                1 => {
                    let tat = hours(i / 4 % 10 + 1);
                    (key("computed:tb3"), packed([tat, now, 0, 0, 0, now, 3_600_000_000]))
                }
                2 => (key("window:fw2-36000000000"), packed([now, i / 4 % 10 + 1])),
                _ => {
                    let key = key("log:sl1-36000000000");
                    let entries = (0..5).flat_map(|i| [i, now - 10 + i]).chain([5]).collect::<Vec<u64>>();
                    states.rpush(&key, entries).ignore().expire(&key, 36_000).ignore();
                    continue;
                }
            };
            states.set_ex(key, value, 36_000).ignore();
        }
        states.exec_async(connection).await.unwrap();
    }
}

/// Returns the calls of each command so far.
async fn calls(connection: &mut MultiplexedConnection) -> HashMap<String, u64> {
    let stats: String = run(connection, &["INFO", "commandstats"]).await;
    let of_line = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    stats.lines().filter_map(of_line).collect()
}

#[tokio::test]
async fn all_keys_are_read_by_short_commands() {
    let server = Server::start();
    let mut connection = server.connect().await;
    let count = budget(20_000, 1_000_000);
    write_states(&mut connection, count).await;
    run::<()>(&mut connection, &["CONFIG", "RESETSTAT"]).await;

    let inventory = json!([
        {"name": "many::window", "attribute": "count_limit", "algorithm": "fixed window", "arguments": "limit = 8, period = \"10h\""},
        {"name": "many::log", "attribute": "window_limit", "algorithm": "sliding window", "arguments": "limit = 5, period = \"10h\""},
    ]);
    let begun = std::time::Instant::now();
    let listed =
        run_with_input(&server.url(), &["list", "--json", "--inventory", "-"], &inventory.to_string());
    println!("{count} keys in {:?}", Duration::from_millis(begun.elapsed().as_millis() as u64));
    let quarter = count / 4;
    let row = |policy, algorithm, limited, unknown| {
        json!({"policy": policy, "prefix": "", "algorithm": algorithm, "keys": quarter, "limited": limited,
            "unknown": unknown, "paused": 0, "penalized": 0, "unused": 0, "unreadable": 0, "override": null})
    };
    let rows = [
        row("many::bucket", "token bucket", quarter / 10, 0),
        row("many::computed", "token bucket", 0, quarter),
        row("many::log", "sliding window", quarter, 0),
        row("many::window", "fixed window", quarter / 10 * 3, 0),
    ];
    assert_eq!(listed.json()["policies"], json!(rows));

    let latencies: String = run(&mut connection, &["INFO", "latencystats"]).await;
    latencies
        .lines()
        .filter(|line| line.contains("scan") || line.contains("evalsha"))
        .for_each(|line| println!("{line}"));
    let calls = calls(&mut connection).await;
    // Each looks at few keys, so none takes long.
    assert!(calls["scan"] >= count / 110, "{calls:?}");
    assert!(calls["evalsha"] >= count * 3 / 4 / 16 + count / 4 / 9, "{calls:?}");
    let read = [
        "scan", "evalsha", "eval", "time", "get", "llen", "lindex", "lrange", "hmget", "ping", "hello",
        "info",
    ];
    let others: Vec<_> = calls.keys().filter(|name| !read.contains(&name.as_str())).collect();
    assert!(
        others.iter().all(|name| name.starts_with("client|") || name.starts_with("config|")),
        "{others:?}"
    );
}
