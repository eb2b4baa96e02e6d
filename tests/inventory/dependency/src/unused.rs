//! What no program uses.

use ratelimits::{Error, rate_limit};

/// Is never called.
///
/// # Errors
///
/// If it is called too often.
#[rate_limit(5.0)]
pub async fn never_called() -> Result<(), Error> {
    Ok(())
}
