//! Annotated functions behind hyper, without a framework.

use std::convert::Infallible;

use axum::body::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ratelimits::web::{PeerAddr, RateLimitLayer, response};
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt};

use crate::client::Client;
use crate::registry::headers;
use crate::shared::{assert_limited, by_address, by_user, user_of};

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let result = match request.uri().path() {
        "/address" => by_address("hyper").await,
        _ => by_user("hyper").await,
    };
    Ok(match result {
        Ok(text) => Response::new(text.into()),
        Err(error) => response(&error).map(Full::from),
    })
}

/// Serves with the addresses of connections.
async fn serve() -> Client {
    // Installs the registry of the process.
    let layer = RateLimitLayer::new().user(user_of).headers(headers());
    let service = layer.layer(tower::service_fn(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client(listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let service = service.clone();
            let with_peer = service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(PeerAddr(peer));
                service.clone().oneshot(request)
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), with_peer));
        }
    });
    client
}

#[tokio::test]
async fn shared_functions_are_limited() {
    let client = serve().await;
    assert_limited(client).await;
    let limited = client.get("/address", &[]).await;
    assert_eq!(limited.header("ratelimit-policy"), Some("\"shared-by-address\";q=2;w=3600"));
}
