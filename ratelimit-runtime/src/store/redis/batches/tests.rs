//! How calls share batches, how they end if Redis does not answer, and that nothing remains of them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::queue::{BatchQueue, Next};
use super::*;
use crate::algorithm::AlgorithmSpec;
use crate::key::Key;
use crate::store::charge::Charge;
use crate::store::redis::deployment::Deployment;
use crate::store::redis::scripts::Scripts;
use crate::store::tls::Tls;
use crate::{FixedWindow, Policy, SlidingWindow, TokenBucket};

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

    fn call(&self, runtime: &Handle, i: u64) -> Call {
        let Fixture { batches, client } = self;
        let (batches, client, runtime) = (Arc::clone(batches), Arc::clone(client), runtime.clone());
        let charges = charges(i);
        Box::pin(async move {
            let form = client.scripts.form(&charges);
            let id = BatchQueueId { runtime: runtime.id(), form, slot: None };
            batches.decide(&client, &runtime, id, &charges, client.deadline()).await
        })
    }

    /// Returns calls that have been polled once.
    fn begun(&self, runtime: &Runtime) -> Vec<Call> {
        let _entered = runtime.enter();
        let mut calls: Vec<_> = (0..CALLS).map(|i| self.call(runtime.handle(), i)).collect();
        for call in &mut calls {
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(self.queues(), 2);
        calls
    }

    /// Returns how many calls wait for a batch.
    #[cfg(feature = "test-util")]
    fn waiting(&self) -> usize {
        self.batches.0.lock().values().map(|queue| queue.waiting.len()).sum()
    }

    fn queues(&self) -> usize {
        self.batches.0.lock().len()
    }

    /// Lets the senders end.
    fn settle(&self, runtime: &Runtime) {
        let settled = async {
            while self.queues() > 0 {
                yield_now().await;
            }
        };
        let settled = runtime.block_on(async { timeout(WITHIN, settled).await });
        settled.expect("no queue remains");
    }
}

fn charges(i: u64) -> SharedCharges {
    SharedCharges::new(Arc::new([charge(i)]))
}

/// Returns a charge of a plain bucket, or one that only looks.
fn charge(i: u64) -> Charge {
    let spec: AlgorithmSpec = Policy::from(TokenBucket::per_second(1)).spec().unwrap();
    Charge { key: Key::raw(i.to_string()), spec, cost: i % 2, wait: 0, shadow: false }
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
    assert_eq!(fixture.queues(), 0);
}

#[test]
fn calls_on_a_runtime_that_has_shut_down_fail_and_leave_no_lane() {
    let (fixture, runtime, other) = (Fixture::new(), runtime(), runtime());
    let calls: Vec<_> = (0..CALLS).map(|i| fixture.call(runtime.handle(), i)).collect();
    drop(runtime);
    assert!(other.block_on(join_all(calls)).iter().all(Result::is_err));
    assert_eq!(fixture.queues(), 0);
}

/// Redis decides one of them while the callers of the other go on.
#[test]
fn many_calls_are_sent_as_two_batches() {
    let form = Scripts::new(|script| script).form(&[charge(1)]);
    for (waiting, senders, taken) in [(33, 1, 33), (35, 1, 18), (300, 1, 50), (35, 2, 35), (300, 2, 50)] {
        let (mut queue, _receivers) = queue(waiting, senders);
        assert_eq!(queue.take(form).len(), taken, "{waiting} calls, {senders} senders");
        assert_eq!(queue.waiting.len(), waiting - taken);
    }
}

#[test]
fn only_a_few_senders_go_on_with_small_batches() {
    let form = Scripts::new(|script| script).form(&[charge(1)]);
    for (waiting, in_flight, goes_on) in [(1, 3, true), (1, 4, false), (49, 4, false), (50, 4, true)] {
        let (mut queue, _receivers) = queue(waiting, 5);
        queue.in_flight = in_flight;
        assert_eq!(queue.goes_on(form), goes_on, "{waiting} calls, {in_flight} batches");
        // One that does not leaves the calls to another.
        assert_eq!(queue.next_sender(form), if waiting < 50 { Next::Later } else { Next::Now });
    }
}

/// Returns a queue of calls that wait, and what keeps these open.
fn queue(waiting: usize, senders: usize) -> (BatchQueue, Vec<impl Sized>) {
    let mut queue = BatchQueue::default();
    queue.senders = senders;
    let receivers = (0..waiting)
        .map(|i| {
            let (reply, receiver) = oneshot::channel();
            let caller = Caller { deadline: Instant::now(), reply };
            queue.waiting.push_back(Waiting { charges: charges(i as u64), caller });
            receiver
        })
        .collect();
    (queue, receivers)
}

/// A script that decides a full batch takes about as long whatever the lists. Calls that may wait share none with others.
#[test]
fn batches_are_full_by_the_weight_of_their_lists() {
    let second = Duration::from_secs(1);
    let bucket: Policy = TokenBucket::per_second(3).into();
    let window: Policy = FixedWindow::new(3, second).into();
    let counter: Policy = SlidingWindow::new(3, second).precision(second / 4).into();
    let form = |policies: &[Policy], waits: &[u64]| {
        let charge = |(policy, wait): (&Policy, &u64)| Charge {
            spec: policy.spec().unwrap(),
            wait: *wait,
            ..charge(1)
        };
        Scripts::new(|script| script).form(&policies.iter().zip(waits).map(charge).collect::<Vec<_>>())
    };
    for (policies, waits, most) in [
        (vec![bucket], &[0][..], 50),
        (vec![bucket], &[1], 9),
        (vec![window], &[1], 50),
        (vec![bucket, window], &[0, 0], 41),
        // The script decides about nine charges in full.
        (vec![bucket, bucket], &[1, 0], 4),
        (vec![bucket, window, counter], &[0, 0, 0], 20),
    ] {
        assert_eq!(form(&policies, waits).max_decisions(), most, "{policies:?}, {waits:?}");
    }
    assert_ne!(form(&[bucket, window], &[0, 0]), form(&[window, bucket], &[0, 0]));
    assert_ne!(form(&[bucket, window], &[0, 0]), form(&[counter], &[0]));
    assert_eq!(form(&[window], &[0]), form(&[FixedWindow::new(5, 2 * second).into()], &[0]));
}

#[test]
fn calls_past_their_deadline_are_not_sent() {
    let form = Scripts::new(|script| script).form(&[charge(1)]);
    let (mut queue, now) = (BatchQueue::default(), Instant::now());
    let mut receivers = Vec::new();
    for deadline in [now, now, now + WITHIN] {
        let (reply, receiver) = oneshot::channel();
        queue.waiting.push_back(Waiting { charges: charges(1), caller: Caller { deadline, reply } });
        receivers.push(receiver);
    }
    assert_eq!(queue.take_late().len(), 2);
    assert_eq!(queue.waiting.len(), 1);
    assert_eq!(queue.take(form).len(), 1);
}

/// But none waits for long, as user code may block the thread of the sender whose turn it is.
#[cfg(feature = "test-util")]
#[test]
fn senders_take_turns() {
    let (fixture, runtime) = (Fixture::new(), runtime());
    let calls = fixture.begun(&runtime);
    let waiting = fixture.waiting();
    assert!(waiting > 0);
    let turns: Vec<_> = fixture.batches.0.lock().values().map(|queue| Arc::clone(&queue.turn)).collect();
    runtime.block_on(async {
        tokio::time::pause();
        let _turns = join_all(turns.iter().map(|turn| turn.lock())).await;
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(fixture.waiting(), waiting);
        let results = timeout(WITHIN, join_all(calls)).await.expect("the calls end");
        assert!(results.iter().all(Result::is_err));
    });
    fixture.settle(&runtime);
}
