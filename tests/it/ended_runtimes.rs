//! Runtimes that end while calls are under way. Counts panics, which are printed even where they are caught, and so runs in a
//! process of its own.

use std::pin::pin;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use ratelimits::{FixedWindow, LeakyBucket, Limiter, Policy, Rate, Registry, SlidingWindow, TokenBucket};
use tokio::runtime::{Builder, Runtime};
use tokio::select;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch::{self, Receiver};
use tokio::time::sleep;

use crate::support::server::Server;

const URL: &str = "RATELIMITS_TEST_ENDED_RUNTIMES";

static PANICS: AtomicUsize = AtomicUsize::new(0);

const CALLS: usize = 16;
const ROUNDS: usize = 4;

/// One permit an hour, in every kind of policy that waits.
fn policies() -> [Policy; 4] {
    let hour = Duration::from_secs(3600);
    [
        TokenBucket::new(Rate::new(1, hour)).burst(1).into(),
        LeakyBucket::new(100, Rate::new(1, hour)).queue().into(),
        FixedWindow::new(1, hour).into(),
        SlidingWindow::new(1, hour).into(),
    ]
}

fn runtimes() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|mut builder| builder.enable_all().build().unwrap())
}

/// Makes a call. Polls it once more in each round, and says whether it still waits.
async fn acquire(limiter: Limiter, mut rounds: Receiver<usize>, polled: UnboundedSender<bool>) {
    let mut call = pin!(limiter.acquire(()));
    let mut waits = true;
    while waits {
        select! {
            biased;
            _ = &mut call => waits = false,
            Ok(()) = rounds.changed() => {}
        }
        polled.send(waits).unwrap();
    }
}

#[test]
fn calls_that_are_under_way_end_quietly_with_their_runtime() {
    let Ok(url) = std::env::var(URL) else {
        let server = Server::start();
        let mut command = Command::new(std::env::current_exe().expect("the test has a path"));
        let test = "ended_runtimes::calls_that_are_under_way_end_quietly_with_their_runtime";
        let output = command.args([test, "--exact", "--nocapture"]).env(URL, server.url()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        return;
    };
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        print(panic);
    }));
    // On Redis, calls that wait for a window would ask again just then.
    for (registry, policies) in
        [(Registry::in_memory(), &policies()[..]), (Registry::connect_lazy(&url).unwrap(), &policies()[..2])]
    {
        for (i, policy) in policies.iter().enumerate() {
            let limiter = registry.limiter(&i.to_string(), *policy).unwrap();
            for runtime in runtimes() {
                drop(runtime.block_on(limiter.try_acquire(())));
                let (round, rounds) = watch::channel(0);
                let (polled, mut polls) = unbounded_channel();
                let call = || acquire(limiter.clone(), rounds.clone(), polled.clone());
                let wait = |_| {
                    let (runtime, call) = (runtime.handle().clone(), call());
                    thread::spawn(move || runtime.block_on(call))
                };
                let threads: Vec<_> = (0..CALLS).map(wait).collect();
                runtime.spawn(call());
                runtime.block_on(async {
                    // A call that is just about to set its timer when the runtime ends cannot see that in time. So all of them,
                    // however slow their threads are, are polled again after they have had time for a reply.
                    for i in 1..=ROUNDS {
                        round.send(i).unwrap();
                        for _ in 0..=CALLS {
                            assert!(polls.recv().await.unwrap(), "a call does not wait");
                        }
                        sleep(Duration::from_millis(25)).await;
                    }
                });
                drop(runtime);
                threads.into_iter().for_each(|call| call.join().unwrap());
            }
        }
    }
    let _ = std::panic::take_hook();
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}
