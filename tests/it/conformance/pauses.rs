//! Keys that are paused: no call starts before the end, and what is left of their policies then.

mod beside;
mod buckets;
mod debts;
mod lines;
mod receipts;
mod stored;
mod windows;

use std::time::Duration;

use super::{Case, Step, case};
use crate::support::policies::{Pair, adjustable, leaky_bucket, token_bucket};

const SECOND: Duration = Duration::from_secs(1);
const TEN: Duration = Duration::from_secs(10);

pub(super) fn cases() -> Vec<Case> {
    let cases = [buckets::cases(), debts::cases(), lines::cases(), receipts::cases(), windows::cases()];
    cases.into_iter().flatten().collect()
}

/// A bucket that gets a permit a second, in each of its forms.
fn each_bucket(burst: u64) -> [(&'static str, Option<Pair>); 4] {
    [
        ("a bucket", token_bucket(1, SECOND, burst)),
        ("a meter", leaky_bucket(burst, 1, SECOND)),
        ("a changing bucket", adjustable::token_bucket(1, SECOND, burst)),
        ("a settled bucket", adjustable::settled(1, SECOND, burst, false)),
    ]
}

/// The same case of each bucket. Names are keys.
fn of_each<const N: usize>(name: &str, burst: u64, steps: impl Fn() -> [Step; N]) -> Vec<Case> {
    let of = |(bucket, pair): (&str, Option<Pair>)| case(format!("{bucket} {name}"), pair).steps(steps());
    each_bucket(burst).into_iter().map(of).collect()
}
