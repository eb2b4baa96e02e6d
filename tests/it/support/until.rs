//! Waiting for what real servers do in their own time.

use std::time::{Duration, Instant};

/// Asks until there is an answer. What stood in its way last is told when it takes too long.
pub(crate) async fn until<T>(
    what: &str,
    within: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let started = Instant::now();
    loop {
        let seen = match tokio::time::timeout(within, ask()).await {
            Ok(Ok(answer)) => return answer,
            Ok(Err(seen)) => seen,
            Err(_) => "no answer".to_owned(),
        };
        assert!(started.elapsed() < within, "{what}: not within {within:?}, but {seen}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
