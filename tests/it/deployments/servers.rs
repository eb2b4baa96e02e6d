//! A single server: behind a socket, with users and passwords, with several databases.

use super::{LOGIN_ERRORS, builder, chain, connect_error, works, works_at};
use crate::support::server::{Server, run};

/// The number of keys in a database.
async fn keys_in(server: &Server, database: u32) -> u64 {
    let mut connection = server.connect().await;
    run::<()>(&mut connection, &["SELECT", &database.to_string()]).await;
    run(&mut connection, &["DBSIZE"]).await
}

fn assert_login_error(error: &str) {
    assert!(LOGIN_ERRORS.iter().any(|login_error| error.contains(login_error)), "{error}");
}

#[tokio::test]
async fn plain_server_works() {
    works_at(&Server::start().url()).await;
}

#[tokio::test]
async fn socket_works() {
    let server = Server::start_with_socket();
    works_at(&server.socket_url()).await;
    let error = connect_error(&format!("{}.absent", server.socket_url())).await;
    assert!(error.contains("No such file"), "{error}");
}

#[tokio::test]
async fn socket_with_database_and_user_works() {
    let server = Server::start_with_socket();
    server.set_user("app", "secret", &["~*", "+@all"]).await;
    works_at(&format!("{}?db=2&user=app&pass=secret", server.socket_url())).await;
    assert!(keys_in(&server, 2).await > 0);
    assert_eq!(keys_in(&server, 0).await, 0);
    connect_error(&format!("{}?user=app&pass=secret2", server.socket_url())).await;
}

#[tokio::test]
async fn user_with_password_works() {
    let server = Server::start();
    server.set_user("app", "s3cret@!", &["~*", "+@all"]).await;
    works_at(&server.url_as("app", "s3cret%40!")).await;
    for (user, password) in [("app", "secret"), ("secret", "secret"), ("secret", "s3cret%40!")] {
        assert_login_error(&connect_error(&server.url_as(user, password)).await);
    }
}

const GUIDE: &str = include_str!("../../../guide/redis.md");

/// The additional rights that a user needs in a cluster, according to the guide.
pub(super) fn cluster_rights() -> Vec<&'static str> {
    let (_, rest) = GUIDE.split_once("A Cluster needs `").expect("the guide names them");
    rest.split('`').next().unwrap_or_default().split_whitespace().collect()
}

/// Creates the user with the guide's own line, and with more rights.
pub(super) async fn set_user_of_the_guide(server: &Server, more: &[&str]) {
    let line = GUIDE.lines().find(|line| line.starts_with("ACL SETUSER ")).expect("the guide has one");
    let words: Vec<&str> = line.split(' ').chain(more.iter().copied()).collect();
    server.command::<()>(&words).await;
}

#[tokio::test]
async fn user_of_the_guide_works() {
    let server = Server::start();
    let url = server.url_as("ratelimits", "a-long-password");
    for is_lazy in [false, true] {
        server.command::<()>(&["FLUSHALL"]).await;
        set_user_of_the_guide(&server, &[]).await;
        let builder = builder().namespace("rl");
        let registry = if is_lazy { builder.connect_lazy(&url) } else { builder.connect(&url).await };
        works(&registry.unwrap_or_else(|error| panic!("{}", chain(&error)))).await;
    }
}

#[tokio::test]
async fn password_alone_works() {
    let server = Server::start();
    server.configure("requirepass", "s3cret").await;
    works_at(&server.url().replace("redis://", "redis://:s3cret@")).await;
    assert_login_error(&connect_error(&server.url().replace("redis://", "redis://:secret@")).await);
    let error = connect_error(&server.url()).await;
    assert!(error.contains("NOAUTH"), "{error}");
}

#[tokio::test]
async fn numbered_database_works() {
    let server = Server::start();
    works_at(&format!("{}/3", server.url())).await;
    assert!(keys_in(&server, 3).await > 0);
    assert_eq!(keys_in(&server, 0).await, 0);
    let error = connect_error(&format!("{}/99", server.url())).await;
    assert!(error.contains("DB index"), "{error}");
}

#[tokio::test]
async fn absent_server_is_an_error() {
    let url = {
        let server = Server::start();
        server.url_as("app", "secret")
    };
    let error = connect_error(&url).await;
    assert!(error.contains("refused"), "{error}");
}

#[tokio::test]
async fn unresponsive_server_is_an_error() {
    let server = Server::start();
    server.pause();
    let error = connect_error(&server.url()).await;
    assert!(error.contains("timed out") || error.contains("before the deadline"), "{error}");
}
