//! The smallest numbers that would have refused few calls.

pub(crate) mod demand;
mod ladder;
#[cfg(test)]
mod properties;
mod sketch;
pub(crate) mod suggestion;

use std::fmt;
use std::sync::Arc;

use self::demand::{Demand, Room};
use self::suggestion::Suggestion;
use crate::decide::observation::Observation;
use crate::observe::by_policy::ByPolicy;

/// Finds the smallest rate and burst, or limit, of each policy that would have refused at most 0.1 % of its calls, whatever the numbers
/// in force admit: what `ratelimits suggest` finds in a log, from the calls of this process.
///
/// It tries numbers from an eighth of those of the policy to eight times as many, about a fifth apart and rounded up to what people
/// write. Rate and burst grow together. Every call of a key that it follows is decided by all of these, by the algorithms of the
/// library: as many permits as it asks for, at the time when it came, without waiting. Of these numbers it suggests the smallest, or
/// says why it does not know them: [`NoSuggestion`](crate::NoSuggestion).
///
/// ```
/// use ratelimits::observe::{NoSuggestion, Suggestions};
/// use ratelimits::{Registry, TokenBucket};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let suggestions = Suggestions::new();
/// let registry = Registry::builder().observer(suggestions.observer()).in_memory();
/// let reports = registry.limiter("reports", TokenBucket::per_second(10).burst(20))?;
/// for tenant in 0..100 {
///     reports.try_acquire(tenant).await?;
/// }
/// for suggestion in suggestions.list() {
///     match suggestion.smallest {
///         Ok(numbers) => println!("{}: {numbers}", suggestion.policy),
///         Err(reason) => println!("{}: not known, {reason}", suggestion.policy),
///     }
///     assert_eq!(suggestion.smallest, Err(NoSuggestion::TooFewCalls { missing: 19_900 }));
/// }
/// # Ok(()) }
/// ```
///
/// # What counts
///
/// - Calls that the policy admits, and those that it refuses, or would refuse if it were no shadow. If clients repeat refused calls, the
///   numbers are higher than needed.
/// - A call that waited counts as of when it came. One that another policy refuses, and this one does not, does not count.
/// - Pauses and penalties are left out: calls of a paused key are decided as if it were not paused.
/// - Refunds by [`Decision::refund`](crate::Decision::refund) are not seen, and count as used.
/// - The numbers in force may be overridden: those that are tried stay the ones around the numbers that are written.
/// - The share is one of all calls of all keys together. If each call takes one permit, no smaller numbers that are tried refuse as
///   few.
///
/// # Which keys are followed
///
/// All, as long as no more than 750 of a policy are in use within the time that its limit is for. If there are more, some of them are
/// followed, by a keyed hash that nobody can foresee, and those that had the most calls when they became too many. Each counts for as
/// many as it stands for, so the share of all keys' calls is estimated without bias, and
/// [`error`](crate::SmallestNumbers::error) says how far off it may be.
///
/// For each policy this takes up to 750 KB, for a thousand keys, and 50 policies are followed. A call of a key that is followed takes a
/// lock and a few nanoseconds for each of the 25 numbers that are tried; one of any other key is hashed and counted.
///
/// Clones share what is known.
#[derive(Clone, Default)]
pub struct Suggestions(Arc<Inner>);

#[derive(Default)]
struct Inner {
    policies: ByPolicy<Arc<Demand>>,
    room: Room,
}

impl Suggestions {
    /// Creates suggestions that know nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Suggestions::default()
    }

    /// Returns a function that follows calls, for [`RegistryBuilder::observer`](crate::RegistryBuilder::observer). Several registries may
    /// have it, if they have no keys in common: their calls count together.
    pub fn observer(&self) -> impl Fn(&Observation<'_>) + Send + Sync + use<> {
        let Suggestions(inner) = self.clone();
        move |seen| inner.policies.with(seen, |_| Arc::new(inner.room.demand()), |demand| demand.count(seen))
    }

    /// Returns what is known of each policy that was called, in the order of their names.
    #[must_use]
    pub fn list(&self) -> Vec<Suggestion> {
        let mut list = self.0.policies.map(|policy, demand| demand.suggestion(policy));
        list.sort_by(|one, other| one.policy.cmp(&other.policy));
        list
    }

    /// Forgets all calls, so that what comes next counts: after numbers have changed, or traffic has.
    pub fn clear(&self) {
        self.0.policies.map(|_, demand| demand.clear());
    }
}

impl fmt::Debug for Suggestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.0.policies.map(|_, _| ()).len();
        f.debug_struct("Suggestions").field("len", &len).finish_non_exhaustive()
    }
}
