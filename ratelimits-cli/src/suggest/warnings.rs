//! What makes numbers uncertain.

use std::time::Duration;

use super::bucket::REFILLS;
use super::demand::{Demand, HELD_OUT};
use super::share::Share;
use super::trial::Outcomes;
use crate::duration::human;
use crate::table::grouped;

/// How many refusals of the part that is held out can check a prediction: by chance it then has a quarter more or less.
const FEW: u64 = 20;

/// What is known of a log besides its calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits {
    /// How many calls were refused when the log was written.
    pub(super) refused: u64,
    /// Whether some time is no whole second.
    pub(super) is_finer_than_seconds: bool,
}

/// Returns what a reader of the numbers should know.
pub(super) fn warnings(
    demand: &Demand,
    traits: Traits,
    share: Share,
    outcomes: Outcomes,
    period: Option<u64>,
) -> Vec<String> {
    let in_seconds = "all times of the log are whole seconds; if they were cut to that, a burst may be wrong by what its rate refills in a \
                      second, and limits of short windows as well";
    let refused = format!(
        "{} calls have the status 429, and count like the others; if clients have sent them again, the numbers are higher than needed",
        grouped(traits.refused)
    );
    let found = [
        of_prediction(share, outcomes),
        period.and_then(|period| of_period(demand, period)),
        (!traits.is_finer_than_seconds).then(|| in_seconds.to_owned()),
        (traits.refused > 0).then_some(refused),
    ];
    found.into_iter().flatten().collect()
}

/// Returns why the part that is held out does not confirm the numbers, unless it does.
fn of_prediction(share: Share, Outcomes { used, held_out }: Outcomes) -> Option<String> {
    let expected = u128::from(used.refused) * u128::from(held_out.calls) / u128::from(used.calls.max(1));
    let expected = expected as u64;
    let is_far =
        held_out.refused > 2 * expected.max(FEW) || expected >= FEW && 2 * held_out.refused < expected;
    Some(match expected {
        _ if is_far => format!(
            "the part held out is unlike the rest: {} of its calls are refused, where {} were expected; take a log of more days, or \
             find what has changed",
            grouped(held_out.refused),
            grouped(expected)
        ),
        _ if used.refused == 0 => {
            "these numbers refuse no call of the part that they are chosen by, so nothing tells how many they will refuse".to_owned()
        }
        0..FEW => format!(
            "the log is short: {} of the calls held out are expected to be refused, and fewer than {FEW} check little; take a log of {} \
             or more calls",
            grouped(expected),
            grouped(share.fewest_calls(FEW * HELD_OUT as u64))
        ),
        _ => return None,
    })
}

fn of_period(demand: &Demand, period: u64) -> Option<String> {
    let human = |micros| human(Duration::from_micros(micros));
    (demand.length() / REFILLS < period).then(|| {
        format!(
            "the log is short: the part that the limit is chosen by lasts {}, which is less than {REFILLS} windows of {}",
            human(demand.length()),
            human(period)
        )
    })
}
