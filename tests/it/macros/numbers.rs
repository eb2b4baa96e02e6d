//! Computed numbers.

use std::time::Duration;

use ratelimits::{Rate, count_limit, funnel_limit, rate_limit, window_limit};

use super::{AppError, AppResult, User, assert_admits_one, assert_limited, assert_outputs, isolated};

const LIMIT: i64 = 2;
const RATE: Rate = Rate::new(1, Duration::from_secs(3600));

limited! {
    #[count_limit(limit = user.daily, period = "1d", key = user.id)]
    by_user(user: &User);
    #[window_limit(LIMIT, Duration::from_secs(3600))]
    constants();
    #[rate_limit(RATE, burst = burst, refill = interval)]
    rates(burst: u16);
    #[rate_limit(rate = rate, burst = "1s")]
    floats(rate: f64);
    #[funnel_limit(capacity = capacity, leak_rate = format!("{capacity}/h"))]
    strings(capacity: usize);
    #[funnel_limit(2, drain = drain)]
    drains(drain: Duration);
    #[window_limit(limit = limit, period = "1h", precision = precision)]
    with_precision(limit: &u32, precision: &str);
    #[rate_limit(rate = rate)]
    integer_rate(rate: i64);
    #[count_limit(limits, every)]
    positional_arguments(limits: u64, every: &str);
    #[count_limit(limit(), "1d")]
    positional_call();
}

fn limit() -> u64 {
    1
}

#[test]
fn numbers_are_evaluated_per_call() {
    isolated(async {
        let user = |daily| User { id: 1, daily };
        assert_admits_one!(by_user(&user(1)));
        by_user(&user(2)).await.unwrap();
        constants().await.unwrap();
        constants().await.unwrap();
        assert_limited(constants().await);
        assert_admits_one!(
            rates(1),
            floats(0.001),
            strings(1),
            with_precision(&1, "1m"),
            positional_arguments(1, "1d"),
            positional_call(),
        );
        drains(Duration::from_secs(3600)).await.unwrap();
    });
}

#[test]
fn computed_floats_are_taken() {
    // Each in a bucket of its own, as different rates share one.
    for (base, factor) in [(0.1, 3.0), (0.7, 1.1), (12.3, 1.5)] {
        isolated(async { floats(base * factor).await.unwrap() });
    }
}

struct Plan {
    limit: u32,
    rate: f64,
    period: Duration,
}

#[count_limit(limit = limit, period = period, fallback = over, pass_args)]
async fn by_window(Plan { limit, period, .. }: Plan) -> Option<u32> {
    let _ = period;
    Some(limit)
}

#[rate_limit(rate = rate, burst = limit, cost = limit, fallback = over, pass_args)]
async fn by_bucket(Plan { limit, rate, .. }: Plan) -> Option<u32> {
    let _ = rate;
    Some(limit)
}

fn over(_: Plan) -> Option<u32> {
    None
}

#[test]
fn numbers_may_be_references() {
    let plan = || Plan { limit: 1, rate: 0.001, period: Duration::from_secs(60) };
    isolated(async {
        assert_outputs!(
            by_window(plan()) => Some(1), None;
            by_bucket(plan()) => Some(1), None;
        );
    });
}

#[test]
fn negative_rate_message() {
    isolated(async {
        let Err(AppError::Refused(error)) = integer_rate(-1).await else { panic!("not refused") };
        let message = "`rate` is negative; write permits per second (5.0) or \"1/min\"";
        assert_eq!(error.to_string(), message);
    });
}

#[count_limit(5, "1d", cost = cost)]
async fn costs(cost: i32) -> AppResult<()> {
    Ok(())
}

#[test]
fn negative_cost_message() {
    isolated(async {
        costs(0).await.unwrap();
        let Err(AppError::Refused(error)) = costs(-1).await else { panic!("not refused") };
        assert_eq!(error.to_string(), "`cost` is negative; write a whole number, 0 or above");
    });
}

#[test]
fn invalid_numbers_name_the_argument() {
    isolated(async {
        let invalid = |result: AppResult<()>| match result {
            Err(AppError::Refused(ratelimits::Error::Invalid(invalid))) => invalid.argument().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(invalid(by_user(&User { id: 1, daily: 0 }).await), "limit");
        assert_eq!(invalid(floats(f64::NAN).await), "rate");
        assert_eq!(invalid(drains(Duration::ZERO).await), "drain");
    });
}
