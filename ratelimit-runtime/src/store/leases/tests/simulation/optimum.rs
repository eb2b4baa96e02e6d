//! How many calls a message to Redis decides at most, if a process knows how often calls come, but not when.

/// What can be done with the permits of a request, on average.
struct Choice {
    decisions: f64,
    messages: f64,
    /// Permits that nobody uses.
    lost: f64,
}

/// Returns the most decisions for each message, where so many calls are expected while a lease lives, independently of each other, and
/// calls together take this share of what refills.
///
/// Each request asks for its call and for `extra` others. What is left of these when the lease ends is lost, or given back by another
/// message. Of a lease that is used up, the next call asks again. Choices may be mixed, as long as no more is lost than calls leave: so
/// this is a linear program with one condition, and the best mixture is found by its dual.
pub(super) fn most_decisions_by_message(expected: f64, share: f64) -> f64 {
    let (choices, spare) = (choices(expected), 1.0 / share - 1.0);
    // Whether some mixture makes so many decisions for each message: if one is found at every price of what is lost.
    let is_possible = |most: f64| {
        let value = |price: f64| {
            let worth = |choice: &Choice| {
                let Choice { decisions, messages, lost } = *choice;
                decisions - most * messages - price * (lost - spare * decisions)
            };
            choices.iter().map(worth).fold(f64::MIN, f64::max)
        };
        least(value, 0.0, most) >= -1e-9
    };
    bisect(1.0, 1.0 + expected, is_possible)
}

fn choices(expected: f64) -> Vec<Choice> {
    let most = (expected + 8.0 * expected.sqrt() + 8.0) as u64;
    let (mut log_chance, mut fewer, mut used) = (-expected, 0.0, 0.0);
    let mut choices = Vec::new();
    for extra in 0..=most {
        let decisions = 1.0 + used;
        choices.push(Choice { decisions, messages: 1.0, lost: extra as f64 - used });
        choices.push(Choice { decisions, messages: 1.0 + fewer, lost: 0.0 });
        // The chance that so many come, or fewer.
        fewer += f64::exp(log_chance);
        used += 1.0 - fewer;
        log_chance += (expected / (extra + 1) as f64).ln();
    }
    choices
}

/// Returns the least value of a convex function between two places.
fn least(value: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..60 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if value(left) < value(right) {
            high = right;
        } else {
            low = left;
        }
    }
    value((low + high) / 2.0)
}

/// Returns the largest number between two of which it is true.
fn bisect(mut low: f64, mut high: f64, is_true: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        if is_true(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[test]
fn a_message_decides_for_those_who_come() {
    let near = |expected: f64, share: f64, most: f64| {
        let found = most_decisions_by_message(expected, share);
        assert!((found - most).abs() < 0.01, "{expected} {share}: {found}");
    };
    // Where nothing is missed, all calls of a lease find permits.
    near(5.0, 0.1, 6.0);
    near(0.5, 0.001, 1.5);
    // Where all is used, one more permit for every call is given back as often as nobody comes.
    let chance = f64::exp(-1.0);
    near(1.0, 1.0, f64::max(1.0, (2.0 - chance) / (1.0 + chance)));
}
