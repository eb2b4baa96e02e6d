//! Policies of every algorithm and form of state, and states that make charges call every command.

use std::time::Duration;

use futures_util::future::join_all;
use ratelimit_runtime::CalendarPeriod;
use ratelimit_runtime::store::{AlgorithmSpec, Charge, Key};
use redis::Pipeline;

use super::Fixture;
use crate::support::policies::{self, Pair};

const HOUR: Duration = Duration::from_secs(3600);
const HOUR_MICROS: u64 = 3_600_000_000;
const MINUTE_MICROS: u64 = 60_000_000;
const SECOND_MICROS: u64 = 1_000_000;

/// The state of a key before a charge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    Absent,
    /// What two charges leave.
    Charged,
    /// Some charges of a window no longer count.
    Ended,
    /// The state is from the future.
    Future,
    /// The same as `Charged`, in the middle of a pause.
    Paused,
    /// The same after a pause that no call has found over yet.
    Resumed,
    /// The same after a penalty that is not forgiven.
    Penalized,
}

impl State {
    pub(super) const ALL: [State; 7] = [
        State::Absent,
        State::Charged,
        State::Ended,
        State::Future,
        State::Paused,
        State::Resumed,
        State::Penalized,
    ];
}

/// A command that writes a state, and when that state ends.
struct Write {
    command: String,
    ends: u64,
}

pub(super) struct Case {
    pub(super) name: &'static str,
    policy: fn() -> Option<Pair>,
    wait: u64,
}

pub(super) const CASES: [Case; 15] = [
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
    Case { name: "changing", policy: || policies::adjustable::token_bucket(9, HOUR, 9), wait: 0 },
    Case { name: "settled", policy: || policies::adjustable::settled(9, HOUR, 9, false), wait: 0 },
    Case { name: "changing-interval", policy: || policies::adjustable::interval_refill(9, HOUR, 9), wait: 0 },
    Case {
        name: "changing-warming",
        policy: || policies::adjustable::warming_up(9, Duration::from_secs(60), HOUR),
        wait: 3 * HOUR_MICROS,
    },
    Case { name: "fixed", policy: || policies::fixed_window(9, HOUR, false), wait: 0 },
    Case { name: "aligned", policy: || policies::fixed_window(9, 24 * HOUR, true), wait: 0 },
    Case {
        name: "calendar",
        policy: || policies::calendar_window(9, CalendarPeriod::Year, "Europe/Berlin"),
        wait: 0,
    },
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

    /// Puts the keys of some cases into this state. `Ended` and `Future` leave those absent to whose algorithms they mean nothing.
    pub(super) async fn prepare(cases: &[Case], fixture: &mut Fixture, state: State) {
        if matches!(state, State::Charged | State::Paused | State::Resumed | State::Penalized) {
            let charges: Vec<_> = cases.iter().map(|case| [case.charge()]).collect();
            let charges: Vec<_> = charges.iter().map(|charge| charge.as_slice()).collect();
            for _ in 0..2 {
                for outcome in fixture.store.decide_many(&charges).await {
                    assert!(outcome.expect("the store answers").admitted);
                }
            }
        }
        if state == State::Paused {
            let pauses = cases.iter().map(async |case| {
                let paused = fixture.store.pause(&case.key(), &case.spec(), HOUR_MICROS).await;
                paused.expect("the store answers");
            });
            join_all(pauses).await;
        }
        let now = fixture.now().await;
        let mut commands = redis::pipe();
        for case in cases {
            case.write(&mut commands, now, state);
        }
        if !commands.is_empty() {
            commands.exec_async(&mut fixture.admin).await.expect("the server answers");
        }
    }

    /// Adds the commands that lead to this state, from that after two charges if it has charges.
    fn write(&self, commands: &mut Pipeline, now: u64, state: State) {
        let (written, until) = (now - 9 * SECOND_MICROS, now - SECOND_MICROS);
        let ends = match state {
            State::Absent | State::Charged | State::Paused => return,
            State::Resumed => {
                let header = format!("paused: {written} {until} {} ", 8 * SECOND_MICROS);
                return self.mark(commands, &header);
            }
            State::Penalized => {
                let forgiven_in = 1000 * HOUR_MICROS;
                let header = format!("penalized: {written} {until} {} 1 1 {forgiven_in} ", 8 * SECOND_MICROS);
                self.mark(commands, &header);
                until + forgiven_in
            }
            State::Ended | State::Future => {
                let Some(Write { command, ends }) = self.ended_or_future(now, state) else { return };
                let mut words = command.split(' ');
                commands.cmd(words.next().expect("it is a command")).arg(words.collect::<Vec<_>>());
                ends
            }
        };
        commands.cmd("EXPIREAT").arg(self.text()).arg(ends / SECOND_MICROS + 1);
    }

    /// Writes a header before the value of the key, or before the last element of its list.
    fn mark(&self, commands: &mut Pipeline, header: &str) {
        const SCRIPT: &str = "
            if redis.call('TYPE', KEYS[1]).ok == 'list' then
                return redis.call('LSET', KEYS[1], -1, ARGV[1] .. redis.call('LINDEX', KEYS[1], -1))
            end
            return redis.call('SET', KEYS[1], ARGV[1] .. redis.call('GET', KEYS[1]), 'KEEPTTL')";
        commands.cmd("EVAL").arg(SCRIPT).arg(1).arg(self.text()).arg(header);
    }

    fn ended_or_future(&self, now: u64, state: State) -> Option<Write> {
        let key = self.text();
        let later = now + 1000 * SECOND_MICROS;
        let (command, ends) = match (self.name, state) {
            ("bucket" | "borrow" | "long" | "queue", State::Future) => {
                let tat = now + 100 * HOUR_MICROS;
                (format!("SET {key} {tat}"), tat)
            }
            ("log", State::Ended) => {
                let (old, new) = (now - HOUR_MICROS - SECOND_MICROS, now - SECOND_MICROS);
                (format!("RPUSH {key} 0 {old} 2 {new} 3"), new + HOUR_MICROS)
            }
            ("counter", State::Ended) => {
                let old = now - HOUR_MICROS - 5 * MINUTE_MICROS;
                let new = now - now % MINUTE_MICROS - MINUTE_MICROS;
                (format!("RPUSH {key} 0 {old} 2 {new} 3"), new + HOUR_MICROS + MINUTE_MICROS)
            }
            ("log", State::Future) => {
                let old = now - HOUR_MICROS - SECOND_MICROS;
                (format!("RPUSH {key} 0 {old} 1 {later} 2 {} 3", later + 5), later + 5 + HOUR_MICROS)
            }
            ("counter", State::Future) => {
                let old = now - HOUR_MICROS - 5 * MINUTE_MICROS;
                let start = later - later % MINUTE_MICROS;
                (format!("RPUSH {key} 0 {old} 1 {start} 2"), start + HOUR_MICROS + MINUTE_MICROS)
            }
            _ => return None,
        };
        Some(Write { command, ends })
    }
}
