//! Derived names: functions of the same name are counted separately.

use std::sync::Arc;

use super::limits::count_limit;
use super::{AppError, AppResult, assert_admits_one, assert_limited, isolated};

struct A;
struct B;

macro_rules! limited_methods {
    ($($type:ident)*) => {$(
        impl $type {
            #[count_limit(1, "1d")]
            async fn call(&self) -> AppResult<()> {
                Ok(())
            }

            #[count_limit(1, "1d")]
            async fn associated() -> AppResult<()> {
                Ok(())
            }
        }

        impl Service for $type {
            #[count_limit(1, "1d")]
            async fn serve() -> AppResult<()> {
                Ok(())
            }
        }

        impl Handler for Arc<$type> {
            #[count_limit(1, "1d")]
            async fn handle(&self) -> AppResult<()> {
                Ok(())
            }
        }
    )*};
}
limited_methods!(A B);

trait Service {
    async fn serve() -> AppResult<()>;

    #[count_limit(1, "1d")]
    async fn provided() -> AppResult<()> {
        Ok(())
    }
}

trait Handler {
    async fn handle(&self) -> AppResult<()>;
}

struct Generic<T>(T);

impl<T: Into<u64>> Generic<T> {
    #[count_limit(1, "1d")]
    async fn call(self) -> AppResult<u64> {
        Ok(self.0.into())
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

    impl super::Generic<&str> {
        #[super::count_limit(1, "1d")]
        pub(super) async fn length(&self) -> super::AppResult<usize> {
            Ok(self.0.len())
        }
    }
}

async fn outer() -> AppResult<()> {
    #[count_limit(1, "1d")]
    async fn call() -> AppResult<()> {
        Ok(())
    }
    call().await
}

mod r#type {
    #[super::count_limit(1, "1d")]
    pub(super) async fn r#match() -> super::AppResult<()> {
        Ok(())
    }
}

/// Asserts that the second of two calls is refused, by the policy of this name in this module.
macro_rules! assert_names {
    ($($call:expr => $name:literal),* $(,)?) => {$(
        $call.await.unwrap();
        match $call.await {
            Err(AppError::Refused(ratelimits::Error::Limited(limited))) => {
                assert_eq!(limited.policy(), concat!(module_path!(), "::", $name));
            }
            other => panic!("{}: {other:?}", $name),
        }
    )*};
}
pub(super) use assert_names;

#[test]
fn functions_have_separate_derived_names() {
    isolated(async {
        assert_names!(
            call() => "call",
            inner::call() => "inner::call",
            outer() => "outer::call",
            r#type::r#match() => "type::match",
            A.call() => "A::call",
            B.call() => "B::call",
            A::associated() => "A::associated",
            B::associated() => "B::associated",
            A::serve() => "<A as Service>::serve",
            B::serve() => "<B as Service>::serve",
            A::provided() => "<A as Service>::provided",
            B::provided() => "<B as Service>::provided",
            Generic(1u8).call() => "Generic::call",
            Generic("text").length() => "Generic<&str>::length",
            Arc::new(A).handle() => "<alloc::sync::Arc<A> as Handler>::handle",
        );
    });
}

#[test]
fn generic_arguments_share_a_counter() {
    isolated(async {
        assert_eq!(Generic(1u8).call().await.unwrap(), 1);
        assert_limited(Generic(1u32).call().await);
    });
}

#[test]
fn foreign_types_differ_by_their_arguments() {
    isolated(async { assert_admits_one!(Arc::new(A).handle(), Arc::new(B).handle()) });
}

struct Ambiguous;

impl Ambiguous {
    #[count_limit(1, "1d")]
    async fn serve() -> AppResult<()> {
        Ok(())
    }
}

impl Service for Ambiguous {
    #[count_limit(1, "1d")]
    async fn serve() -> AppResult<()> {
        Ok(())
    }
}

#[test]
fn methods_of_types_and_traits_have_separate_names() {
    isolated(async { assert_admits_one!(Ambiguous::serve(), <Ambiguous as Service>::serve()) });
}

/// What the compiler gives two functions is the same in two blocks.
async fn two_blocks(first: bool) -> AppResult<()> {
    if first {
        #[count_limit(1, "1d")]
        async fn call() -> AppResult<()> {
            Ok(())
        }
        call().await
    } else {
        #[count_limit(1, "1d")]
        async fn call() -> AppResult<()> {
            Ok(())
        }
        call().await
    }
}

#[test]
fn equal_derived_names_are_invalid() {
    isolated(async {
        two_blocks(true).await.unwrap();
        match two_blocks(false).await {
            Err(AppError::Refused(ratelimits::Error::Invalid(invalid))) => {
                assert_eq!(invalid.argument(), "name");
            }
            other => panic!("{other:?}"),
        }
        assert_limited(two_blocks(true).await);
    });
}
