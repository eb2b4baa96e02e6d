//! A check of all policies at once, before any call.

use std::error::Error as StdError;
use std::fmt;

use crate::base::log::log;
use crate::decide::overrides::problems as problems_of_overrides;
use crate::usage::call_site::{CallSite, Claim, Claims};

/// What is wrong with the policies of a program. [`check_policies`] returns it.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckError {
    problems: Vec<String>,
}

/// Checks every policy that an attribute of this program declares: no two of them may have one name by accident, because they would
/// share a counter. A time zone must exist. Checks also the overrides that have been read.
///
/// Call it in `main`, or in a test of your program. [`install`](crate::install) logs the same problems but for overrides, which have
/// events of their own. Numbers are checked when the program is compiled, or when they are computed.
///
/// # Errors
///
/// Returns all problems at once.
///
/// ```standalone_crate
/// # use ratelimits::{Error, count_limit};
/// #[count_limit(5, "15m")]
/// async fn login() -> Result<(), Error> {
///     Ok(())
/// }
///
/// # fn the_test() -> Result<(), ratelimits::error::CheckError> {
/// ratelimits::check_policies()?;
/// # Ok(()) }
/// # the_test().unwrap();
/// ```
pub fn check_policies() -> Result<(), CheckError> {
    let mut problems = problems_of_attributes();
    problems.extend(problems_of_overrides());
    if problems.is_empty() { Ok(()) } else { Err(CheckError { problems }) }
}

/// Logs each problem. Must not be called under a lock, because a subscriber may itself be rate limited.
pub(crate) fn log_problems() {
    for problem in problems_of_attributes() {
        log!(ERROR, %problem, "policies have a problem");
    }
}

/// Returns the names that several call sites claim and must not share, and the time zones that do not exist.
fn problems_of_attributes() -> Vec<String> {
    let (mut claims, mut problems) = (Claims::default(), Vec::new());
    for site in CallSite::all() {
        let (function, name) = site.names_without_call();
        if let Err(invalid) = (site.attribute.policy)().check_zone() {
            problems.push(format!("`{name}` ({}): {invalid}", site.attribute));
        }
        let function = site.attribute.options.tag.of(&function).map(Into::into);
        problems.extend(claims.register(Claim { attribute: &site.attribute, function }, &name));
    }
    problems
}

impl CheckError {
    /// Returns each problem, with what to do about it.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems = &self.problems;
        match &problems[..] {
            [problem] => f.write_str(problem),
            _ => write!(f, "{} problems:\n- {}", problems.len(), problems.join("\n- ")),
        }
    }
}

impl fmt::Debug for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `main` and tests print errors this way.
        fmt::Display::fmt(self, f)
    }
}

impl StdError for CheckError {}
