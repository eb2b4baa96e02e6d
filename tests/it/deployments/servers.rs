//! A single server: behind a socket, with users and passwords, with several databases.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{LOGIN_ERRORS, builder, chain, connect_error, works, works_as, works_at};
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
async fn urls_of_valkey_and_in_upper_case_work() {
    let server = Server::start_with_socket();
    works_at(&server.url().replace("redis://", "valkey://")).await;
    works_at(&server.url().replace("redis://", "REDIS://")).await;
    works_at(&server.socket_url().replace("redis+unix://", "Valkey+Unix://")).await;
}

/// Before the login, Valkey 9.1 replies `NOAUTH` to a command that it does not know.
#[tokio::test]
async fn noauth_instead_of_unknown_hello_is_understood() {
    let server = Server::start_with(&["--requirepass", "s3cret"]);
    let without_hello = without_hello(server.address()).await;
    works_at(&format!("redis://:s3cret@{without_hello}")).await;
    works_at(&format!("redis://default:s3cret@{without_hello}/3")).await;
    assert_login_error(&connect_error(&format!("redis://:secret@{without_hello}")).await);
    let error = connect_error(&format!("redis://{without_hello}")).await;
    assert!(error.contains("NOAUTH"), "{error}");
}

#[tokio::test]
async fn renamed_hello_works() {
    let hello = ["--rename-command", "HELLO", ""];
    let server = Server::start_with(&hello);
    let protected = Server::start_with(&[&hello[..], &["--requirepass", "s3cret"]].concat());
    for url in [server.url(), protected.url().replace("redis://", "redis://:s3cret@")] {
        let log = works_as(&url, |builder| builder).await;
        assert!(!log.contains("version="), "{log}");
    }
}

/// Forwards to a server all connections that do not begin with `HELLO`. Returns its address.
async fn without_hello(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound").to_string();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let server = server.clone();
            tokio::spawn(async move {
                let mut first = vec![0; 1024];
                let read = client.read(&mut first).await?;
                if String::from_utf8_lossy(&first[..read]).contains("HELLO") {
                    return client
                        .write_all(b"-NOAUTH Authentication required.\r\n".repeat(2).as_slice())
                        .await;
                }
                let mut server = TcpStream::connect(server).await?;
                server.write_all(&first[..read]).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
            });
        }
    });
    address
}

#[tokio::test]
async fn absent_server_is_an_error() {
    let (url, address) = {
        let server = Server::start();
        (server.url_as("ann", "secret"), server.address())
    };
    let error = builder().connect(&url).await.unwrap_err().to_string();
    assert!(error.contains("refused") && error.contains(&address) && !error.contains("ann"), "{error}");
    connect_error(&url).await;
}

#[tokio::test]
async fn unresponsive_server_is_an_error() {
    let server = Server::start();
    server.pause();
    let error = connect_error(&server.url()).await;
    assert!(error.contains("timed out") || error.contains("before the deadline"), "{error}");
}

#[tokio::test]
async fn server_of_something_else_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let serve = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    };
    let error = tokio::select! {
        error = connect_error(&url) => error,
        () = serve => unreachable!("it serves for ever"),
    };
    assert!(error.contains("is this a Redis server?"), "{error}");
}
