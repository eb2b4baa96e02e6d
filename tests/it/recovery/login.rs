//! Users that are gone for a while, and passwords that change.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use super::{Calls, OFTEN, recovers, store};
use crate::support::proxy::Proxy;
use crate::support::server::Server;

const TARGET: Duration = Duration::from_secs(2);
const DOWN: Duration = Duration::from_secs(1);
const ALL: [&str; 3] = ["~*", "&*", "+@all"];

async fn ask(connection: &mut MultiplexedConnection, command: &[&str]) {
    let asked: Result<redis::Value, _> =
        redis::cmd(command[0]).arg(&command[1..]).query_async(connection).await;
    asked.unwrap();
}

/// Ends all connections but this one: those that are open stay logged in.
async fn kill_others(connection: &mut MultiplexedConnection) {
    ask(connection, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
}

/// A URL of this login by way of the proxy.
fn url(proxy: &Proxy, login: &str) -> String {
    proxy.url().replace("redis://", &format!("redis://{login}@"))
}

#[tokio::test]
async fn a_user_that_is_deleted_decides_again_once_it_is_back() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    server.set_user("app", "s3cret", &ALL).await;
    let calls = Calls::begin(&store(&url(&proxy, "app:s3cret")), "a", OFTEN).await;
    for _ in 0..3 {
        let (down, before) = (Instant::now(), proxy.accepted());
        ask(&mut server.connect().await, &["ACL", "DELUSER", "app"]).await;
        calls.fail_after(down).await;
        tokio::time::sleep(DOWN).await;
        let attempts = proxy.accepted() - before;
        assert!(attempts <= 10 * (down.elapsed().as_secs() + 1), "{attempts} attempts");
        server.set_user("app", "s3cret", &ALL).await;
        recovers("a deleted user", TARGET, Instant::now(), &calls).await;
    }
}

#[tokio::test]
async fn a_user_whose_password_changed_decides_again_once_it_is_the_old_one() {
    let server = Server::start();
    server.set_user("app", "s3cret", &ALL).await;
    let calls = Calls::begin(&store(&server.url_as("app", "s3cret")), "a", OFTEN).await;
    for _ in 0..3 {
        let down = Instant::now();
        server.set_user("app", "another", &ALL).await;
        kill_others(&mut server.connect().await).await;
        calls.fail_after(down).await;
        tokio::time::sleep(DOWN).await;
        server.set_user("app", "s3cret", &ALL).await;
        recovers("a changed password", TARGET, Instant::now(), &calls).await;
    }
}

#[tokio::test]
async fn a_server_whose_password_changed_decides_again_once_it_is_the_old_one() {
    let server = Server::start();
    let mut connection = server.connect().await;
    ask(&mut connection, &["CONFIG", "SET", "requirepass", "s3cret"]).await;
    let url = server.url().replace("redis://", "redis://:s3cret@");
    let calls = Calls::begin(&store(&url), "a", OFTEN).await;
    for _ in 0..3 {
        let down = Instant::now();
        ask(&mut connection, &["CONFIG", "SET", "requirepass", "another"]).await;
        kill_others(&mut connection).await;
        calls.fail_after(down).await;
        tokio::time::sleep(DOWN).await;
        ask(&mut connection, &["CONFIG", "SET", "requirepass", "s3cret"]).await;
        recovers("a changed requirepass", TARGET, Instant::now(), &calls).await;
    }
}

#[tokio::test]
async fn a_user_that_lost_its_rights_decides_again_once_it_has_them() {
    let server = Server::start();
    server.set_user("app", "s3cret", &ALL).await;
    let calls = Calls::begin(&store(&server.url_as("app", "s3cret")), "a", OFTEN).await;
    let down = Instant::now();
    server.set_user("app", "s3cret", &["~*", "+ping"]).await;
    calls.fail_after(down).await;
    tokio::time::sleep(DOWN).await;
    server.set_user("app", "s3cret", &ALL).await;
    recovers("lost rights", TARGET, Instant::now(), &calls).await;
}
