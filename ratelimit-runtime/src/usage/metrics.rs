//! Metrics of limits, recorded with the [`metrics`](https://docs.rs/metrics/0.24) facade, for Prometheus and other systems.
//!
//! | series | kind | labels | meaning |
//! | --- | --- | --- | --- |
//! | `ratelimits_decisions_total` | counter | `policy`, `outcome`, `source` | calls, for each policy that was asked |
//! | `ratelimits_wait_seconds` | histogram | `policy` | how long calls waited, of those that did |
//! | `ratelimits_limit` | gauge | `policy` | the burst, capacity or limit of the policy, in permits; for a `queue` its capacity plus one |
//! | `ratelimits_pauses_total` | counter | `policy` | pauses of keys that this process has made |
//! | `ratelimits_near_limit_total` | counter | `policy` | keys that have used the share of `notify_at`, once for each window |
//! | `ratelimits_holds` | gauge | `policy` | permits that calls of concurrency limits hold now |
//! | `ratelimits_hold_seconds` | histogram | `policy` | how long they held them, once they have ended |
//! | `ratelimits_waiting` | gauge | | calls that wait now |
//! | `ratelimits_store_seconds` | histogram | | how long Redis took for a script call, which decides one call or a batch |
//! | `ratelimits_store_up` | gauge | | 0 during an outage of the store, otherwise 1 |
//! | `ratelimits_store_outages_total` | counter | | outages of the store |
//! | `ratelimits_store_failed_decisions_total` | counter | | decisions that the store failed to make |
//! | `ratelimits_override_problems` | gauge | | overrides that are ignored, and one more while overrides cannot be read |
//!
//! An [`observer`] records the first seven, the store itself `ratelimits_store_seconds`, and [`record_state`] the others. No label
//! has a part of a key. At most 1,000 policies of an observer have a label of their own, and all further ones share
//! `policy="(other)"`.

use ::metrics::{counter, gauge};

use crate::observe::metrics::{FAILED_DECISIONS, OUTAGES, STORE_UP, WAITING};
pub use crate::observe::metrics::{describe, observer};
use crate::usage::registry::Registry;

/// Records what no single decision tells about a registry: its [`StoreHealth`](crate::StoreHealth), and how many of its calls wait.
///
/// Call it before each scrape, or on an interval. The series have no labels, so record one registry of a process: that which is
/// [`install`](crate::install)ed. On Redis, `ratelimits_waiting` includes calls that may have to wait while Redis decides.
pub fn record_state(registry: &Registry) {
    let health = registry.store_health();
    gauge!(STORE_UP).set(if health.healthy { 1.0 } else { 0.0 });
    counter!(OUTAGES).absolute(health.outages);
    counter!(FAILED_DECISIONS).absolute(health.failed_decisions);
    gauge!(WAITING).set(registry.backend().waiting() as f64);
    #[cfg(feature = "overrides")]
    gauge!(crate::observe::metrics::OVERRIDE_PROBLEMS).set(registry.override_problems() as f64);
}
