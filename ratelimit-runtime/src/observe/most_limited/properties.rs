//! The list, compared with exact counts.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::base::property_tests::config;
use crate::key::KeyParts;

const POLICIES: [&str; 2] = ["send", "search"];

/// A key, of which small ones are more frequent.
fn key() -> impl Strategy<Value = (usize, u32)> {
    (0..2usize, prop_oneof![0..3u32, 0..40u32])
}

fn key_of(parts: &[String]) -> KeyParts {
    match parts {
        [] => KeyParts::of(&()),
        [one] => KeyParts::of(one),
        [one, other, ..] => KeyParts::of(&(one, other)),
    }
    .unwrap()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn frequent_keys_are_listed_and_counts_are_within_their_bounds(
        capacity in 1..20usize,
        calls in prop::collection::vec((key(), prop::bool::weighted(0.9)), 0..400),
    ) {
        let list = MostLimited::new(capacity).keep_keys();
        let observer = list.observer();
        let mut exact = HashMap::<_, u64>::new();
        for ((policy, key), is_limited) in calls {
            let (policy, key) = (POLICIES[policy], vec![key.to_string()]);
            let outcome = if is_limited { CallOutcome::Limited } else { CallOutcome::Admitted };
            observer(&Observation::of_key(policy, &key_of(&key), outcome, None));
            if is_limited {
                *exact.entry((policy.to_owned(), key)).or_default() += 1;
            }
        }
        let (total, entries) = (exact.values().sum::<u64>(), list.list());
        let max_overcount = total / capacity as u64;

        prop_assert!(entries.len() == capacity.min(exact.len()));
        prop_assert!(entries.is_sorted_by(|one, next| one.refusals >= next.refusals));
        prop_assert_eq!(entries.iter().map(|entry| entry.refusals).sum::<u64>(), total);
        let smallest = entries.last().map_or(0, |entry| entry.refusals);
        for LimitedKey { policy, key, refusals, overcount, .. } in entries {
            let count = exact.remove(&(policy.to_string(), key.unwrap())).unwrap();
            prop_assert!(count <= refusals && refusals - overcount <= count);
            prop_assert!(overcount <= max_overcount);
        }
        // What is left is not in the list.
        prop_assert!(exact.values().all(|count| *count <= smallest && *count <= max_overcount));
    }

    #[test]
    fn keys_are_identified_by_policy_and_parts(
        keys in prop::collection::vec((0..2usize, prop::collection::vec("[ab]{0,2}", 0..3)), 1..30),
    ) {
        let list = MostLimited::new(1000).keep_keys();
        let observer = list.observer();
        let mut exact = HashMap::<_, u64>::new();
        for (policy, parts) in &keys {
            let key = key_of(parts);
            observer(&Observation::of_key(POLICIES[*policy], &key, CallOutcome::Limited, None));
            *exact.entry((Arc::from(POLICIES[*policy]), Some(parts.clone()))).or_default() += 1;
        }
        let entries = list.list();
        prop_assert!(entries.iter().all(|entry| entry.overcount == 0));
        let listed: HashMap<_, _> =
            entries.into_iter().map(|entry| ((entry.policy, entry.key), entry.refusals)).collect();
        prop_assert_eq!(listed, exact);
    }
}
