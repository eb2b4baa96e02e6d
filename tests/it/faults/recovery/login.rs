//! Users that are deleted and restored, and passwords that change back.

use std::time::{Duration, Instant};

use super::{Attempts, DOWN, Traffic, recovers};
use crate::support::budget::budget;
use crate::support::proxy::Proxy;
use crate::support::server::{Server, run};

const TARGET: Duration = Duration::from_secs(2);
const ALL: [&str; 3] = ["~*", "&*", "+@all"];

fn rounds() -> u64 {
    budget(1, 3)
}

#[tokio::test]
async fn restored_user_decides() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    server.set_user("app", "s3cret", &ALL).await;
    let url = proxy.url().replace("redis://", "redis://app:s3cret@");
    let traffic = Traffic::start(&url).await;
    for _ in 0..rounds() {
        let (down, attempts) = (Instant::now(), Attempts::count(&proxy));
        server.command::<()>(&["ACL", "DELUSER", "app"]).await;
        traffic.failure_after(down).await;
        tokio::time::sleep(DOWN).await;
        attempts.assert_few();
        server.set_user("app", "s3cret", &ALL).await;
        recovers("deleted user", TARGET, Instant::now(), &traffic).await;
    }
}

/// Open connections stay logged in, so they are closed.
#[tokio::test]
async fn user_with_restored_password_decides() {
    let server = Server::start();
    server.set_user("app", "s3cret", &ALL).await;
    let traffic = Traffic::start(&server.url_as("app", "s3cret")).await;
    for _ in 0..rounds() {
        let down = Instant::now();
        server.set_user("app", "another", &ALL).await;
        server.kill_clients().await;
        traffic.failure_after(down).await;
        tokio::time::sleep(DOWN).await;
        server.set_user("app", "s3cret", &ALL).await;
        recovers("changed password", TARGET, Instant::now(), &traffic).await;
    }
}

#[tokio::test]
async fn server_with_restored_password_decides() {
    let server = Server::start();
    let mut connection = server.connect().await;
    run::<()>(&mut connection, &["CONFIG", "SET", "requirepass", "s3cret"]).await;
    let traffic = Traffic::start(&server.url().replace("redis://", "redis://:s3cret@")).await;
    for _ in 0..rounds() {
        let down = Instant::now();
        run::<()>(&mut connection, &["CONFIG", "SET", "requirepass", "another"]).await;
        run::<()>(&mut connection, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
        traffic.failure_after(down).await;
        tokio::time::sleep(DOWN).await;
        run::<()>(&mut connection, &["CONFIG", "SET", "requirepass", "s3cret"]).await;
        recovers("changed requirepass", TARGET, Instant::now(), &traffic).await;
    }
}

#[tokio::test]
async fn user_with_restored_rights_decides() {
    let server = Server::start();
    server.set_user("app", "s3cret", &ALL).await;
    let traffic = Traffic::start(&server.url_as("app", "s3cret")).await;
    let down = Instant::now();
    server.set_user("app", "s3cret", &["~*", "+ping"]).await;
    traffic.failure_after(down).await;
    tokio::time::sleep(DOWN).await;
    server.set_user("app", "s3cret", &ALL).await;
    recovers("lost rights", TARGET, Instant::now(), &traffic).await;
}
