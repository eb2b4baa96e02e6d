//! Whose counter is whose.

use ratelimits::count_limit;

use super::{AppError, AppResult, assert_admits_one, assert_limited, isolated};

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

    #[count_limit(1, "1d", fallback = Self::none)]
    async fn associated() -> Option<u8> {
        Some(2)
    }

    fn none() -> Option<u8> {
        None
    }
}

struct Generic<T>(T);

impl<T: Into<u64>> Generic<T> {
    #[count_limit(1, "1d")]
    async fn f(self) -> AppResult<u64> {
        Ok(self.0.into())
    }
}

mod elsewhere_in_the_crate {
    impl super::Generic<&str> {
        #[ratelimits::count_limit(1, "1d")]
        pub(super) async fn length(&self) -> super::AppResult<usize> {
            Ok(self.0.len())
        }
    }
}

trait Service {
    async fn call() -> AppResult<()>;

    #[count_limit(1, "1d")]
    async fn provided() -> AppResult<()> {
        Ok(())
    }
}

impl Service for A {
    #[count_limit(1, "1d")]
    async fn call() -> AppResult<()> {
        Ok(())
    }
}

impl Service for B {
    #[count_limit(1, "1d")]
    async fn call() -> AppResult<()> {
        Ok(())
    }
}

async fn outer() -> AppResult<()> {
    #[count_limit(1, "1d")]
    async fn f() -> AppResult<()> {
        Ok(())
    }
    f().await
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
    isolated(async {
        A.f().await.unwrap();
        B.f().await.unwrap();
        f().await.unwrap();
        assert_limited(A.f().await);
        assert_eq!((A::associated().await, B::associated().await), (Some(1), Some(2)));
        assert_eq!((A::associated().await, B::associated().await), (None, None));
        assert_admits_one!(outer());
    });
}

#[test]
fn methods_of_a_trait_count_by_their_type() {
    isolated(async {
        A::call().await.unwrap();
        assert_admits_one!(B::call());
        A::provided().await.unwrap();
        B::provided().await.unwrap();
        assert_limited(A::provided().await);
    });
}

#[test]
fn generic_arguments_do_not_count() {
    isolated(async {
        assert_eq!(Generic(1u8).f().await.unwrap(), 1);
        assert_limited(Generic(1u32).f().await);
    });
}

#[test]
fn functions_that_are_given_one_name_count_together() {
    isolated(async {
        first().await.unwrap();
        assert_limited(second().await);
        elsewhere().await.unwrap();
    });
}

#[test]
fn a_refusal_names_the_policy() {
    isolated(async {
        macro_rules! names {
            ($($call:expr => $name:literal),*) => {$(
                $call.await.unwrap();
                match $call.await {
                    Err(AppError::Refused(ratelimits::Error::Limited(limited))) => {
                        assert_eq!(limited.policy(), concat!(module_path!(), "::", $name));
                    }
                    other => panic!("{other:?}"),
                }
            )*};
        }
        names!(
            f() => "f",
            outer() => "outer::f",
            A.f() => "A::f",
            B::call() => "B::call",
            B::provided() => "B::provided",
            Generic(1u8).f() => "Generic::f",
            Generic("text").length() => "Generic::length"
        );
    });
}

trait Handler {
    async fn handle(&self) -> AppResult<()>;
}

impl Handler for std::sync::Arc<A> {
    #[count_limit(1, "1d")]
    async fn handle(&self) -> AppResult<()> {
        Ok(())
    }
}

impl Handler for std::sync::Arc<B> {
    #[count_limit(1, "1d")]
    async fn handle(&self) -> AppResult<()> {
        Ok(())
    }
}

#[test]
fn of_types_of_another_crate_are_told_apart_by_their_arguments() {
    isolated(async {
        let (a, b) = (std::sync::Arc::new(A), std::sync::Arc::new(B));
        a.handle().await.unwrap();
        b.handle().await.unwrap();
        assert_limited(a.handle().await);
    });
}
