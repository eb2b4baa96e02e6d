use std::time::Duration;

use redis::ErrorKind;

use crate::support::client::{connect, get, increment};
use crate::support::server::Server;
use crate::support::server::tls::{Authority, TlsServer};
use crate::support::until::until;

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(10);

#[tokio::test]
async fn killed_server_restarts_empty_at_the_same_url() {
    let server = Server::start();
    let mut connection = connect(&server.url(), LONG).await.unwrap();
    increment(&mut connection, "a").await.unwrap();
    server.kill();
    assert!(!server.lives());
    assert!(increment(&mut connection, "a").await.is_err());
    assert!(connect(&server.url(), LONG).await.unwrap_err().is_connection_refusal());
    for _ in 0..3 {
        server.restart().await;
        let mut connection = connect(&server.url(), LONG).await.unwrap();
        assert_eq!(increment(&mut connection, "a").await.unwrap(), 1);
    }
}

#[tokio::test]
async fn arguments_override_defaults_and_survive_a_restart() {
    let server = Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    increment(&mut server.connect().await, "a").await.unwrap();
    server.kill();
    server.restart().await;
    assert_eq!(increment(&mut server.connect().await, "a").await.unwrap(), 2);
}

#[tokio::test]
async fn paused_server_replies_after_it_resumes() {
    let server = Server::start();
    let mut long = connect(&server.url(), LONG).await.unwrap();
    let mut short = connect(&server.url(), SHORT).await.unwrap();
    server.pause();
    assert!(increment(&mut short, "a").await.unwrap_err().is_timeout());
    assert!(connect(&server.url(), SHORT).await.is_err());
    let call = tokio::spawn(async move { increment(&mut long, "a").await });
    tokio::time::sleep(SHORT).await;
    assert!(!call.is_finished() && !server.lives());
    server.resume();
    assert_eq!(call.await.unwrap().unwrap(), 2, "the call that timed out was executed too");
    server.pause();
    server.restart().await;
    assert_eq!(increment(&mut server.connect().await, "a").await.unwrap(), 1);
}

#[tokio::test]
async fn replicated_write_is_on_the_replica() {
    let master = Server::start();
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
    replica.follows().await;
    master.replicated_to(&replica).await;
    replica.pause();
    increment(&mut master.connect().await, "a").await.unwrap();
    assert!(tokio::time::timeout(SHORT, master.replicated_to(&replica)).await.is_err());
    replica.resume();
    master.replicated_to(&replica).await;
    assert_eq!(get(&mut replica.connect().await, "a").await.unwrap(), 1);
}

#[test]
fn servers_stop_when_their_test_panics() {
    let address = std::panic::catch_unwind(|| {
        let server = Server::start();
        server.pause();
        std::panic::panic_any(server.address());
    });
    let address = address.unwrap_err().downcast::<String>().unwrap();
    assert!(std::net::TcpStream::connect(*address).is_err());
}

#[tokio::test]
async fn server_listens_on_its_socket() {
    let server = Server::start_with_socket();
    let mut connection = connect(&server.socket_url(), LONG).await.unwrap();
    increment(&mut connection, "a").await.unwrap();
    assert_eq!(increment(&mut server.connect().await, "a").await.unwrap(), 2);
}

#[tokio::test]
async fn users_have_the_given_password_and_rules() {
    let server = Server::start();
    server.set_user("app", "secret", &["~a*", "+incr"]).await;
    assert!(connect(&server.url_as("app", "wrong"), LONG).await.is_err());
    let mut app = connect(&server.url_as("app", "secret"), LONG).await.unwrap();
    assert_eq!(increment(&mut app, "a").await.unwrap(), 1);
    for refused in [increment(&mut app, "b").await, get(&mut app, "a").await] {
        assert_eq!(refused.unwrap_err().code(), Some("NOPERM"));
    }
    server.set_user("app", "other", &["~*", "+incr"]).await;
    assert_eq!(increment(&mut app, "b").await.unwrap(), 1, "open connections stay logged in");
    let error = connect(&server.url_as("app", "secret"), LONG).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AuthenticationFailed, "{error}");
}

/// The TLS client is a replica, because Redis implements TLS independently of the library.
#[tokio::test]
async fn tls_server_is_trusted_by_its_authority_only() {
    let [authority, other] = [Authority::new(), Authority::new()];
    let server = TlsServer::start(&authority);
    let port = server.tls_port().to_string();
    assert_eq!(server.tls_url(), format!("rediss://localhost:{port}"));
    let replica_that_trusts = |trusted: &Authority| {
        TlsServer::start_with(trusted, &["--tls-replication", "yes", "--replicaof", "127.0.0.1", &port])
    };
    increment(&mut server.connect().await, "a").await.unwrap();
    let trusting = replica_that_trusts(&authority);
    let distrusting = replica_that_trusts(&other);
    trusting.follows().await;
    assert_eq!(get(&mut trusting.connect().await, "a").await.unwrap(), 1);
    until("the distrusting replica fails", LONG, async || match distrusting.log() {
        log if log.contains("certificate verify failed") => Ok(()),
        log => Err(log),
    })
    .await;
    assert!(get(&mut distrusting.connect().await, "a").await.is_err());
    let plain = connect(&format!("redis://localhost:{port}"), LONG).await;
    assert!(plain.is_err(), "the TLS port accepts no plain connection");
}
