//! Call sites: the attributes in the source, and the policy names they claim.
//!
//! A name identifies state. If two functions got the same name by accident, they would share a counter unnoticed, so each call
//! site claims its names before its first charge, and a clash is an error.

mod attribute;
mod claims;

use std::borrow::Cow;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

pub use self::attribute::{Attribute, SiteOptions, SiteText, Tag};
use self::claims::claims;
pub(crate) use self::claims::{Claim, Claims};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::log::log;
use crate::decide::definition::{AttributeOptions, Definition};
use crate::key::name::{FunctionName, Name};
use crate::key::policy_id::PolicyId;
use crate::policy::Policy;

/// An attribute, and the names that its calls have claimed.
#[derive(Debug)]
pub struct CallSite {
    pub(crate) attribute: Attribute,
    /// Returns the type name of a closure in the initializer of this site.
    item: fn() -> &'static str,
    names: OnceLock<Box<SiteName>>,
}

/// A call site that the linker has collected.
#[derive(Debug)]
pub struct RegisteredSite(pub &'static CallSite);

inventory::collect!(RegisteredSite);

/// The call sites with a claim, for platforms on which the linker collects none.
static CLAIMED: Mutex<Vec<&'static CallSite>> = Mutex::new(Vec::new());

/// A name that a call site has claimed. A site in a generic function or in a trait has several.
#[derive(Debug)]
pub(crate) struct SiteName {
    closure: &'static str,
    pub(crate) name: &'static str,
    pub(crate) function: Box<str>,
    pub(crate) definition: Definition,
    clash: Option<Clash>,
    zone: Result<(), InvalidPolicy>,
    next: OnceLock<Box<SiteName>>,
}

#[derive(Debug)]
struct Clash {
    problem: String,
    is_logged: AtomicBool,
}

impl CallSite {
    /// Creates a call site that has claimed no name.
    #[must_use]
    pub const fn new(attribute: Attribute, item: fn() -> &'static str) -> Self {
        CallSite { attribute, item, names: OnceLock::new() }
    }

    /// Returns the call sites of the program, in the order of their files and lines.
    pub(crate) fn all() -> Vec<&'static CallSite> {
        let mut sites = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sites.extend(inventory::iter::<RegisteredSite>().map(|RegisteredSite(site)| *site));
        sites.sort_by_key(|site| (site.attribute.file, site.attribute.line, std::ptr::from_ref(*site)));
        sites.dedup_by(|a, b| std::ptr::eq(*a, *b));
        sites
    }

    /// Returns the name of the policy in the function that holds this closure, and claims it on the first call.
    #[inline]
    pub(crate) fn resolve(&'static self, closure: &'static str) -> &'static SiteName {
        match self.names.get() {
            Some(site) if std::ptr::eq(site.closure, closure) => site,
            _ => self.resolve_any(closure),
        }
    }

    /// Resolves a closure that is not that of the first name, or for which the compiler has made another copy of its type name.
    #[inline(never)]
    fn resolve_any(&'static self, closure: &'static str) -> &'static SiteName {
        let mut names = &self.names;
        loop {
            let site = names.get_or_init(|| self.claim(closure));
            if std::ptr::eq(site.closure, closure) || site.closure == closure {
                return site;
            }
            names = &site.next;
        }
    }

    /// Returns the names that calls have claimed so far.
    pub(crate) fn claimed(&'static self) -> impl Iterator<Item = &'static SiteName> {
        iter::successors(self.names.get(), |site| site.next.get()).map(|site| &**site)
    }

    /// Returns the name of the function, and of the policy if no call needs to be known for it. If the function has several types,
    /// the name stands for those of all of them.
    pub(crate) fn names_without_call(&self) -> (String, String) {
        let function = self.function((self.item)());
        let name = self.policy_name(&function).into_owned();
        (function, name)
    }

    fn function(&self, closure: &'static str) -> String {
        FunctionName { module: self.attribute.module, item: (self.item)(), closure }.to_string()
    }

    fn policy_name<'a>(&self, function: &'a str) -> Cow<'a, str> {
        match self.attribute.options {
            SiteOptions { name: Some(name), .. } => Cow::Borrowed(name),
            SiteOptions { number: 1, .. } => Cow::Borrowed(function),
            SiteOptions { number, .. } => Cow::Owned(format!("{function}#{number}")),
        }
    }

    #[cold]
    fn claim(&'static self, closure: &'static str) -> Box<SiteName> {
        let function: Box<str> = self.function(closure).into();
        let options = &self.attribute.options;
        // A site lives as long as the process, and so does its name.
        let name: &'static str =
            options.name.unwrap_or_else(|| self.policy_name(&function).into_owned().leak());
        if self.names.get().is_none() {
            CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
        }
        let claim = Claim { attribute: &self.attribute, function: options.tag.of(&function).map(Into::into) };
        let clash = claims()
            .register(claim, name)
            .map(|clash| Clash { problem: format!("clashes: {clash}"), is_logged: AtomicBool::new(false) });
        let literal = self.attribute.literal();
        let zone = (self.attribute.policy)().check_zone();
        // Without numbers, calls that cannot be decided find no short cut past the error.
        let literal = literal.filter(|_| clash.is_none() && zone.is_ok());
        let definition = self.definition(name, &function, literal);
        Box::new(SiteName { closure, name, function, definition, clash, zone, next: OnceLock::new() })
    }

    fn definition(&self, name: &'static str, function: &str, literal: Option<Policy>) -> Definition {
        let SiteOptions {
            policy,
            prefix,
            algorithm,
            tag,
            shadow,
            refundable,
            pauses,
            penalty,
            lease,
            notify_at,
            on_store_error,
            ..
        } = self.attribute.options;
        let (keys, function) = ((prefix, PolicyId::new(prefix, name)), tag.of(function));
        let attribute =
            AttributeOptions { index: Some(policy), shadow, refundable, pauses, penalty, lease, notify_at };
        let name = Name { text: name.into(), interned: Some(name) };
        let mut definition =
            Definition::new(name, algorithm, keys, function).of_attribute(attribute, on_store_error);
        definition.declared = Some(self.names_without_call().1.into());
        match literal.and_then(|policy| Some((policy, policy.spec().ok()?))) {
            Some((policy, spec)) => definition.with_numbers(policy, spec),
            None => definition,
        }
    }
}

impl SiteName {
    /// Checks that no other call site has claimed the name, and that there is the time zone. Logs the first clash, which a fallback
    /// might hide. Must not be called under a lock, because a subscriber may itself be rate limited.
    pub(crate) fn check(&'static self) -> Result<(), InvalidPolicy> {
        self.clash.as_ref().map_or_else(|| self.zone.clone(), |clash| Err(clash.report(self.name)))
    }
}

impl Clash {
    #[cold]
    fn report(&'static self, policy: &str) -> InvalidPolicy {
        let invalid = InvalidPolicy::new("name", &self.problem);
        if !self.is_logged.swap(true, Ordering::Relaxed) {
            log!(ERROR, policy, error = %invalid, "two policies have the same name; calls of this one fail");
        }
        invalid
    }
}
