//! Names derived from functions, types and traits.

use ratelimits::count_limit;

use super::{AppError, AppResult, assert_limited, isolated};

struct A;
struct B;

impl A {
    #[count_limit(1, "1d")]
    async fn f(&self) -> AppResult<()> {
        Ok(())
    }
}

impl B {
    #[count_limit(1, "1d")]
    async fn f() -> AppResult<()> {
        Ok(())
    }
}

struct Generic<T>(T);

impl<T: Into<u64>> Generic<T> {
    #[count_limit(1, "1d")]
    async fn f(self) -> AppResult<u64> {
        Ok(self.0.into())
    }
}

mod other_module {
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

#[test]
fn generic_arguments_share_a_counter() {
    isolated(async {
        assert_eq!(Generic(1u8).f().await.unwrap(), 1);
        assert_limited(Generic(1u32).f().await);
    });
}

#[test]
fn functions_have_separate_derived_names() {
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
            B::f() => "B::f",
            A::call() => "A::call",
            B::call() => "B::call",
            A::provided() => "A::provided",
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
fn foreign_types_are_separated_by_their_arguments() {
    isolated(async {
        let (a, b) = (std::sync::Arc::new(A), std::sync::Arc::new(B));
        a.handle().await.unwrap();
        b.handle().await.unwrap();
        assert_limited(a.handle().await);
    });
}
