//! Headers about what a client has left, on admitted and refused responses.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use super::refusal::{quoted, whole_seconds};
use crate::base::log::log;
use crate::decide::observation::Observation;
use crate::observe::record::{RecordedPolicy, RequestDecisions};
use crate::usage::context;

/// Headers that tell clients about their limits: on all responses, from the decisions made anywhere below the layer.
///
/// Pass it to the layer or middleware, and its [`observer`](Self::observer) to the registry, so that the decisions of a
/// request are recorded.
///
/// Of several policies, the header that says what is left is about the tightest: the one that refuses for longest, or has the
/// smallest share of its limit left. Shadow policies are not mentioned. What `charge_when` has given back is left again. A response
/// has no such headers if no policy decided on its way: a path that is not found, a store that failed. Decisions that are made
/// later than the response, such as those of a streamed body, come too late.
///
/// ```
/// use ratelimits::Registry;
/// use ratelimits::web::{HeaderFormat, RateLimitHeaders, RateLimitLayer};
///
/// let headers = RateLimitHeaders::new([HeaderFormat::Draft11, HeaderFormat::XRateLimit]);
/// let registry = Registry::builder().observer(headers.observer()).in_memory();
/// let layer = RateLimitLayer::new().headers(headers);
/// # drop((registry, layer));
/// ```
#[derive(Clone, Debug)]
pub struct RateLimitHeaders {
    formats: Vec<HeaderFormat>,
    has_observer: Arc<AtomicBool>,
}

/// How the headers are named and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderFormat {
    /// `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11, such as `"login";q=5;w=60` and
    /// `"login";r=4;t=12`. `q` is the burst, capacity or limit, and `w` the period of a window or the time in which an empty bucket
    /// fills up. `t` is the time until the window ends or the bucket is full, and for a refused call that until a retry is admitted,
    /// or as much later as `Retry-After` if the layer spreads retries. All times are whole seconds, rounded up. A concurrency limit is for
    /// no time, and it is unknown when calls end: `"exports";q=20;qu="concurrent-requests"` and `"exports";r=19`.
    Draft11,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, of the tightest policy. The last one is a Unix time in
    /// seconds, as GitHub writes it: that at which `t` ends. A concurrency limit has none.
    XRateLimit,
}

/// The largest integer of a structured field.
const LARGEST: u64 = 999_999_999_999_999;

impl RateLimitHeaders {
    /// Headers of these formats.
    #[must_use]
    pub fn new(formats: impl IntoIterator<Item = HeaderFormat>) -> Self {
        RateLimitHeaders { formats: formats.into_iter().collect(), has_observer: Arc::default() }
    }

    /// Returns the observer that collects the decisions, for [`RegistryBuilder::observer`](crate::RegistryBuilder::observer).
    pub fn observer(&self) -> impl Fn(&Observation<'_>) + Send + Sync + use<> {
        self.has_observer.store(true, Ordering::Relaxed);
        |seen| context::with_record(|record| record.add(seen))
    }

    /// Returns the headers about the decisions of a request, by their names in lower case. Logs once if no registry reports
    /// decisions.
    pub(super) fn fields(&self, record: &RequestDecisions) -> Vec<(&'static str, String)> {
        if !self.has_observer.swap(true, Ordering::Relaxed) {
            let advice = "pass `RateLimitHeaders::observer` to `RegistryBuilder::observer`";
            log!(WARN, advice, "responses have no headers about limits, as no registry reports decisions");
        }
        let mut policies = record.policies();
        policies.sort_by(|one, other| other.tightness().total_cmp(&one.tightness()));
        let Some(tightest) = policies.first() else { return Vec::new() };
        let mut fields = Vec::new();
        for format in &self.formats {
            match format {
                HeaderFormat::Draft11 => {
                    fields.push(("ratelimit-policy", draft_policies(&policies)));
                    fields.push(("ratelimit", draft_quota(tightest)));
                }
                HeaderFormat::XRateLimit => {
                    fields.push(("x-ratelimit-limit", tightest.quota.limit.to_string()));
                    fields.push(("x-ratelimit-remaining", tightest.quota.remaining.to_string()));
                    if let Some(after) = tightest.resets_after() {
                        let now =
                            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                        let reset = whole_seconds(now + after) + added_seconds(tightest, after);
                        fields.push(("x-ratelimit-reset", reset.to_string()));
                    }
                }
            }
        }
        fields
    }
}

/// Names each policy once. Of those that are shown by one name, it is the first.
fn draft_policies(policies: &[RecordedPolicy]) -> String {
    let (mut list, mut names) = (String::new(), Vec::new());
    for policy in policies {
        let (name, quota) = (quoted(&policy.name), &policy.quota);
        if names.contains(&name) {
            continue;
        }
        let separator = if list.is_empty() { "" } else { ", " };
        let limit = quota.limit.min(LARGEST);
        _ = write!(list, "{separator}{name};q={limit};");
        _ = match policy.is_semaphore() {
            true => write!(list, "qu=\"concurrent-requests\""),
            false => write!(list, "w={}", whole_seconds(quota.window).min(LARGEST)),
        };
        names.push(name);
    }
    list
}

fn draft_quota(policy: &RecordedPolicy) -> String {
    let RecordedPolicy { name, quota, .. } = policy;
    let mut item = format!("{};r={}", quoted(name), quota.remaining.min(LARGEST));
    if let Some(after) = policy.resets_after() {
        let resets = whole_seconds(after) + added_seconds(policy, after);
        _ = write!(item, ";t={}", resets.min(LARGEST));
    }
    item
}

/// Returns how many seconds later a client that the policy refuses is told to come back: as in `Retry-After`, so that those who read
/// only these headers do not come back together either. Where it does not refuse, they tell its state.
fn added_seconds(policy: &RecordedPolicy, after: Duration) -> u64 {
    if policy.limited { context::spread_of(after).as_secs() } else { 0 }
}
