use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

use crate::support::client::{connect, get, increment};
use crate::support::proxy::{Fault, Proxy};
use crate::support::server::Server;
use crate::support::until::until;

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(10);

async fn start() -> (Server, Proxy) {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    (server, proxy)
}

/// Waits until the proxy has this many connections.
async fn open(proxy: &Proxy, connections: usize) {
    until("connections close", LONG, async || match proxy.open() {
        open if open == connections => Ok(()),
        open => Err(format!("{open} are open")),
    })
    .await;
}

#[tokio::test]
async fn proxy_forwards_and_counts_connections() {
    let (_server, proxy) = start().await;
    let mut first = connect(&proxy.url(), LONG).await.unwrap();
    let mut second = connect(&proxy.url(), LONG).await.unwrap();
    for i in 0..100 {
        assert_eq!(increment(&mut first, "a").await.unwrap(), 2 * i + 1);
        assert_eq!(increment(&mut second, "a").await.unwrap(), 2 * i + 2);
    }
    assert_eq!((proxy.accepted(), proxy.open()), (2, 2));
    drop(first);
    open(&proxy, 1).await;
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn new_connections_go_to_the_new_target() {
    let [before, after] = [Server::start(), Server::start()];
    let proxy = Proxy::to(before.address()).await;
    let mut old = connect(&proxy.url(), LONG).await.unwrap();
    proxy.set_target(after.address());
    let mut new = connect(&proxy.url(), LONG).await.unwrap();
    increment(&mut old, "a").await.unwrap();
    assert_eq!(increment(&mut old, "a").await.unwrap(), 2);
    assert_eq!(increment(&mut new, "a").await.unwrap(), 1);
}

#[tokio::test]
async fn latency_is_added_each_way_without_queueing() {
    let (_server, proxy) = start().await;
    let mut connection = connect(&proxy.url(), LONG).await.unwrap();
    proxy.set(Fault::Latency(Duration::from_millis(100)));
    let started = Instant::now();
    let calls: Vec<_> = (0..20)
        .map(|i| {
            let mut connection = connection.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(10 * i)).await;
                let started = Instant::now();
                increment(&mut connection, "a").await.unwrap();
                assert!(started.elapsed() >= Duration::from_millis(199), "{:?}", started.elapsed());
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    // In sequence, they would take 4 s.
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    proxy.set(Fault::Pass);
    assert_eq!(increment(&mut connection, "a").await.unwrap(), 21);
}

#[tokio::test]
async fn stall_delays_everything() {
    let (server, proxy) = start().await;
    let mut connection = connect(&proxy.url(), LONG).await.unwrap();
    proxy.set(Fault::Stall);
    assert!(connect(&proxy.url(), SHORT).await.is_err(), "new connections stall too");
    let call = tokio::spawn(async move { increment(&mut connection, "a").await });
    tokio::time::sleep(SHORT).await;
    assert!(!call.is_finished());
    assert!(get(&mut server.connect().await, "a").await.is_err(), "the server has not received it");
    proxy.set(Fault::Pass);
    assert_eq!(call.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn black_hole_leaves_dead_open_connections() {
    let (server, proxy) = start().await;
    let mut used = connect(&proxy.url(), SHORT).await.unwrap();
    let mut idle = connect(&proxy.url(), SHORT).await.unwrap();
    proxy.set(Fault::BlackHole);
    let mut silent = TcpStream::connect(proxy.address()).await.unwrap();
    assert!(increment(&mut used, "a").await.unwrap_err().is_timeout());
    // The clients do not even see that the server went away.
    server.restart().await;
    proxy.set(Fault::Pass);
    for dead in [&mut used, &mut idle] {
        assert!(increment(dead, "a").await.unwrap_err().is_timeout());
    }
    silent.write_all(b"PING\r\n").await.unwrap();
    let mut byte = [0];
    assert!(tokio::time::timeout(SHORT, silent.read(&mut byte)).await.is_err(), "no reply, and not closed");
    assert_eq!(proxy.open(), 3);
    let mut new = connect(&proxy.url(), LONG).await.unwrap();
    assert_eq!(increment(&mut new, "a").await.unwrap(), 1);
    drop((used, idle, silent));
    open(&proxy, 1).await;
}

#[tokio::test]
async fn reset_closes_open_connections_only() {
    let (_server, proxy) = start().await;
    let mut plain = TcpStream::connect(proxy.address()).await.unwrap();
    let mut old = connect(&proxy.url(), LONG).await.unwrap();
    plain.write_all(b"PING\r\n").await.unwrap();
    plain.read_exact(&mut [0; 7]).await.unwrap();
    proxy.reset().await;
    assert_eq!(proxy.open(), 0);
    let error = plain.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let error = increment(&mut old, "a").await.unwrap_err();
    assert!(error.is_io_error() || error.is_connection_dropped(), "{error}");
    let mut new = connect(&proxy.url(), LONG).await.unwrap();
    assert_eq!(increment(&mut new, "a").await.unwrap(), 1);
}

#[tokio::test]
async fn half_closed_connection_still_forwards_requests() {
    let (server, proxy) = start().await;
    let mut plain = TcpStream::connect(proxy.address()).await.unwrap();
    plain.write_all(b"INCR a\r\n").await.unwrap();
    plain.read_exact(&mut [0; 4]).await.unwrap();
    proxy.half_close();
    assert_eq!(plain.read(&mut [0]).await.unwrap(), 0, "the stream ends");
    plain.write_all(b"INCR a\r\n").await.unwrap();
    let mut connection = server.connect().await;
    until("the server gets the request", LONG, async || match get(&mut connection, "a").await {
        Ok(2) => Ok(()),
        seen => Err(format!("{seen:?}")),
    })
    .await;
}

#[tokio::test]
async fn request_with_swallowed_reply_is_executed() {
    let (server, proxy) = start().await;
    let mut connection = connect(&proxy.url(), SHORT).await.unwrap();
    proxy.set(Fault::SwallowReplies);
    assert!(increment(&mut connection, "a").await.unwrap_err().is_timeout());
    assert!(increment(&mut connection, "a").await.unwrap_err().is_timeout());
    assert_eq!(get(&mut server.connect().await, "a").await.unwrap(), 2);
    assert_eq!(proxy.open(), 1);
    // On the old connection, the next reply would be matched to the first request whose reply was lost.
    proxy.set(Fault::Pass);
    let mut new = connect(&proxy.url(), LONG).await.unwrap();
    assert_eq!(increment(&mut new, "a").await.unwrap(), 3);
}

#[tokio::test]
async fn one_reply_is_swallowed_with_its_connection() {
    let (_server, proxy) = start().await;
    let mut first = connect(&proxy.url(), LONG).await.unwrap();
    let mut other = connect(&proxy.url(), LONG).await.unwrap();
    proxy.set(Fault::SwallowNextThenReset);
    let error = increment(&mut first, "a").await.unwrap_err();
    assert!(error.is_io_error() || error.is_connection_dropped(), "{error}");
    assert_eq!(increment(&mut other, "a").await.unwrap(), 2, "the first request was executed");
    open(&proxy, 1).await;
    let mut new = connect(&proxy.url(), LONG).await.unwrap();
    assert_eq!(increment(&mut new, "a").await.unwrap(), 3);
}

#[tokio::test]
async fn refusing_proxy_listens_again_on_the_same_port() {
    let (_server, proxy) = start().await;
    let url = proxy.url();
    let mut old = connect(&url, LONG).await.unwrap();
    for _ in 0..2 {
        proxy.refuse().await;
        let error = TcpStream::connect(proxy.address()).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
        increment(&mut old, "a").await.unwrap();
        proxy.listen().await;
        let mut new = connect(&url, LONG).await.unwrap();
        increment(&mut new, "a").await.unwrap();
    }
    assert_eq!(increment(&mut old, "a").await.unwrap(), 5);
    assert_eq!(proxy.accepted(), 3);
}

#[tokio::test]
async fn sliced_bytes_arrive_in_pieces_and_complete() {
    let (_server, proxy) = start().await;
    let mut connection = connect(&proxy.url(), LONG).await.unwrap();
    proxy.set(Fault::Sliced);
    let sent = "0123456789".repeat(300);
    let _: () = redis::cmd("SET").arg("a").arg(&sent).query_async(&mut connection).await.unwrap();
    let got: String = redis::cmd("GET").arg("a").query_async(&mut connection).await.unwrap();
    assert_eq!(got, sent);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    proxy.set_target(listener.local_addr().unwrap());
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    client.write_all(sent.as_bytes()).await.unwrap();
    let (mut bytes, mut pieces) = (0, 0);
    while bytes < sent.len() {
        bytes += server.read(&mut [0; 3000]).await.unwrap();
        pieces += 1;
    }
    assert!(pieces > 3, "{bytes} bytes in {pieces} pieces");
}

#[tokio::test]
async fn dropped_proxy_leaves_no_tasks_or_connections() {
    let server = Server::start();
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let proxy = Proxy::to(server.address()).await;
    let address = proxy.address();
    let mut passing = TcpStream::connect(&address).await.unwrap();
    passing.write_all(b"PING\r\n").await.unwrap();
    passing.read_exact(&mut [0; 7]).await.unwrap();
    proxy.set(Fault::Stall);
    passing.write_all(b"PING\r\n").await.unwrap();
    let mut stalled = TcpStream::connect(&address).await.unwrap();
    open(&proxy, 2).await;
    proxy.set(Fault::BlackHole);
    let mut lost = TcpStream::connect(&address).await.unwrap();
    open(&proxy, 3).await;
    assert_eq!(tasks(), before + 4);
    drop(proxy);
    until("the tasks finish", LONG, async || match tasks() {
        left if left == before => Ok(()),
        left => Err(format!("{left} tasks, {before} before")),
    })
    .await;
    for connection in [&mut passing, &mut stalled, &mut lost] {
        assert!(matches!(connection.read(&mut [0]).await, Ok(0) | Err(_)));
    }
    assert!(TcpStream::connect(&address).await.is_err());
}
