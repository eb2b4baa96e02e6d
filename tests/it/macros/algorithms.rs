//! Each algorithm and its cost.

use ratelimits::{count_limit, funnel_limit, rate_limit, window_limit};

use super::{AppResult, assert_admits_one, assert_limited, isolated};

#[rate_limit(rate = 0.001, burst = 3)]
async fn token_bucket() -> AppResult<u32> {
    Ok(1)
}

#[rate_limit("2/day", refill = interval)]
async fn interval() -> AppResult<u32> {
    Ok(1)
}

#[rate_limit("1/min", "2m")]
async fn burst_for() -> AppResult<u32> {
    Ok(1)
}

#[count_limit(limit = 2 + 1, period = "1d", aligned)]
async fn fixed_window() -> AppResult<u32> {
    Ok(1)
}

#[funnel_limit(capacity = 3, drain = 24 * 60 * 60)]
async fn leaky_bucket() -> AppResult<u32> {
    Ok(1)
}

#[funnel_limit(3, "1/h")]
async fn leaky_bucket_by_rate() -> AppResult<u32> {
    Ok(1)
}

#[window_limit(3u8, 3600_i64)]
async fn log() -> AppResult<u32> {
    Ok(1)
}

#[window_limit(limit = 3, period = "1h", precision = "1m")]
async fn counter() -> AppResult<u32> {
    Ok(1)
}

#[test]
fn each_algorithm_admits_its_limit() {
    isolated(async {
        macro_rules! admits {
            ($($count:literal $function:ident)*) => {$(
                for _ in 0..$count {
                    assert_eq!($function().await.unwrap(), 1);
                }
                assert_limited($function().await);
            )*};
        }
        admits!(3 token_bucket 2 interval 2 burst_for 3 fixed_window 3 leaky_bucket 3 leaky_bucket_by_rate 3 log 3 counter);
    });
}

#[count_limit(10, "1d", cost = weight)]
async fn weighted(weight: usize) -> AppResult<()> {
    Ok(())
}

#[count_limit(10, "1d", cost = 4)]
async fn heavy() -> AppResult<()> {
    Ok(())
}

#[test]
fn calls_take_their_cost() {
    isolated(async {
        weighted(8).await.unwrap();
        assert_limited(weighted(3).await);
        weighted(0).await.unwrap();
        weighted(2).await.unwrap();
        weighted(0).await.unwrap();
        heavy().await.unwrap();
        assert_admits_one!(heavy());
    });
}
