//! `on_store_error` on attributes.

use ratelimits::{
    Error, FixedWindow, OnStoreError, Registry, count_limit, funnel_limit, rate_limit, window_limit,
};

use super::{DAY, absent, absent_and, assert_local, assert_store_error};
use crate::support::log_capture::LogCapture;

#[rate_limit("1/day", 1)]
async fn by_default() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1/day", 1, on_store_error = local)]
async fn decide_locally() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d", on_store_error = allow)]
async fn allow() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(1, drain = "1d", on_store_error = deny)]
async fn deny() -> Result<(), Error> {
    Ok(())
}

#[window_limit(1, "1d", on_store_error = deny, fallback = |error| error.to_string())]
async fn fall_back() -> String {
    String::new()
}

#[tokio::test]
async fn attribute_overrides_the_registry() {
    for mode in [OnStoreError::Local, OnStoreError::Allow, OnStoreError::Deny] {
        let calls = async {
            decide_locally().await.unwrap();
            assert!(decide_locally().await.unwrap_err().is_limited());
            for _ in 0..3 {
                allow().await.unwrap();
                assert_store_error(deny().await);
                assert!(!fall_back().await.is_empty());
            }
            match mode {
                OnStoreError::Local => {
                    by_default().await.unwrap();
                    assert!(by_default().await.unwrap_err().is_limited());
                }
                OnStoreError::Allow => {
                    by_default().await.unwrap();
                    by_default().await.unwrap();
                }
                _ => assert_store_error(by_default().await),
            }
        };
        absent_and(mode).scope(calls).await;
    }
}

#[count_limit(2, "1d", name = "stack.allow", on_store_error = allow)]
#[rate_limit("5/day", 5, name = "stack.local", skip_when = !locally)]
#[window_limit(5, "1d", name = "stack.deny", on_store_error = deny, skip_when = !strictly)]
#[count_limit(1, "1d", name = "stack.shadow", on_store_error = deny, shadow)]
async fn stacked(locally: bool, strictly: bool) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn strictest_of_a_stack_applies_except_shadows() {
    let registry = absent(Registry::builder());
    let calls = async {
        for _ in 0..5 {
            stacked(false, false).await.unwrap();
            assert_store_error(stacked(true, true).await);
            assert_store_error(stacked(false, true).await);
        }
        for _ in 0..2 {
            stacked(true, false).await.unwrap();
        }
        assert!(stacked(true, false).await.unwrap_err().is_limited());
    };
    registry.scope(calls).await;
}

#[count_limit(2, "1d", name = "shadows.one", shadow)]
#[count_limit(9, "1d", name = "shadows.two", shadow, on_store_error = allow)]
async fn shadows() {}

#[count_limit(2, "1d", name = "shadow.denied", shadow, on_store_error = deny)]
async fn denied_shadow() {}

#[count_limit(4, "1d", name = "shadow.unshared", shadow, cost = 4)]
async fn unshared_shadow() {}

#[tokio::test]
async fn shadows_are_decided_locally_and_never_refuse() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let registry = absent(Registry::builder().instances(2));
    let calls = async {
        for _ in 0..3 {
            shadows().await;
        }
        denied_shadow().await;
        unshared_shadow().await;
    };
    registry.scope(calls).await;
    let window = |limit| FixedWindow::new(limit, DAY);
    let one = registry.limiter("shadows.one", window(2)).unwrap().function(SHADOWS);
    assert_local(one.peek(()).await, 1, 0);
    let two = registry.limiter("shadows.two", window(9)).unwrap().function(SHADOWS);
    assert_local(two.peek(()).await, 4, 1);
    let mut events: Vec<_> = log.events().into_iter().filter(|(policy, _)| !policy.is_empty()).collect();
    // Logged once a second.
    events.dedup();
    let limited = "shadow policy would have limited calls";
    let undecided = "shadow policy could not be evaluated";
    let expected = [("shadows.one", limited), ("shadow.denied", undecided), ("shadow.unshared", undecided)];
    assert_eq!(events, expected.map(|(policy, message)| (policy.to_owned(), message.to_owned())));
}

const SHADOWS: &str = "it::faults::on_store_error::attributes::shadows";

#[count_limit(1, "1d", key = name, name = "failures", charge_when = |out| !matches!(out, Ok(true)))]
async fn log_in(name: &str, succeeds: bool) -> Result<bool, Error> {
    let _ = name;
    Ok(succeeds)
}

#[tokio::test]
async fn conditional_charges_are_refunded_where_they_were_made() {
    let registry = absent(Registry::builder());
    let calls = async {
        for _ in 0..5 {
            assert!(log_in("ann", true).await.unwrap());
        }
        assert!(!log_in("ann", false).await.unwrap());
        assert!(log_in("ann", true).await.unwrap_err().is_limited());
    };
    registry.scope(calls).await;
    let allowed = async {
        for _ in 0..5 {
            assert!(!log_in("ann", false).await.unwrap());
            assert!(log_in("ann", true).await.unwrap());
        }
    };
    absent_and(OnStoreError::Allow).scope(allowed).await;
}
