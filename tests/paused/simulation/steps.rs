//! The steps of a schedule, each with its own random numbers, so that one can be left out without changing the others.

use super::server::MIDNIGHT;
use super::target::{Kind, Target};
use crate::random::Random;

#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What passes before, in microseconds.
    pub(super) gap: u64,
    /// Whether nothing happens meanwhile: the machine stands still.
    pub(super) is_stall: bool,
    pub(super) action: Action,
    pub(super) random: Random,
}

/// How much a schedule does beside calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chances {
    pub(super) corrections: bool,
    pub(super) overrides: bool,
    pub(super) losses: bool,
    pub(super) clock_steps: bool,
    pub(super) cuts: bool,
    pub(super) deaths: bool,
    pub(super) stalls: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// So many calls of a target at once.
    Calls(usize, u64),
    /// A call of two targets.
    Both(usize, usize),
    /// Ends a call that holds permits.
    Release,
    /// All processes lease, wait for so long, and spend all that they have.
    Hoard(usize, u64),
    Refund,
    Settle,
    RefundUnchecked(usize),
    Reset(usize),
    Pause(usize, u64),
    /// Changes the numbers of a target or of a key, in one process or in all.
    Override(usize),
    DropCalls,
    LoseData,
    Snapshot,
    FailOver,
    /// By so many microseconds.
    StepClock(i64),
    /// For so many milliseconds.
    Cut(u64),
    Die,
}

impl Chances {
    /// Returns what happens to a process that decides alone.
    pub(super) fn without_server(self) -> Self {
        Chances { losses: false, clock_steps: false, cuts: false, deaths: false, ..self }
    }

    /// Whether something fails, or corrects what is charged.
    pub(super) fn any(&self) -> bool {
        let Chances { corrections, overrides: _, losses, clock_steps, cuts, deaths, stalls } = *self;
        corrections || losses || clock_steps || cuts || deaths || stalls
    }
}

impl Step {
    pub(super) fn random(mut random: Random, targets: &[Target], chances: Chances) -> Self {
        let target = random.below(targets.len() as u64) as usize;
        let Target { limit, period, .. } = targets[target];
        let is_calendar = targets[target].calendar().is_some();
        let unit = if targets[target].is_window() { period } else { period * limit };
        let gap = match random.below(8) {
            2..=5 if targets[target].is_leased() => random.below(2 * targets[target].lease_life()),
            0 | 1 => 0,
            2 | 3 if is_calendar => random.below(MIDNIGHT / 2),
            4 if is_calendar => MIDNIGHT - random.between(0, 1),
            2 => random.below(2_000),
            3 => random.below(period * 2),
            4 => random.pick(&[period - 1, period, period + 1]),
            5 => random.pick(&[unit - 1, unit, unit + 1]),
            6 => random.below(unit * 3),
            _ => random.below(300_000),
        };
        let is_stall = chances.stalls && random.percent(15);
        let action = Action::random(&mut random, target, targets, chances);
        Step { gap, is_stall, action, random }
    }
}

impl Action {
    fn random(random: &mut Random, target: usize, targets: &[Target], chances: Chances) -> Self {
        let other = random.below(targets.len() as u64) as usize;
        let Target { kind, limit, .. } = targets[target];
        let most = match kind {
            // More than the bucket and all leases have.
            Kind::LeasedBucket | Kind::LeasedWindow => random.pick(&[1, 3, limit, 3 * limit]),
            _ => random.pick(&[1, 1, 2, limit + 2]),
        };
        let chance = random.below(100);
        match chance {
            0..=12 if chances.corrections => match random.below(6) {
                0 => Action::Reset(target),
                1 => Action::Pause(target, random.below(2_000_000)),
                2 => Action::RefundUnchecked(target),
                3 | 4 => Action::Refund,
                _ => Action::Settle,
            },
            13..=15 if chances.losses => match random.below(3) {
                0 => Action::LoseData,
                _ => Action::FailOver,
            },
            16..=18 if chances.losses => Action::Snapshot,
            19..=21 | 64..=67 if chances.clock_steps => {
                let by = random.below(5_000_000) as i64;
                // Keys from before a step back by a day would not end before it.
                let days = if random.percent(20) { 86_400_000_000 } else { 0 };
                Action::StepClock(days + if random.percent(50) { by } else { -by })
            }
            22..=25 if chances.cuts => Action::Cut(random.pick(&[50, 300, 1_500, 8_000])),
            26 | 27 if chances.deaths => Action::Die,
            28..=30 if chances.corrections => Action::DropCalls,
            59..=63 if chances.overrides => Action::Override(target),
            31..=38 => Action::Release,
            39..=46 if other != target && !targets[other].is_function() && !targets[target].is_function() => {
                Action::Both(target, other)
            }
            47..=58 if matches!(kind, Kind::LeasedBucket | Kind::LeasedWindow) => {
                Action::Hoard(target, random.below(2 * targets[target].lease_life()))
            }
            _ => Action::Calls(target, random.between(1, most)),
        }
    }
}
