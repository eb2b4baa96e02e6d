//! Numbers that are known only when the call is made.

use std::time::Duration;

use ratelimits::{Rate, count_limit, funnel_limit, rate_limit, window_limit};

use super::{AppError, AppResult, User, alone, assert_limited};

const LIMIT: i64 = 2;
const RATE: Rate = Rate::new(1, Duration::from_secs(3600));

#[count_limit(limit = user.daily, period = "1d", key = user.id)]
async fn of_the_user(user: &User) -> AppResult<()> {
    let _ = user;
    Ok(())
}

#[window_limit(LIMIT, Duration::from_secs(3600))]
async fn constants() -> AppResult<()> {
    Ok(())
}

#[rate_limit(RATE, burst = burst, refill = interval)]
async fn rates(burst: u16) -> AppResult<()> {
    Ok(())
}

#[rate_limit(rate = rate, burst = "1s")]
async fn floats(rate: f64) -> AppResult<()> {
    Ok(())
}

#[funnel_limit(capacity = capacity, leak_rate = format!("{capacity}/h"))]
async fn strings(capacity: usize) -> AppResult<()> {
    Ok(())
}

#[funnel_limit(2, drain = drain)]
async fn drains(drain: Duration) -> AppResult<()> {
    Ok(())
}

#[test]
fn travel_with_the_call() {
    alone(async {
        let user = |daily| User { id: 1, daily };
        of_the_user(&user(1)).await.unwrap();
        assert_limited(of_the_user(&user(1)).await);
        of_the_user(&user(2)).await.unwrap();
        constants().await.unwrap();
        constants().await.unwrap();
        assert_limited(constants().await);
        rates(1).await.unwrap();
        assert_limited(rates(1).await);
        floats(0.001).await.unwrap();
        assert_limited(floats(0.001).await);
        strings(1).await.unwrap();
        assert_limited(strings(1).await);
        drains(Duration::from_secs(3600)).await.unwrap();
    });
}

#[test]
fn that_make_no_sense_are_invalid() {
    alone(async {
        let invalid = |result: AppResult<()>| match result {
            Err(AppError::Refused(ratelimits::Error::Invalid(invalid))) => invalid.argument(),
            other => panic!("{other:?}"),
        };
        assert_eq!(invalid(of_the_user(&User { id: 1, daily: 0 }).await), "limit");
        assert_eq!(invalid(floats(f64::NAN).await), "rate");
        assert_eq!(invalid(drains(Duration::ZERO).await), "drain");
    });
}
