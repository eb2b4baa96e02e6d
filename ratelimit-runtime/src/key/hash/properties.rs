//! A part is its text, however it is written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::base::property_tests::config;
use crate::key::parts::{KeyParts, KeySink};

fn hash<T: Display + ?Sized>(part: &T) -> Fingerprint {
    let mut hasher = KeyHasher::new();
    KeySink { hasher: &mut hasher, kept: None }.part(part).unwrap();
    hasher.finish()
}

fn hash_all(parts: &[String]) -> Fingerprint {
    let mut hasher = KeyHasher::new();
    parts.iter().for_each(|part| hasher.text(part));
    hasher.finish()
}

/// Writes a text in several pieces.
struct Pieces<'a>(&'a str, usize);

impl Display for Pieces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .split_inclusive(|_| true)
            .collect::<Vec<_>>()
            .chunks(self.1)
            .try_for_each(|chars| f.write_str(&chars.concat()))
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => any::<i128>().prop_map(|integer| integer.to_string()),
        2 => (any::<i64>(), 0..64_u32).prop_map(|(integer, bits)| (integer >> bits).to_string()),
        2 => "[-+]?0{0,2}[0-9]{0,22}",
        2 => any::<String>(),
        1 => ("[a-z0-9é]{0,3}", 0..60_usize).prop_map(|(piece, times)| piece.repeat(times)),
        1 => "[0-9a]{60,70}",
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn texts_are_the_same_key_in_whatever_type(text in text(), piece in 1..70_usize) {
        let expected = hash(text.as_str());
        let str = text.as_str();
        prop_assert_eq!(hash(&str), expected);
        prop_assert_eq!(hash(&&str), expected);
        prop_assert_eq!(hash(&text), expected);
        prop_assert_eq!(hash(&&text), expected);
        prop_assert_eq!(hash(&Box::<str>::from(str)), expected);
        prop_assert_eq!(hash(&Rc::<str>::from(str)), expected);
        prop_assert_eq!(hash(&Arc::<str>::from(str)), expected);
        prop_assert_eq!(hash(&Cow::Borrowed(str)), expected);
        prop_assert_eq!(hash(&format_args!("{str}")), expected);
        prop_assert_eq!(hash(&Pieces(str, piece)), expected);
    }

    #[test]
    fn different_tuples_of_texts_are_different_keys(tuples in vec(vec(text(), 0..4), 2..20)) {
        let mut seen = HashMap::new();
        for tuple in tuples {
            let other = seen.entry(hash_all(&tuple)).or_insert_with(|| tuple.clone());
            prop_assert_eq!(other, &tuple);
        }
    }
}

macro_rules! integers {
    ($($integer:ident)*) => {
        proptest! {
            #![proptest_config(config())]
            $(
                #[test]
                fn $integer(integer in any::<$integer>(), bits in 0..$integer::BITS) {
                    for integer in [integer, integer >> bits, $integer::MIN, $integer::MAX] {
                        let expected = hash(integer.to_string().as_str());
                        prop_assert_eq!(hash(&integer), expected);
                        prop_assert_eq!(hash(&&integer), expected);
                        prop_assert_eq!(hash(&&&integer), expected);
                        prop_assert_eq!(hash(&Box::new(integer)), expected);
                        prop_assert_eq!(hash(&Pieces(&integer.to_string(), 1)), expected);
                    }
                }
            )*
        }
    };
}

/// Each is the same key as its text.
mod integers_are_their_texts {
    use super::*;

    integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
}

#[test]
fn only_the_text_of_an_integer_is_an_integer() {
    for text in ["", "-", "+7", "07", "-0", "00", "7 ", " 7", "7.0", "0x7", "-07", "--7", "٧", "7\0"] {
        assert_eq!(Integer::parse(text), None, "{text:?}");
    }
    let too_large = (u128::from(u64::MAX) + 1).to_string();
    let too_small = (i128::from(i64::MIN) - 1).to_string();
    assert_eq!([too_large, too_small].map(|text| Integer::parse(&text)), [None, None]);
    assert_eq!(Integer::parse("0"), Some(Integer::Natural(0)));
    assert_eq!(Integer::parse("18446744073709551615"), Some(Integer::Natural(u64::MAX)));
    assert_eq!(Integer::parse("-9223372036854775808"), Some(Integer::Negative(i64::MIN)));
}

/// Around each boundary of the encoding: words, the buffer, the sizes of integers.
#[test]
fn texts_and_integers_of_all_lengths_differ() {
    let mut seen = HashMap::new();
    for len in 0..200 {
        for text in
            ["a", "\0", "1"].map(|text| text.repeat(len)).into_iter().chain([format!("{}é", "a".repeat(len))])
        {
            if let Some(other) = seen.insert(hash(&text), text.clone()) {
                assert_eq!(other, text);
            }
        }
    }
    for bits in 0..64 {
        for integer in [1_u64 << bits, (1 << bits) - 1, !(1 << bits)] {
            for text in [integer.to_string(), (integer as i64).to_string()] {
                if let Some(other) = seen.insert(hash(&text), text.clone()) {
                    assert_eq!(other, text);
                }
            }
        }
    }
}

#[test]
fn a_part_that_cannot_be_written_is_an_error() {
    struct Fails;
    impl Display for Fails {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&"x".repeat(100))?;
            Err(fmt::Error)
        }
    }
    for kept in [None, Some(&mut KeyParts::default())] {
        assert!(KeySink { hasher: &mut KeyHasher::new(), kept }.part(&Fails).is_err());
    }
}

#[test]
fn the_tag_of_a_key_without_parts_is_the_function_or_the_name() {
    let head =
        |function| KeyHead::new(Head { prefix: "sms", name: "send", shape: &"fw2-60000000", function });
    assert_eq!(head(None).without_parts(), head(Some("send")).without_parts());
    assert_ne!(head(None).without_parts(), head(Some("other")).without_parts());
    let with_part = |function| {
        let mut hasher = head(function).hasher();
        hasher.text("7");
        hasher.finish()
    };
    assert_ne!(with_part(None), with_part(Some("send")));
    assert_ne!(head(None).without_parts(), head(None).hasher().finish());
}
