//! What is suggested for a policy, or why nothing is.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::policy::Policy;

/// What a [`Suggestions`](crate::Suggestions) knows of a policy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Suggestion {
    /// The name of the policy.
    pub policy: Arc<str>,
    /// The smallest numbers that refuse at most 0.1 % of the calls, or why there are none.
    pub smallest: Result<SmallestNumbers, NoSuggestion>,
    /// How many calls were decided by the numbers that are tried.
    pub calls: u64,
    /// How many keys are followed at the moment.
    pub keys: usize,
    /// Of how many keys one is followed, besides some with many calls. 1 if all are.
    pub one_in: u64,
}

/// The smallest of the numbers that were tried that refuse at most 0.1 % of the calls.
///
/// It displays as the arguments of an attribute: `rate = "12/s", burst = 30`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SmallestNumbers {
    /// The policy with these numbers.
    pub policy: Policy,
    /// The share of all calls that it would have refused: 0.001 for 0.1 %.
    pub refused: f64,
    /// The standard error of that share, because not all keys are followed. Zero if they are. In 95 of 100 cases the share is at most twice
    /// that off, so with that it is still at most 0.1 %.
    pub error: f64,
}

/// Why there are no [`SmallestNumbers`].
///
/// It displays as a reason, such as `1234 more calls are needed`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum NoSuggestion {
    /// Fewer than 20,000 calls were followed, of which 0.1 % are 20.
    TooFewCalls {
        /// How many are missing.
        missing: u64,
    },
    /// Calls were followed for less than ten windows, or ten times as long as the bucket takes to fill up.
    TooShort {
        /// How much is missing.
        missing: Duration,
    },
    /// The smallest numbers that were tried, an eighth of those of the policy, still suffice.
    Less(Policy),
    /// The largest numbers that were tried, eight times those of the policy, refuse more.
    More(Policy),
    /// Not all keys are followed, and those that are differ so much that they do not tell, or others have most of the calls.
    Uncertain,
    /// Redis, or what stands in for it, also counts the calls of other processes, which are not seen. With those of this process alone,
    /// the numbers are at least these; `None` if smaller ones than all that were tried suffice for them.
    OtherProcesses {
        /// The numbers that suffice for the calls of this process.
        at_least: Option<Policy>,
    },
    /// The numbers of the policy differ from call to call, or between policies of the same name.
    NumbersDiffer,
    /// Calls may give back permits or take more of them once they have ended, by `charge_when` or `settle`.
    Corrected,
    /// The policy is a sliding or calendar window, a queue, a concurrency limit, or a bucket with `borrow`, `warmup` or interval refill,
    /// for which no numbers are tried.
    Unsupported,
    /// 50 other policies are followed.
    TooManyPolicies,
}

/// As the arguments of an attribute.
impl fmt::Display for SmallestNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&arguments(&self.policy))
    }
}

impl fmt::Display for NoSuggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSuggestion::TooFewCalls { missing } => write!(f, "{missing} more calls are needed"),
            NoSuggestion::TooShort { missing } => {
                let (count, unit) = in_large_unit(*missing);
                write!(f, "calls have to be followed for {count} {unit} longer")
            }
            NoSuggestion::Less(policy) => write!(f, "less than {}", arguments(policy)),
            NoSuggestion::More(policy) => write!(f, "more than {}", arguments(policy)),
            NoSuggestion::Uncertain => f.write_str("the keys differ too much for those that are followed"),
            NoSuggestion::OtherProcesses { at_least: Some(policy) } => {
                write!(f, "at least {}, as calls of other processes are not seen", arguments(policy))
            }
            NoSuggestion::OtherProcesses { at_least: None } => {
                f.write_str("calls of other processes are not seen")
            }
            NoSuggestion::NumbersDiffer => f.write_str("its numbers differ from call to call"),
            NoSuggestion::Corrected => f.write_str("its calls are corrected once they have ended"),
            NoSuggestion::Unsupported => f.write_str("no numbers are tried for this kind of policy"),
            NoSuggestion::TooManyPolicies => f.write_str("too many other policies are followed"),
        }
    }
}

impl std::error::Error for NoSuggestion {}

/// Returns a time rounded up, in the largest unit of which it is two or more.
fn in_large_unit(time: Duration) -> (u64, &'static str) {
    let units = [(86_400, "days"), (3_600, "h"), (60, "min")];
    let seconds = time.as_nanos().div_ceil(1_000_000_000) as u64;
    let (length, unit) = units.into_iter().find(|(length, _)| seconds >= 2 * length).unwrap_or((1, "s"));
    (seconds.div_ceil(length), unit)
}

/// Times of the numbers that are tried can always be written.
fn arguments(policy: &Policy) -> String {
    policy.arguments().unwrap_or_default()
}
