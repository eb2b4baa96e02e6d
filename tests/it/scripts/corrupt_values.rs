//! Values that no limiter wrote.

use std::time::Duration;

use ratelimit_runtime::store::{Charge, Key};

use super::cases::{CASES, State};
use super::{Fixture, is_permanent, some_lists, text};
use crate::support::policies::{self, Pair};

#[tokio::test]
async fn corrupt_values_are_permanent_errors() {
    let mut fixture = Fixture::start().await;
    let huge = "9".repeat(400);
    for case in &CASES {
        let key = case.text();
        for (round, value) in [
            format!("SADD {key} secret-value"),
            format!("SET {key} secret-value"),
            format!("SET {key} -5"),
            format!("SET {key} 9223372036854775807"),
            format!("SET {key} 9007199254740999"),
            format!("SET {key} {huge}"),
            format!("SET {key} {huge} {huge}"),
            format!("SET {key} 1 {huge} 1 1 1"),
            format!("SET {key} 9007199254740000 1 1 1 1"),
            // More permits than a bucket stores that warms up.
            format!("SET {key} 1 9e9 1"),
            format!("RPUSH {key} secret-value secret-value secret-value"),
            format!("RPUSH {key} 0 {huge} 2"),
            format!("RPUSH {key} 0 1.5 2"),
        ]
        .into_iter()
        .enumerate()
        {
            for list in some_lists(round) {
                let Some(index) = list.iter().position(|charge| charge.key == case.key()) else { continue };
                let context = format!("{} over {value} in {list:?}", case.name);
                fixture.prepare(State::Absent).await;
                let words: Vec<&str> = value.splitn(3, ' ').collect();
                // The text of SET is one argument even if it contains spaces.
                if words[0] == "SET" {
                    let _: () =
                        redis::cmd("SET").arg(&words[1..]).query_async(&mut fixture.admin).await.unwrap();
                } else {
                    fixture.send(&value).await;
                }
                // A whole second, as limiters write them and as the comparison below rounds to.
                let second = fixture.now().await / 1_000_000 + 1000;
                fixture.send(&format!("EXPIREAT {key} {second}")).await;
                let before = fixture.stored().await;
                match fixture.store.decide(&list).await {
                    Err(error) => {
                        let text = text(&error);
                        assert!(is_permanent(&error), "{context}: {text}");
                        assert!(!text.contains("secret-value"), "{text}");
                        assert_eq!(before, fixture.stored().await, "{context}");
                    }
                    Ok(outcome) => {
                        assert!(list[index].shadow && outcome.failed[0].0 == index, "{context}: {outcome:?}");
                        let own = CASES.iter().position(|other| other.name == case.name).unwrap();
                        assert_eq!(before[own], fixture.stored().await[own], "{context}");
                    }
                }
                let before = fixture.stored().await;
                fixture.store.refund(&case.key(), &case.spec(), 1, None).await.unwrap_err();
                assert_eq!(before, fixture.stored().await, "{context}");
            }
        }
    }
}

#[tokio::test]
async fn buckets_that_fill_up_in_centuries_are_corrupt() {
    let mut fixture = Fixture::start().await;
    let now = fixture.now().await;
    let century = 100 * 365 * 86_400 * 1_000_000;
    let packed = |tat: u64, slot: u64, pace: f64| {
        let now = now as f64;
        [tat as f64, now, 0.0, 0.0, slot as f64, now, pace].map(f64::to_le_bytes).concat()
    };
    let settled = |tat: u64, slot: u64, pace: f64, lows: [u64; 6]| {
        let numbers = [tat, now, slot].map(|number| number as f64);
        let lows = lows.map(|number| number as f64);
        [&numbers[..], &[pace, now as f64], &lows[..]]
            .concat()
            .into_iter()
            .flat_map(f64::to_le_bytes)
            .collect()
    };
    for (name, value) in [
        ("bucket", format!("{} {now} 0 0 0", now + century).into_bytes()),
        ("interval", format!("{now} 8000000").into_bytes()),
        ("warming", format!("{} 0 {now}", now + century).into_bytes()),
        ("changing", packed(now + century, 0, 1.0)),
        // Faster calls would wait for its last slot.
        ("changing", packed(now + 1_000_000, now + century, 1e9)),
        // At any other rate it would lack endless permits.
        ("changing", packed(now + 1_000_000, 0, 0.0)),
        ("settled", settled(now + century, 0, 1.0, [0; 6])),
        ("settled", settled(now + 1_000_000, now + century, 1e9, [0; 6])),
        ("settled", settled(now + 1_000_000, 0, 0.0, [0; 6])),
        // Its lows are not in order.
        ("settled", settled(now + 1_000_000, 0, 1.0, [2, 1, 1, 2, 3, 3])),
        ("settled", settled(now + 1_000_000, 0, 1.0, [1, 1, 2, 3, 3, 2])),
        ("settled", settled(now + 1_000_000, 0, 1.0, [1, 1, 2, 2, now + 1, 3])),
        ("changing-interval", format!("{now} 8000000 0 0 0 9 {now}").into_bytes()),
        ("changing-warming", format!("{} 0 {now} {}", now + century, now + century).into_bytes()),
        ("changing-warming", format!("{now} 0 {now} {}", now + century).into_bytes()),
    ] {
        let case = CASES.iter().find(|case| case.name == name).expect("the case exists");
        fixture.prepare(State::Absent).await;
        let _: () =
            redis::cmd("SET").arg(case.text()).arg(value).query_async(&mut fixture.admin).await.unwrap();
        let error = fixture.store.decide(&[case.charge()]).await.unwrap_err();
        assert!(is_permanent(&error) && text(&error).contains("not the state of a limiter"), "{name}");
    }
}

/// A bucket may take the longest time to fill, lend as much, and have calls wait for as long.
#[tokio::test]
async fn buckets_with_the_largest_numbers_are_not_corrupt() {
    const LONGEST: Duration = Duration::from_secs(3650 * 86_400);
    let fixture = Fixture::start().await;
    let second = Duration::from_secs(1);
    let policies = [
        policies::token_bucket(1, LONGEST, 1),
        policies::borrowing(1, LONGEST, Some(1)),
        policies::queue(1, 2, LONGEST),
        policies::interval_refill(1, LONGEST, 1),
        policies::warming_up(1, second, LONGEST),
        policies::warming_up(1, LONGEST / 3, second),
        policies::adjustable::token_bucket(1, LONGEST, 1),
        policies::adjustable::borrowing(1, LONGEST, 1),
        policies::adjustable::settled(1, LONGEST, 1, false),
        policies::adjustable::settled(1, LONGEST, 1, true),
        policies::adjustable::queue(1, 2, LONGEST),
        policies::adjustable::interval_refill(1, LONGEST, 1),
        policies::adjustable::warming_up(1, second, LONGEST),
        policies::adjustable::warming_up(1, LONGEST / 3, second),
    ];
    for (i, pair) in policies.into_iter().enumerate() {
        let Pair { spec, .. } = pair.unwrap_or_else(|| panic!("the policy {i} is valid"));
        let key = Key::raw(format!("rl:largest-{i}"));
        let wait = LONGEST.as_micros() as u64;
        let mut admitted = 0;
        for _ in 0..5 {
            let charge = Charge { key: key.clone(), spec, cost: 1, wait, shadow: false };
            admitted += u64::from(fixture.store.decide(&[charge]).await.unwrap().admitted);
        }
        assert!(admitted > 1, "{spec:?}");
        let charge = Charge { key: key.clone(), spec, cost: 1, wait: 0, shadow: false };
        fixture.store.decide(&[charge]).await.unwrap();
        fixture.store.refund(&key, &spec, 1, None).await.unwrap();
    }
}
