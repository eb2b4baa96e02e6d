//! The inventory that a program publishes for the command `ratelimits`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::source::POLL_INTERVAL;
use crate::base::log::log;
use crate::store::StoredOverrides;
use crate::store::error::StoreError;
use crate::usage::policies::policies;
use crate::usage::registry::cache::LimiterCache;

/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(60);

/// How many limiters it has at most: more have names that come from user input.
const MOST_LIMITERS: usize = 100;

/// Publishes the inventory of a program.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    /// The time until it is renewed.
    wait: Duration,
    /// How many limiters had been created when it was published last.
    created: u64,
    has_failed: bool,
    /// What other processes have in force, and Redis has no longer.
    lost: Option<String>,
}

impl Publisher {
    /// Renews the inventory when it is time, or at once if Redis has just lost data or limiters were created. `version` is that of the overrides that were
    /// read last, if there were any, of which some may be in force.
    pub(super) async fn publish(
        &mut self,
        stored: &StoredOverrides,
        limiters: impl FnOnce() -> Vec<Arc<LimiterCache>>,
        version: Option<&str>,
        is_in_force: bool,
        is_lost: bool,
    ) {
        if version.is_some() {
            self.lost = None;
        }
        self.wait = self.wait.saturating_sub(POLL_INTERVAL);
        let limiters = limiters();
        let created: u64 = limiters.iter().map(|limiters| limiters.created()).sum();
        let is_new = created != self.created && self.created < MOST_LIMITERS as u64;
        if !self.wait.is_zero() && !is_lost && !is_new {
            return;
        }
        let said = match version {
            Some(version) if is_in_force => version,
            Some(_) => "none",
            None => "",
        };
        match stored.publish(&entries(&limiters), said).await {
            Ok(others) => {
                (self.wait, self.has_failed, self.created) = (RENEWAL, false, created);
                if let (None, Some(version), None) = (version, others, &self.lost) {
                    let key = stored.key();
                    log!(WARN, key, version, "Redis has lost overrides that other processes have in force");
                    self.lost = Some(format!(
                        "version {version} of `{key}`, which other processes have in force, is lost"
                    ));
                }
            }
            Err(error) if error.is_permanent() => {
                (self.wait, self.created) = (RENEWAL, created);
                self.log_failure(&error);
            }
            // An outage, which the next read reports.
            Err(_) => {}
        }
    }

    /// Returns what Redis has lost of the overrides that other processes have in force.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn log_failure(&mut self, error: &StoreError) {
        if !self.has_failed {
            self.has_failed = true;
            log!(WARN, %error, "the inventory of policies could not be published for the command `ratelimits`");
        }
    }
}

/// Returns all policies in JSON, by their prefixes and names. Limiters have any prefix.
fn entries(limiters: &[Arc<LimiterCache>]) -> Vec<(String, String)> {
    let of_attributes = policies().into_iter().filter_map(|info| {
        Some((format!("{}:{}", info.prefix, info.name), serde_json::to_string(&info).ok()?))
    });
    let limiters = limiters.iter().flat_map(|limiters| limiters.list()).take(MOST_LIMITERS);
    let of_limiters = limiters.filter_map(|(name, policy)| {
        let algorithm = policy.algorithm();
        let entry = json!({
            "name": &*name,
            "prefix": null,
            "attribute": algorithm.attribute().name(),
            "algorithm": algorithm.name(),
            "arguments": policy.arguments()?,
        });
        Some((format!("*:{name}"), entry.to_string()))
    });
    of_attributes.chain(of_limiters).collect()
}
