//! What a bucket has lacked since its charges, of which it remembers a few.

/// How many charges are remembered beside the last.
const REMEMBERED: usize = 3;

/// The charges that are remembered, in order. The last one is the last that was made.
#[derive(Default)]
pub(super) struct Lacked(Vec<Mark>);

/// A charge.
#[derive(Clone, Copy)]
struct Mark {
    made: i128,
    /// The least that was missing after it and up to the next of these charges. Nothing is known of the last one yet.
    least: i128,
}

impl Lacked {
    /// The first charge of a bucket that is full, or of one at another rate.
    pub(super) fn forget(&mut self, made: i128) {
        self.0 = vec![Mark { made, least: i128::MAX }];
    }

    /// Another charge, or a debt, which finds so much missing.
    pub(super) fn charge(&mut self, made: i128, missing: i128) {
        if let Some(last) = self.0.last_mut() {
            last.least = missing;
        }
        self.0.push(Mark { made, least: i128::MAX });
        while let Some(redundant) = (0..self.0.len() - 1).find(|mark| self.gain(*mark) == 0) {
            self.drop(redundant);
        }
        while self.0.len() > REMEMBERED + 1 {
            let loss =
                |mark: usize| self.gain(mark) as f64 * (self.0[mark + 1].made - self.0[mark].made) as f64;
            let losses: Vec<f64> = (0..self.0.len() - 1).map(loss).collect();
            let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
            let cheapest = losses.iter().position(|loss| *loss == least);
            self.drop(cheapest.expect("some are remembered"));
        }
    }

    pub(super) fn step_back(&mut self, by: i128) {
        for mark in &mut self.0 {
            mark.made -= by;
        }
    }

    /// What is given back of the charge that was made then, or of all, was not missing since.
    pub(super) fn credit(&mut self, made: Option<i128>, amount: i128) {
        let first = made.map_or(Some(0), |made| self.known(made)).unwrap_or(self.0.len());
        for mark in self.0[first..].iter_mut().filter(|mark| mark.least < i128::MAX) {
            mark.least = (mark.least - amount).max(0);
        }
    }

    /// Returns what has been missing ever since the charge that was made then, as far as is known.
    pub(super) fn since(&self, made: i128) -> i128 {
        match self.0.last() {
            Some(last) if made <= last.made => self.known(made).map_or(0, |mark| self.low(mark)),
            _ => 0,
        }
    }

    /// Returns the charge that stands for the one that was made then.
    fn known(&self, made: i128) -> Option<usize> {
        self.0.iter().rposition(|mark| mark.made <= made)
    }

    /// Returns the least that was missing since a charge.
    fn low(&self, mark: usize) -> i128 {
        self.0[mark..].iter().map(|mark| mark.least).min().unwrap_or(0)
    }

    /// Returns how much more is known to have been missing since a charge than since the one before it.
    fn gain(&self, mark: usize) -> i128 {
        self.low(mark) - mark.checked_sub(1).map_or(0, |before| self.low(before))
    }

    /// Lets the charge before it stand for another one.
    fn drop(&mut self, mark: usize) {
        let Mark { least, .. } = self.0.remove(mark);
        if let Some(before) = mark.checked_sub(1) {
            self.0[before].least = self.0[before].least.min(least);
        }
    }
}
