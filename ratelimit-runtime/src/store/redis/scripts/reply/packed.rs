//! Lists of numbers in MessagePack, as the library of that name packs them in Redis.

use redis::Value;

/// Returns the numbers, or `None` if the text is anything else than a list of integers.
pub(super) fn numbers(packed: &[u8]) -> Option<Vec<Value>> {
    let mut packed = Packed(packed);
    let length = packed.length()?;
    // Each number takes at least one byte, so a false length reserves no memory.
    let mut numbers = Vec::with_capacity(length.min(packed.0.len()));
    for _ in 0..length {
        numbers.push(Value::Int(packed.number()?));
    }
    packed.0.is_empty().then_some(numbers)
}

/// What is still to be read.
struct Packed<'a>(&'a [u8]);

impl Packed<'_> {
    fn length(&mut self) -> Option<usize> {
        match self.take()? {
            [short @ 0x90..=0x9f] => Some(usize::from(short & 0xf)),
            [0xdc] => self.take().map(|long| u16::from_be_bytes(long).into()),
            [0xdd] => usize::try_from(u32::from_be_bytes(self.take()?)).ok(),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<i64> {
        match self.take()? {
            [small @ 0..=0x7f] => Some(small.into()),
            [negative @ 0xe0..=0xff] => Some(i8::from_be_bytes([negative]).into()),
            [0xcc] => self.take().map(|bytes| u8::from_be_bytes(bytes).into()),
            [0xcd] => self.take().map(|bytes| u16::from_be_bytes(bytes).into()),
            [0xce] => self.take().map(|bytes| u32::from_be_bytes(bytes).into()),
            [0xcf] => i64::try_from(u64::from_be_bytes(self.take()?)).ok(),
            [0xd0] => self.take().map(|bytes| i8::from_be_bytes(bytes).into()),
            [0xd1] => self.take().map(|bytes| i16::from_be_bytes(bytes).into()),
            [0xd2] => self.take().map(|bytes| i32::from_be_bytes(bytes).into()),
            [0xd3] => self.take().map(i64::from_be_bytes),
            _ => None,
        }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::base::property_tests::config;
    use crate::store::redis::testing::test_values;

    /// Packs numbers in the fewest bytes, as the server does.
    pub(in super::super) fn pack(numbers: &[i64]) -> Vec<u8> {
        let mut packed = match numbers.len() {
            short @ ..16 => vec![0x90 | short as u8],
            long => [&[0xdc], &u16::try_from(long).unwrap().to_be_bytes()[..]].concat(),
        };
        for number in numbers {
            match *number {
                small @ -32..=0x7f => packed.push(small as u8),
                number @ 0..=0xff => packed.extend([0xcc, number as u8]),
                number @ 0..=0xffff => packed.extend([&[0xcd], &(number as u16).to_be_bytes()[..]].concat()),
                number @ 0..=0xffff_ffff => {
                    packed.extend([&[0xce], &(number as u32).to_be_bytes()[..]].concat());
                }
                number @ 0.. => packed.extend([&[0xcf], &number.to_be_bytes()[..]].concat()),
                number @ -0x80.. => packed.extend([0xd0, number as u8]),
                number @ -0x8000.. => packed.extend([&[0xd1], &(number as i16).to_be_bytes()[..]].concat()),
                number @ -0x8000_0000.. => {
                    packed.extend([&[0xd2], &(number as i32).to_be_bytes()[..]].concat());
                }
                number => packed.extend([&[0xd3], &number.to_be_bytes()[..]].concat()),
            }
        }
        packed
    }

    fn any_numbers() -> impl Strategy<Value = Vec<i64>> {
        let number = (any::<i64>(), 0..64_u32).prop_map(|(number, bits)| number >> bits);
        vec(prop_oneof![number, test_values::numbers()], 0..40)
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn packed_numbers_are_read(list in any_numbers()) {
            let read = numbers(&pack(&list));
            prop_assert_eq!(read, Some(list.into_iter().map(Value::Int).collect()));
        }

        #[test]
        fn what_is_cut_off_or_follows_is_refused(list in any_numbers(), cut in any::<prop::sample::Index>()) {
            let packed = pack(&list);
            prop_assert_eq!(numbers(&packed[..cut.index(packed.len())]), None);
            prop_assert_eq!(numbers(&[&packed[..], &[0]].concat()), None);
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..40)) {
            if let Some(list) = numbers(&bytes) {
                prop_assert!(list.len() < bytes.len());
            }
        }
    }

    #[test]
    fn false_lengths_reserve_no_memory() {
        assert_eq!(numbers(&[0xdd, 0xff, 0xff, 0xff, 0xff, 1]), None);
    }
}
