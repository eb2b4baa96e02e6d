//! Polling for conditions that real servers reach in their own time.

use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(10);

/// Polls until the condition returns a value. Panics with its last error after `within`.
pub(crate) async fn until<T>(
    what: &str,
    within: Duration,
    mut condition: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let start = Instant::now();
    loop {
        let error = match tokio::time::timeout(within, condition()).await {
            Ok(Ok(value)) => return value,
            Ok(Err(error)) => error,
            Err(_) => "no answer".to_owned(),
        };
        assert!(start.elapsed() < within, "{what}: not within {within:?}: {error}");
        tokio::time::sleep(POLL).await;
    }
}
