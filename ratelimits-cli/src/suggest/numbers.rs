//! The numbers of a policy, and how an attribute writes them.

use ratelimit_runtime::algorithm::AlgorithmSpec;
use serde::Serialize;

use super::rates::Rate;
use crate::policy_text::{InvalidText, PolicyText};

/// The numbers that are suggested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "algorithm")]
pub(super) enum Numbers {
    #[serde(rename = "token bucket")]
    TokenBucket {
        #[serde(serialize_with = "as_text")]
        rate: Rate,
        burst: u64,
    },
    #[serde(rename = "fixed window")]
    FixedWindow { limit: u64, period: String },
    #[serde(rename = "sliding window")]
    SlidingWindow { limit: u64, period: String },
}

impl Numbers {
    /// Returns the attribute, with more arguments than the numbers.
    pub(super) fn attribute(&self, more: &[String]) -> String {
        let (name, mut arguments) = match self {
            Numbers::TokenBucket { rate, burst } => {
                ("rate_limit", vec![format!("rate = \"{rate}\""), format!("burst = {burst}")])
            }
            Numbers::FixedWindow { limit, period } => ("count_limit", window(*limit, period)),
            Numbers::SlidingWindow { limit, period } => ("window_limit", window(*limit, period)),
        };
        arguments.extend_from_slice(more);
        format!("{name}({})", arguments.join(", "))
    }

    /// Returns the burst or the limit.
    pub(super) fn most_at_once(&self) -> u64 {
        match self {
            Numbers::TokenBucket { burst: most, .. }
            | Numbers::FixedWindow { limit: most, .. }
            | Numbers::SlidingWindow { limit: most, .. } => *most,
        }
    }

    /// Returns the algorithm that the attribute gives these numbers.
    pub(super) fn spec(&self) -> Result<AlgorithmSpec, InvalidText> {
        let PolicyText { policy, .. } = self.attribute(&[]).parse()?;
        Ok(policy.spec()?)
    }
}

fn window(limit: u64, period: &str) -> Vec<String> {
    vec![format!("limit = {limit}"), format!("period = {period:?}")]
}

fn as_text<S: serde::Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(rate)
}
