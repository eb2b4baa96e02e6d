//! Each algorithm and its cost.

use ratelimits::{count_limit, funnel_limit, rate_limit, window_limit};

use super::{AppResult, assert_limited, isolated};

limited! {
    #[rate_limit(rate = 0.001, burst = 3)]
    token_bucket();
    #[rate_limit("2/day", refill = interval)]
    interval();
    #[rate_limit("1/min", "2m")]
    burst_for();
    #[count_limit(limit = 2 + 1, period = "1d", aligned)]
    fixed_window();
    #[funnel_limit(capacity = 3, drain = 24 * 60 * 60)]
    leaky_bucket();
    #[funnel_limit(3, "1/h")]
    leaky_bucket_by_rate();
    #[window_limit(3u8, 3600_i64)]
    log();
    #[window_limit(limit = 3, period = "1h", precision = "1m")]
    counter();
    #[count_limit(10, "1d", cost = weight)]
    weighted(weight: usize);
    #[count_limit(10, "1d", cost = 4)]
    heavy();
}

#[test]
fn each_algorithm_admits_its_limit() {
    isolated(async {
        macro_rules! admits {
            ($($count:literal $function:ident)*) => {$(
                for _ in 0..$count {
                    $function().await.unwrap();
                }
                assert_limited($function().await);
            )*};
        }
        admits!(3 token_bucket 2 interval 2 burst_for 3 fixed_window 3 leaky_bucket 3 leaky_bucket_by_rate 3 log 3 counter);
    });
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
        heavy().await.unwrap();
        assert_limited(heavy().await);
    });
}
