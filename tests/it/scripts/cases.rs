//! Policies of every algorithm and way to keep its state, and states that make a charge call every command it ever may.

use std::time::Duration;

use ratelimit_runtime::store::{AlgorithmSpec, Charge, Key};

use super::Bench;
use crate::support::policies::{self, Pair};

const HOUR: Duration = Duration::from_secs(3600);
const HOUR_MICROS: u64 = 3_600_000_000;
const MINUTE_MICROS: u64 = 60_000_000;
const SECOND_MICROS: u64 = 1_000_000;

pub(super) struct Case {
    pub(super) name: &'static str,
    policy: fn() -> Option<Pair>,
    wait: u64,
}

pub(super) const CASES: [Case; 10] = [
    Case { name: "bucket", policy: || policies::token_bucket(9, HOUR, 9), wait: 0 },
    Case { name: "long", policy: || policies::token_bucket(3, HOUR, 1), wait: 3 * HOUR_MICROS },
    Case { name: "borrow", policy: || policies::borrowing(3, HOUR, Some(9)), wait: 0 },
    Case { name: "queue", policy: || policies::queue(9, 9, HOUR), wait: 3 * HOUR_MICROS },
    Case { name: "interval", policy: || policies::interval_refill(9, HOUR, 9), wait: 0 },
    Case {
        name: "warming",
        policy: || policies::warming_up(9, Duration::from_secs(60), HOUR),
        wait: 3 * HOUR_MICROS,
    },
    Case { name: "fixed", policy: || policies::fixed_window(9, HOUR, false), wait: 0 },
    Case { name: "aligned", policy: || policies::fixed_window(9, 24 * HOUR, true), wait: 0 },
    Case { name: "log", policy: || policies::sliding_window(9, HOUR, None), wait: 0 },
    Case {
        name: "counter",
        policy: || policies::sliding_window(9, HOUR, Some(Duration::from_secs(60))),
        wait: 0,
    },
];

impl Case {
    pub(super) fn spec(&self) -> AlgorithmSpec {
        (self.policy)().expect("the policy is valid").spec
    }

    pub(super) fn text(&self) -> String {
        format!("rl:{}", self.name)
    }

    pub(super) fn key(&self) -> Key {
        Key::raw(self.text())
    }

    pub(super) fn charge(&self) -> Charge {
        Charge { key: self.key(), spec: self.spec(), cost: 1, wait: self.wait, shadow: false }
    }

    /// Under the key `nothing`, what two charges leave (`charged`), or what makes a charge do most (`odd`): entries that have
    /// ended, or a state from the future.
    pub(super) async fn prepare(&self, bench: &mut Bench, state: &str) {
        match state {
            "nothing" => {}
            "charged" => {
                for _ in 0..2 {
                    assert!(bench.decide(&[self.charge()]).await.expect("the store answers").admitted);
                }
            }
            _ => {
                let now = bench.now().await;
                let (value, ends) = self.odd(now, state);
                if let Some(value) = value {
                    bench.send(&value).await;
                    bench.send(&format!("EXPIREAT {} {}", self.text(), ends / SECOND_MICROS + 1)).await;
                }
            }
        }
    }

    /// The command that makes it, and when it ends.
    fn odd(&self, now: u64, state: &str) -> (Option<String>, u64) {
        let key = self.text();
        let later = now + 1000 * SECOND_MICROS;
        match (self.name, state) {
            ("bucket" | "borrow" | "long" | "queue", "future") => {
                let tat = now + 100 * HOUR_MICROS;
                (Some(format!("SET {key} {tat}")), tat)
            }
            ("log", "ended") => {
                let (old, new) = (now - HOUR_MICROS - SECOND_MICROS, now - SECOND_MICROS);
                (Some(format!("RPUSH {key} 0 {old} 2 {new} 3")), new + HOUR_MICROS)
            }
            ("counter", "ended") => {
                let (old, new) =
                    (now - HOUR_MICROS - 5 * MINUTE_MICROS, now - now % MINUTE_MICROS - MINUTE_MICROS);
                (Some(format!("RPUSH {key} 0 {old} 2 {new} 3")), new + HOUR_MICROS + MINUTE_MICROS)
            }
            ("log", "future") => {
                let old = now - HOUR_MICROS - SECOND_MICROS;
                (Some(format!("RPUSH {key} 0 {old} 1 {later} 2 {} 3", later + 5)), later + 5 + HOUR_MICROS)
            }
            ("counter", "future") => {
                let old = now - HOUR_MICROS - 5 * MINUTE_MICROS;
                let at = later - later % MINUTE_MICROS;
                (Some(format!("RPUSH {key} 0 {old} 1 {at} 2")), at + HOUR_MICROS + MINUTE_MICROS)
            }
            _ => (None, 0),
        }
    }
}
