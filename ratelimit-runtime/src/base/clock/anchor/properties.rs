//! Properties of the counter clock with simulated counters, for threads that are slow to use what they have read.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::base::property_tests::config;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// What happens next to the clocks of a machine or to one of three threads.
#[derive(Clone, Debug)]
enum Event {
    /// Both clocks advance, by nanoseconds.
    Pass(u64),
    /// The counter gets another pace, in billionths above or below the nominal one.
    Drift(i64),
    /// Only `Instant` advances, by nanoseconds: a counter that stands still.
    Freeze(u64),
    /// Only the counter changes, by ticks: a suspended machine, a move to another one, a counter that was set.
    Jump(i64),
    /// A thread reads the counter.
    Count(usize),
    /// A thread reads the anchor, and then the time. Perhaps another thread holds the corrector.
    Read(usize, bool),
}

#[derive(Clone, Debug, Default)]
struct Machine {
    nanos: u64,
    ticks: u64,
    /// The nominal pace of the counter in ticks per 2^20 ns.
    nominal: u64,
    drift: i64,
    /// What is left of a tick.
    rest: u128,
}

impl Machine {
    fn meet(&mut self, event: &Event) {
        match *event {
            Event::Pass(nanos) => self.pass(nanos),
            Event::Drift(drift) => self.drift = drift,
            Event::Freeze(nanos) => self.nanos += nanos,
            Event::Jump(ticks) => self.ticks = self.ticks.wrapping_add_signed(ticks),
            Event::Count(_) | Event::Read(..) => {}
        }
    }

    fn pass(&mut self, nanos: u64) {
        let billionths = (SECOND as i64 + self.drift) as u128;
        let ticks = u128::from(nanos) * u128::from(self.nominal) * billionths + self.rest;
        let tick = u128::from(SECOND) << 20;
        self.ticks = self.ticks.wrapping_add((ticks / tick) as u64);
        self.rest = ticks % tick;
        self.nanos += nanos;
    }

    fn reading(&self) -> Reading {
        Reading { ticks: self.ticks, nanos: self.nanos }
    }

    /// The nanoseconds of an interval at this pace, rounded up.
    fn interval(&self) -> u64 {
        INTERVAL * (1 << 20) / self.nominal * 101 / 100
    }
}

/// Does what `CounterClock::now` does once the counter is read.
fn time_of(corrector: &mut Corrector, ticks: u64, machine: &Machine, is_held: bool) -> u64 {
    let time = corrector.anchor().and_then(|anchor| {
        let after = || anchor.just_after(ticks).filter(|_| is_held);
        anchor.at(ticks).or_else(|| anchor.before(ticks)).or_else(after)
    });
    time.unwrap_or_else(|| corrector.now(machine.reading()))
}

fn machine() -> impl Strategy<Value = Machine> {
    // Counters of 1 to 5 GHz, with any value to start from.
    (any::<u64>(), (1u64 << 20)..(5 << 20)).prop_map(|(ticks, nominal)| Machine {
        nanos: DAY,
        ticks,
        nominal,
        ..Machine::default()
    })
}

fn duration() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..2_000u64, 4 => 0..SECOND / 5, 1 => 0..10 * SECOND, 1 => 0..3 * DAY]
}

/// What happens to a machine whose counter is never set.
fn steady_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => duration().prop_map(Event::Pass),
        1 => (-1_000_000i64..1_000_000).prop_map(Event::Drift),
        1 => duration().prop_map(Event::Freeze),
        5 => (0..3usize).prop_map(Event::Count),
        6 => (0..3usize, any::<bool>()).prop_map(|(thread, is_held)| Event::Read(thread, is_held)),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let jump = prop_oneof![-(1i64 << 28)..1 << 28, any::<i64>(), (0..1i64 << 40)];
    prop_oneof![12 => steady_event(), 1 => jump.prop_map(Event::Jump)]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_clock_never_steps_back(mut machine in machine(), events in vec(steady_event(), 1..200)) {
        let mut corrector = Corrector::new(machine.reading());
        // Per thread: the counter value read, and the latest time returned to any of them by then.
        let (mut reads, mut latest) = ([None; 3], 0);
        for event in events {
            machine.meet(&event);
            match event {
                Event::Count(thread) => reads[thread] = Some((machine.ticks, latest)),
                Event::Read(thread, is_held) => {
                    let (ticks, before) = reads[thread].take().unwrap_or((machine.ticks, latest));
                    let now = time_of(&mut corrector, ticks, &machine, is_held);
                    prop_assert!(now >= before, "{now} after {before}");
                    latest = latest.max(now);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn the_clock_is_never_more_than_an_interval_ahead(mut machine in machine(), events in vec(event(), 1..200)) {
        let mut corrector = Corrector::new(machine.reading());
        for event in events {
            machine.meet(&event);
            if let Event::Read(..) = event {
                let was = corrector.anchor();
                let now = time_of(&mut corrector, machine.ticks, &machine, false);
                prop_assert!(now <= machine.nanos + PACES.end());
                if was.is_none() || was != corrector.anchor() {
                    prop_assert!(now >= machine.nanos, "behind after a correction");
                }
            }
        }
    }

    #[test]
    fn after_a_disturbance_the_clock_finds_back_to_the_reference(
        mut machine in machine(),
        events in vec(event(), 1..50),
        drift in -1_000_000i64..1_000_000,
    ) {
        let mut corrector = Corrector::new(machine.reading());
        for event in events {
            machine.meet(&event);
            if let Event::Read(..) = event {
                time_of(&mut corrector, machine.ticks, &machine, false);
            }
        }
        machine.drift = drift;
        let mut settle = |steps: u64| -> i64 {
            let mut worst = 0;
            for _ in 0..steps {
                machine.pass(machine.interval() / 4);
                let now = time_of(&mut corrector, machine.ticks, &machine, false);
                worst = worst.max((now as i64 - machine.nanos as i64).abs());
            }
            worst
        };
        settle(4 * 12);
        let worst = settle(4 * 50);
        prop_assert!(worst <= 10, "{worst} ns off");
        prop_assert!(corrector.anchor().is_some());
    }
}

#[test]
fn readings_that_jitter_do_not_add_up() {
    let mut machine = Machine { nanos: DAY, nominal: 3 << 20, drift: 8_600, ..Machine::default() };
    let mut corrector = Corrector::new(machine.reading());
    let mut jitter = 0;
    for step in 0..20_000u64 {
        machine.pass(1_000_003);
        // Up to 1 µs between the counter and `Instant` in a reading, in no simple pattern.
        jitter = (jitter * 29 + step) % 1_000;
        let anchor = corrector.anchor().and_then(|anchor| anchor.at(machine.ticks));
        let read = || Reading { ticks: machine.ticks, nanos: machine.nanos + jitter };
        let now = anchor.unwrap_or_else(|| corrector.now(read()));
        assert!((now as i64 - machine.nanos as i64).abs() <= 2_000, "step {step}");
    }
}
