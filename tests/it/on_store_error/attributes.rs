//! What the attributes say.

use ratelimits::{
    Error, FixedWindow, OnStoreError, Registry, count_limit, funnel_limit, rate_limit, window_limit,
};

use super::{DAY, absent, absent_and, assert_store, local};
use crate::support::told::Told;

#[rate_limit("1/day", 1)]
async fn as_the_registry_says() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1/day", 1, on_store_error = local)]
async fn here() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d", on_store_error = allow)]
async fn through() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(1, drain = "1d", on_store_error = deny)]
async fn never() -> Result<(), Error> {
    Ok(())
}

#[window_limit(1, "1d", on_store_error = deny, fallback = |error| error.to_string())]
async fn answered() -> String {
    String::new()
}

#[tokio::test]
async fn holds_for_their_functions() {
    for mode in [OnStoreError::Local, OnStoreError::Allow, OnStoreError::Deny] {
        let calls = async {
            here().await.unwrap();
            assert!(here().await.unwrap_err().is_limited());
            for _ in 0..3 {
                through().await.unwrap();
                assert_store(never().await);
                assert!(!answered().await.is_empty());
            }
            match mode {
                OnStoreError::Local => {
                    as_the_registry_says().await.unwrap();
                    assert!(as_the_registry_says().await.unwrap_err().is_limited());
                }
                OnStoreError::Allow => {
                    as_the_registry_says().await.unwrap();
                    as_the_registry_says().await.unwrap();
                }
                _ => assert_store(as_the_registry_says().await),
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
async fn the_strictest_of_a_stack_holds_and_shadows_do_not_count() {
    let registry = absent(Registry::builder());
    let calls = async {
        for _ in 0..5 {
            stacked(false, false).await.unwrap();
            assert_store(stacked(true, true).await);
            assert_store(stacked(false, true).await);
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
async fn shadows_alone_are_decided_here_and_refuse_nobody() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
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
    assert_eq!(local(one.peek(()).await), (1, 0));
    let two = registry.limiter("shadows.two", window(9)).unwrap().function(SHADOWS);
    assert_eq!(local(two.peek(()).await), (4, 1));
    let of_policies = told.events().into_iter().filter(|(policy, _)| !policy.is_empty());
    let limited = "a policy in shadow would have limited this call";
    let undecided = "a policy in shadow could not decide on this call";
    let expected = [
        ("shadows.one", limited),
        ("shadows.one", limited),
        ("shadow.denied", undecided),
        ("shadow.unshared", undecided),
    ];
    assert_eq!(
        of_policies.collect::<Vec<_>>(),
        expected.map(|(policy, message)| (policy.to_owned(), message.to_owned()))
    );
}

const SHADOWS: &str = "it::on_store_error::attributes::shadows";

#[count_limit(1, "1d", key = name, name = "failures", charge_when = |out| !matches!(out, Ok(true)))]
async fn log_in(name: &str, right: bool) -> Result<bool, Error> {
    let _ = name;
    Ok(right)
}

#[tokio::test]
async fn charges_go_back_to_where_they_were_made() {
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
