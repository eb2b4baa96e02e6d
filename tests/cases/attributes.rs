//! Other attributes, raw identifiers and lints.

use super::limits::{count_limit, rate_limit};
use super::{AppError, AppResult, assert_admits_one, assert_limited, isolated};

/// A documented function.
#[count_limit(2, "1d", key = r#type)]
#[rate_limit(1000)]
#[inline]
#[doc(hidden)]
pub(super) async fn r#fn(r#type: &str) -> Result<&str, AppError> {
    Ok(r#type)
}

#[inline(never)]
#[cold]
#[rate_limit("1/day", key = "<r#in>", fallback = r#false, pass_args)]
/// Documented in between.
pub(in super::super) async fn r#match(r#in: u8, mut r#mut: Vec<u8>) -> Vec<u8> {
    r#mut.push(r#in);
    r#mut
}

fn r#false(_: u8, r#mut: Vec<u8>) -> Vec<u8> {
    r#mut
}

#[test]
fn docs_visibility_and_raw_identifiers() {
    isolated(async {
        assert_eq!(r#fn("type").await.unwrap(), "type");
        assert_eq!(r#match(1, vec![]).await, [1]);
        assert!(r#match(1, vec![]).await.is_empty());
    });
}

#[count_limit(1, "1d")]
#[expect(unsafe_code, reason = "the case")]
/// # Safety
///
/// `number` is valid for reads.
async unsafe fn reads_pointer(number: *const u8) -> AppResult<u8> {
    // SAFETY: the caller guarantees it.
    Ok(unsafe { *number })
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the case")]
#[target_feature(enable = "sse2")]
#[count_limit(1, "1d", fallback = zero)]
async unsafe fn with_target_feature() -> u8 {
    1
}

#[cfg(target_arch = "x86_64")]
fn zero() -> u8 {
    0
}

#[test]
#[expect(unsafe_code, reason = "the case")]
fn unsafe_functions() {
    isolated(async {
        // SAFETY: a reference points to its number.
        assert_eq!(unsafe { reads_pointer(&5) }.await.unwrap(), 5);
        // SAFETY: see above.
        assert_limited(unsafe { reads_pointer(&5) }.await);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has SSE2.
        assert_eq!(unsafe { (with_target_feature().await, with_target_feature().await) }, (1, 0));
    });
}

#[count_limit(1, "1d")]
async fn inner_attributes(_text: &str) -> AppResult<u8> {
    #![expect(unused_variables, reason = "the case")]
    #![allow(clippy::needless_return, reason = "the case")]
    #![doc = "Inside."]
    let unused = 1;
    return Ok(1);
}

#[count_limit(1, "1d")]
async fn inner_attributes_and_expression() -> AppResult<u8> {
    #![allow(clippy::all)]
    Ok(1)
}

#[test]
fn inner_attributes_on_the_body() {
    isolated(async {
        assert_admits_one!(inner_attributes("") => 1);
        assert_eq!(inner_attributes_and_expression().await.unwrap(), 1);
    });
}

#[expect(dead_code, reason = "the case")]
#[count_limit(1, "1d")]
async fn never_called() -> AppResult<u8> {
    Ok(1)
}

#[count_limit(1, "1d")]
#[expect(dead_code, reason = "the case")]
async fn never_called_either() -> AppResult<u8> {
    Ok(1)
}

struct Api;

impl Api {
    #[expect(dead_code, reason = "the case")]
    #[count_limit(1, "1d", fallback = Self::unused, pass_args)]
    async fn never_called(&self, id: u8) -> u8 {
        id
    }

    fn unused(_: &Self, id: u8) -> u8 {
        id
    }
}

#[count_limit(1, "1d", key = counted)]
#[expect(unused_variables, unused_mut, unused_assignments, reason = "the case")]
async fn with_unused_code(counted: u8, unused: u8, mut never_changed: u8) -> AppResult<u8> {
    let mut never_read = 1;
    never_read = 2;
    Ok(never_changed)
}

#[count_limit(1, "1d")]
#[expect(unreachable_code, reason = "the case")]
async fn with_unreachable_code() -> AppResult<u8> {
    return Ok(1);
    Ok(2)
}

#[must_use]
#[count_limit(1, "1d", fallback = none)]
async fn must_use() -> u8 {
    1
}

#[count_limit(1, "1d", fallback = none)]
#[deprecated = "the case"]
async fn deprecated_function() -> u8 {
    1
}

fn none() -> u8 {
    0
}

#[test]
fn lints_apply_to_user_code() {
    isolated(async {
        assert_admits_one!(with_unused_code(1, 2, 3) => 3);
        assert_eq!(with_unreachable_code().await.unwrap(), 1);
        #[expect(unused_must_use, reason = "the case")]
        must_use().await;
        #[expect(deprecated, reason = "the case")]
        let count = deprecated_function().await;
        assert_eq!((count, must_use().await), (1, 0));
    });
}
