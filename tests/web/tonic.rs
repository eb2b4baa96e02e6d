//! Annotated functions behind tonic.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http;
use axum::http::uri::PathAndQuery;
use axum::routing::post;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use ratelimits::web::RateLimitLayer;
use ratelimits::{RequestContext, count_limit};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tonic_types::StatusExt;
use tower::service_fn;

use crate::axum::serve as serve_axum;
use crate::registry::headers;
use crate::shared::{by_address, by_user, once, user_of};

type Rows = BoxStream<'static, Result<String, Status>>;

async fn unary(_: Request<String>) -> Result<Response<String>, Status> {
    Ok(Response::new(by_address("tonic").await?))
}

/// Makes rows while the response is sent, until one is refused.
fn rows() -> Rows {
    stream::repeat_with(|| by_user("tonic")).then(|row| row).map_err(Status::from).boxed()
}

async fn streaming(_: Request<String>) -> Result<Response<Rows>, Status> {
    Ok(Response::new(rows()))
}

/// Makes rows in a task of its own.
async fn spawned(_: Request<String>) -> Result<Response<Rows>, Status> {
    let (sender, mut receiver) = mpsc::channel(1);
    let mut rows = Box::pin(RequestContext::current().scope_stream(rows()));
    tokio::spawn(async move {
        while let Some(row) = rows.next().await
            && sender.send(row).await.is_ok()
        {}
    });
    Ok(Response::new(stream::poll_fn(move |task| receiver.poll_recv(task)).boxed()))
}

#[count_limit(1, "1h")]
async fn unnamed(_: Request<String>) -> Result<Response<String>, Status> {
    Ok(Response::new("done".into()))
}

/// The server of a service, as tonic's code generator writes it.
#[derive(Clone)]
struct Reports;

impl NamedService for Reports {
    const NAME: &str = "test.Reports";
}

impl tower::Service<http::Request<Body>> for Reports {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<String, String>::default());
            Ok(match request.uri().path() {
                "/test.Reports/Unary" => grpc.unary(service_fn(unary), request).await,
                "/test.Reports/Unnamed" => grpc.unary(service_fn(unnamed), request).await,
                "/test.Reports/Streaming" => grpc.server_streaming(service_fn(streaming), request).await,
                "/test.Reports/Spawned" => grpc.server_streaming(service_fn(spawned), request).await,
                _ => Status::unimplemented("").into_http(),
            })
        })
    }
}

struct Client(tonic::client::Grpc<Channel>);

impl Client {
    async fn unary(&mut self, method: &'static str) -> Result<Response<String>, Status> {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static(method);
        self.0.unary(Request::new(String::new()), path, ProstCodec::default()).await
    }

    async fn streaming(
        &mut self,
        method: &'static str,
        user: Option<&'static str>,
    ) -> Result<Response<Streaming<String>>, Status> {
        self.0.ready().await.unwrap();
        let mut request = Request::new(String::new());
        if let Some(user) = user {
            request.metadata_mut().insert("x-user", user.parse().unwrap());
        }
        let path = PathAndQuery::from_static(method);
        self.0.server_streaming(request, path, ProstCodec::default()).await
    }
}

async fn listen() -> (TcpIncoming, SocketAddr) {
    // Installs the registry of the process.
    _ = headers();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener.into(), address)
}

async fn serve(layer: RateLimitLayer) -> Client {
    let (incoming, address) = listen().await;
    tokio::spawn(Server::builder().layer(layer).add_service(Reports).serve_with_incoming(incoming));
    connect(Endpoint::from_shared(format!("http://{address}")).unwrap()).await
}

async fn connect(endpoint: Endpoint) -> Client {
    Client(tonic::client::Grpc::new(endpoint.connect().await.unwrap()))
}

/// Returns the time until a retry, which the status tells twice.
fn told(status: &Status) -> Duration {
    let wait = status.get_details_retry_info().unwrap().retry_delay.unwrap();
    let pushback = status.metadata().get("grpc-retry-pushback-ms").unwrap();
    assert_eq!(pushback.to_str().unwrap(), wait.as_nanos().div_ceil(1_000_000).to_string());
    wait
}

/// Asserts that the status says when to retry.
fn assert_limited(status: &Status, policy: &str) {
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    let message = "Request cannot be satisfied as assigned quota has been exceeded";
    assert_eq!(status.message(), format!("{message}: \"{policy}\""));
    let wait = told(status);
    assert!((3590..=3600).contains(&wait.as_secs()), "{wait:?}");
    let violations = status.get_details_quota_failure().unwrap().violations;
    assert_eq!(violations.into_iter().map(|violation| violation.subject).collect::<Vec<_>>(), [policy]);
}

#[tokio::test]
async fn unary_calls_are_limited() {
    let mut client = serve(RateLimitLayer::new().headers(headers())).await;
    for remaining in ["1", "0"] {
        let admitted = client.unary("/test.Reports/Unary").await.unwrap();
        assert_eq!(admitted.metadata().get("x-ratelimit-remaining").unwrap(), remaining);
        assert_eq!(admitted.into_inner(), "done");
    }
    let status = client.unary("/test.Reports/Unary").await.unwrap_err();
    assert_limited(&status, "shared-by-address");
    assert_eq!(status.metadata().get("ratelimit-policy").unwrap(), "\"shared-by-address\";q=2;w=3600");
    let quota = status.metadata().get("ratelimit").unwrap().to_str().unwrap();
    assert!(quota.starts_with("\"shared-by-address\";r=0;t=3"), "{quota}");
}

#[tokio::test]
async fn streams_end_with_the_status() {
    let mut client = serve(RateLimitLayer::new().user(user_of)).await;
    for (method, user) in [("/test.Reports/Streaming", "ann"), ("/test.Reports/Spawned", "bob")] {
        let mut rows = client.streaming(method, Some(user)).await.unwrap().into_inner();
        for _ in 0..2 {
            assert_eq!(rows.message().await.unwrap().unwrap(), "done");
        }
        assert_limited(&rows.message().await.unwrap_err(), "shared-by-user");
        assert_eq!(rows.message().await.unwrap(), None);

        let mut rows = client.streaming(method, None).await.unwrap().into_inner();
        let status = rows.message().await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::PermissionDenied, "The request needs a user"));
    }
}

#[tokio::test]
async fn retries_are_spread() {
    let layer = RateLimitLayer::new().user(user_of).limit(once("tonic-spread"), |_| Some(1));
    let mut client = serve(layer.spread(1.0).unwrap()).await;
    let mut rows = client.streaming("/test.Reports/Streaming", Some("eve")).await.unwrap().into_inner();
    let end = loop {
        if let Err(status) = rows.message().await {
            break status;
        }
    };
    let mut times = HashSet::from([told(&end)]);
    for _ in 0..20 {
        times.insert(told(&client.unary("/test.Reports/Other").await.unwrap_err()));
    }
    let hour = Duration::from_secs(3600);
    assert!(times.len() > 10 && times.iter().all(|time| *time <= 2 * hour), "{times:?}");
    assert!(times.iter().any(|time| *time > hour), "{times:?}");
}

#[tokio::test]
async fn statuses_name_no_modules() {
    let mut client = serve(RateLimitLayer::new().headers(headers())).await;
    client.unary("/test.Reports/Unnamed").await.unwrap();
    let status = client.unary("/test.Reports/Unnamed").await.unwrap_err();
    assert_limited(&status, "default");
    assert!(!format!("{status:?}").contains("unnamed"), "{status:?}");
}

#[tokio::test]
async fn layer_refuses_grpc_requests_with_a_status() {
    let layer = RateLimitLayer::new().limit(once("tonic-layer"), |_| RequestContext::current().ip());
    let mut client = serve(layer).await;
    // The service has no such method, so this request has passed the layer.
    assert_eq!(client.unary("/test.Reports/Other").await.unwrap_err().code(), Code::Unimplemented);
    assert_limited(&client.unary("/test.Reports/Other").await.unwrap_err(), "tonic-layer");
    assert_limited(&client.streaming("/test.Reports/Other", None).await.unwrap_err(), "tonic-layer");

    let by_user = RateLimitLayer::new().limit(once("tonic-tenants"), user_of);
    let status = serve(by_user).await.unary("/test.Reports/Other").await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "The request lacks what its limit is counted by");
}

#[tokio::test]
async fn layer_answers_in_the_protocol_of_the_request() {
    let layer = RateLimitLayer::new().limit(once("tonic-mixed"), |_| RequestContext::current().ip());
    let client = serve_axum(Router::new().route("/", post("done")).layer(layer)).await;
    assert_eq!(client.send("POST", "/", &[]).await.body, "done");
    for kind in ["application/grpc", "application/grpc+proto", "application/grpc-web-text+proto"] {
        let refused = client.send("POST", "/", &[&format!("content-type: {kind}")]).await;
        assert_eq!((refused.status, refused.header("grpc-status")), (200, Some("8")), "{kind}");
        assert_eq!((refused.header("content-type"), refused.body.as_str()), (Some(kind), ""));
        for header in ["grpc-status-details-bin", "grpc-retry-pushback-ms"] {
            assert!(refused.header(header).is_some(), "{header}");
        }
        assert_eq!(refused.header("retry-after"), None);
    }
    for (method, kind) in [("POST", "application/json"), ("GET", "application/grpc")] {
        let refused = client.send(method, "/", &[&format!("content-type: {kind}")]).await;
        assert_eq!((refused.status, refused.header("grpc-status")), (429, None), "{method}");
    }
}

#[tokio::test]
async fn addresses_of_tls_connections_are_found() {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let identity = Identity::from_pem(key.cert.pem(), key.signing_key.serialize_pem());
    let (incoming, address) = listen().await;
    let tls = ServerTlsConfig::new().identity(identity);
    let layer = RateLimitLayer::new().limit(once("tonic-tls"), |_| RequestContext::current().ip());
    let server = Server::builder().tls_config(tls).unwrap().layer(layer).add_service(Reports);
    tokio::spawn(server.serve_with_incoming(incoming));

    let tls =
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(key.cert.pem())).domain_name("localhost");
    let endpoint = Endpoint::from_shared(format!("https://{address}")).unwrap().tls_config(tls).unwrap();
    let mut client = connect(endpoint).await;
    assert_eq!(client.unary("/test.Reports/Other").await.unwrap_err().code(), Code::Unimplemented);
    assert_limited(&client.unary("/test.Reports/Other").await.unwrap_err(), "tonic-tls");
}
