//! Recognizes the type behind a type parameter. `Any` cannot, because the parameter may have lifetimes.

#![expect(unsafe_code, reason = "stable Rust has no specialization")]

use std::any::TypeId;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

/// A type, given with `'static` for each lifetime in it.
///
/// # Safety
///
/// `At<'a>` is the type with `'a` for each lifetime in it, and the type is covariant in all of them.
pub(super) unsafe trait Known: 'static {
    type At<'a>: ?Sized + 'a;
}

macro_rules! without_lifetimes {
    ($($known:ty)*) => {$(
        // SAFETY: The type has no lifetimes.
        unsafe impl Known for $known {
            type At<'a> = $known;
        }
    )*};
}
without_lifetimes! {
    u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize
    str String Box<str> Arc<str>
}

// SAFETY: `Cow` is covariant in its only lifetime.
unsafe impl Known for Cow<'static, str> {
    type At<'a> = Cow<'a, str>;
}

// SAFETY: A reference is covariant in its lifetime and in its target, which is covariant in its own lifetimes.
unsafe impl<U: Known + ?Sized> Known for &'static U {
    type At<'a> = &'a U::At<'a>;
}

/// Returns the value as what it is, if `T` is `U` with whatever lifetimes.
#[inline]
pub(super) fn downcast<'a, T: ?Sized, U: Known + ?Sized>(value: &'a T) -> Option<&'a U::At<'a>> {
    if type_id::<T>() != TypeId::of::<U>() {
        return None;
    }
    // SAFETY: Type ids ignore lifetimes and nothing else, so `T` is `U` with other lifetimes. Each of them outlives `'a`,
    // because `&'a T` exists, and `U` is covariant in them, so `T` is a subtype of `U::At<'a>`, and `&'a T` of the result.
    Some(unsafe { mem::transmute_copy::<&'a T, &'a U::At<'a>>(&value) })
}

/// Returns the id of the type with `'static` for each lifetime in it. The compiler computes it.
#[inline]
fn type_id<T: ?Sized>() -> TypeId {
    trait Id {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T: ?Sized> Id for PhantomData<T> {
        #[inline]
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let marker = PhantomData::<T>;
    let marker: &dyn Id = &marker;
    // SAFETY: The types differ only in the bound of the object. Its method is compiled without regard to lifetimes, reads
    // nothing of `T`, and keeps nothing: the reference ends with this call.
    let marker = unsafe { mem::transmute::<&dyn Id, &(dyn Id + 'static)>(marker) };
    marker.id()
}

#[cfg(test)]
mod tests {
    use std::fmt::Display;

    use super::*;

    fn text<T: Display + ?Sized>(value: &T) -> Option<&str> {
        downcast::<T, &'static str>(value).copied()
    }

    #[test]
    fn types_are_recognized_whatever_their_lifetimes() {
        let owned = String::from("ann");
        let local = owned.as_str();
        assert_eq!(text(&local), Some("ann"));
        assert_eq!(text(&"ann"), Some("ann"));
        assert_eq!(downcast::<_, str>(local), Some("ann"));
        assert_eq!(downcast::<_, String>(&owned), Some(&owned));
        assert_eq!(downcast::<_, &'static String>(&&owned), Some(&&owned));
        assert_eq!(downcast::<_, &'static &'static str>(&&local), Some(&&local));
        assert_eq!(downcast::<_, Cow<'static, str>>(&Cow::Borrowed(local)), Some(&Cow::Borrowed(local)));
        assert_eq!(downcast::<_, Box<str>>(&Box::<str>::from(local)).map(|text| &**text), Some("ann"));
        assert_eq!(downcast::<_, u64>(&7_u64), Some(&7));
        assert_eq!(downcast::<_, &'static u64>(&&7_u64), Some(&&7));
    }

    #[test]
    fn other_types_are_not() {
        struct Same<'a>(#[expect(dead_code, reason = "only the type counts")] &'a str);
        let owned = String::from("ann");
        assert_eq!(downcast::<_, u64>(&7_i64), None);
        assert_eq!(downcast::<_, u64>(&&7_u64), None);
        assert_eq!(downcast::<_, String>(owned.as_str()), None);
        assert_eq!(downcast::<_, &'static str>(&Same(&owned)), None);
        assert_eq!(text(&format_args!("{owned}")), None);
    }

    /// The result must not outlive what the value was borrowed from; that this compiles shows that it may be as short.
    #[test]
    fn values_are_read_at_the_shorter_lifetime() {
        fn first<'a>(value: &'a &str) -> &'a str {
            text(value).unwrap_or_default()
        }
        let kept = String::from("kept");
        let short = {
            let borrowed = kept.as_str();
            first(&borrowed).len()
        };
        assert_eq!(short, 4);
    }
}
