//! Leases while Redis fails or is slow. The server admits every call, or none.

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Limiter, OnStoreError, Registry, RegistryBuilder, Source, count_limit};
use tokio::time::{Instant, sleep};

use crate::faulty_server::{Fault, FaultyServer};

const DAY: Duration = Duration::from_secs(86_400);
const DEADLINE: Duration = Duration::from_millis(100);

#[count_limit(100, "1d", name = "leased", lease = 10, registry = registry)]
async fn leased(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

struct Fixture {
    server: FaultyServer,
    registry: Registry,
    limiter: Limiter,
}

fn start(builder: RegistryBuilder) -> Fixture {
    let server = FaultyServer::new(Fault::None);
    let registry = builder.deadline(DEADLINE).over(server.clone());
    let limiter = registry.limiter("leased", FixedWindow::new(100, DAY)).unwrap();
    Fixture { server, registry, limiter }
}

impl Fixture {
    async fn fail(&self) {
        self.server.set(Fault::Refused);
        self.server.hang_up();
        self.until_decided_by(Source::Local).await;
    }

    async fn recover(&self) {
        self.server.set(Fault::None);
        self.until_decided_by(Source::Redis).await;
    }

    async fn until_decided_by(&self, source: Source) {
        while self.limiter.peek(()).await.unwrap().source != source {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_spent_permits_are_mirrored() {
    let fixture = start(Registry::builder());
    fixture.fail().await;
    fixture.recover().await;
    for _ in 0..5 {
        leased(&fixture.registry).await.unwrap();
    }
    fixture.fail().await;
    assert_eq!(fixture.limiter.peek(()).await.unwrap().remaining, 95);
    // Permits that are leased still count.
    leased(&fixture.registry).await.unwrap();
    assert_eq!(fixture.limiter.peek(()).await.unwrap().remaining, 94);
}

/// A call that gets no reply, and one that asks for itself after a lease was refused.
#[tokio::test(start_paused = true)]
async fn leases_keep_the_deadline() {
    for (is_full, fault) in [(false, Fault::NoReply), (true, Fault::Slow(Duration::from_millis(60)))] {
        for mode in [OnStoreError::Deny, OnStoreError::Local] {
            let fixture = start(Registry::builder().on_store_error(mode));
            fixture.limiter.try_acquire((), 1).await.unwrap();
            fixture.server.set_full(is_full);
            fixture.server.set(fault);
            let start = Instant::now();
            let result = leased(&fixture.registry).await;
            let passed = start.elapsed();
            assert!(passed <= DEADLINE + Duration::from_millis(1), "{fault:?}: {passed:?}");
            match mode {
                OnStoreError::Deny => {
                    assert!(matches!(result, Err(Error::Store(_))), "{fault:?}: {result:?}")
                }
                _ => result.unwrap(),
            }
        }
    }
}
