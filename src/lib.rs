#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
// The first definition of a link wins: these replace the README's own, which point to files of the repository.
//! [Attributes]: guide::attributes
//! [Benchmarks]: guide::benchmarks
//! [Changing a limit]: guide::changing
//! [Choosing a limit]: guide::choosing
//! [Concurrency limits]: guide::concurrency
//! [guide]: guide
//! [Limits in an axum service]: guide::axum
//! [Outages]: guide::outages
//! [Over-admission]: guide::over_admission
//! [production checklist]: guide::production
//! [Redis]: guide::redis
//! [Security]: guide::security
#![doc = include_str!("../guide/pictures/data-uris.md")]
#![doc = include_str!("../README.md")]

/// Token bucket: permits refill at a rate, and up to `burst` of them accumulate.
///
/// ```
/// use ratelimits::{Error, rate_limit};
///
/// struct User { id: u64 }
///
/// #[rate_limit(rate = 5.0, burst = 10, key = user.id)]
/// async fn send(user: &User, text: &str) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// Use it where calls may come in bursts but must keep to a rate in the long run. Every interval of length `t` admits at most
/// `burst + rate · t` permits (Turner 1986).
///
/// # Arguments
///
/// `rate` and `burst` may be given by position, before all others: `#[rate_limit(5.0, 10)]`.
///
/// | argument | meaning |
/// | --- | --- |
/// | `rate` | The permits per second (`5.0`, `1.0 / 60.0`) or per period (`"100/min"`, `"1/5s"`), or a [`Rate`] |
/// | `burst` | A bare number is permits, never seconds: jboost's and Guava's 60 burst seconds are `burst = "60s"`. The permits that the bucket holds (`10`), or a duration's worth of `rate` (`"5s"`). Defaults to one second's worth, at least 1 |
/// | `refill = interval` | Refills all permits of a period at once, every period from the call that found the bucket full. `rate` must be a string or a [`Rate`]; `burst` defaults to the permits of one period |
/// | `borrow` | Admits a call of any cost while there is no debt, and makes the next one wait for it, as `SmoothBursty` of Guava's `RateLimiter` does. `burst` defaults to exactly one second's worth. Every interval may admit one call's cost more |
/// | `warmup` | The time in which an idle bucket returns to its full rate (`"3s"`), starting at a third of it, as `SmoothWarmingUp` of Guava's `RateLimiter` does. Implies `borrow` and replaces `burst`; excludes `refill`, `charge_when`, `settle`, `notify_at`, `lease` and `slack`. Every interval of length `t` admits at most `rate · t` permits and one call's cost |
/// | `lease` | Takes this many permits of Redis at a time (`100`), for the calls of the process to spend: see [Leases](crate::guide::leases#leases). No effect in process. Excludes `timeout`, `charge_when`, `settle`, `bind`, `pause_when`, `penalty`, `notify_at`, `shadow`, `borrow`, `warmup`, and other limits on the function |
/// | `slack` | Leases as many permits as the process needs, so that no interval admits more than this percentage of `burst` beyond the limit, over all processes: `slack = "1%"`, at most `"10%"`. See [Leases by slack](crate::guide::leases#leases-by-slack). `rate` must be a literal. Excludes `refill` and what `lease` does |
///
/// Refilling one permit takes a whole number of microseconds, rounded up; [`TokenBucket`] gives the loss. With `borrow` and
/// `warmup` only the total cost of a call is rounded up.
///
/// ```
/// # use ratelimits::{Error, rate_limit};
/// // Any number of rows per call; after a pause it starts slowly, until the caches are warm.
/// #[rate_limit(rate = 500.0, warmup = "30s", cost = rows.len(), timeout = "forever")]
/// async fn insert(rows: Vec<String>) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// All attributes share further arguments, such as `key` and `key_type` (what calls are counted by), `name`, `cost` (permits of a
/// call), `timeout` (how long it may wait), `fallback`, `skip_when`, `charge_when`, `settle` (what it really used), `bind`,
/// `penalty` (pause a key that is refused), `notify_at` (tell observers at 80 %), `shadow` (report, never refuse) and `on_store_error`: see
/// [Attributes](crate::guide::attributes).
///
/// A function that is not async works as well. It blocks its thread where the other awaits, and in async code it is an error where it
/// would have to: see [Code that is not async](crate::guide::blocking).
///
/// ```
/// use ratelimits::{Error, rate_limit};
///
/// #[rate_limit(rate = 100.0, timeout = "1s")]
/// fn resize(picture: &[u8]) -> Result<Vec<u8>, Error> {
///     Ok(picture.to_vec())
/// }
///
/// # fn main() -> Result<(), Error> {
/// let pictures = [[1; 4], [2; 4]];
/// std::thread::scope(|scope| {
///     let jobs = pictures.each_ref().map(|picture| scope.spawn(|| resize(picture)));
///     jobs.into_iter().try_for_each(|job| job.join().expect("it does not panic").map(drop))
/// })
/// # }
/// ```
pub use ratelimit_macros::rate_limit;

/// Fixed window: at most `limit` permits from the start of a window to its end.
///
/// ```
/// use ratelimits::{Error, count_limit};
///
/// #[count_limit(limit = 1000, period = "1d", key = account)]
/// async fn export(account: &str) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// Use it for quotas that are stated in a contract, such as 1,000 a day. Two adjacent windows can admit twice the limit
/// around their border; where that matters, use [`macro@window_limit`].
///
/// # Arguments
///
/// `limit` and `period` may be given by position, before all others: `#[count_limit(1000, "1d")]`.
///
/// | argument | meaning |
/// | --- | --- |
/// | `limit` | The permits of a window |
/// | `period` | The length of a window: `"1h30m"`, a [`Duration`](std::time::Duration), or whole seconds. With the feature `calendar` also `"day"`, `"week"`, `"month"` or `"year"` |
/// | `zone` | The time zone of a calendar (`"Europe/Berlin"`, or an expression such as `org.zone`); UTC without. Weeks begin on Mondays. See [Choosing](crate::guide::choosing#days-and-months) |
/// | `aligned` | Starts windows at multiples of `period` since the Unix epoch, UTC. By default the first call of a key opens its window |
/// | `lease` | Takes this many permits of Redis at a time (`100`), for the calls of the process to spend: see [Leases](crate::guide::leases#leases). No effect in process. Excludes `timeout`, `charge_when`, `settle`, `bind`, `pause_when`, `penalty`, `notify_at`, `shadow`, and other limits on the function |
///
/// All attributes share further arguments, such as `key` and `key_type` (what calls are counted by), `name`, `cost` (permits of a
/// call), `timeout` (how long it may wait), `fallback`, `skip_when`, `charge_when`, `settle` (what it really used), `bind`,
/// `penalty` (pause a key that is refused), `notify_at` (tell observers at 80 %), `shadow` (report, never refuse) and `on_store_error`: see
/// [Attributes](crate::guide::attributes).
pub use ratelimit_macros::count_limit;

/// Leaky bucket: calls fill a bucket that leaks at a rate, and calls that do not fit are refused. With `queue`, calls leave
/// evenly spaced.
///
/// ```
/// use ratelimits::{Error, funnel_limit};
///
/// #[funnel_limit(capacity = 5, drain = "30m", key = login)]
/// async fn log_in(login: &str, password: &str) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// Without `queue` it is a **meter**: use it where you know how much work a system can hold, and how fast it works that off.
/// Every interval of length `t` admits at most `capacity + leak_rate · t` permits. It is equivalent to a token bucket (Turner
/// 1986).
///
/// With `queue` it is the **queue** of the textbooks (Tanenbaum, *Computer Networks*): use it where calls must not come in bursts,
/// and may start a little later. One call leaves at once, `capacity` more wait and leave evenly spaced at `leak_rate`, and further
/// calls are refused. Every interval of length `t` admits at most `1 + leak_rate · t` permits. A call of cost n takes the next n
/// slots and starts at the first of them. Tokio's timers tick in milliseconds: above a few hundred calls per second, calls start
/// in groups each millisecond.
///
/// ```
/// # use ratelimits::{Error, funnel_limit};
/// #[funnel_limit(capacity = 50, leak_rate = 10.0, queue)]
/// async fn send_mail(to: &str, text: &str) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// # Arguments
///
/// `capacity` and `leak_rate` may be given by position, before all others: `#[funnel_limit(20, 2.0)]`.
///
/// | argument | meaning |
/// | --- | --- |
/// | `capacity` | The permits that the bucket holds; with `queue`, the number of calls that may wait |
/// | `leak_rate` | The permits that leak per second or period, as `rate` of [`macro@rate_limit`] |
/// | `drain` | Instead of `leak_rate`: the time in which a full bucket drains: `"30m"`, a [`Duration`](std::time::Duration), or whole seconds |
/// | `queue` | Queues calls and starts them evenly spaced. Without `timeout` a call waits as long as the queue takes; with one, a call whose slot is later is refused at once |
///
/// All attributes share further arguments, such as `key` and `key_type` (what calls are counted by), `name`, `cost` (permits of a
/// call), `timeout` (how long it may wait), `fallback`, `skip_when`, `charge_when`, `settle` (what it really used), `bind`,
/// `penalty` (pause a key that is refused), `notify_at` (tell observers at 80 %), `shadow` (report, never refuse) and `on_store_error`: see
/// [Attributes](crate::guide::attributes).
pub use ratelimit_macros::funnel_limit;

/// Sliding window: at most `limit` permits in every interval of length `period`.
///
/// ```
/// use ratelimits::{Error, window_limit};
///
/// #[window_limit(limit = 100, period = "1m", key_type = IP)]
/// async fn search(words: &str) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// Use it for hard limits, which must hold in every interval. By default it is an exact log of the charges.
///
/// # Arguments
///
/// `limit` and `period` may be given by position, before all others: `#[window_limit(100, "1m")]`.
///
/// | argument | meaning |
/// | --- | --- |
/// | `limit` | The permits of every interval; at most 10,000 without `precision` |
/// | `period` | The length of the interval: `"1h30m"`, a [`Duration`](std::time::Duration), or whole seconds |
/// | `precision` | Counts by sub-windows of this length (`"1s"`, or a [`Duration`](std::time::Duration)), which divides `period` into 2 to 1,000, instead of logging every charge. Calls may be refused for up to one `precision` longer |
///
/// All attributes share further arguments, such as `key` and `key_type` (what calls are counted by), `name`, `cost` (permits of a
/// call), `timeout` (how long it may wait), `fallback`, `skip_when`, `charge_when`, `settle` (what it really used), `bind`,
/// `penalty` (pause a key that is refused), `notify_at` (tell observers at 80 %), `shadow` (report, never refuse) and `on_store_error`: see
/// [Attributes](crate::guide::attributes).
pub use ratelimit_macros::window_limit;

/// Semaphore: at most `max` permits held at once, each from the decision about a call until its body has ended.
///
/// ```
/// use ratelimits::{Error, concurrency_limit};
///
/// #[concurrency_limit(20, key = provider)]
/// async fn complete(provider: &str, prompt: &str) -> Result<String, Error> {
///     Ok(prompt.to_owned())
/// }
/// ```
///
/// Use it where what counts is how many calls run at once, however long they take: for a provider that states such a number, or a
/// resource that slows down under many calls. With Redis it holds over all processes.
///
/// A call holds its permits (`cost`, 1 by default) until its body has ended: with a value, early by `return` or `?`, by a panic, or
/// because its future is dropped. Dropped while it waits, it holds none. The arguments of the call are dropped after its permits
/// are released.
///
/// What runs on after the body is not counted, such as a task that it spawned or a stream that it returns. With `bind = decision`
/// the decision holds the permits, as long as it lives: move it along.
///
/// # Arguments
///
/// `max` may be given by position, before all others: `#[concurrency_limit(20)]`.
///
/// | argument | meaning |
/// | --- | --- |
/// | `max` | The calls of a key that run at once, over all processes. It may differ from call to call (`max = user.plan.jobs`): each call compares with its own, and a lower one ends no call |
///
/// ```
/// # use ratelimits::{Error, concurrency_limit, rate_limit};
/// // A call that is refused by one of them is charged by neither.
/// #[rate_limit("600/min", key = provider)]
/// #[concurrency_limit(20, key = provider, timeout = "10s")]
/// async fn embed(provider: &str, text: &str) -> Result<Vec<f32>, Error> {
///     Ok(Vec::new())
/// }
/// ```
///
/// All attributes share further arguments, such as `key` and `key_type` (what calls are counted by), `name`, `cost` (permits of a
/// call), `timeout` (how long it may wait), `fallback`, `skip_when`, `bind`, `shadow` (report, never refuse) and `on_store_error`:
/// see [Attributes](crate::guide::attributes). Nothing of a call remains charged after it, so `charge_when`, `settle`,
/// `pause_when`, `penalty`, `notify_at`, `lease` and `slack` belong to the others.
pub use ratelimit_macros::concurrency_limit;

pub mod guide;

#[doc(hidden)]
pub mod __private {
    pub use ratelimit_macros::__limit;
    pub use ratelimit_runtime::private::*;
}

/// Errors, and what they are about. [`Error`] is the one of a call.
pub mod error {
    pub use ratelimit_runtime::{
        CheckError, InstallError, InvalidClientIp, InvalidPolicy, Limited, MissingKey, StoreError,
        UnknownPolicy,
    };
}

/// What is seen of decisions and policies: by observers, dashboards and operators.
pub mod observe {
    #[cfg(feature = "overrides")]
    #[cfg_attr(docsrs, doc(cfg(feature = "overrides")))]
    pub use ratelimit_runtime::Override;
    pub use ratelimit_runtime::{
        CallOutcome, LimitedKey, MostLimited, NoSuggestion, Observation, PolicyInfo, Quota, SmallestNumbers,
        StoreHealth, Suggestion, Suggestions, Usage,
    };
}

#[cfg(feature = "calendar")]
#[cfg_attr(docsrs, doc(cfg(feature = "calendar")))]
pub use ratelimit_runtime::CalendarPeriod;
#[cfg(feature = "dashboard")]
#[cfg_attr(docsrs, doc(cfg(feature = "dashboard")))]
pub use ratelimit_runtime::dashboard;
#[cfg(feature = "metrics")]
#[doc(inline)]
pub use ratelimit_runtime::metrics;
#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
pub use ratelimit_runtime::retry_after;
#[cfg(any(feature = "tower", feature = "axum", feature = "actix", feature = "tonic"))]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "tower", feature = "axum", feature = "actix", feature = "tonic")))
)]
pub use ratelimit_runtime::web;
pub use ratelimit_runtime::{
    Algorithm, Charge, ClientIp, ConcurrencyLimit, DecidedBy, Decision, Error, FixedWindow, IntoKey,
    LeakyBucket, Limiter, OnStoreError, Policy, PolicyDecision, PolicyHandle, Rate, Registry,
    RegistryBuilder, RequestContext, SlidingWindow, TokenBucket, check_policies, install, policies,
};
