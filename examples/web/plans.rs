//! Run with `cargo run -p web-examples --example plans`: three plans with monthly quotas, what customers see of them, and what support
//! does.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use ratelimits::observe::{CallOutcome, Observation};
use ratelimits::web::{HeaderFormat, RateLimitHeaders, RateLimitLayer};
use ratelimits::{Error, Registry, count_limit};
use tokio::net::TcpListener;

enum Plan {
    Free,
    Team,
    Business,
}

struct Org {
    id: &'static str,
    plan: Plan,
    /// Months begin at midnight where the customer is.
    zone: &'static str,
}

impl Plan {
    fn exports_a_month(&self) -> u64 {
        match self {
            Plan::Free => 5,
            Plan::Team => 50,
            Plan::Business => 10_000,
        }
    }
}

#[count_limit(
    limit = org.plan.exports_a_month(),
    period = "month",
    zone = org.zone,
    key = org.id,
    notify_at = 0.8,
    name = "exports"
)]
async fn export(org: &Org) -> Result<String, Error> {
    Ok(format!("the data of {}\n", org.id))
}

/// Stands in for a database.
fn org(id: &str) -> Option<Org> {
    let (id, plan, zone) = match id {
        "bakery" => ("bakery", Plan::Free, "Europe/Berlin"),
        "acme" => ("acme", Plan::Team, "America/New_York"),
        "globex" => ("globex", Plan::Business, "Asia/Tokyo"),
        _ => return None,
    };
    Some(Org { id, plan, zone })
}

/// Tells customers when they have used four fifths of a quota, which is once a month.
fn tell_at_80_percent(seen: &Observation<'_>) {
    if seen.outcome == CallOutcome::NearLimit
        && let Some(quota) = seen.quota()
    {
        let used = quota.limit - quota.remaining;
        println!(
            "mail to {}: you have used {used} of {} exports this month",
            seen.key().join(":"),
            quota.limit
        );
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let headers = RateLimitHeaders::new([HeaderFormat::Draft11]);
    let builder = Registry::builder()
        .observer(tell_at_80_percent)
        .observer(headers.observer())
        .overrides(concat!(env!("CARGO_MANIFEST_DIR"), "/plans.toml"));
    let registry = builder.in_memory(); // or .connect("redis://127.0.0.1:6379").await?
    ratelimits::install(registry.clone())?;

    let handler = async |Path(id): Path<String>| match org(&id) {
        Some(org) => export(&org).await,
        None => Ok("no such customer\n".to_owned()),
    };
    let app =
        Router::new().route("/exports/{org}", get(handler)).layer(RateLimitLayer::new().headers(headers));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, app).await });

    for id in ["globex", "acme", "bakery", "bakery", "bakery", "bakery", "bakery", "bakery"] {
        let reply = reqwest::get(format!("http://{address}/exports/{id}")).await?;
        println!("{id}: {}", reply.status());
        for name in ["ratelimit-policy", "ratelimit", "retry-after"] {
            if let Some(value) = reply.headers().get(name) {
                println!("  {name}: {}", value.to_str()?);
            }
        }
        if !reply.status().is_success() {
            println!("  {}", reply.text().await?);
        }
    }

    println!("support looks, and gives the bakery its month again:");
    let exports = registry.policy("exports")?;
    println!("  used: {}", exports.usage("bakery").await?.used);
    exports.reset("bakery").await?;
    println!("  used: {}", exports.usage("bakery").await?.used);
    Ok(())
}
