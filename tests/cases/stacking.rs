//! Several attributes on one function.

use super::limits::count_limit as renamed;
use super::limits::{count_limit, funnel_limit, rate_limit, window_limit};
use super::{AppError, AppResult, Text, assert_admits_one, assert_limited, isolated, text};

/// Checks a function that admits three calls, one a user: refused calls must not be charged to the total.
macro_rules! assert_one_decision {
    ($function:expr) => {
        isolated(async {
            $function(1).await.unwrap();
            for _ in 0..5 {
                assert_limited($function(1).await);
            }
            assert_admits_one!($function(2));
            $function(3).await.unwrap();
            assert_limited($function(4).await);
        })
    };
}

#[count_limit(3, "1d")]
#[count_limit(1, "1d", key = user)]
async fn all_first(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[count_limit(1, "1d", key = user)]
#[count_limit(3, "1d")]
async fn all_last(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[count_limit(1, "1d", key = "<user>")]
#[rate_limit("3/day", refill = interval)]
#[funnel_limit(capacity = 4, drain = "1d")]
#[window_limit(5, "1h", precision = "1m")]
async fn every_algorithm(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[test]
fn every_order_and_algorithm() {
    assert_one_decision!(all_first);
    assert_one_decision!(all_last);
    assert_one_decision!(every_algorithm);
}

#[::ratelimits::count_limit(3, "1d")]
#[count_limit(1, "1d", key = user)]
async fn qualified_first(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[count_limit(3, "1d")]
#[inline]
#[ratelimits::rate_limit(rate = "1/day", key = user)]
async fn qualified_last(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[test]
fn qualified_paths() {
    assert_one_decision!(qualified_first);
    assert_one_decision!(qualified_last);
}

#[cfg_attr(test, count_limit(3, "1d"))]
#[cfg_attr(not(test), window_limit(1, "1d"))]
#[count_limit(1, "1d", key = user)]
#[cfg_attr(not(test), nonsense, rate_limit(0))]
async fn conditional_first(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[count_limit(3, "1d")]
#[cfg_attr(not(test), ratelimits::window_limit(1, "1d"))]
#[cfg_attr(test, doc = "Two at once.", ratelimits::count_limit(1, "1d", key = user))]
async fn conditional_last(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[cfg_attr(test, cfg_attr(test, count_limit(3, "1d")), count_limit(1, "1d", key = user))]
async fn conditional_twice(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[test]
fn conditional_attributes() {
    assert_one_decision!(conditional_first);
    assert_one_decision!(conditional_last);
    assert_one_decision!(conditional_twice);
}

/// Documented.
#[count_limit(3, "1d")]
#[tracing::instrument(level = "debug", skip_all)]
#[count_limit(1, "1d", key = user)]
async fn span_between(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[allow(clippy::pedantic)]
#[count_limit(3, "1d")]
/// Documented in between.
#[must_use = "the case"]
#[count_limit(1, "1d", key = user)]
#[doc(hidden)]
async fn others_between(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[test]
fn other_attributes_in_between() {
    assert_one_decision!(span_between);
    assert_one_decision!(others_between);
}

#[count_limit(5, "1d")]
#[rate_limit("1/day", 3, key = user)]
#[funnel_limit(3, drain = "3d", key = room)]
async fn three_policies(user: u8, room: u8) -> AppResult<()> {
    let _ = (user, room);
    Ok(())
}

#[count_limit(5, "1d")]
#[rate_limit("1/day", 3, key = user)]
#[count_limit(100, "1d")]
#[funnel_limit(3, drain = "3d", key = room)]
async fn four_policies(user: u8, room: u8) -> AppResult<()> {
    let _ = (user, room);
    Ok(())
}

/// Each policy refuses some calls, whose keys the others know.
macro_rules! assert_each_policy_refuses {
    ($function:expr) => {
        isolated(async {
            for (user, room) in [(1, 1), (2, 2), (1, 2), (1, 2)] {
                $function(user, room).await.unwrap();
            }
            for _ in 0..5 {
                // The user, and then the room, has no permit left.
                assert_limited($function(1, 1).await);
                assert_limited($function(2, 2).await);
            }
            // And now the total has none.
            assert_admits_one!($function(2, 1));
        })
    };
}

#[test]
fn each_policy_refuses() {
    assert_each_policy_refuses!(three_policies);
    assert_each_policy_refuses!(four_policies);
}

#[count_limit(3, "1d")]
#[count_limit(3, "1d", key = "<@ip>")]
#[count_limit(3, "1d", key = user)]
async fn address_between(user: u8) -> AppResult<()> {
    let _ = user;
    Ok(())
}

#[test]
fn missing_key_charges_no_policy() {
    let context = || ratelimits::RequestContext::new().with_ip(std::net::Ipv4Addr::LOCALHOST);
    isolated(async {
        for _ in 0..3 {
            context().scope(address_between(1)).await.unwrap();
            for _ in 0..5 {
                assert!(!address_between(1).await.unwrap_err().is_limited());
            }
        }
        assert_limited(context().scope(address_between(1)).await);
    });
}

struct Users;

#[async_trait::async_trait]
trait Service {
    async fn boxed(&self, user: u8) -> AppResult<u8>;
}

#[async_trait::async_trait]
impl Service for Users {
    #[count_limit(3, "1d")]
    #[count_limit(1, "1d", key = user)]
    async fn boxed(&self, user: u8) -> AppResult<u8> {
        Ok(user)
    }
}

impl Users {
    #[count_limit(3, "1d")]
    #[rate_limit("1/day", key = user)]
    async fn method(&self, user: u8) -> AppResult<u8> {
        Ok(user)
    }
}

#[test]
fn methods() {
    assert_one_decision!(|user| Users.method(user));
    assert_one_decision!(|user| Users.boxed(user));
}

/// A renamed attribute still finds its siblings, though they do not recognize it.
#[renamed(3, "1d")]
#[count_limit(1, "1d", key = user)]
async fn renamed_import(user: u8) -> AppResult<u8> {
    Ok(user)
}

#[test]
fn renamed_imports() {
    assert_one_decision!(renamed_import);
}

#[count_limit(2, "1h", cost = hours, fallback = hour)]
#[count_limit(2, "1d", cost = days, fallback = day, pass_args)]
#[rate_limit("1/10s", burst = 2, cost = seconds, fallback = |_| format!("second {}", text.0))]
async fn own_fallbacks(text: Text, seconds: u8, hours: u8, days: u8) -> String {
    format!("body {} {seconds} {hours} {days}", text.0)
}

fn hour() -> String {
    String::from("hour")
}

async fn day(text: Text, _: u8, _: u8, _: u8) -> String {
    tokio::task::yield_now().await;
    format!("day {}", text.0)
}

#[test]
fn refusing_policy_picks_the_fallback() {
    isolated(async {
        let call = |seconds, hours, days| own_fallbacks(text("a"), seconds, hours, days);
        assert_eq!(call(1, 1, 1).await, "body a 1 1 1");
        assert_eq!(call(2, 1, 1).await, "second a");
        assert_eq!(call(1, 2, 1).await, "hour");
        assert_eq!(call(1, 1, 2).await, "day a");
        // If several refuse, the longest `retry_after` decides.
        assert_eq!(call(2, 2, 1).await, "hour");
        assert_eq!(call(2, 2, 2).await, "day a");
        assert_eq!(call(1, 1, 1).await, "body a 1 1 1");
    });
}

#[count_limit(1, "1h")]
#[count_limit(2, "1d", cost = days)]
async fn named(days: u8) -> AppResult<u8> {
    Ok(days)
}

#[test]
fn error_names_the_refusing_policy() {
    isolated(async {
        let policy = async |days| match named(days).await {
            Err(AppError::Refused(ratelimits::Error::Limited(limited))) => limited.policy().to_owned(),
            other => panic!("{other:?}"),
        };
        named(1).await.unwrap();
        assert_eq!(policy(1).await, concat!(module_path!(), "::named"));
        assert_eq!(policy(2).await, concat!(module_path!(), "::named#2"));
    });
}
