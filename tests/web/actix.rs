//! Annotated functions behind actix-web.

use std::thread;

use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::RETRY_AFTER;
use actix_web::middleware::{Next, from_fn};
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::web::{ServiceConfig, get, post, resource, scope};
use actix_web::{App, HttpResponse, HttpServer, ResponseError, rt};
use ratelimits::web::RateLimitMiddleware;
use ratelimits::{ClientIp, Error, RequestContext};

use crate::axum::{assert_refusals, daily, status_of_problem, too_large};
use crate::client::Client;
use crate::client_ip::{address, assert_headers_are_read, assert_headers_change_nothing, behind};
use crate::concurrency::IN_ACTIX;
use crate::headers::{assert_no_headers, assert_tightest, handled, two};
use crate::layer::{
    assert_caller_is_known, assert_limits_before_bodies_are_read, assert_limits_by_cost,
    assert_refuses_without_a_key, assert_user_is_added, by_address, row, rows, spawned, ten_bytes, upload,
    who,
};
use crate::log_capture::LogCapture;
use crate::registry::headers;
use crate::shared::{self, assert_limited, once, other_errors};
use crate::spread::{assert_own_limit_is_spread, assert_spread, hourly};

/// Serves the routes until the process ends.
fn serve(limits: RateLimitMiddleware, routes: fn(&mut ServiceConfig)) -> Client {
    // Installs the registry of the process.
    _ = headers();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client(listener.local_addr().unwrap());
    thread::spawn(move || {
        let server = HttpServer::new(move || App::new().configure(routes).wrap(limits.clone()));
        rt::System::new().block_on(server.workers(2).disable_signals().listen(listener)?.run())
    });
    client
}

fn user_of(request: &ServiceRequest) -> Option<String> {
    Some(request.headers().get("x-user")?.to_str().ok()?.to_owned())
}

#[tokio::test]
async fn shared_functions_are_limited() {
    let client = serve(RateLimitMiddleware::new().user(user_of), |app| {
        app.route("/address", get().to(async || shared::by_address("actix").await));
        app.route("/user", get().to(async || shared::by_user("actix").await));
    });
    assert_limited(client).await;
}

#[tokio::test]
async fn refusals_are_responses() {
    let client = serve(RateLimitMiddleware::new(), |app| {
        app.route("/daily", get().to(async || daily("actix").await));
        app.route("/user", get().to(async || shared::by_user("actix-refusals").await));
        app.route("/large", get().to(async || too_large("actix").await));
    });
    assert_refusals(client).await;
}

#[tokio::test]
async fn other_errors_are_responses() {
    for (index, error) in other_errors("actix").await.into_iter().enumerate() {
        let response = error.error_response();
        assert_eq!((response.status(), response.headers().get(RETRY_AFTER)), (error.status_code(), None));
        let body = to_bytes(response.into_body()).await.unwrap();
        assert_eq!(error.status_code().as_u16(), status_of_problem(index, &body));
    }
}

#[tokio::test]
async fn headers_from_untrusted_peers_change_nothing() {
    for client_ip in [ClientIp::peer(), behind(["10.0.0.0/8"])] {
        let client = serve(RateLimitMiddleware::new().client_ip(client_ip), |app| {
            app.route("/", get().to(address));
        });
        assert_headers_change_nothing(client).await;
    }
}

#[tokio::test]
async fn headers_are_read_through_trusted_proxies() {
    let limits = RateLimitMiddleware::new().client_ip(behind(["127.0.0.0/8", "10.0.0.0/8"]));
    let client = serve(limits, |app| {
        app.route("/", get().to(address));
    });
    assert_headers_are_read(client).await;
}

#[tokio::test]
async fn headers_are_about_the_tightest_policy() {
    let client = serve(RateLimitMiddleware::new().headers(headers()), |app| {
        app.route("/", get().to(async || two("actix").await));
        app.route("/handled", get().to(async || handled("actix").await));
    });
    assert_tightest(client).await;
}

#[tokio::test]
async fn responses_without_decisions_have_no_headers() {
    let client = serve(RateLimitMiddleware::new().headers(headers()), |app| {
        app.route("/", get().to(async || "free"));
    });
    assert_no_headers(client).await;
}

/// Tasks of actix-web, whose futures need not be `Send`.
async fn spawned_locally() -> String {
    let rows = [(), ()].map(|()| rt::spawn(RequestContext::current().scope(row("actix"))));
    let [one, other] = rows.map(async |row| row.await.unwrap().unwrap());
    one.await + &other.await
}

#[tokio::test]
async fn streamed_bodies_and_tasks_know_the_caller() {
    let client = serve(RateLimitMiddleware::new().user(user_of), |app| {
        app.route("/rows", get().to(async || HttpResponse::Ok().streaming(rows("actix"))));
        app.route("/spawned", get().to(async || spawned("actix").await));
        app.route("/local", get().to(spawned_locally));
    });
    assert_caller_is_known(client).await;
    assert_eq!(client.get("/local", &["x-user: joe"]).await.body, "row row ");
}

async fn authenticate(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    match user_of(&request) {
        Some(user) => RequestContext::current().with_user(user).scope(next.call(request)).await,
        None => next.call(request).await,
    }
}

#[tokio::test]
async fn authentication_adds_the_user() {
    let client = serve(RateLimitMiddleware::new(), |app| {
        app.service(scope("").wrap(from_fn(authenticate)).route("/", get().to(who)));
    });
    assert_user_is_added(client).await;
}

#[tokio::test]
async fn middleware_limits_before_bodies_are_read() {
    let limit = once("actix-uploads");
    let client = serve(RateLimitMiddleware::new().limit(limit, |_| RequestContext::current().ip()), |app| {
        app.service(resource("/").route(post().to(upload)));
    });
    assert_limits_before_bodies_are_read(client).await;
}

#[tokio::test]
async fn middleware_refuses_requests_without_a_key() {
    let client = serve(RateLimitMiddleware::new().limit(once("actix-tenants"), user_of), |app| {
        app.route("/", get().to(who));
    });
    assert_refuses_without_a_key(client).await;
}

#[tokio::test]
async fn refused_clients_are_told_different_times() {
    let limits = RateLimitMiddleware::new().headers(headers()).spread(1.0).unwrap();
    assert_spread(serve(limits, |app| _ = app.route("/", get().to(async || hourly("actix").await)))).await;
}

#[tokio::test]
async fn refusals_by_the_middleware_are_spread() {
    let limits = RateLimitMiddleware::new().limit(once("spread-actix"), |_| Some(())).spread(1.0).unwrap();
    assert_own_limit_is_spread(serve(limits, |app| _ = app.route("/", get().to(who)))).await;
}

/// Limits requests by an annotated function instead of an option.
async fn limit(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    daily("actix-middleware").await?;
    next.call(request).await
}

#[tokio::test]
async fn errors_of_other_middleware_pass() {
    let client = serve(RateLimitMiddleware::new(), |app| {
        app.service(scope("").wrap(from_fn(limit)).route("/", get().to(who)));
    });
    assert_eq!(client.get("/", &[]).await.status, 200);
    let refused = client.get("/", &[]).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
}

#[tokio::test]
async fn outer_middleware_sees_the_error() {
    let limits = RateLimitMiddleware::new().limit(once("actix-seen"), |_| Some(()));
    let app = init_service(App::new().route("/", get().to(who)).wrap(limits)).await;
    for limited in [false, true] {
        let response = call_service(&app, TestRequest::get().to_request()).await;
        let error = response.response().error().and_then(|error| error.as_error::<Error>());
        assert_eq!(error.is_some_and(Error::is_limited), limited);
    }
}

#[tokio::test]
async fn middleware_limits_by_cost() {
    let limits = RateLimitMiddleware::new().limit_cost(ten_bytes("actix-bytes"), |request| {
        Some(((), request.headers().get("content-length")?.to_str().ok()?.parse().ok()?))
    });
    assert_limits_by_cost(serve(limits, |app| _ = app.route("/", post().to(upload)))).await;
}

#[tokio::test]
async fn requests_without_an_address_are_refused() {
    _ = headers();
    let capture = LogCapture::default();
    let _guard = tracing::subscriber::set_default(capture.clone());
    let limits = RateLimitMiddleware::new();
    for app in [limits.clone(), limits] {
        let app = init_service(App::new().route("/", get().to(by_address)).wrap(app)).await;
        for _ in 0..2 {
            let response = call_service(&app, TestRequest::get().to_request()).await;
            assert_eq!(response.status(), 500);
        }
    }
    let warning = "requests have no peer address, so calls that need one are refused";
    assert_eq!(capture.messages().iter().filter(|message| *message == warning).count(), 1);
    assert!(capture.text().contains("TestRequest::peer_addr"), "{}", capture.text());
}

#[tokio::test]
async fn requests_hold_permits_until_their_bodies_end() {
    let limits = RateLimitMiddleware::new().limit(IN_ACTIX.limiter(), |_| Some(())).headers(headers());
    let client = serve(limits, |app| {
        app.route("/", get().to(async || HttpResponse::Ok().streaming(IN_ACTIX.rows())));
    });
    IN_ACTIX.assert_held_by_bodies(client).await;
}
