//! Which processes hold permits of a concurrency limit.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A process whose calls hold permits of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The number by which Redis knows it, and which it has logged in hexadecimal digits. Each registry of a program has its own.
    pub process: u64,
    /// The permits that its calls hold.
    pub permits: u64,
}

/// The field of a key that is no share.
const SUM: &[u8] = b"sum";

/// Numbers below this are exact as doubles.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns who holds permits at this time, in microseconds since the Unix epoch: those with the most first. `fields` are those of a key,
/// as `lua/holds.lua` describes them. `None` if they are no such state.
pub(super) fn holders(fields: &[(Vec<u8>, Vec<u8>)], now: u64) -> Option<Vec<Holder>> {
    let mut by_process = BTreeMap::new();
    for (field, value) in fields.iter().filter(|(field, _)| field != SUM) {
        let [process, _epoch] = numbers(field)?;
        let [permits, until, _released, _is_reported] = numbers(value)?;
        if until > now && permits > 0 {
            *by_process.entry(process).or_default() += permits;
        }
    }
    let mut holders: Vec<_> =
        by_process.into_iter().map(|(process, permits)| Holder { process, permits }).collect();
    holders.sort_by_key(|holder| Reverse(holder.permits));
    Some(holders)
}

/// Returns so many whole numbers that are packed as doubles.
fn numbers<const COUNT: usize>(packed: &[u8]) -> Option<[u64; COUNT]> {
    let (doubles, rest) = packed.as_chunks();
    let doubles: &[[u8; 8]; COUNT] = doubles.try_into().ok().filter(|_| rest.is_empty())?;
    let doubles = doubles.map(f64::from_le_bytes);
    let are_whole = doubles.iter().all(|double| (0.0..EXACT).contains(double) && double.fract() == 0.0);
    are_whole.then(|| doubles.map(|double| double as u64))
}

#[cfg(test)]
mod tests {
    use super::{Holder, holders};

    const NOW: u64 = 1_000_000;

    fn packed(numbers: &[f64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn share(process: f64, epoch: f64, permits: f64, until: f64) -> (Vec<u8>, Vec<u8>) {
        (packed(&[process, epoch]), packed(&[permits, until, 0.0, 1.0]))
    }

    #[test]
    fn epochs_of_a_process_are_summed() {
        let (now, later) = (NOW as f64, NOW as f64 + 1.0);
        let fields = [
            (b"sum".to_vec(), packed(&[10.0, later, 2.0])),
            share(3.0, 0.0, 2.0, later),
            share(9.0, 0.0, 1.0, later),
            share(9.0, 1.0, 4.0, later),
            share(1.0, 7.0, 2.0, later),
            share(5.0, 0.0, 8.0, now),
            share(7.0, 0.0, 0.0, later),
        ];
        let expected = [(9, 5), (1, 2), (3, 2)].map(|(process, permits)| Holder { process, permits });
        assert_eq!(holders(&fields, NOW).as_deref(), Some(&expected[..]));
        assert_eq!(holders(&[], NOW), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_share_is_no_state() {
        let (field, value) = share(1.0, 0.0, 2.0, 3e6);
        for garbage in [
            (b"name".to_vec(), value.clone()),
            (Vec::new(), value.clone()),
            (field[..15].to_vec(), value.clone()),
            (packed(&[1.0]), value.clone()),
            (packed(&[1.5, 0.0]), value.clone()),
            (field.clone(), Vec::new()),
            (field.clone(), value[..31].to_vec()),
            (field.clone(), [&value[..], b"x"].concat()),
            (field, packed(&[2.0; 5])),
            share(1.0, 0.0, f64::NAN, 3e6),
            share(1.0, 0.0, f64::INFINITY, 3e6),
            share(1.0, 0.0, -1.0, 3e6),
            share(1.0, 0.0, 2f64.powi(53), 3e6),
            share(-1.0, 0.0, 2.0, 3e6),
            share(1.0, 0.0, 2.0, 0.5),
        ] {
            let fields = [share(1.0, 0.0, 2.0, 3e6), garbage];
            assert_eq!(holders(&fields, NOW), None, "{fields:?}");
        }
    }
}
