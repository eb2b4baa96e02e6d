//! Functions of the same name are counted separately.

use super::limits::count_limit;
use super::{AppError, AppResult, assert_limited, isolated};

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

trait Call {
    async fn call() -> AppResult<()>;
}

impl Call for C {
    #[count_limit(1, "1d")]
    async fn call() -> AppResult<()> {
        Ok(())
    }
}

impl Call for D {
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
fn same_name_in_one_module() {
    isolated(async {
        macro_rules! separate {
            ($($call:expr),*) => {
                $($call.await.unwrap();)*
                $(assert_limited($call.await);)*
            };
        }
        separate!(A.call(), B.call(), Generic(1).call(), call(), inner::call(), outer());
    });
}

#[test]
fn one_trait_on_several_types() {
    isolated(async {
        C::call().await.unwrap();
        D::call().await.unwrap();
        assert_limited(C::call().await);
        assert_limited(D::call().await);
    });
}

struct Ambiguous;
limited_method!(Ambiguous);

impl Call for Ambiguous {
    #[count_limit(1, "1d")]
    async fn call() -> AppResult<()> {
        Ok(())
    }
}

#[test]
fn ambiguous_names_are_invalid() {
    isolated(async {
        Ambiguous.call().await.unwrap();
        match <Ambiguous as Call>::call().await {
            Err(AppError::Refused(ratelimits::Error::Invalid(invalid))) => {
                assert_eq!(invalid.argument(), "name");
            }
            other => panic!("{other:?}"),
        }
        assert_limited(Ambiguous.call().await);
    });
}
