use ratelimits::{Error, count_limit, rate_limit};

#[rate_limit(permitsPerSecond = 5, maxBurstSeconds = 5, limitType = LimitType.IP, expire = 60, need = 0.5)]
async fn guava() -> Result<(), Error> {
    Ok(())
}

#[count_limit(windowMs = 60000, max = 5, skipSuccessfulRequests = true, statusCode = 429)]
async fn express() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limitForPeriod = 5, limitRefreshPeriod = "1s", timeoutDuration = 0, fallbackMethod = "f")]
async fn resilience4j() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(5, concurrency = 3)]
async fn semaphore() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(5, maxConcurrent = 3, timeout = 3)]
async fn jboost() -> Result<(), Error> {
    Ok(())
}

fn main() {}
