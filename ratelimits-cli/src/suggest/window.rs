//! The limits of windows.

use ratelimit_runtime::Promise;

use super::demand::Demand;
use super::numbers::Numbers;
use super::search::Search;
use super::share::Share;
use crate::policy_text::PolicyText;

/// The largest limit of a window, and of a log of calls.
const MOST: u64 = 1_000_000_000_000;
const MOST_OF_SLIDING: u64 = 10_000;

/// Returns the smallest limits for ten times the share, the share, a tenth of it and nothing, of which only those that differ and can
/// be had, and the place of the suggested one. Nothing if no limit refuses few enough calls.
pub(super) fn windows(
    demand: &Demand,
    share: Share,
    numbers: impl Fn(u64) -> Numbers,
) -> Option<(Vec<Numbers>, usize)> {
    let most = if matches!(numbers(1), Numbers::SlidingWindow { .. }) { MOST_OF_SLIDING } else { MOST };
    let most = most.min(demand.most_of_a_key().max(1));
    let refused_of = |share: Share| share.of(demand.used);
    let smallest =
        |refused: u64| Search::new(demand, refused).smallest(1..=most, |limit| numbers(limit).spec().ok());
    let suggested = smallest(refused_of(share))?;
    let more = share.tenfold().and_then(|share| smallest(refused_of(share)));
    let less = [refused_of(share.tenth()), 0].into_iter().filter_map(smallest);
    let mut limits: Vec<u64> = more.into_iter().chain([suggested]).chain(less).collect();
    limits.dedup();
    let place = limits.iter().position(|limit| *limit == suggested)?;
    Some((limits.into_iter().map(numbers).collect(), place))
}

/// Returns the length of a window in microseconds, of a calendar's that of the one at this time. `None` for a bucket.
pub(super) fn period(policy: &PolicyText, at: u64) -> Option<u64> {
    match policy.policy.promise().ok()? {
        Promise::OpenedWindows { period, .. } | Promise::SlidingWindow { period, .. } => Some(period / 1_000),
        Promise::CalendarWindows { calendar, .. } => {
            let [from, to] = calendar.window_of(at);
            Some(to - from)
        }
        _ => None,
    }
}
