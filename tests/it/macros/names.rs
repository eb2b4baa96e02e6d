//! Whose counter is whose.

use ratelimits::count_limit;

use super::{AppError, AppResult, alone, assert_limited};

struct A;
struct B;

impl A {
    #[count_limit(1, "1d")]
    async fn f(&self) -> AppResult<()> {
        Ok(())
    }

    #[count_limit(1, "1d", fallback = Self::none)]
    async fn associated() -> Option<u8> {
        Some(1)
    }

    fn none() -> Option<u8> {
        None
    }
}

impl B {
    #[count_limit(1, "1d")]
    async fn f(&self) -> AppResult<()> {
        Ok(())
    }
}

#[count_limit(1, "1d")]
async fn f() -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", name = "shared")]
async fn first() -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", name = "shared")]
async fn second() -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", name = "shared", prefix = "other")]
async fn elsewhere() -> AppResult<()> {
    Ok(())
}

#[test]
fn functions_of_one_name_count_apart() {
    alone(async {
        A.f().await.unwrap();
        B.f().await.unwrap();
        f().await.unwrap();
        assert_limited(A.f().await);
        assert_eq!(A::associated().await, Some(1));
        assert_eq!(A::associated().await, None);
    });
}

#[test]
fn functions_that_are_given_one_name_count_together() {
    alone(async {
        first().await.unwrap();
        assert_limited(second().await);
        elsewhere().await.unwrap();
    });
}

#[test]
fn a_refusal_names_the_policy() {
    alone(async {
        f().await.unwrap();
        let Err(AppError::Refused(ratelimits::Error::Limited(limited))) = f().await else { panic!() };
        assert_eq!(limited.policy(), concat!(module_path!(), "::f"));
    });
}
