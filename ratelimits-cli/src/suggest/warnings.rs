//! What makes numbers uncertain.

use std::time::Duration;

use super::bucket::REFILLS;
use super::demand::Demand;
use super::share::Share;
use super::trial::Outcomes;
use crate::duration::human;
use crate::table::grouped;

/// How many refusals of the part that is held out can check a prediction: by chance it then has a quarter more or less.
const FEW: u64 = 20;

/// Of how many calls one is held out.
const HELD_OUT: u64 = 5;

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
    Outcomes { used, held_out }: Outcomes,
    period: Option<u64>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let predicted = (u128::from(used.refused) * u128::from(held_out.calls) + u128::from(used.calls / 2))
        / u128::from(used.calls.max(1));
    let predicted = predicted as u64;
    let is_far =
        held_out.refused > 2 * predicted.max(FEW) || predicted >= FEW && 2 * held_out.refused < predicted;
    if is_far {
        warnings.push(format!(
            "the part held out is unlike the rest: {} of its calls are refused, where {} were predicted; take a log of more days, or find \
             what has changed",
            grouped(held_out.refused),
            grouped(predicted)
        ));
    } else if used.refused == 0 {
        warnings.push("these numbers refuse no call of the part that they are chosen by, so nothing tells how many they will refuse".to_owned());
    } else if predicted < FEW {
        let needed = share
            .fewest_calls(FEW * HELD_OUT)
            .map_or_else(String::new, |calls| format!(" of {} or more", grouped(calls)));
        warnings.push(format!(
            "the log is short: {} of the calls held out are expected to be refused, and fewer than {FEW} check little; take a log{needed} \
             calls",
            grouped(predicted)
        ));
    }
    if let Some(period) = period.filter(|period| demand.length() / REFILLS < *period) {
        warnings.push(format!(
            "the log is short: the part that the limit is chosen by lasts {}, which is less than {REFILLS} windows of {}",
            human(Duration::from_micros(demand.length())),
            human(Duration::from_micros(period))
        ));
    }
    if !traits.is_finer_than_seconds {
        warnings.push(
            "all times of the log are whole seconds; if they were cut to that, a burst may be wrong by what its rate refills in a second, \
             and limits of short windows as well"
                .to_owned(),
        );
    }
    if traits.refused > 0 {
        warnings.push(format!(
            "{} calls have the status 429, and count like the others; if clients have sent them again, the numbers are higher than needed",
            grouped(traits.refused)
        ));
    }
    warnings
}
