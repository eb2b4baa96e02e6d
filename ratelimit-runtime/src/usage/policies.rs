//! The policies of a program, known before their first calls.

use std::fmt;
use std::sync::Arc;

use crate::policy::{Algorithm, Policy};
use crate::usage::call_site::{Attribute, CallSite, SiteName, SiteOptions, SiteText};

/// A policy of the program, as its attribute declares it. [`policies`] returns all of them.
///
/// With the feature `serde` it can be serialized, which is what the command `ratelimits` reads as an inventory.
#[derive(Clone)]
#[non_exhaustive]
pub struct PolicyInfo {
    /// The name, by which logs, metrics and overrides know the policy.
    pub name: Arc<str>,
    /// The prefix of its keys; empty if the attribute sets none.
    pub prefix: &'static str,
    /// The name of the attribute, such as `rate_limit`.
    pub attribute: &'static str,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The policy, if all its numbers are literals. `None` if some are computed for each call.
    pub policy: Option<Policy>,
    /// The numbers as they are written, such as `rate = "100/min", burst = 20`, with `cost`, `timeout`, `on_store_error` and
    /// `charge_when`.
    pub arguments: &'static str,
    /// The key as a template, such as `<user.id>:<@ip>`. `None` if all calls share one.
    pub key: Option<&'static str>,
    /// The options without a value, such as `shadow`.
    pub flags: &'static [&'static str],
    /// The function that the attribute limits, as in its default name.
    pub function: String,
    /// The module of the function.
    pub module: &'static str,
    /// The source file, as the compiler was given it.
    pub file: &'static str,
    /// The line of the attribute.
    pub line: u32,
    pub(crate) site: &'static Attribute,
}

/// Returns every policy that an attribute of this program declares, also in its dependencies and before any call, by name.
///
/// The linker collects them, on all common platforms. On others a policy is missing until its first call. A function with several
/// types, because a trait provides it or its `impl` is generic over the type, has a policy for each of them. Before their first
/// calls, one name stands for all of them, such as `app::Handler::handle`.
///
/// Policies of limiters and layers are not among them.
///
/// ```standalone_crate
/// # use ratelimits::{Error, rate_limit};
/// #[rate_limit(rate = "100/min", burst = 20, key = user, name = "search")]
/// async fn search(user: u64) -> Result<(), Error> {
///     Ok(())
/// }
///
/// for policy in ratelimits::policies() {
///     assert_eq!(policy.to_string(), "search: rate_limit(rate = \"100/min\", burst = 20), key <user>");
/// }
/// ```
#[must_use]
pub fn policies() -> Vec<PolicyInfo> {
    let mut policies: Vec<_> = CallSite::all().into_iter().flat_map(of_site).collect();
    policies.sort_by(|a, b| (&a.name, a.prefix).cmp(&(&b.name, b.prefix)));
    policies
}

/// Returns the policies of a call site: one for each name that calls have claimed, or else the one for all of them.
fn of_site(site: &'static CallSite) -> Vec<PolicyInfo> {
    let mut claimed: Vec<_> = site.claimed().collect();
    claimed.sort_unstable_by_key(|claimed| claimed.name);
    claimed.dedup_by_key(|claimed| claimed.name);
    if claimed.is_empty() {
        let (function, name) = site.names_without_call();
        return vec![PolicyInfo::new(&site.attribute, name.into(), function)];
    }
    let info = |claimed: &SiteName| {
        PolicyInfo::new(&site.attribute, claimed.name.into(), String::from(&*claimed.function))
    };
    claimed.into_iter().map(info).collect()
}

impl PolicyInfo {
    fn new(site: &'static Attribute, name: Arc<str>, function: String) -> Self {
        let Attribute { module, file, line, options, text, .. } = site;
        let SiteOptions { prefix, algorithm, .. } = *options;
        let SiteText { attribute, arguments, key, flags } = *text;
        let policy = site.literal();
        PolicyInfo {
            name,
            prefix,
            attribute,
            algorithm,
            policy,
            arguments,
            key,
            flags,
            function,
            module,
            file,
            line: *line,
            site,
        }
    }
}

/// Writes the name, the attribute and the key on one line.
impl fmt::Display for PolicyInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyInfo { name, attribute, arguments, key, flags, .. } = self;
        write!(f, "{name}: {attribute}({arguments}")?;
        for flag in *flags {
            write!(f, ", {flag}")?;
        }
        f.write_str(")")?;
        key.map_or(Ok(()), |key| write!(f, ", key {key}"))
    }
}

impl fmt::Debug for PolicyInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyInfo { name, attribute, arguments, file, line, .. } = self;
        f.debug_struct("PolicyInfo")
            .field("name", name)
            .field("attribute", attribute)
            .field("arguments", arguments)
            .field("at", &format_args!("{file}:{line}"))
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for PolicyInfo {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let mut info = serializer.serialize_struct("PolicyInfo", 13)?;
        info.serialize_field("name", &*self.name)?;
        info.serialize_field("prefix", self.prefix)?;
        info.serialize_field("attribute", self.attribute)?;
        info.serialize_field("algorithm", self.algorithm.name())?;
        info.serialize_field("computed", &self.policy.is_none())?;
        info.serialize_field("arguments", self.arguments)?;
        info.serialize_field("key", &self.key)?;
        info.serialize_field("tag", &self.site.options.tag.of(&self.function))?;
        info.serialize_field("flags", self.flags)?;
        info.serialize_field("function", &self.function)?;
        info.serialize_field("module", self.module)?;
        info.serialize_field("file", self.file)?;
        info.serialize_field("line", &self.line)?;
        info.end()
    }
}
