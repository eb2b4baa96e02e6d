//! Errors as statuses of gRPC.

use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Error, FixedWindow, Rate, Registry, SlidingWindow, TokenBucket};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::shared::other_errors;

fn pushback(status: &Status) -> Option<&str> {
    status.metadata().get("grpc-retry-pushback-ms").map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn retry_delay_is_exact() {
    let bucket = TokenBucket::new(Rate::new(3, Duration::from_secs(1000))).burst(2);
    let limiter = Registry::in_memory().limiter("tonic-exact", bucket).unwrap();
    limiter.try_acquire_n((), 2).await.unwrap();
    let early = limiter.try_acquire(()).await.unwrap_err();
    let wait = early.retry_after().unwrap();
    let status = Status::from(early);
    assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(wait));
    assert_eq!(pushback(&status), Some(&*wait.as_micros().div_ceil(1000).to_string()));
}

#[tokio::test]
async fn calls_that_never_fit_are_not_retried() {
    let limiter = Registry::in_memory().limiter("tonic-never", TokenBucket::per_second(1).burst(2)).unwrap();
    let never = Status::from(limiter.try_acquire_n((), 3).await.unwrap_err());
    assert_eq!(never.code(), Code::ResourceExhausted);
    assert_eq!(never.message(), "The request costs more than its limit ever admits: \"tonic-never\"");
    assert!(never.get_details_retry_info().is_none());
    assert_eq!(never.get_details_quota_failure().unwrap().violations.len(), 1);
    assert_eq!(pushback(&never), Some("-1"));
}

#[tokio::test]
async fn refusals_of_unknown_length_have_no_delay() {
    let limiter = Registry::in_memory().limiter("tonic-held", ConcurrencyLimit::new(1)).unwrap();
    let _held = limiter.try_acquire(()).await.unwrap();
    let status = Status::from(limiter.try_acquire(()).await.unwrap_err());
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.get_details_retry_info().is_none());
    let violations = status.get_details_quota_failure().unwrap().violations;
    assert_eq!(violations[0].description, "Exceeds a limit of 1 (semaphore)");
    assert_eq!(pushback(&status), None);
    let never = Status::from(limiter.try_acquire_n((), 2).await.unwrap_err());
    assert_eq!(pushback(&never), Some("-1"));
}

#[tokio::test]
async fn delays_that_no_pushback_can_tell_are_not_retried() {
    const DAY: Duration = Duration::from_secs(86_400);
    for (period, is_told) in [(24 * DAY, true), (25 * DAY, false)] {
        let limiter = Registry::in_memory().limiter("tonic-long", FixedWindow::new(1, period)).unwrap();
        limiter.try_acquire(()).await.unwrap();
        let status = Status::from(limiter.try_acquire(()).await.unwrap_err());
        assert!(status.get_details_retry_info().unwrap().retry_delay > Some(23 * DAY));
        assert_eq!(pushback(&status) != Some("-1"), is_told);
    }
}

#[tokio::test]
async fn violations_are_those_of_policies_that_refuse() {
    // With an observer, the error knows the key.
    let registry = Registry::builder().observer(|_| {}).in_memory();
    let hour = Duration::from_secs(3600);
    let burst = registry.limiter("burst", TokenBucket::per_second(1).burst(5)).unwrap();
    let hourly = registry.limiter("hourly", FixedWindow::new(2, hour)).unwrap();
    let internal = registry.limiter("app::search", SlidingWindow::new(2, hour)).unwrap();
    let call = || {
        let charges = [&burst, &hourly, &internal].map(|limiter| limiter.charge_n("tenant-7", 2));
        registry.try_acquire_all(charges)
    };
    call().await.unwrap();
    let error = call().await.unwrap_err();
    assert!(matches!(&error, Error::Limited(limited) if limited.key().is_some()));

    let status = Status::from(error);
    let violations = status.get_details_quota_failure().unwrap().violations.into_iter();
    let told: Vec<_> = violations.map(|violation| (violation.subject, violation.description)).collect();
    let [hourly, internal] =
        ["fixed window", "sliding window"].map(|it| format!("Exceeds a limit of 2 ({it})"));
    assert_eq!(told, [("hourly".to_owned(), hourly), ("default".to_owned(), internal)]);
    assert!(!format!("{status:?} {}", String::from_utf8_lossy(status.details())).contains("tenant-7"));
}

#[tokio::test]
async fn other_errors_are_statuses() {
    let codes =
        [Code::Unavailable, Code::Internal, Code::Internal, Code::PermissionDenied, Code::InvalidArgument];
    for (error, code) in other_errors("tonic").await.into_iter().zip(codes) {
        // Of these, only a store may be better later.
        let told = (!matches!(error, Error::Store(_))).then_some("-1");
        let text = error.to_string();
        let status = Status::from(error);
        assert_eq!((status.code(), status.details()), (code, [].as_slice()), "{text}");
        assert_eq!(pushback(&status), told, "{text}");
        // Only the server knows what went wrong.
        assert!(!status.message().contains(&text));
        let source = std::error::Error::source(&status).unwrap().downcast_ref::<Error>().unwrap();
        assert_eq!(source.to_string(), text);
    }
}
