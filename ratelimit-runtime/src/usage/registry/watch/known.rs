//! The policies that overrides may name.

use std::borrow::Borrow;

use crate::decide::overrides::KnownPolicy;
use crate::usage::call_site::{Attribute, CallSite};
use crate::usage::policies::policies;
use crate::usage::registry::cache::LimiterCache;

/// Returns the policies of attributes, and of these limiters.
pub(in crate::usage::registry) fn known(
    limiters: impl IntoIterator<Item = impl Borrow<LimiterCache>>,
) -> Vec<KnownPolicy> {
    let known = |attribute: &'static Attribute, name: String| KnownPolicy {
        name,
        prefix: Some(attribute.options.prefix.to_owned()),
        policy: (attribute.policy)(),
        computed: attribute.computed.iter().map(ToString::to_string).collect(),
        shadow: attribute.options.shadow,
        has_key: Some(attribute.text.key.is_some()),
    };
    let of_attributes = policies().into_iter().map(|info| known(info.site, String::from(&*info.name)));
    // One name for all types of a function.
    let declared =
        CallSite::all().into_iter().map(|site| known(&site.attribute, site.names_without_call().1));
    let limiters = limiters.into_iter().flat_map(|limiters| limiters.borrow().list());
    let of_limiters = limiters.map(|(name, policy)| KnownPolicy {
        name: name.to_string(),
        prefix: None,
        policy,
        computed: Vec::new(),
        shadow: false,
        // A limiter is called with any.
        has_key: None,
    });
    of_attributes.chain(declared).chain(of_limiters).collect()
}

/// Returns a number that changes when there is another such policy.
pub(super) fn known_version<'a>(limiters: impl IntoIterator<Item = &'a LimiterCache>) -> u64 {
    let claimed = CallSite::all().into_iter().map(|site| site.claimed().count() as u64);
    let created = limiters.into_iter().map(LimiterCache::created);
    claimed.chain(created).sum()
}
