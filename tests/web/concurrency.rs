//! Concurrency limits of layers: a request holds its permit until the body of its response has ended.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures_util::{Stream, StreamExt, stream};
use ratelimits::web::RateLimitLayer;
use ratelimits::{ConcurrencyLimit, Limiter};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::axum::serve;
use crate::client::{Client, Reply};
use crate::registry::{headers, installed};
use crate::support::until::until;

const SOON: Duration = Duration::from_secs(5);

/// A limit of one request at a time, whose bodies end when a test says so.
pub(crate) struct Exports {
    name: &'static str,
    ends: AtomicBool,
}

static IN_AXUM: Exports = Exports::new("axum-exports");
pub(crate) static IN_ACTIX: Exports = Exports::new("actix-exports");

impl Exports {
    const fn new(name: &'static str) -> Self {
        Exports { name, ends: AtomicBool::new(false) }
    }

    pub(crate) fn limiter(&self) -> Limiter {
        installed().limiter(self.name, ConcurrencyLimit::new(1)).unwrap()
    }

    /// Rows until the body ends.
    pub(crate) fn rows(&'static self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        let row = async || {
            sleep(Duration::from_millis(5)).await;
            Ok("row ".into())
        };
        stream::repeat_with(row).then(|row| row).take_while(|_| {
            let ends = self.ends.load(Ordering::Relaxed);
            async move { !ends }
        })
    }

    async fn until_free(&self) {
        let limiter = self.limiter();
        until("the permit is released", SOON, async || {
            let remaining = limiter.peek(()).await.map_err(|error| error.to_string())?.remaining;
            if remaining == 1 { Ok(()) } else { Err("it is held".to_owned()) }
        })
        .await;
    }

    /// Asserts what a server replies that sends [`Exports::rows`] as `/`, in a layer with [`Exports::limiter`] and headers.
    pub(crate) async fn assert_held_by_bodies(&self, client: Client) {
        let mut admitted = client.open("GET", "/", &[]).await;
        let head = until_a_row(&mut admitted).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains(&format!("ratelimit: \"{}\";r=0\r\n", self.name)), "{head}");
        self.assert_refused(client).await;
        self.ends.store(true, Ordering::Relaxed);
        timeout(SOON, admitted.read_to_string(&mut String::new())).await.unwrap().unwrap();
        self.until_free().await;

        self.ends.store(false, Ordering::Relaxed);
        let mut dropped = client.open("GET", "/", &[]).await;
        until_a_row(&mut dropped).await;
        self.assert_refused(client).await;
        drop(dropped);
        self.until_free().await;
    }

    async fn assert_refused(&self, client: Client) {
        let refused = client.get("/", &["origin: https://a.example"]).await;
        assert_eq!(refused.status, 429, "{refused:?}");
        assert!(refused.body.contains("quota-exceeded") && refused.body.contains(self.name), "{refused:?}");
        // Nobody knows when the body ends.
        assert_eq!(refused.header("retry-after"), None);
        let policy = format!("\"{}\";q=1;qu=\"concurrent-requests\"", self.name);
        assert_eq!(refused.header("ratelimit-policy"), Some(&*policy));
        assert_eq!(refused.header("ratelimit"), Some(&*format!("\"{}\";r=0", self.name)));
        assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
        assert_eq!(refused.header("x-ratelimit-reset"), None);
        let exposed = "ratelimit-policy, ratelimit, x-ratelimit-limit, x-ratelimit-remaining";
        assert_eq!(refused.header("access-control-expose-headers"), Some(exposed));
        assert_structured(&refused);
    }
}

/// Asserts that the headers are read by an independent parser.
fn assert_structured(reply: &Reply) {
    for name in ["ratelimit-policy", "ratelimit"] {
        let list: Result<sfv::List, _> = sfv::Parser::new(reply.header(name).unwrap()).parse();
        assert_eq!(list.unwrap().len(), 1, "{reply:?}");
    }
}

/// Reads the head of a response, and the beginning of its body.
async fn until_a_row(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    while !text.contains("row ") {
        let mut bytes = [0; 1024];
        let length = timeout(SOON, stream.read(&mut bytes)).await.unwrap().unwrap();
        assert!(length > 0, "{text}");
        text += std::str::from_utf8(&bytes[..length]).unwrap();
    }
    text
}

#[tokio::test]
async fn requests_hold_permits_until_their_bodies_end() {
    let layer = RateLimitLayer::new().limit(IN_AXUM.limiter(), |_| Some(())).headers(headers());
    let app = Router::new().route("/", get(async || Body::from_stream(IN_AXUM.rows()))).layer(layer);
    IN_AXUM.assert_held_by_bodies(serve(app).await).await;
}
