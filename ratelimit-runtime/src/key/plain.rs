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

impl Plain<'_> {
    /// Returns the integer whose text this is, if it is one.
    #[inline]
    pub(super) fn canonical(self) -> Self {
        match self {
            Plain::Text(text) => Integer::parse(text).map_or(self, Plain::Integer),
            Plain::Integer(_) => self,
        }
    }
}

impl Integer {
    /// Returns the integer, if it is in the range.
    #[inline]
    fn new<N: Copy + TryInto<u64> + TryInto<i64>>(integer: N) -> Option<Self> {
        let natural: Result<u64, _> = integer.try_into();
        natural.map(Integer::Natural).or_else(|_| integer.try_into().map(Integer::Negative)).ok()
    }

    /// Writes the text of the integer to the end of the buffer, and returns it.
    pub(super) fn write(self, buffer: &mut [u8; 20]) -> &[u8] {
        let (mut rest, is_negative) = match self {
            Integer::Natural(natural) => (natural, false),
            Integer::Negative(negative) => (negative.unsigned_abs(), true),
        };
        let mut at = buffer.len();
        loop {
            at -= 1;
            buffer[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if is_negative {
            at -= 1;
            buffer[at] = b'-';
        }
        &buffer[at..]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_they_are_formatted() {
        let naturals = (0..64).flat_map(|bits| [1 << bits, (1 << bits) - 1, u64::MAX >> bits]);
        let tens = (0..20).flat_map(|digits| [10_u64.pow(digits), 10_u64.pow(digits) - 1]);
        for natural in naturals.chain(tens) {
            assert_eq!(Integer::Natural(natural).write(&mut [0; 20]), natural.to_string().as_bytes());
            for negative in [(natural as i64).wrapping_neg(), !(natural as i64)] {
                if let Some(integer @ Integer::Negative(_)) = Integer::new(negative) {
                    assert_eq!(integer.write(&mut [0; 20]), negative.to_string().as_bytes());
                }
            }
        }
    }
}
