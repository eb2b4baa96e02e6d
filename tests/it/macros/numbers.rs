//! Numbers that are known only when the call is made.

use std::time::Duration;

use ratelimits::{Rate, count_limit, funnel_limit, rate_limit, window_limit};

use super::{AppError, AppResult, User, assert_admits_one, assert_outputs, isolated};

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
    isolated(async {
        let user = |daily| User { id: 1, daily };
        assert_admits_one!(of_the_user(&user(1)));
        of_the_user(&user(2)).await.unwrap();
        constants().await.unwrap();
        assert_admits_one!(constants(), rates(1), floats(0.001), strings(1),);
        drains(Duration::from_secs(3600)).await.unwrap();
    });
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
fn may_be_references() {
    let plan = || Plan { limit: 1, rate: 0.001, period: Duration::from_secs(60) };
    isolated(async {
        assert_outputs!(
            by_window(plan()) => Some(1), None;
            by_bucket(plan()) => Some(1), None;
        );
    });
}

#[window_limit(limit = limit, period = "1h", precision = precision)]
async fn precisely(limit: &u32, precision: &str) -> AppResult<()> {
    Ok(())
}

#[test]
fn a_precision_has_its_unit() {
    isolated(async {
        assert_admits_one!(precisely(&1, "1m"));
    });
}

#[rate_limit(rate = rate)]
async fn whole(rate: i64) -> AppResult<()> {
    Ok(())
}

#[test]
fn a_negative_rate_is_told_what_a_rate_is() {
    isolated(async {
        let Err(AppError::Refused(error)) = whole(-1).await else { panic!("not refused") };
        let message = "`rate` is negative; write permits per second above zero (5.0) or \"1/min\"";
        assert_eq!(error.to_string(), message);
    });
}

#[test]
fn that_make_no_sense_are_invalid() {
    isolated(async {
        let invalid = |result: AppResult<()>| match result {
            Err(AppError::Refused(ratelimits::Error::Invalid(invalid))) => invalid.argument(),
            other => panic!("{other:?}"),
        };
        assert_eq!(invalid(of_the_user(&User { id: 1, daily: 0 }).await), "limit");
        assert_eq!(invalid(floats(f64::NAN).await), "rate");
        assert_eq!(invalid(drains(Duration::ZERO).await), "drain");
    });
}

fn limit() -> u64 {
    1
}

#[count_limit(limits, every)]
async fn by_name_of_an_argument(limits: u64, every: &str) -> AppResult<()> {
    Ok(())
}

#[count_limit(limit(), "1d")]
async fn by_a_call() -> AppResult<()> {
    Ok(())
}

#[test]
fn that_go_by_position_may_be_arguments_and_calls() {
    isolated(async {
        assert_admits_one!(by_name_of_an_argument(1, "1d"), by_a_call(),);
    });
}
