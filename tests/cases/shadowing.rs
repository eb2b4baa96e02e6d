//! User names that also occur in the standard library or in the generated code.

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppResult, assert_admits_one, assert_outputs, isolated};

#[allow(dead_code, non_camel_case_types, unused_macros)]
mod clash {
    use super::super::{AppError, limits};

    struct Box;
    struct Result;
    struct Option;
    struct Ok;
    struct Err;
    struct Some;
    struct None;
    struct Vec;
    struct String;
    trait From {}
    trait Into {}
    trait Future {}
    trait Drop {}
    mod core {}
    mod std {}
    mod ratelimits {}
    macro_rules! concat {
        () => {};
    }
    macro_rules! module_path {
        () => {};
    }
    macro_rules! panic {
        () => {};
    }
    type u64 = ();
    type usize = ();
    type f64 = ();
    type i128 = ();
    type bool = ();
    type str = ();

    #[limits::rate_limit(rate = 100.0, burst = "5s", key = key, timeout = "forever", borrow)]
    pub(super) async fn template(key: u8) -> ::core::result::Result<u8, AppError> {
        ::core::result::Result::Ok(key)
    }

    #[limits::count_limit(limit = limit, period = "1m", cost = 1, fallback = none)]
    pub(super) async fn computed(limit: u8) -> u8 {
        limit
    }

    #[limits::funnel_limit(capacity = 2, drain = "1m", queue, timeout = "1us", key_type = METHOD, fallback = |_| 0)]
    #[limits::window_limit(limit = 1, period = 60, precision = "1s", cost = weight, fallback = |_| 1)]
    pub(super) async fn stacked(weight: u8) -> u8 {
        weight + 1
    }

    fn none() -> u8 {
        0
    }
}

#[test]
fn standard_library_names() {
    isolated(async {
        assert_eq!(clash::template(5).await.unwrap(), 5);
        assert_outputs!(
            clash::computed(1) => 1, 0;
            clash::stacked(1) => 2, 1;
        );
    });
}

#[count_limit(9, "1d", key = "<call>:<deciding>:<policy>:<cost>", timeout = timeout)]
async fn arguments(call: u8, deciding: u8, policy: u8, cost: u8, timeout: &str) -> AppResult<u8> {
    struct Result;
    let _ = Result;
    #[allow(non_snake_case, reason = "the case")]
    let POLICIES = call + deciding + policy + cost;
    Ok(POLICIES)
}

#[count_limit(limit = limit, period = period, cost = cost, key = (verdict, error, kind), fallback = sum, pass_args)]
async fn more_arguments(
    [limit, period, cost]: [u8; 3],
    (verdict, error): (u8, u8),
    (Ok(argument_0) | Err(argument_0)): Result<u8, u8>,
    [answer, refused, called, kind, output, argument_1]: [u8; 6],
) -> u8 {
    let sum = limit + period + cost + verdict + error + argument_0;
    sum + answer + refused + called + kind + output + argument_1
}

fn sum(first: [u8; 3], second: (u8, u8), third: Result<u8, u8>, _: [u8; 6]) -> u8 {
    100 + first[0] + second.0 + third.unwrap()
}

#[test]
fn arguments_named_like_generated_locals() {
    isolated(async {
        assert_eq!(arguments(1, 2, 3, 4, "0s").await.unwrap(), 10);
        let call = || more_arguments([1, 60, 1], (1, 1), Ok(1), [1; 6]);
        assert_outputs!(call() => 71, 103);
    });
}

const POLICY: u8 = 1;
const LIMIT: u8 = 1;
const PERIOD: &str = "1d";
const COST: u32 = 1;
const RATE: &str = "1/day";
const TIMEOUT: &str = "0s";
static PLACE: u8 = 1;

#[count_limit(LIMIT, PERIOD, cost = COST, timeout = TIMEOUT, key = (POLICY, PLACE))]
async fn window_of_constants() -> AppResult<u8> {
    Ok(LIMIT)
}

#[rate_limit(RATE, burst = 2, cost = LIMIT + POLICY, key = PLACE)]
async fn bucket_of_constants() -> AppResult<u8> {
    Ok(LIMIT)
}

#[window_limit(limit = 1, period = PERIOD, cost = COST, key = LIMIT)]
async fn literal_beside_a_constant() -> AppResult<u8> {
    Ok(LIMIT)
}

#[test]
fn constants_named_like_generated_ones() {
    isolated(async {
        assert_admits_one!(
            window_of_constants() => 1,
            bucket_of_constants() => 1,
            literal_beside_a_constant() => 1,
        );
    });
}

mod shadowed {
    pub(super) struct Result(pub(super) u8);
    pub(super) struct Key;
    pub(super) struct Call;
    pub(super) struct Fallback;
    pub(super) enum Error {
        Limited,
        Store,
    }
    pub(super) mod ratelimits {
        pub(in super::super) const LIMIT: u8 = 5;
    }
    pub(super) mod core {}
}

/// `Result` is the user's in the body but not in the signature (tracing#3306).
#[count_limit(1, "1d", key = number)]
async fn glob(number: u8) -> Result<u8, super::AppError> {
    let sum = number + LIMIT;
    use Error::*;
    use shadowed::*;
    let _ = (Key, Call, Fallback);
    let error = if sum > 1 { Limited } else { Store };
    let Result(more) = match error {
        Limited => Result(ratelimits::LIMIT),
        Store => Result(0),
    };
    Ok(sum + more)
}

#[count_limit(1, "1d", fallback = inside, pass_args)]
async fn items(number: u8) -> u8 {
    const LIMIT: u8 = 100;
    struct Call(u8);
    impl Call {
        fn decide(self) -> u8 {
            self.0
        }
    }
    fn inside(number: u8) -> u8 {
        number + LIMIT
    }
    macro_rules! count_limit {
        ($number:expr) => {
            inside($number)
        };
    }
    count_limit!(Call(number).decide())
}

fn inside(number: u8) -> u8 {
    number
}

#[test]
fn items_and_globs_in_the_body() {
    isolated(async {
        assert_admits_one!(glob(1) => 7);
        assert_outputs!(items(1) => 101, 1);
    });
}

trait Everywhere {
    fn is_err(&self) -> u8 {
        1
    }

    fn decide(&self) -> u8 {
        2
    }

    fn part(&self) -> u8 {
        3
    }
}

impl<T: ?Sized> Everywhere for T {}

#[count_limit(1, "1d", key = "<id.part()>:<@method>", fallback = two, pass_args)]
async fn methods(id: &str) -> u8 {
    id.is_err() + id.decide()
}

fn two(id: &str) -> u8 {
    id.decide()
}

#[test]
fn methods_named_like_generated_calls() {
    isolated(async { assert_eq!((methods("a").await, methods("b").await), (3, 2)) });
}

struct Wrapper(u8);

#[count_limit(1, "1d", fallback = unwrapped, pass_args)]
async fn item_named_like_a_pattern(Wrapper(number): Wrapper) -> u8 {
    struct Wrapper;
    let _ = Wrapper;
    number
}

fn unwrapped(Wrapper(number): Wrapper) -> u8 {
    number + 1
}

#[test]
fn body_items_do_not_shadow_patterns() {
    isolated(async {
        assert_outputs!(item_named_like_a_pattern(Wrapper(1)) => 1, 2);
    });
}

/// Columns as `dsl::*` of diesel imports them: a `let` cannot shadow them.
#[allow(dead_code, non_camel_case_types, non_upper_case_globals, reason = "the case")]
mod columns {
    macro_rules! columns {
        ($($name:ident)*) => {$(pub(in super::super) struct $name;)*};
    }
    columns!(call closure cost deciding error kind output policy registry verdict);
    pub(super) static period: u8 = 1;
    pub(super) const refused: u8 = 1;
    pub(super) const argument_0: u8 = 1;
}

mod imported {
    #[allow(unused_imports, clippy::wildcard_imports, reason = "the case")]
    use super::columns::*;
    use super::{AppResult, count_limit};

    #[count_limit(1, "1d", key = period)]
    pub(super) async fn column() -> AppResult<u8> {
        Ok(period)
    }

    #[count_limit(1, "1d", cost = period, fallback = none, pass_args)]
    pub(super) async fn passed((first, _): (u8, u8)) -> u8 {
        first
    }

    fn none(_: (u8, u8)) -> u8 {
        0
    }
}

#[test]
fn imports_named_like_generated_locals() {
    isolated(async {
        assert_admits_one!(imported::column() => 1);
        assert_outputs!(imported::passed((1, 1)) => 1, 0);
    });
}
