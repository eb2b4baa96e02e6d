//! A registry on several runtimes.

use tokio::runtime::Builder;

use super::{Fixture, window};

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
    let [at_rest, other] = [(); 2].map(|()| Builder::new_current_thread().enable_all().build().unwrap());
    at_rest.block_on(spend(8));
    other.block_on(spend(10));
    at_rest.block_on(spend(1));
}
