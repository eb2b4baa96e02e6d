//! Parts whose text need not be formatted.

use std::borrow::Cow;
use std::sync::Arc;

use super::downcast::downcast;

/// An integer or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain<'a> {
    Integer(Integer),
    Text(&'a str),
}

/// An integer of the range that `u64` and `i64` share between them. Each has one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Integer {
    Natural(u64),
    Negative(i64),
}

impl<'a> Plain<'a> {
    /// Returns what the part is, if its type says so.
    #[inline]
    pub(super) fn of<T: ?Sized>(part: &'a T) -> Option<Self> {
        macro_rules! integers {
            ($($integer:ty)*) => {$(
                if let Some(integer) = downcast::<T, $integer>(part) {
                    return Integer::new(*integer).map(Plain::Integer);
                }
                if let Some(integer) = downcast::<T, &'static $integer>(part) {
                    return Integer::new(**integer).map(Plain::Integer);
                }
            )*};
        }
        macro_rules! texts {
            ($($text:ty)*) => {$(
                if let Some(text) = downcast::<T, $text>(part) {
                    return Some(Plain::Text(text));
                }
            )*};
        }
        texts!(str &'static str &'static &'static str);
        texts!(String &'static String &'static &'static String);
        texts!(Box<str> &'static Box<str> Arc<str> &'static Arc<str> Cow<'static, str> &'static Cow<'static, str>);
        integers!(u64 i64 u32 i32 u128 i128 usize isize u16 i16 u8 i8);
        None
    }
}

impl Integer {
    /// Returns the integer, if it is in the range.
    #[inline]
    fn new<N: Copy + TryInto<u64> + TryInto<i64>>(integer: N) -> Option<Self> {
        let natural: Result<u64, _> = integer.try_into();
        natural.map(Integer::Natural).or_else(|_| integer.try_into().map(Integer::Negative)).ok()
    }

    /// Returns the integer that this is the text of.
    #[inline]
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.as_bytes() {
            b"0" => Some(Integer::Natural(0)),
            [b'1'..=b'9', ..] => text.parse().ok().map(Integer::Natural),
            [b'-', b'1'..=b'9', ..] => text.parse().ok().map(Integer::Negative),
            _ => None,
        }
    }
}
