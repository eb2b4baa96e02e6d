//! Run with `cargo run -p web-examples --example metrics`: a server with limits, and what Prometheus scrapes from it.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Router, serve};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use ratelimits::observe::MostLimited;
use ratelimits::{Error, Registry, funnel_limit, install, metrics, rate_limit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[rate_limit("3/h", 3, key = user, name = "search", fallback = |error| (status(&error), error.to_string()))]
async fn search(Path(user): Path<String>) -> (StatusCode, String) {
    (StatusCode::OK, format!("results for {user}"))
}

/// Calls wait, and leave 20 ms apart.
#[funnel_limit(capacity = 10, leak_rate = 50.0, queue, name = "mail", fallback = |error| status(&error))]
async fn mail() -> StatusCode {
    StatusCode::ACCEPTED
}

fn status(error: &Error) -> StatusCode {
    if error.is_limited() { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// What Prometheus scrapes.
async fn scrape(State((registry, prometheus)): State<(Registry, PrometheusHandle)>) -> String {
    metrics::record_state(&registry);
    prometheus.render()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The recorder comes first. With buckets, waits are a histogram, which Prometheus can add up over processes.
    let waits = Matcher::Full("ratelimits_wait_seconds".to_owned());
    let prometheus = PrometheusBuilder::new()
        .set_buckets_for_metric(waits, &[0.001, 0.01, 0.1, 1.0, 10.0])?
        .install_recorder()?;

    let most_limited = MostLimited::new(100);
    let observed = Registry::builder().observer(metrics::observer()).observer(most_limited.observer());
    let registry = observed.in_memory(); // or .connect("redis://127.0.0.1:6379").await?
    install(registry.clone())?;

    let app = Router::new()
        .route("/search/{user}", get(search))
        .route("/mail", get(mail))
        .route("/metrics", get(scrape))
        .with_state((registry, prometheus));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async { serve(listener, app).await });

    for user in ["ann", "bob", "ann", "ann", "ann", "ann", "ann"] {
        let (status, _) = request(&address, &format!("/search/{user}")).await?;
        println!("GET /search/{user}: {status}");
    }
    let (one, two, three) =
        tokio::join!(request(&address, "/mail"), request(&address, "/mail"), request(&address, "/mail"));
    println!("GET /mail: {}, {}, {}\n", one?.0, two?.0, three?.0);

    println!("{}", request(&address, "/metrics").await?.1);
    for key in most_limited.list() {
        println!("most limited: {} of {}: {} refusals", key.key_hash, key.policy, key.refusals);
    }
    Ok(())
}

/// Returns the status and the body of a reply.
async fn request(address: &str, path: &str) -> std::io::Result<(String, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
    let status = head.lines().next().and_then(|line| line.split_once(' ')).map_or("", |(_, status)| status);
    Ok((status.to_owned(), body.to_owned()))
}
