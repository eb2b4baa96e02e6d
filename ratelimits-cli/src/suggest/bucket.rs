//! The rates and bursts of token buckets.

use super::demand::Demand;
use super::numbers::Numbers;
use super::rates::{Rate, rates};
use super::search::Search;
use super::share::Share;

/// The largest burst of a policy.
const MOST: u64 = 1_000_000_000_000;

/// How often a bucket has to refill from empty within a part of a log that is to tell its numbers. One that takes longer is little more
/// than the number of calls in the log.
pub(super) const REFILLS: u64 = 10;

/// A rate, and the smallest burst with which it refuses few enough calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    rate: Rate,
    burst: u64,
}

/// Returns buckets that refuse few enough calls, by their rates: the round ones, from the lowest that the log can tell to the first at
/// which no higher rate saves any burst, and the suggested one, whose place comes second. Nothing if the log is too short for any.
pub(super) fn buckets(demand: &Demand, share: Share) -> Option<(Vec<Numbers>, usize)> {
    let search = Search::new(demand, share.of(demand.used));
    let (length, most_of_a_key) = (demand.length(), demand.most_of_a_key().clamp(1, MOST));
    let most = |rate: Rate| rate.refill_in(length / REFILLS).min(most_of_a_key);
    let smallest = |rate: Rate, low: u64, high: u64| {
        search.smallest(low..=high.min(most(rate)), |burst| Numbers::TokenBucket { rate, burst }.spec().ok())
    };
    let suffices = |rate: Rate, burst: u64| smallest(rate, burst, burst).is_some();
    let round: Vec<Rate> = rates().filter(|rate| rate.is_round()).collect();
    let lowest = round.partition_point(|rate| !suffices(*rate, most(*rate)));
    // No rate needs less than the highest.
    let fewest = smallest(*round.last()?, 1, MOST)?;
    let mut points: Vec<Point> = Vec::new();
    for rate in &round[lowest..] {
        let enough = points.last().map_or(MOST, |point| point.burst);
        let Some(burst) = smallest(*rate, fewest, enough) else { continue };
        points.push(Point { rate: *rate, burst });
        if burst == fewest {
            break;
        }
    }
    let best = *points.iter().min_by_key(|point| point.rate.times(point.burst))?;
    // The lowest rate with its burst may not be round.
    let slower = round.iter().take_while(|rate| **rate != best.rate).last();
    let between: Vec<Rate> = rates()
        .skip_while(|rate| slower.is_some_and(|slower| rate.times(1) <= slower.times(1)))
        .take_while(|rate| *rate != best.rate)
        .filter(|rate| Numbers::TokenBucket { rate: *rate, burst: 1 }.spec().is_ok())
        .collect();
    let lowest = between.partition_point(|rate| !suffices(*rate, best.burst));
    let place = points.iter().position(|point| *point == best)?;
    if let Some(rate) = between.get(lowest) {
        points.insert(place, Point { rate: *rate, burst: best.burst });
    }
    Some((
        points.into_iter().map(|Point { rate, burst }| Numbers::TokenBucket { rate, burst }).collect(),
        place,
    ))
}
