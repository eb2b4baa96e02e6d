//! `ratelimits watch`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use ratelimits::Limiter;
use serde_json::Value;

use crate::command::{command, registry, run, slow_bucket};
use crate::support::server::Server;

async fn limiter(server: &Server, namespace: &str) -> Limiter {
    registry(&server.url(), namespace).await.limiter("app::send", slow_bucket(2)).unwrap()
}

fn watch(server: &Server, namespace: &str, more: &[&str]) -> (Child, impl Iterator<Item = String> + use<>) {
    let arguments = [&["watch", "--interval", "1", "--namespace", namespace], more].concat();
    let mut watch = command(&server.url(), &arguments).spawn().unwrap();
    let out = BufReader::new(watch.stdout.take().unwrap());
    (watch, out.lines().map(|line| line.unwrap()))
}

fn interrupt(process: &Child) {
    let sent = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(sent.success(), "{sent}");
}

#[tokio::test]
async fn rounds_follow_until_it_is_interrupted() {
    let server = Server::shared();
    let limiter = limiter(&server, "watch").await;
    limiter.try_acquire("u1").await.unwrap();
    let (mut process, mut lines) = watch(&server, "watch", &["--json"]);
    let mut round = || serde_json::from_str::<Value>(&lines.next().unwrap()).unwrap()["policies"][0].clone();
    let first = round();
    assert_eq!((first["keys"].as_u64(), first["limited"].as_u64()), (Some(1), Some(0)), "{first}");
    limiter.try_acquire_n("u2", 2).await.unwrap();
    while round()["limited"] != 1 {}
    interrupt(&process);
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[tokio::test]
async fn table_has_the_changes_since_the_last_round() {
    let server = Server::shared();
    let limiter = limiter(&server, "watch-table").await;
    limiter.try_acquire("u1").await.unwrap();
    let (mut process, mut lines) = watch(&server, "watch-table", &[]);
    let mut row = || lines.by_ref().find(|line| line.starts_with("app::send")).unwrap();
    assert_eq!(row(), "app::send  token bucket     1        0  0.0 %");
    limiter.try_acquire_n("u2", 2).await.unwrap();
    // A round may come between the two.
    let changed = std::iter::repeat_with(&mut row).find(|row| row.contains("2 (+1)")).unwrap();
    assert_eq!(changed, "app::send  token bucket  2 (+1)   1 (+1)  50.0 %");
    interrupt(&process);
    process.wait().unwrap();
}

#[tokio::test]
async fn misspelled_policy_ends_it() {
    let server = Server::shared();
    limiter(&server, "watch-name").await.try_acquire("u1").await.unwrap();
    let watched = run(&server.url(), &["watch", "--namespace", "watch-name", "--policy", "app::sned"]);
    assert_eq!((watched.code, &*watched.out), (1, ""), "{watched:?}");
    assert!(watched.err.contains("did you mean `app::send`?"), "{watched:?}");
}

#[tokio::test]
async fn end_of_the_last_key_does_not_end_it() {
    let server = Server::shared();
    let limiter = limiter(&server, "watch-last").await;
    limiter.try_acquire("u1").await.unwrap();
    let (mut process, mut lines) = watch(&server, "watch-last", &["--json", "--policy", "app::send"]);
    assert!(lines.next().unwrap().contains("app::send"));
    limiter.reset("u1").await.unwrap();
    assert!(lines.any(|line| line.contains("\"policies\":[]")));
    limiter.try_acquire("u2").await.unwrap();
    assert!(lines.any(|line| line.contains("app::send")));
    interrupt(&process);
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[tokio::test]
async fn outage_is_reported_and_does_not_end_it() {
    let server = Server::start();
    let (mut process, mut lines) = watch(&server, "watch-outage", &["--json"]);
    lines.next().unwrap();
    server.kill();
    let mut problems = BufReader::new(process.stderr.take().unwrap()).lines();
    let problem = problems.next().unwrap().unwrap();
    assert!(problem.starts_with("error: ") && problem.contains(&server.address()), "{problem}");
    // Nobody reads the others.
    drop(problems);
    server.restart().await;
    limiter(&server, "watch-outage").await.try_acquire("u1").await.unwrap();
    assert!(lines.any(|line| line.contains("app::send")));
    interrupt(&process);
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[tokio::test]
async fn closed_pipe_ends_it() {
    let server = Server::shared();
    limiter(&server, "watch-pipe").await.try_acquire("u1").await.unwrap();
    let (mut process, mut lines) = watch(&server, "watch-pipe", &["--json"]);
    lines.next().unwrap();
    drop(lines);
    assert_eq!(process.wait().unwrap().code(), Some(0));
}
