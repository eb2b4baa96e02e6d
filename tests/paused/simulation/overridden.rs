//! Numbers that operators set in place of written ones.

use super::bounds::Numbers;
use super::target::Target;
use crate::random::Random;

/// All that are in force in a process, or will be.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides(Vec<Override>);

#[derive(Clone, Copy, Debug)]
struct Override {
    target: usize,
    /// `None` for all keys.
    key: Option<u64>,
    numbers: Numbers,
}

impl Overrides {
    /// Sets other numbers for a target, or for a key of it, or none.
    pub(super) fn change(&mut self, number: usize, target: &Target, key: u64, random: &mut Random) {
        let key = random.percent(40).then_some(key);
        self.0.retain(|it| (it.target, it.key) != (number, key));
        if random.percent(70) {
            self.0.push(Override { target: number, key, numbers: target.overridden(random) });
        }
    }

    /// Returns those of a key, if there are any.
    pub(super) fn of(&self, target: usize, key: u64) -> Option<Numbers> {
        let of = |key| self.0.iter().find(|it| (it.target, it.key) == (target, key));
        of(Some(key)).or_else(|| of(None)).map(|it| it.numbers)
    }

    /// Returns their text.
    pub(super) fn text(&self, targets: &[Target]) -> String {
        let table = |it: &Override| {
            let target = &targets[it.target];
            let key = it.key.map_or(String::new(), |key| format!(".keys.\"{key}\""));
            format!("[\"{}\"{key}]\n{}", target.name(it.target), target.with(it.numbers).arguments())
        };
        self.0.iter().map(table).collect::<String>() + "# No more.\n"
    }
}
