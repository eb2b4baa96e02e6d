//! Run with `cargo run -p web-examples --example service`: a web service whose limits count by address, user,
//! plan and size. With the argument `policies` it prints its policies, for the command `ratelimits`.
//!
//! `PORT` is the port, 3000 by default. With `RATELIMITS_URL=redis://localhost`, all processes count together. `TRUSTED_PROXIES`
//! lists the networks of the proxies that write `X-Forwarded-For`, separated by commas.

mod accounts;
mod articles;
mod messages;

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusBuilder;
use ratelimits::dashboard::Dashboard;
use ratelimits::web::{HeaderFormat, RateLimitHeaders, RateLimitLayer};
use ratelimits::{ClientIp, Registry, RequestContext, TokenBucket, metrics};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).is_some_and(|argument| argument == "policies") {
        println!("{}", serde_json::to_string_pretty(&ratelimits::policies())?);
        return Ok(());
    }
    let prometheus = PrometheusBuilder::new().install_recorder()?;
    let headers = RateLimitHeaders::new([HeaderFormat::Draft11]);
    // This server listens on the own machine alone; a service authenticates its operators.
    let dashboard = Dashboard::new(|_| true);
    let observed = Registry::builder()
        .observer(headers.observer())
        .observer(metrics::observer())
        .observer(dashboard.observer())
        .overrides_in_redis();
    let registry = observed.from_env().await?;
    ratelimits::install(registry.clone())?;

    let flood = registry.limiter("flood", TokenBucket::per_second(100).burst(200))?;
    let limits = RateLimitLayer::new()
        .client_ip(client_ip()?)
        .limit(flood, |_| RequestContext::current().ip())
        .headers(headers);
    let dashboard = dashboard.router(&registry);
    let scrape = move || {
        metrics::record_state(&registry);
        std::future::ready(prometheus.render())
    };
    let for_users = Router::new()
        .route("/search", get(articles::search))
        .route("/files", post(articles::upload))
        .route("/messages", post(messages::send))
        .route_layer(from_fn(accounts::authenticate));
    let app = Router::new()
        .route("/login", post(accounts::log_in))
        .route("/articles/{id}", get(articles::read))
        .merge(for_users)
        .layer(DefaultBodyLimit::max(1 << 20))
        .layer(limits)
        .route("/metrics", get(scrape))
        .nest_service("/limits", dashboard);

    let port = std::env::var("PORT").map_or(Ok(3000), |port| port.parse())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

fn client_ip() -> Result<ClientIp, ratelimits::error::InvalidClientIp> {
    match std::env::var("TRUSTED_PROXIES") {
        Ok(proxies) => ClientIp::header("x-forwarded-for", proxies.split(',')),
        Err(_) => Ok(ClientIp::peer()),
    }
}
