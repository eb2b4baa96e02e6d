//! What operators find out about concurrency limits.

use ratelimits::{
    Algorithm, ConcurrencyLimit, Error, Policy, Registry, check_policies, concurrency_limit, policies,
};

use crate::support::registries::on_each_registry;

#[concurrency_limit(3, key = tenant, cost = 2, name = "concurrency.literal", prefix = "p")]
async fn literal(tenant: u64, inside: impl AsyncFnOnce()) -> Result<(), Error> {
    inside().await;
    Ok(())
}

#[concurrency_limit(max = max, key = tenant, name = "concurrency.computed", shadow)]
async fn computed(tenant: u64, max: u64, inside: impl AsyncFnOnce()) -> Result<(), Error> {
    inside().await;
    Ok(())
}

#[test]
fn attributes_are_listed() {
    let policies = policies();
    let named = |name: &str| policies.iter().find(|policy| *policy.name == *name).expect("it is listed");
    let literal = named("concurrency.literal");
    assert_eq!((literal.attribute, literal.algorithm), ("concurrency_limit", Algorithm::Semaphore));
    assert_eq!((literal.arguments, literal.key), ("max = 3, cost = 2", Some("<tenant>")));
    assert_eq!(literal.policy, Some(ConcurrencyLimit::new(3).into()));
    let computed = named("concurrency.computed");
    assert_eq!((computed.policy, computed.arguments, computed.flags), (None, "max = max", &["shadow"][..]));
    let problems = check_policies().err();
    let mut problems = problems.iter().flat_map(|problems| problems.problems());
    assert_eq!(problems.find(|problem| problem.contains("`concurrency.")), None);
}

#[test]
fn clashes_are_found() {
    mod clashing {
        #[super::concurrency_limit(1, name = "concurrency-clash")]
        pub(super) async fn one() -> Result<(), super::Error> {
            Ok(())
        }

        #[super::concurrency_limit(2, name = "concurrency-clash")]
        pub(super) async fn other() -> Result<(), super::Error> {
            Ok(())
        }
    }
    let _ = (clashing::one, clashing::other);
    let problems = check_policies().unwrap_err();
    let mut problems = problems.problems();
    let problem = problems.find(|problem| problem.contains("concurrency-clash")).expect("they clash");
    assert!(problem.contains("two policies with different numbers"), "{problem}");
}

#[tokio::test]
async fn handles_show_what_calls_hold() {
    on_each_registry(async |registry: Registry, _| {
        let handle = |name| registry.policy(name).unwrap();
        let (literal_, computed_) = (handle("p:concurrency.literal"), handle("concurrency.computed"));
        let inside = async || {
            let usage = literal_.usage(7).await.unwrap();
            assert_eq!((usage.used, usage.reset_after.is_zero(), usage.paused), (2, true, None));
            assert_eq!(literal_.limiter().unwrap().peek(7).await.unwrap().remaining, 1);
            let inside = async || assert_eq!(computed_.usage(7).await.unwrap().used, 1);
            computed(7, 5, inside).await.unwrap();
        };
        registry.scope(literal(7, inside)).await.unwrap();
    })
    .await;
}

#[test]
fn policies_are_known_by_their_algorithm() {
    let policy = Policy::from(ConcurrencyLimit::new(3));
    assert_eq!(policy.algorithm(), Algorithm::Semaphore);
    assert_eq!(policy.algorithm().to_string(), "semaphore");
}
