//! What operators have changed of a policy, found by name once for all calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::algorithm::{AlgorithmSpec, PlainSpec};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::shared_numbers::SharedNumbers;
use crate::decide::overrides::{ActiveOverride, Overrides};
use crate::policy::Policy;

/// What the overrides of a registry say of a policy, as of the last call.
#[derive(Debug, Default)]
pub(crate) struct KnownOverride {
    /// The version of overrides that do not name the policy.
    without: AtomicU64,
    /// The version of those that do, whether they make it a shadow, and the numbers of all calls, if these are plain.
    plain: SharedNumbers<5>,
    with: RwLock<Option<Known>>,
}

/// What overrides of this version say of the policy.
#[derive(Clone, Debug)]
struct Known {
    version: u64,
    overridden: Arc<ActiveOverride>,
    /// The numbers of all calls, if these are literals.
    literal: Option<Result<AlgorithmSpec, InvalidPolicy>>,
}

/// What an override makes of a call.
#[derive(Clone, Debug)]
pub(crate) struct Overridden {
    pub(crate) is_off: bool,
    pub(crate) is_shadow: bool,
    pub(crate) numbers: Result<AlgorithmSpec, InvalidPolicy>,
}

impl KnownOverride {
    /// Whether it is known that the overrides leave the policy as it is.
    #[inline]
    pub(crate) fn is_none(&self, overrides: &Overrides) -> bool {
        let version = overrides.version();
        version == 0 || self.without.load(Ordering::Relaxed) == version
    }

    /// Returns what the overrides make of a call of the policy with this prefix and one of these names, which may be a shadow. Its
    /// numbers are literals, or computed for the call.
    pub(super) fn get(
        &self,
        overrides: &Overrides,
        (prefix, names, is_shadow): (&str, [&str; 2], bool),
        literal: Option<(&AlgorithmSpec, Policy)>,
        computed: Option<&Result<Policy, InvalidPolicy>>,
    ) -> Option<Overridden> {
        let version = overrides.version();
        if computed.is_none()
            && let Some([of, is_shadow, kind, first, second]) = self.plain.get()
            && of == version
            && let Some(spec) = PlainSpec::of_words([kind, first, second])
        {
            return Some(Overridden { is_off: false, is_shadow: is_shadow == 1, numbers: Ok(spec.spec()) });
        }
        let known = match &*self.with.read().unwrap_or_else(PoisonError::into_inner) {
            Some(known) if known.version == version => match (computed, &known.literal) {
                (None, Some(numbers)) => return Some(known.overridden.of_call(numbers.clone())),
                _ => Some(Arc::clone(&known.overridden)),
            },
            _ => None,
        };
        // Without the lock, because an override that does not fit is logged.
        let overridden = match known {
            Some(overridden) => overridden,
            None => {
                let (version, overridden) = overrides.of(prefix, &names);
                let overridden = overridden.filter(|overridden| overridden.fits(is_shadow));
                let known = overridden.and_then(|overridden| {
                    let literal = match literal {
                        Some((spec, policy)) => Some(overridden.spec(Some(spec), policy)?),
                        None => None,
                    };
                    Some(Known { version, overridden, literal })
                });
                let Some(known) = known else {
                    self.without.store(version, Ordering::Relaxed);
                    return None;
                };
                let (overridden, literal) = (Arc::clone(&known.overridden), known.literal.clone());
                let mut with = self.with.write().unwrap_or_else(PoisonError::into_inner);
                self.plain.set(known.plain());
                *with = Some(known);
                drop(with);
                if let (None, Some(numbers)) = (computed, literal) {
                    return Some(overridden.of_call(numbers));
                }
                overridden
            }
        };
        let numbers = match computed {
            Some(Ok(policy)) => overridden.spec(None, *policy)?,
            Some(Err(invalid)) => Err(invalid.clone()),
            None => Err(InvalidPolicy::new("policy", "has numbers that are no literals")),
        };
        Some(overridden.of_call(numbers))
    }
}

impl Known {
    /// Returns what it says in numbers that are read without a lock, if that is possible.
    fn plain(&self) -> Option<[u64; 5]> {
        let (Some(Ok(spec)), false) = (&self.literal, self.overridden.is_off()) else { return None };
        let [kind, first, second] = PlainSpec::of(spec)?.words();
        Some([self.version, self.overridden.is_shadow().into(), kind, first, second])
    }
}

impl ActiveOverride {
    fn of_call(&self, numbers: Result<AlgorithmSpec, InvalidPolicy>) -> Overridden {
        Overridden { is_off: self.is_off(), is_shadow: self.is_shadow(), numbers }
    }
}
