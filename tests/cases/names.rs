//! Functions of one name have a counter each.

use super::limits::count_limit;
use super::{AppError, AppResult, alone, assert_limited};

struct A;
struct B;
struct Generic<T>(T);

macro_rules! limited_method {
    ($($self:ty)*) => {$(
        impl $self {
            #[count_limit(1, "1d")]
            async fn call(&self) -> AppResult<()> {
                Ok(())
            }
        }
    )*};
}
limited_method!(A B Generic<u8>);

struct C;
struct D;

trait Called {
    async fn call() -> AppResult<()>;
}

impl Called for C {
    #[count_limit(1, "1d")]
    async fn call() -> AppResult<()> {
        Ok(())
    }
}

impl Called for D {
    #[count_limit(1, "1d")]
    async fn call() -> AppResult<()> {
        Ok(())
    }
}

#[count_limit(1, "1d")]
async fn call() -> AppResult<()> {
    Ok(())
}

mod inner {
    #[super::count_limit(1, "1d")]
    pub(super) async fn call() -> super::AppResult<()> {
        Ok(())
    }
}

async fn outer() -> AppResult<()> {
    #[count_limit(1, "1d")]
    async fn call() -> AppResult<()> {
        Ok(())
    }
    call().await
}

#[test]
fn in_one_module_on_several_types_and_inside_functions() {
    alone(async {
        macro_rules! apart {
            ($($call:expr),*) => {
                $($call.await.unwrap();)*
                $(assert_limited($call.await);)*
            };
        }
        apart!(A.call(), B.call(), Generic(1).call(), call(), inner::call(), outer());
    });
}

#[test]
fn of_one_trait_on_several_types() {
    alone(async {
        C::call().await.unwrap();
        D::call().await.unwrap();
        assert_limited(C::call().await);
        assert_limited(D::call().await);
    });
}

struct Ambiguous;
limited_method!(Ambiguous);

impl Called for Ambiguous {
    #[count_limit(1, "1d")]
    async fn call() -> AppResult<()> {
        Ok(())
    }
}

#[test]
fn of_one_type_are_told_that_they_need_names() {
    alone(async {
        Ambiguous.call().await.unwrap();
        match <Ambiguous as Called>::call().await {
            Err(AppError::Refused(ratelimits::Error::Invalid(invalid))) => {
                assert_eq!(invalid.argument(), "name");
            }
            other => panic!("{other:?}"),
        }
        assert_limited(Ambiguous.call().await);
    });
}
