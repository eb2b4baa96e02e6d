//! One server: behind a socket, with users and passwords, with several databases.

use super::{builder, chain, refused_at, works, works_at};
use crate::support::server::Server;

async fn configure(server: &Server, name: &str, value: &str) {
    let set: Result<(), _> =
        redis::cmd("CONFIG").arg(&["SET", name, value]).query_async(&mut server.connect().await).await;
    set.unwrap();
}

/// How many keys a database has.
async fn keys_in(server: &Server, database: u32) -> u64 {
    let mut pipe = redis::pipe();
    pipe.cmd("SELECT").arg(database).ignore().cmd("DBSIZE");
    let (keys,) = pipe.query_async(&mut server.connect().await).await.unwrap();
    keys
}

#[tokio::test]
async fn a_plain_server_works() {
    works_at(&Server::start().url()).await;
}

#[tokio::test]
async fn a_socket_works() {
    let server = Server::start_with_socket();
    works_at(&server.socket_url()).await;
    let told = refused_at(&format!("{}.absent", server.socket_url())).await;
    assert!(told.contains("No such file"), "{told}");
}

#[tokio::test]
async fn a_socket_with_a_database_and_a_user_works() {
    let server = Server::start_with_socket();
    server.set_user("app", "secret", &["~*", "+@all"]).await;
    works_at(&format!("{}?db=2&user=app&pass=secret", server.socket_url())).await;
    assert!(keys_in(&server, 2).await > 0);
    assert_eq!(keys_in(&server, 0).await, 0);
    refused_at(&format!("{}?user=app&pass=secret2", server.socket_url())).await;
}

#[tokio::test]
async fn a_user_with_a_password_works() {
    let server = Server::start();
    server.set_user("app", "s3cret@!", &["~*", "+@all"]).await;
    works_at(&server.url_as("app", "s3cret%40!")).await;
    for (user, password) in [("app", "secret"), ("secret", "secret"), ("secret", "s3cret%40!")] {
        let told = refused_at(&server.url_as(user, password)).await;
        assert!(told.contains("WRONGPASS") || told.contains("authentication failed"), "{told}");
    }
}

const GUIDE: &str = include_str!("../../../guide/redis.md");

/// What the guide says that a user needs in a Cluster beside the others.
pub(super) fn rights_in_a_cluster() -> Vec<&'static str> {
    let (_, rest) = GUIDE.split_once("A Cluster needs `").expect("the guide says it");
    rest.split('`').next().unwrap_or_default().split_whitespace().collect()
}

/// The user that the guide makes, with its very line, and what it says to add.
pub(super) async fn set_user_of_the_guide(server: &Server, more: &[&str]) {
    let line = GUIDE.lines().find(|line| line.starts_with("ACL SETUSER ")).expect("the guide has one");
    let words: Vec<&str> = line.split(' ').chain(more.iter().copied()).collect();
    let set = redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut server.connect().await).await;
    set.unwrap_or_else(|error| panic!("{line}: {error}"));
}

#[tokio::test]
async fn a_user_that_may_what_the_guide_says_is_enough() {
    let server = Server::start();
    let url = server.url_as("ratelimits", "a-long-password");
    for is_lazy in [false, true] {
        let mut connection = server.connect().await;
        redis::cmd("FLUSHALL").exec_async(&mut connection).await.unwrap();
        set_user_of_the_guide(&server, &[]).await;
        let builder = builder().namespace("rl");
        let registry = if is_lazy { builder.connect_lazy(&url) } else { builder.connect(&url).await };
        works(&registry.unwrap_or_else(|error| panic!("{}", chain(&error)))).await;
    }
}

#[tokio::test]
async fn a_password_alone_works() {
    let server = Server::start();
    configure(&server, "requirepass", "s3cret").await;
    works_at(&server.url().replace("redis://", "redis://:s3cret@")).await;
    let told = refused_at(&server.url().replace("redis://", "redis://:secret@")).await;
    assert!(told.contains("WRONGPASS") || told.contains("authentication failed"), "{told}");
    let told = refused_at(&server.url()).await;
    assert!(told.contains("NOAUTH"), "{told}");
}

#[tokio::test]
async fn a_database_by_its_number_works() {
    let server = Server::start();
    works_at(&format!("{}/3", server.url())).await;
    assert!(keys_in(&server, 3).await > 0);
    assert_eq!(keys_in(&server, 0).await, 0);
    let told = refused_at(&format!("{}/99", server.url())).await;
    assert!(told.contains("DB index"), "{told}");
}

#[tokio::test]
async fn a_server_that_nobody_runs_is_told() {
    let url = {
        let server = Server::start();
        server.url_as("app", "secret")
    };
    let told = refused_at(&url).await;
    assert!(told.contains("refused"), "{told}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_told() {
    let server = Server::start();
    server.pause();
    let told = refused_at(&server.url()).await;
    assert!(told.contains("timed out") || told.contains("before the deadline"), "{told}");
}
