//! Users that are deleted and restored, and passwords that change back.

use std::time::Duration;

use super::{Fault, Fixture};
use crate::support::budget::budget;
use crate::support::server::{Server, run};

const TARGET: Duration = Duration::from_secs(2);
const LOGIN: &str = "app:s3cret@";

fn rounds() -> u64 {
    budget(1, 3)
}

async fn set_user(server: &Server, password: &str) {
    server.set_user("app", password, &["~*", "&*", "+@all"]).await;
}

async fn start() -> Fixture {
    let server = Server::start();
    set_user(&server, "s3cret").await;
    Fixture::start_as(server, LOGIN).await
}

async fn restore_user(fixture: &Fixture) {
    set_user(&fixture.server, "s3cret").await;
}

#[tokio::test]
async fn restored_user_decides() {
    let fixture = start().await;
    let delete = async |fixture: &Fixture| fixture.server.command(&["ACL", "DELUSER", "app"]).await;
    for _ in 0..rounds() {
        fixture.recovers_from(Fault::new("deleted user", TARGET), delete, restore_user).await;
    }
}

/// Open connections stay logged in, so they are closed.
#[tokio::test]
async fn user_with_restored_password_decides() {
    let fixture = start().await;
    let change = async |fixture: &Fixture| {
        set_user(&fixture.server, "another").await;
        fixture.server.kill_clients().await;
    };
    for _ in 0..rounds() {
        fixture.recovers_from(Fault::new("changed password", TARGET), change, restore_user).await;
    }
}

#[tokio::test]
async fn server_with_restored_password_decides() {
    let server = Server::start();
    let mut operator = server.connect().await;
    run::<()>(&mut operator, &["CONFIG", "SET", "requirepass", "s3cret"]).await;
    let fixture = Fixture::start_as(server, ":s3cret@").await;
    for _ in 0..rounds() {
        let [mut operator, mut restoring] = [operator.clone(), operator.clone()];
        let change = async move |_: &Fixture| {
            run::<()>(&mut operator, &["CONFIG", "SET", "requirepass", "another"]).await;
            run::<()>(&mut operator, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
        };
        let restore = async move |_: &Fixture| {
            run::<()>(&mut restoring, &["CONFIG", "SET", "requirepass", "s3cret"]).await;
        };
        fixture.recovers_from(Fault::new("changed requirepass", TARGET), change, restore).await;
    }
}

#[tokio::test]
async fn user_with_restored_rights_decides() {
    let fixture = start().await;
    let revoke = async |fixture: &Fixture| {
        fixture.server.set_user("app", "s3cret", &["~*", "+ping"]).await;
    };
    fixture.recovers_from(Fault::new("lost rights", TARGET), revoke, restore_user).await;
}
