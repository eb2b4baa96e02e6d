//! How calls end that Redis does not answer, and that nothing remains of them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::*;
use crate::algorithm::AlgorithmSpec;
use crate::key::Key;
use crate::store::redis::deployment::Deployment;
use crate::store::redis::scripts::Scripts;
use crate::store::tls::Tls;
use crate::{Policy, TokenBucket};

const CALLS: u64 = 300;
const WITHIN: Duration = Duration::from_secs(30);

type Call = Pin<Box<dyn Future<Output = Result<Box<Outcome>, StoreError>> + Send>>;

struct Fixture {
    batches: Arc<Batches>,
    client: Arc<Client>,
}

impl Fixture {
    /// Nothing listens at this address.
    fn new() -> Self {
        let deployment = Arc::new(Deployment::new("redis://127.0.0.1:1", &Tls::default()).unwrap());
        let scripts = Arc::new(Scripts::new(|script| script));
        let client = Client::new(deployment, Duration::from_millis(50), scripts);
        Fixture { batches: Arc::default(), client: Arc::new(client) }
    }

    /// Returns a call of a plain bucket, or of one that is not plain.
    fn call(&self, runtime: &Handle, i: u64) -> Call {
        let Fixture { batches, client } = self;
        let (batches, client, runtime) = (Arc::clone(batches), Arc::clone(client), runtime.clone());
        let spec: AlgorithmSpec = Policy::from(TokenBucket::per_second(1)).spec().unwrap();
        let charge = Charge { key: Key::raw(i.to_string()), spec, cost: i % 2, wait: 0, shadow: false };
        Box::pin(async move {
            let form = client.scripts.form(std::slice::from_ref(&charge)).unwrap();
            let id = LaneId { runtime: runtime.id(), form, slot: None };
            batches.decide(&client, &runtime, id, &[charge]).await
        })
    }

    /// Returns calls that have been polled once.
    fn begun(&self, runtime: &Runtime) -> Vec<Call> {
        let _entered = runtime.enter();
        let mut calls: Vec<_> = (0..CALLS).map(|i| self.call(runtime.handle(), i)).collect();
        for call in &mut calls {
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(self.lanes(), 2);
        calls
    }

    fn lanes(&self) -> usize {
        self.batches.lanes().len()
    }

    /// Lets the senders end.
    fn settle(&self, runtime: &Runtime) {
        let settled = async {
            while self.lanes() > 0 {
                yield_now().await;
            }
        };
        let settled = runtime.block_on(async { timeout(WITHIN, settled).await });
        settled.expect("no lane remains");
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn ended_calls_leave_no_lane() {
    let (fixture, runtime) = (Fixture::new(), runtime());
    for call in fixture.begun(&runtime) {
        assert!(runtime.block_on(call).is_err());
    }
    fixture.settle(&runtime);
}

#[test]
fn dropped_calls_leave_no_lane() {
    let (fixture, runtime) = (Fixture::new(), runtime());
    drop(fixture.begun(&runtime));
    fixture.settle(&runtime);
}

#[test]
fn calls_of_a_runtime_that_shuts_down_fail_and_leave_no_lane() {
    let (fixture, runtime, other) = (Fixture::new(), runtime(), runtime());
    let calls = fixture.begun(&runtime);
    drop(runtime);
    for call in calls {
        let error = other.block_on(call).unwrap_err();
        assert!(error.to_string().contains("runtime"), "{error}");
    }
    assert_eq!(fixture.lanes(), 0);
}

#[test]
fn calls_on_a_runtime_that_has_shut_down_fail_and_leave_no_lane() {
    let (fixture, runtime, other) = (Fixture::new(), runtime(), runtime());
    let calls: Vec<_> = (0..CALLS).map(|i| fixture.call(runtime.handle(), i)).collect();
    drop(runtime);
    assert!(other.block_on(join_all(calls)).iter().all(Result::is_err));
    assert_eq!(fixture.lanes(), 0);
}
