//! The places in the source where policies stand, and the names they claim.
//!
//! A name is a state that counts. Two functions that met under one by accident would count together, or one of them would
//! change what the other one means, and nobody would notice. So every place claims its names before it first charges.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::invalid_policy::InvalidPolicy;
use crate::name::{FunctionName, path};
use crate::on_store_error::OnStoreError;
use crate::policy::Policy;
use crate::rate::Rate;

/// An attribute in the source.
#[derive(Debug)]
pub struct CallSite {
    module: &'static str,
    file: &'static str,
    line: u32,
    options: SiteOptions,
    names: OnceLock<Box<SiteName>>,
}

/// What an attribute says of its policy for all calls.
#[derive(Debug)]
pub struct SiteOptions {
    /// Which of the function's attributes it is, from 0.
    pub policy: usize,
    /// The name, if the user gave one.
    pub name: Option<&'static str>,
    /// Without a name of the user's: 2 for a second policy of the same attribute on the function.
    pub number: u32,
    /// What its keys begin with.
    pub prefix: &'static str,
    /// The algorithm, in the words of an error message.
    pub algorithm: &'static str,
    /// What ties its keys to others in a Cluster.
    pub tag: Tag,
    /// Whether it never refuses.
    pub shadow: bool,
    /// Whether its charges may be given back once the output is known.
    pub refundable: bool,
    /// What becomes of a call that the store does not decide, if not what the registry says.
    pub on_store_error: Option<OnStoreError>,
}

/// What ties a key to others in a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Its own parts.
    Key,
    /// The name of the policy, where the key has no parts.
    Name,
    /// The function, where the other policies of the decision have other keys.
    Function,
}

/// What of a policy is the same for all calls.
#[derive(Debug)]
pub struct Constants {
    /// The numbers, as the attribute calls them.
    pub numbers: &'static [(&'static str, Constant)],
    /// The policy, if that are all of its numbers.
    pub policy: Option<Policy>,
}

/// A number that is the same for all calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// Permits.
    Count(u64),
    /// Permits per time.
    Rate(Rate),
    /// A time.
    Time(Duration),
}

/// A name that a place has claimed, which has several where its function is generic or belongs to a trait.
#[derive(Debug)]
pub struct SiteName {
    closure: &'static str,
    pub(crate) options: &'static SiteOptions,
    pub(crate) name: Box<str>,
    /// The function, where it is the tag.
    pub(crate) function: Option<Box<str>>,
    problem: Option<String>,
    next: OnceLock<Box<SiteName>>,
}

impl CallSite {
    /// A place that has claimed nothing yet.
    #[must_use]
    pub const fn new(module: &'static str, file: &'static str, line: u32, options: SiteOptions) -> Self {
        CallSite { module, file, line, options, names: OnceLock::new() }
    }

    /// The name of the policy in the function of this closure's type.
    #[must_use]
    pub fn named(&'static self, closure: &'static str, constants: &'static Constants) -> &'static SiteName {
        let mut names = &self.names;
        loop {
            let named = names.get_or_init(|| Box::new(self.claim(closure, constants)));
            if named.closure == closure {
                return named;
            }
            names = &named.next;
        }
    }

    fn claim(&'static self, closure: &'static str, constants: &'static Constants) -> SiteName {
        let function: Box<str> = FunctionName { module: self.module, closure }.to_string().into();
        let options = &self.options;
        let name = match options {
            SiteOptions { name: Some(name), .. } => (*name).into(),
            SiteOptions { number: 1, .. } => function.clone(),
            SiteOptions { number, .. } => format!("{function}#{number}").into(),
        };
        let function = (options.tag == Tag::Function).then_some(function);
        let claim = Claim { place: self, path: path(closure), function: function.clone(), constants };
        let problem = claims(options.prefix, &name, claim);
        SiteName { closure, options, name, function, problem, next: OnceLock::new() }
    }
}

impl SiteName {
    /// Whether the name is this place's to use.
    pub(crate) fn check(&'static self) -> Result<(), InvalidPolicy> {
        match &self.problem {
            Some(problem) => Err(InvalidPolicy::new("name", problem)),
            None => Ok(()),
        }
    }
}

impl Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::Count(count) => write!(f, "{count}"),
            Constant::Rate(Rate { permits, period }) => write!(f, "{permits} per {period:?}"),
            Constant::Time(time) => write!(f, "{time:?}"),
        }
    }
}

struct Claim {
    place: &'static CallSite,
    path: &'static str,
    function: Option<Box<str>>,
    constants: &'static Constants,
}

/// Claims a name, and tells what is wrong with that. A claim that fails claims nothing.
fn claims(prefix: &'static str, name: &str, claim: Claim) -> Option<String> {
    type Names = HashMap<(&'static str, Box<str>), Vec<Claim>>;
    static CLAIMED: LazyLock<Mutex<Names>> = LazyLock::new(Mutex::default);
    let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
    let others = claimed.entry((prefix, name.into())).or_default();
    let problem = others.iter().find_map(|other| claim.conflict(name, other));
    if problem.is_none() && !others.iter().any(|other| std::ptr::eq(other.place, claim.place)) {
        others.push(claim);
    }
    problem
}

impl Claim {
    /// Why the other claim leaves no room for this one. Its place comes first, as it was there first.
    fn conflict(&self, name: &str, other: &Claim) -> Option<String> {
        let (here, there) = (self.place, other.place);
        let (this, that) = (&here.options, &there.options);
        let apart = "give each a name of its own";
        // For several types, where the function is generic or belongs to a trait.
        let tags_differ = (this.tag, &self.function) != (that.tag, &other.function);
        if std::ptr::eq(here, there) && (this.name.is_none() || !tags_differ) {
            return None;
        }
        if this.name.is_none() || that.name.is_none() {
            // Attributes of one function that did not see one another, as one of them is imported under another name.
            let on_one_function = this.name.is_none() && that.name.is_none() && self.path == other.path;
            if on_one_function && this.algorithm != that.algorithm {
                return None;
            }
            return Some(format!(
                "`{name}` stands at {there} and at {here}, and only a name that is given is shared; \
                 give one of them a name of its own: `name = \"…\"`"
            ));
        }
        if this.algorithm != that.algorithm {
            let (first, second) = (that.algorithm, this.algorithm);
            return Some(format!("`{name}` is a {first} at {there} and a {second} at {here}; {apart}"));
        }
        if let Some(numbers) = self.other_numbers(other) {
            return Some(format!("`{name}` has {numbers}; write the same, or {apart}"));
        }
        tags_differ.then(|| {
            let (first, second) = (other.tag(), self.tag());
            format!("`{name}` counts by {first} at {there} and by {second} at {here}; {apart}")
        })
    }

    /// How the numbers of the two differ. Those that are told in other words may come to the same.
    fn other_numbers(&self, other: &Claim) -> Option<String> {
        let (here, there) = (self.place, other.place);
        if let (Some(this), Some(that)) = (self.constants.policy, other.constants.policy)
            && this.spec() == that.spec()
        {
            return None;
        }
        let numbers = self.constants.numbers.iter().find_map(|(argument, second)| {
            let same = |(name, first): &&(&str, Constant)| name == argument && first != second;
            let (_, first) = other.constants.numbers.iter().find(same)?;
            Some(format!("a `{argument}` of {first} at {there} and of {second} at {here}"))
        });
        let both = self.constants.policy.is_some() && other.constants.policy.is_some();
        numbers.or_else(|| both.then(|| format!("other numbers at {here} than at {there}")))
    }

    fn tag(&self) -> String {
        match (self.place.options.tag, &self.function) {
            (Tag::Key, _) => "its key".into(),
            (Tag::Name, _) => "its name".into(),
            (Tag::Function, function) => {
                format!("a key within the function `{}`", function.as_deref().unwrap_or_default())
            }
        }
    }
}
