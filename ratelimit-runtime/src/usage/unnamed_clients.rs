//! Requests of trusted proxies that name no client.

use std::time::Duration;

use crate::base::log::{LogBound, log};

/// How often an event about them is repeated: a proxy that checks the health of a service does so every few seconds.
const REMINDER: Duration = Duration::from_secs(3600);

/// Logs that a key needed the address of a client that a proxy has not named.
#[derive(Debug)]
pub(crate) struct UnnamedClients {
    /// The header in which the proxy should have named it.
    header: Box<str>,
    log: LogBound,
}

impl UnnamedClients {
    pub(crate) fn new(header: &str) -> Self {
        UnnamedClients { header: header.into(), log: LogBound::default() }
    }

    /// Counts a call that needed the address.
    #[cold]
    pub(crate) fn count(&self) {
        if let Some(calls) = self.log.count(REMINDER) {
            let header = &*self.header;
            log!(WARN, header, calls, "trusted proxies send requests without a client address");
        }
    }
}
