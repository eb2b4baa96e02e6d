// Of two definitions the first one counts: the README's own is for those who read the file.
//! [Refusing or pacing]: guide
//! [Operating with Redis]: guide::operating_redis
#![doc = include_str!("../README.md")]

/// Token bucket: permits come back at a rate, and up to `burst` of them are kept for later; with `borrow` or `warmup` as
/// Guava's `RateLimiter` does it.
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
/// Use it where calls may come in bursts and must keep to a rate in the long run. In every interval of length `t` at most
/// `burst + rate · t` permits are given (Turner 1986). A call for which there are too few is refused, or with a `timeout`
/// [waits](#waiting).
///
/// # Arguments
///
/// `rate` and `burst` may be given by position, before all others: `#[rate_limit(5.0, 10)]`.
///
/// | argument | meaning |
/// | --- | --- |
/// | `rate` | permits per second (`5.0`, `1.0 / 60.0`), permits per time (`"100/min"`, `"1/5s"`), or a [`Rate`] |
/// | `burst` | the permits that the bucket holds (`10`), or so long a time's worth of the rate (`"5s"`). One second's worth by default, at least 1 |
/// | `refill = interval` | all permits of a period at once, every period from the call that found the bucket full; `rate` then is a string or a [`Rate`], and `burst` by default the permits of one period |
/// | `borrow` | a call of any cost goes ahead while there is no debt, and the next one pays what it was short of: `SmoothBursty` of Guava's `RateLimiter`. `burst` then is exactly one second's worth by default. In every interval of length `t` at most `burst + rate · t` permits are given, and one call's cost more |
/// | `warmup` | how long the bucket takes to warm up after it was idle (`"3s"`): `SmoothWarmingUp` of Guava's `RateLimiter`. A cold bucket gives a third of its rate, and idle for as long it is cold again. It implies `borrow` and takes the place of `burst`; a `refill` or `charge_when` beside it is an error. In every interval of length `t` at most `rate · t` permits are given, and one call's cost more |
///
/// A permit takes a whole number of microseconds to come back, rounded up; [`TokenBucket`] says what that costs. With
/// `borrow` and `warmup` the whole cost of a call is rounded up instead.
///
/// ```
/// # use ratelimits::{Error, rate_limit};
/// // Rows, however many a call brings. After a pause it begins slowly, until the caches are filled.
/// #[rate_limit(rate = 500.0, warmup = "30s", cost = rows.len(), timeout = "forever")]
/// async fn insert(rows: Vec<String>) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// # Arguments of all attributes
///
/// | argument | meaning |
/// | --- | --- |
/// | `key` | who is counted: an expression over the arguments (`key = user.id`), several (`key = (user.id, room)`), or a template (`key = "<user.id>:<@ip>"`). Parts are `Display`; a part that is `None` is [`Error::MissingKey`] |
/// | `key_type` | `METHOD`: one counter for the function, the default without a key. `IP` and `USER` read the [`RequestContext`]. `CUSTOM` is the default with a `key` |
/// | `prefix`, `name` | what the key begins with, and the name of the policy, both string literals. The name by default is module path and function, with the type for methods, whose generic arguments do not count unless it is of another crate. Give a `name` to what several processes share, so that moving code does not change its key |
/// | `cost` | the permits a call takes, 1 by default. A call that costs 0 passes without asking, whatever its key; one that costs more than the policy ever gives is limited at once, and does not compile where all its numbers are literals. With `borrow` and `warmup` a call may cost more than the bucket holds |
/// | `timeout` | how long a call may [wait](#waiting) for its permits: `"200ms"`, a [`Duration`](std::time::Duration), or `"forever"`. Without one it does not wait, but in a `queue` |
/// | `fallback` | what to call instead of the body when the call is refused, for whatever reason: `f`, `Self::f`, `self.f`, async or not, or a closure over the [`Error`]. Without one the function returns what its return type makes of the error |
/// | `on_store_error` | what becomes of a call that Redis [does not decide](#when-redis-does-not-answer): `local`, `allow` or `deny`. Without it what the registry says, `local` by default |
/// | `pass_args` | the fallback gets the arguments of the call |
/// | `skip_when` | a condition over the arguments (`skip_when = user.is_admin`) under which the call has no limit by this attribute |
/// | `charge_when` | a closure over the output (<code>charge_when = \|out\| out.is_err()</code>): a call for which it is false gives back what it took |
/// | `shadow` | this policy decides, counts and reports, but never refuses and never waits: for trying a limit out |
/// | `registry` | the [`Registry`] that decides, as an expression for a `&Registry`, instead of the current one |
/// | `crate` | where this crate is, if it is not `::ratelimits`: `crate = ::renamed` |
///
/// # Keys
///
/// In a template `<expr>` is any expression over the arguments, `self` among them; `<@ip>`, `<@user>` and `<@user_or_ip>`
/// come from the [`RequestContext`], `<@method>` is the function's name; `<<` and `>>` are `<` and `>`. Its placeholders
/// and the texts between them are the parts of the key; one `:` beside a placeholder only separates. So `"<a>:<b>"` is
/// `(a, b)`. A template has a placeholder at least.
///
/// The expressions are evaluated once per call, in the order numbers, cost, key, and before anything is charged. They stand
/// in the function itself: a `?` or `return` in one leaves the function, and an `.await` lets its future grow.
///
/// # Numbers
///
/// Every literal number, and arithmetic on literals, is checked while compiling, as far as it is wrong by itself or beside
/// the other literals. Every other expression is evaluated in each call, `limit = user.plan.daily`, and is
/// [`Error::Invalid`] where it makes no sense: counts take any primitive integer, rates integers, floats, strings or a
/// [`Rate`], durations a [`Duration`](std::time::Duration), strings with units, or whole seconds, but for `timeout` and
/// `precision`, which always have a unit. A `String` is borrowed: `rate = &config.rate`.
///
/// # Waiting
///
/// Without a `timeout` a call that is limited is refused at once. With one it waits for its permits where that takes no
/// longer, and the body runs when they are its own.
///
/// ```
/// # use ratelimits::{Error, rate_limit};
/// #[rate_limit(rate = "600/min", burst = 20, timeout = "2s")]
/// async fn look_up(article: u64) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// * A bucket of [`macro@rate_limit`] or [`macro@funnel_limit`] reserves: the call takes permits that are yet to come, so its
///   slot is known at once, and slots come in the order of the calls. A wait that does not fit the `timeout` takes nothing
///   and is refused at once.
/// * A window of [`macro@count_limit`] or [`macro@window_limit`] has nothing to reserve: calls stand in line in each process,
///   in no order between processes, and the first asks again when there may be room. Calls without a `timeout` do not stand
///   in the line, and may get room before those who wait. Where a window gets room early, by a reset, a refund or
///   `charge_when`, that is noticed at the next try.
/// * A call under several attributes goes ahead when all have room for it, and each wait must fit the `timeout` of its own
///   attribute. If all of them are buckets they reserve together. With a window among them nothing is reserved: the call
///   stands in the line of the policy that refuses it the longest, in its process, and a `queue` is full when those in its
///   line there fill it.
/// * [`max_waiters`](RegistryBuilder::max_waiters), 10,000 by default, bounds all that wait in a registry. Beyond it calls do
///   not wait: they go ahead at once or are refused.
/// * A call that is dropped while it waits gives back what no later reservation stands on. In this process those behind
///   it move up; in Redis a slot in the middle of the line is lost.
///
/// A policy in `shadow` never waits, so a `timeout` beside `shadow` is an error. To wait takes a tokio runtime with its time
/// enabled: on any other a call that has to wait is [`Error::Store`], and where only the time is missing tokio prints the
/// message of a panic, which under `panic = "abort"` ends the process.
///
/// The [`guide`] tells which attribute is for which job, and what waiting costs.
///
/// # Fallbacks
///
/// Without `pass_args` a fallback is called with nothing: `f()`, `Self::f()`, `self.f()`. With it the arguments of the call
/// are moved into it: `f(args)`, `Self::f(self, args)`, `self.f(args)`. Only `Self::f` and `<T as Trait>::f` get `self` as
/// an argument; `path::f` does not. With `pass_args`, and under `#[async_trait]`, arguments that the signature takes apart
/// are references in keys, numbers and conditions.
///
/// A closure gets the [`Error`] by value, async or not, and sees the arguments itself. The return type of a fallback must be
/// known by itself, not only by where its value goes: where the compiler asks, write
/// <code>\|error\| -> T { … }</code>.
///
/// ```
/// # use ratelimits::rate_limit;
/// #[rate_limit(rate = "1/min", key = city, fallback = |error| format!("{city}: come back in {:?}", error.retry_after()))]
/// async fn weather(city: String) -> String {
///     format!("{city}: sunny")
/// }
/// ```
///
/// # Several attributes on a function
///
/// They make one decision, all or nothing, in one round trip, whatever their algorithms and keys: no policy charges a call
/// that another refused. It does not matter which attributes of others stand between them, nor whether one stands under
/// `cfg_attr`.
///
/// ```
/// # use ratelimits::{Error, count_limit, rate_limit};
/// #[rate_limit(rate = 5.0, burst = 10, key = user)]
/// #[count_limit(limit = 1000, period = "1d", key = user)]
/// #[rate_limit(rate = 500.0)]
/// async fn send(user: &str, text: String) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// * Of several policies that refuse, the one with the longest `retry_after` is reported, and its fallback answers, or if
///   it has none the return type. If no policy refused but the store failed, and `on_store_error` is `deny`, the first
///   fallback there is is called: ask `error.is_limited()` before you speak of a limit.
/// * Policies are named as the function, a second one of the same attribute `send#2`, those in shadow after the others. To
///   take `shadow` off may rename: give those a `name` that are to keep what they have counted. Each has its own key, evaluated
///   once.
/// * All are on one `registry`. In a Redis Cluster the keys of a decision lie together: by their parts where all attributes
///   are written with the same `key`, else by the function, all of whose state is then in one slot. So an attribute that is
///   added with another `key`, in shadow too, lets the others start anew.
/// * One that is imported under another name (`use ratelimits::count_limit as quota`) is not seen by those above it, and makes
///   a decision of its own; if it is the same attribute as another, it needs a `name`.
/// * An attribute of others that makes the function sync, or does not pass attributes on, keeps them from meeting.
///
/// # When Redis does not answer
///
/// A call that Redis does not decide, because it fails or does not answer in time, is not limited, and it need not fail either.
/// `on_store_error` says what becomes of it, on the attribute or for a whole registry
/// ([`RegistryBuilder::on_store_error`]):
///
/// * `local`, the default: it is decided in this process by its share of the policy, the rate and the capacity divided by
///   [`RegistryBuilder::instances`]. An outage costs at most one extra capacity per key, or one call per instance if there are
///   more instances than permits; with more processes than `instances`, which is 1 by default, as many shares more.
/// * `allow`: it goes ahead, and nothing is charged. As long as the outage takes there is no limit.
/// * `deny`: it is refused with [`Error::Store`], as if the body could not be reached. For logins, payments and one-time
///   codes: an attacker may have caused the outage.
///
/// Of several attributes the strictest holds: `deny`, then `local`, then `allow`; one in shadow only where all are. A call that
/// costs more than its share ever holds is refused with [`Error::Store`]. A call that waits goes on waiting in this process
/// for as long as its `timeout` still allows. What will not mend by itself, another program's value under a key or a wrong
/// URL, is [`Error::Store`] whatever it says. [`OnStoreError`] tells more, and [`Registry::store_health`] and two lines in the
/// log, when trouble begins and when it ends, tell how the store is.
///
/// ```
/// # use ratelimits::{Error, count_limit};
/// #[count_limit(limit = 5, period = "15m", key = phone, on_store_error = deny)]
/// async fn send_code(phone: &str) -> Result<(), Error> {
///     Ok(())
/// }
/// ```
///
/// # Names
///
/// A name that is not given belongs to one place in the source, and one that is given to all that give it: policies of one
/// algorithm, with the same constant numbers and keys that are tied together in the same way. What claims a name and may
/// not is refused with [`Error::Invalid`], which tells both places, at its first call and from then on.
///
/// # Charging by the output
///
/// `charge_when` is for what is only known afterwards: count the logins that failed, do not count the uploads that did. The
/// call takes its permits before the body runs, so no more calls are ever under way than the policy admits, and gives
/// them back when the output says so. A call that is dropped or panics before it has an output stays charged. A bucket with
/// `warmup` takes back only its last charge, so the two do not go together.
///
/// ```
/// # use ratelimits::{Error, count_limit};
/// #[count_limit(limit = 5, period = "15m", key = login, charge_when = |out| !matches!(out, Ok(true)))]
/// async fn log_in(login: &str, password: &str) -> Result<bool, Error> {
///     Ok(password == "secret")
/// }
/// ```
///
/// It is the one argument that wraps the body, in an `async move` block: the future grows by about 80 bytes, by the size of
/// the output, and once more by that of the arguments that it owns. The output is held while the permits go back, and must be
/// `Send` if the future is to be. The closure sees the output and, of the arguments, those that are `Copy` and not taken apart.
/// In Redis the permits go back in a round trip of their own; where that fails, or the call is dropped meanwhile, it stays
/// charged, and the log says what failed.
///
/// # Functions
///
/// The function is `async`, or returns a future made by an async block in which it ends: `async move { … }`,
/// `Box::pin(async move { … })`. What stands before that block runs before the decision, must not `return`, and a key sees what
/// it has made of the arguments. So an attribute can stand in an `impl` under `#[async_trait]`; on the impl or the trait as a whole it cannot.
/// It goes above `#[tokio::main]` and `#[tokio::test]`, which make a function sync.
///
/// A decision in this process is made at once, on any executor; only a call that waits for its permits needs tokio there. A
/// call that is dropped while Redis decides gives back what it was charged; where the connection is lost meanwhile it may stay
/// charged.
///
/// The attribute puts a few statements in front of the body and leaves the body as it is. The future grows by no more than
/// 128 bytes, but for arguments by value that the body would not hold across an `.await`: they are held across this one.
pub use ratelimit_macros::rate_limit;

/// Fixed window: at most `limit` permits from a window's start to its end.
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
/// Use it for quotas that people read in a contract: so many a day. A call that does not fit is refused, or waits for the next
/// window if it has a `timeout`. Two windows that touch can admit twice the limit around their border; where that hurts, use
/// [`macro@window_limit`].
///
/// # Arguments
///
/// `limit` and `period` may be given by position: `#[count_limit(1000, "1d")]`.
///
/// | argument | meaning |
/// | --- | --- |
/// | `limit` | the permits of a window |
/// | `period` | its length: `"1h30m"`, a [`Duration`](std::time::Duration), or whole seconds |
/// | `aligned` | puts the windows on multiples of the period since the Unix epoch, UTC. Without it a key's first call opens its window |
///
/// [`macro@rate_limit`] tells the arguments that all attributes have.
pub use ratelimit_macros::count_limit;

/// Leaky bucket: as a meter, calls fill a bucket that leaks at a rate, and what does not fit is refused; with `queue`, calls
/// stand in a line and leave it evenly spaced.
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
/// Use the meter where you think in what a system can hold and how fast it works that off. It answers at once unless it has a
/// `timeout`, and in every interval of length `t` at most `capacity + leak_rate · t` permits are given. It is the token
/// bucket seen from the other side (Turner 1986).
///
/// Use the queue where calls must not come in bursts at all, and may come a little later. It is the leaky bucket of the
/// textbooks (Tanenbaum, Computer Networks): one call leaves at once, `capacity` more wait and leave evenly spaced at
/// `leak_rate`, and further ones are refused. A call of cost n takes the next n slots, leaves at the first, and is refused
/// unless all of them are free. In every interval of length `t` at most `1 + leak_rate · t` permits are given. Tokio's timers
/// tick in milliseconds: above some hundred a second calls leave in bunches each millisecond, none before its slot.
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
/// `capacity` and `leak_rate` may be given by position: `#[funnel_limit(20, 2.0)]`.
///
/// | argument | meaning |
/// | --- | --- |
/// | `capacity` | the permits that the bucket holds; with `queue` how many wait in the line |
/// | `leak_rate` | how fast they leak, as `rate` of [`macro@rate_limit`] |
/// | `drain` | instead of `leak_rate`: how long the full bucket takes to drain (`"30m"`) |
/// | `queue` | calls stand in a line and leave it at their slots, evenly spaced. Without a `timeout` they wait as long as it takes, which is never longer than a full line; with one, a call whose slot comes later is refused at once |
///
/// [`macro@rate_limit`] tells the arguments that all attributes have.
pub use ratelimit_macros::funnel_limit;

/// Sliding window: at most `limit` permits in every interval of length `period`, wherever it begins.
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
/// Use it where the limit must hold at every moment. By default it is an exact log of the charges. A call that does not fit
/// is refused, or waits until enough of them are past if it has a `timeout`.
///
/// # Arguments
///
/// `limit` and `period` may be given by position: `#[window_limit(100, "1m")]`.
///
/// | argument | meaning |
/// | --- | --- |
/// | `limit` | the permits of every interval; at most 10,000 without a `precision` |
/// | `period` | the length of the interval: `"1h30m"`, a [`Duration`](std::time::Duration), or whole seconds |
/// | `precision` | a string (`"1s"`) or a [`Duration`](std::time::Duration): counts by sub-windows of this length, which divides the period into 2 to 1,000, instead of keeping every charge. It may refuse up to one `precision` longer than the log |
///
/// [`macro@rate_limit`] tells the arguments that all attributes have.
pub use ratelimit_macros::window_limit;

#[doc = include_str!("../guide/refusing-or-pacing.md")]
pub mod guide {
    #[doc = include_str!("../guide/operating-redis.md")]
    pub mod operating_redis {}
}

#[doc(hidden)]
pub mod __private {
    pub use ratelimit_macros::__limit;
    pub use ratelimit_runtime::private::*;
}

pub use ratelimit_runtime::{
    Decision, Error, FixedWindow, IntoKey, InvalidPolicy, LeakyBucket, Limited, Limiter, MissingKey,
    NamedCharge, OnStoreError, Policy, PolicyDecision, Rate, Registry, RegistryBuilder, RequestContext,
    SlidingWindow, Source, StoreError, StoreHealth, TokenBucket, install,
};
pub use ratelimit_runtime::{algorithm, store};
