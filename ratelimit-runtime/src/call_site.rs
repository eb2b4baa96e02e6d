//! Call sites: the attributes in the source, and the policy names they claim.
//!
//! A name identifies state. If two functions got the same name by accident, they would share a counter unnoticed, so each call
//! site claims its names before its first charge, and a clash is an error.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use crate::algorithm::AlgorithmSpec;
use crate::error::invalid_policy::InvalidPolicy;
use crate::key::{Head, KeyHeads};
use crate::lane::LanePolicy;
use crate::log::{LogBound, log};
use crate::name::FunctionName;
use crate::on_store_error::OnStoreError;
use crate::policy::{Algorithm, Policy};
use crate::policy_id::PolicyId;

/// An attribute in the source.
#[derive(Debug)]
pub struct CallSite {
    module: &'static str,
    file: &'static str,
    line: u32,
    options: SiteOptions,
    /// Returns the type name of a closure in the initializer of this site.
    item: fn() -> &'static str,
    names: OnceLock<Box<SiteName>>,
}

/// The options of an attribute that are the same for all calls.
#[derive(Debug)]
pub struct SiteOptions {
    /// The index of the attribute on its function.
    pub policy: usize,
    /// The name, if the attribute gives one.
    pub name: Option<&'static str>,
    /// The number of the attribute among those of the function that have no name, from 1.
    pub number: u32,
    /// The prefix of the keys.
    pub prefix: &'static str,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The algorithm with its options, which policies of one name share.
    pub variant: &'static str,
    /// What the keys share a cluster slot by.
    pub tag: Tag,
    /// Whether the policy never refuses.
    pub shadow: bool,
    /// Whether charges may be refunded once the output is known.
    pub refundable: bool,
    /// How many permits the process takes of Redis at a time, if it takes more than a call needs.
    pub lease: Option<u64>,
    /// What to do when the store fails, if it overrides the registry's setting.
    pub on_store_error: Option<OnStoreError>,
}

/// What the keys of a policy share a cluster slot by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The parts of the key.
    Key,
    /// The name of the policy: the key has no parts.
    Name,
    /// The function: the other policies of the decision have other keys.
    Function,
}

/// A name that a call site has claimed. A site in a generic function or in a trait has several.
#[derive(Debug)]
pub(crate) struct SiteName {
    closure: &'static str,
    pub(crate) options: &'static SiteOptions,
    pub(crate) name: &'static str,
    pub(crate) policy: PolicyId,
    /// The function, if it is the tag.
    pub(crate) function: Option<Box<str>>,
    /// The policy, if its numbers are literals.
    literal: Option<LiteralPolicy>,
    /// The same policy for the fast lane, if its calls may take it: its usual state is plain, it can refuse, and `charge_when`
    /// refunds none of its charges.
    pub(crate) lane: Option<LanePolicy>,
    /// For calls that the shadow policy would have refused.
    pub(crate) refusal_log: LogBound,
    /// For calls that the shadow policy could not decide.
    pub(crate) failure_log: LogBound,
    clash: Option<Clash>,
    next: OnceLock<Box<SiteName>>,
}

/// A policy that is the same for all calls.
#[derive(Clone, Debug)]
struct LiteralPolicy {
    /// The policy in the numbers its algorithm counts in.
    spec: AlgorithmSpec,
    key_heads: KeyHeads,
}

#[derive(Debug)]
struct Clash {
    problem: String,
    is_logged: AtomicBool,
}

impl CallSite {
    /// Creates a call site that has claimed no name.
    #[must_use]
    pub const fn new(
        module: &'static str,
        file: &'static str,
        line: u32,
        options: SiteOptions,
        item: fn() -> &'static str,
    ) -> Self {
        CallSite { module, file, line, options, item, names: OnceLock::new() }
    }

    /// Returns the name of the policy in the function that holds this closure, and claims it on the first call. `literal` is the
    /// policy if all its numbers are literals.
    #[inline]
    pub(crate) fn resolve(
        &'static self,
        closure: &'static str,
        literal: &'static Option<Policy>,
    ) -> &'static SiteName {
        match self.names.get() {
            Some(site) if std::ptr::eq(site.closure, closure) => site,
            _ => self.resolve_any(closure, literal),
        }
    }

    /// Resolves a closure that is not that of the first name, or for which the compiler has made another copy of its type name.
    #[inline(never)]
    fn resolve_any(
        &'static self,
        closure: &'static str,
        literal: &'static Option<Policy>,
    ) -> &'static SiteName {
        let mut names = &self.names;
        loop {
            let site = names.get_or_init(|| self.claim(closure, literal));
            if std::ptr::eq(site.closure, closure) || site.closure == closure {
                return site;
            }
            names = &site.next;
        }
    }

    #[cold]
    fn claim(&'static self, closure: &'static str, literal: &'static Option<Policy>) -> Box<SiteName> {
        let function = FunctionName { module: self.module, item: (self.item)(), closure };
        let function: Box<str> = function.to_string().into();
        let options = &self.options;
        // A site lives as long as the process, and so does its name.
        let name: &'static str = match options {
            SiteOptions { name: Some(name), .. } => name,
            SiteOptions { number: 1, .. } => Box::leak(function.clone()),
            SiteOptions { number, .. } => format!("{function}#{number}").leak(),
        };
        let function = (options.tag == Tag::Function).then_some(function);
        let policy = PolicyId::new(options.prefix, name);
        let literal_policy = literal.and_then(|policy| policy.spec().ok()).map(|spec| {
            let function = function.as_deref();
            let head = Head { prefix: options.prefix, name, shape: &spec, function };
            LiteralPolicy { spec, key_heads: KeyHeads::new(head) }
        });
        let claim = Claim { site: self, function: function.clone(), literal };
        let clash = claim.register(name).map(|problem| Clash { problem, is_logged: AtomicBool::new(false) });
        let may_be_fast = clash.is_none() && !options.shadow && !options.refundable;
        let lane = literal_policy
            .as_ref()
            .filter(|_| may_be_fast)
            .and_then(|literal| LanePolicy::new(name, policy, &literal.spec, literal.key_heads.hash));
        let (literal, next) = (literal_policy, OnceLock::new());
        let (refusal_log, failure_log) = Default::default();
        Box::new(SiteName {
            closure,
            options,
            name,
            policy,
            function,
            literal,
            lane,
            refusal_log,
            failure_log,
            clash,
            next,
        })
    }
}

impl SiteName {
    /// Checks that no other call site has claimed the name. Logs the first error, which a fallback might hide. Must not be
    /// called under a lock, because a subscriber may itself be rate limited.
    pub(crate) fn check(&'static self) -> Result<(), InvalidPolicy> {
        self.clash.as_ref().map_or(Ok(()), |clash| Err(clash.report(self.name)))
    }

    /// Returns the policy, whose numbers are literals.
    pub(crate) fn literal_spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        let literal = self.literal.as_ref().map(|literal| literal.spec);
        literal.ok_or(InvalidPolicy::new("policy", "has numbers that are no literals"))
    }

    /// Returns the head of the keys of a call whose policy has this spec.
    pub(crate) fn head<'a>(&'a self, spec: &'a AlgorithmSpec) -> Head<'a> {
        let function = self.function.as_deref();
        Head { prefix: self.options.prefix, name: self.name, shape: spec, function }
    }

    /// Returns the head of the keys of all calls, if the numbers of the policy are literals.
    pub(crate) fn key_heads(&self) -> Option<&KeyHeads> {
        self.literal.as_ref().map(|literal| &literal.key_heads)
    }
}

impl Clash {
    #[cold]
    fn report(&'static self, policy: &str) -> InvalidPolicy {
        let invalid = InvalidPolicy::new("name", &self.problem);
        if !self.is_logged.swap(true, Ordering::Relaxed) {
            log!(ERROR, policy, error = %invalid, "policy has the name of another and decides no calls");
        }
        invalid
    }
}

impl Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

struct Claim {
    site: &'static CallSite,
    function: Option<Box<str>>,
    literal: &'static Option<Policy>,
}

impl Claim {
    /// Registers the claim, unless it clashes with an earlier one. Returns the clash.
    fn register(self, name: &str) -> Option<String> {
        type Claims = HashMap<(&'static str, Box<str>), Vec<Claim>>;
        static CLAIMS: LazyLock<Mutex<Claims>> = LazyLock::new(Mutex::default);
        let mut claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = claims.entry((self.site.options.prefix, name.into())).or_default();
        let clash = earlier.iter().find_map(|earlier| self.clash(name, earlier));
        if clash.is_none() && !earlier.iter().any(|earlier| std::ptr::eq(earlier.site, self.site)) {
            earlier.push(self);
        }
        clash
    }

    fn clash(&self, name: &str, earlier: &Claim) -> Option<String> {
        let (this, that) = (&self.site.options, &earlier.site.options);
        let sites = format!("({}, {})", earlier.site, self.site);
        let tags_differ = (this.tag, &self.function) != (that.tag, &earlier.function);
        // One site has several types if its function is generic or belongs to a trait.
        if std::ptr::eq(self.site, earlier.site) && (this.name.is_none() || !tags_differ) {
            return None;
        }
        if this.name.is_none() || that.name.is_none() {
            return Some(format!("is `{name}` for two policies {sites}; set `name = …` on one"));
        }
        let numbers_differ =
            matches!((self.literal, earlier.literal), (Some(a), Some(b)) if a.spec() != b.spec());
        // A bucket with computed numbers has one state whatever they are, and one with literal numbers has its own.
        let only_literal = self.literal.xor(*earlier.literal);
        let difference = if this.variant != that.variant {
            "with different algorithms"
        } else if matches!(only_literal, Some(Policy::TokenBucket(_) | Policy::LeakyBucket(_))) {
            "one with literal and one with computed numbers"
        } else if numbers_differ {
            "with different numbers"
        } else if tags_differ {
            "whose keys a Cluster groups differently"
        } else {
            return None;
        };
        Some(format!("is `{name}` for two policies {difference} {sites}; rename one"))
    }
}
