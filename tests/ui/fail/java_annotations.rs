//! Arguments as the annotation libraries of Java have them.

use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[rate_limit(permitsPerSecond = 5, maxBurstSeconds = 5, limitType = LimitType.IP, expire = 60, timeout = 2)]
async fn smooth_bursty() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, capacity = 5.0, timeUnit = TimeUnit.MINUTES, need = 1, isAbort = true, fallback = f, passArgs = true)]
async fn token_limiter() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, passRate = 0.5, addWater = 1)]
async fn funnel_limiter() -> Result<(), Error> {
    Ok(())
}

#[window_limit(during = 10, value = 5, msg = "too many")]
async fn window_limiter() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limitForPeriod = 5, limitRefreshPeriod = "1s", timeoutDuration = 0, fallbackMethod = "f")]
async fn resilient() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(limit = 100, period = "1h")]
async fn arguments_of_a_window() -> Result<(), Error> {
    Ok(())
}

#[count_limit(rate = "100/min", precision = "1s", queue)]
async fn arguments_of_all_the_others() -> Result<(), Error> {
    Ok(())
}

fn main() {}
