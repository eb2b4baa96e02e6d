//! What an attribute says about all calls.

use std::fmt::{self, Display};

use crate::decide::on_store_error::OnStoreError;
use crate::policy::{Algorithm, LeaseSize, NotifyAt, Policy};

/// An attribute in the source.
#[derive(Debug)]
pub struct Attribute {
    /// The module.
    pub module: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line.
    pub line: u32,
    /// Its options.
    pub options: SiteOptions,
    /// Returns the policy, with any numbers for those that are computed. A function, because an invalid constant would be reported
    /// once more where a `static` uses it.
    pub policy: fn() -> Policy,
    /// The names of the numbers that are computed for each call.
    pub computed: &'static [&'static str],
    /// Its text.
    pub text: SiteText,
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
    /// Whether calls pause the key by their output.
    pub pauses: bool,
    /// For how many microseconds each refusal in turn pauses the key, the last one the longest.
    pub penalty: &'static [u64],
    /// How many permits the process takes of Redis at a time, if it takes more than a call needs.
    pub lease: Option<LeaseSize>,
    /// The share of the limit at which observers are notified of a key.
    pub notify_at: Option<NotifyAt>,
    /// What to do when the store fails, if it overrides the registry's setting.
    pub on_store_error: Option<OnStoreError>,
}

/// An attribute as it is written.
#[derive(Debug)]
pub struct SiteText {
    /// The name of the attribute.
    pub attribute: &'static str,
    /// The numbers and options that have a value.
    pub arguments: &'static str,
    /// The key as a template.
    pub key: Option<&'static str>,
    /// The options without a value.
    pub flags: &'static [&'static str],
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

impl Tag {
    /// Returns the function if it is the tag.
    pub(crate) fn of(self, function: &str) -> Option<&str> {
        (self == Tag::Function).then_some(function)
    }
}

impl Attribute {
    /// Returns the policy, if all its numbers are literals.
    pub(crate) fn literal(&self) -> Option<Policy> {
        self.computed.is_empty().then(self.policy)
    }
}

impl Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
