//! A registry on several runtimes.

use tokio::runtime::{Builder, Runtime};

use super::{Fixture, lease, until_remaining, window};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A runtime asks for a lease ahead of time, and is not driven for now.
#[test]
fn calls_do_not_wait_for_a_runtime_at_rest() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    let spend = async |calls| {
        for _ in 0..calls {
            window(&registry, "a").await.unwrap();
        }
    };
    let [at_rest, other] = [(); 2].map(|()| runtime());
    at_rest.block_on(spend(9));
    other.block_on(spend(10));
    at_rest.block_on(spend(1));
}

#[test]
fn a_runtime_that_ends_leaves_its_leases_to_another() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    let (ending, other) = (runtime(), runtime());
    ending.block_on(lease(&registry, "a"));
    drop(ending);
    other.block_on(until_remaining(&fixture.window(), "a", 98));
}

#[test]
fn leases_do_not_wait_for_a_runtime_at_rest() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    let (at_rest, other) = (runtime(), runtime());
    at_rest.block_on(lease(&registry, "a"));
    other.block_on(lease(&registry, "b"));
    other.block_on(until_remaining(&fixture.window(), "b", 98));
    drop(registry);
    other.block_on(until_remaining(&fixture.window(), "a", 98));
}
