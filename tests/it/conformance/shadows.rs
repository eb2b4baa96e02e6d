//! Shadows: charges that count and tell, and refuse nobody. On every store, and on the model.

use std::cell::RefCell;

use ratelimit_runtime::store::Charge;

use super::{S, absolute};
use crate::model::{self, Model, Verdict};
use crate::support::policies::{Pair, one_of_each};
use crate::support::scheduled::{Held, Scheduled, on_each_store};

enum Place {
    Model(RefCell<Model>),
    Store(Scheduled),
}

struct Ask<'a> {
    key: &'a str,
    pair: Pair,
    cost: u64,
    shadow: bool,
}

fn required<'a>(key: &'a str, pair: &Pair, cost: u64) -> Ask<'a> {
    Ask { key, pair: *pair, cost, shadow: false }
}

fn shadow<'a>(key: &'a str, pair: &Pair, cost: u64) -> Ask<'a> {
    Ask { key, pair: *pair, cost, shadow: true }
}

impl Ask<'_> {
    fn of(&self, store: &Scheduled) -> Charge {
        Charge {
            key: store.key(self.key),
            spec: self.pair.spec,
            cost: self.cost,
            wait: 0,
            shadow: self.shadow,
        }
    }

    fn of_the_model(&self) -> model::Charge<'_> {
        let Ask { key, pair, cost, shadow } = *self;
        model::Charge { key, policy: pair.model, cost: cost.into(), wait: 0, shadow }
    }
}

impl Place {
    /// Whether the call goes ahead, and what each spec says.
    async fn decide(&self, at: i64, asks: &[Ask<'_>]) -> (bool, Vec<Verdict>) {
        match self {
            Place::Model(model) => {
                let charges: Vec<_> = asks.iter().map(Ask::of_the_model).collect();
                let outcome = model.borrow_mut().decide(absolute(at), &charges);
                (outcome.admitted, outcome.verdicts)
            }
            Place::Store(store) => {
                store.set(at).await;
                let charges: Vec<_> = asks.iter().map(|ask| ask.of(store)).collect();
                let outcome = store.decide(&charges).await;
                (outcome.admitted, outcome.verdicts.iter().map(Verdict::from).collect())
            }
        }
    }

    /// The same, in short: what each spec says and how many permits are left.
    async fn told(&self, at: i64, asks: &[Ask<'_>]) -> (bool, Vec<(bool, i128)>) {
        let (admitted, verdicts) = self.decide(at, asks).await;
        (admitted, verdicts.iter().map(|verdict| (verdict.admitted, verdict.remaining)).collect())
    }

    async fn left(&self, at: i64, key: &str, pair: &Pair) -> i128 {
        self.decide(at, &[required(key, pair, 0)]).await.1[0].remaining
    }

    /// Takes all three permits.
    async fn fill(&self, at: i64, key: &str, pair: &Pair) {
        assert_eq!(self.told(at, &[required(key, pair, 3)]).await, (true, vec![(true, 0)]));
    }

    /// Of a store in Redis.
    async fn held(&self, keys: &[&str]) -> Option<Vec<Option<Held>>> {
        match self {
            Place::Model(_) => None,
            Place::Store(store) => store.held(keys).await,
        }
    }
}

async fn on_each_place(test: impl AsyncFn(Place)) {
    test(Place::Model(RefCell::default())).await;
    on_each_store(async |store| test(Place::Store(store)).await).await;
}

#[tokio::test]
async fn a_shadow_is_charged_while_it_has_room_and_refuses_nobody() {
    on_each_place(async |place| {
        for (name, pair) in one_of_each() {
            let ask = |cost| [shadow(name, &pair, cost)];
            assert_eq!(place.told(0, &ask(2)).await, (true, vec![(true, 1)]), "{name}");
            let before = place.held(&[name]).await;
            let (admitted, verdicts) = place.decide(S, &ask(2)).await;
            assert_eq!((admitted, verdicts[0].admitted, verdicts[0].remaining), (true, false, 1), "{name}");
            assert_eq!(place.told(S, &ask(4)).await, (true, vec![(false, 1)]), "{name}");
            assert_eq!(place.told(S, &ask(0)).await, (true, vec![(true, 1)]), "{name}");
            assert_eq!(place.held(&[name]).await, before, "{name}");

            // What it is told to wait is the truth.
            let then = S + verdicts[0].retry_after.expect("two permits come back") as i64;
            let early = place.decide(then - 1, &ask(2)).await.1[0];
            assert_eq!((early.admitted, early.retry_after), (false, Some(1)), "{name}");
            assert!(place.decide(then, &ask(2)).await.1[0].admitted, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_shadow_is_charged_only_if_the_call_goes_ahead() {
    on_each_place(async |place| {
        let policies = one_of_each();
        for (i, (first, a)) in policies.iter().enumerate() {
            for (second, b) in &policies {
                let name = format!("{first} and {second}");
                let (full, room) = (format!("{name}, full"), format!("{name}, room"));
                place.fill(0, &full, a).await;
                assert_eq!(place.told(0, &[required(&room, b, 1)]).await, (true, vec![(true, 2)]));
                let before = place.held(&[&full, &room]).await;
                // In both orders, as one is checked before the other.
                let mut list = [required(&full, a, 1), shadow(&room, b, 1)];
                let mut expected = vec![(false, 0), (true, 2)];
                if i % 2 == 1 {
                    list.reverse();
                    expected.reverse();
                }
                assert_eq!(place.told(0, &list).await, (false, expected.clone()), "{name}");
                assert_eq!(place.held(&[&full, &room]).await, before, "{name}");
                assert_eq!(place.left(0, &room, b).await, 2, "{name}");

                // The other way round the call goes ahead, and the full one is left as it is.
                for ask in &mut list {
                    ask.shadow = !ask.shadow;
                }
                for told in &mut expected {
                    told.1 -= i128::from(told.0);
                }
                assert_eq!(place.told(0, &list).await, (true, expected), "{name}");
                let after = place.held(&[&full, &room]).await;
                assert_eq!(after.map(|held| held[0].clone()), before.map(|held| held[0].clone()), "{name}");
                assert_eq!(place.left(0, &room, b).await, 1, "{name}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn each_shadow_is_charged_by_its_own_rule() {
    on_each_place(async |place| {
        for turn in 0..7 {
            let mut policies = one_of_each();
            policies.rotate_left(turn);
            let [a, b, c, d, e, f, g] = policies.map(|(_, pair)| pair);
            let names = ["a", "b", "c", "d", "e", "f", "g"].map(|key| format!("{key} in turn {turn}"));
            let [a_key, b_key, c_key, d_key, e_key, f_key, g_key] = names.each_ref().map(String::as_str);
            place.fill(0, b_key, &b).await;
            place.fill(0, f_key, &f).await;
            let list = [
                shadow(a_key, &a, 1),
                shadow(b_key, &b, 1),
                required(c_key, &c, 2),
                shadow(d_key, &d, 0),
                required(e_key, &e, 3),
                shadow(f_key, &f, 2),
                shadow(g_key, &g, 2),
            ];
            let first = [(true, 2), (false, 0), (true, 1), (true, 3), (true, 0), (false, 0), (true, 1)];
            assert_eq!(place.told(0, &list).await, (true, first.to_vec()), "turn {turn}");
            // Now the required ones refuse, and so does the last shadow.
            let second = [(true, 2), (false, 0), (false, 1), (true, 3), (false, 0), (false, 0), (false, 1)];
            assert_eq!(place.told(0, &list).await, (false, second.to_vec()), "turn {turn}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_shadow_from_the_future_is_moved_to_now_and_not_prolonged() {
    on_each_place(async |place| {
        let refusing = one_of_each()[3].1;
        for (name, pair) in one_of_each() {
            let (alone, beside, full) =
                (format!("{name} alone"), format!("{name} beside"), format!("{name} full"));
            let keys = [alone.as_str(), beside.as_str()];
            for key in keys {
                place.fill(500 * S, key, &pair).await;
            }
            // As one that was filled now.
            place.fill(100 * S, name, &pair).await;
            place.fill(100 * S, &full, &refusing).await;
            let expected = place.decide(100 * S, &[required(name, &pair, 1)]).await.1;

            let (admitted, verdicts) = place.decide(100 * S, &[shadow(&alone, &pair, 1)]).await;
            assert_eq!((admitted, &verdicts), (true, &expected), "{name}");
            let list = [shadow(&beside, &pair, 1), required(&full, &refusing, 1)];
            let (admitted, verdicts) = place.decide(100 * S, &list).await;
            assert_eq!((admitted, &verdicts[..1]), (false, &expected[..]), "{name}");

            let before = place.held(&keys).await;
            let fresh = place.held(&[name]).await;
            let expires = |held: &Option<Vec<Option<Held>>>| {
                held.as_ref().map(|held| held[0].as_ref().expect("it is held").expires)
            };
            assert_eq!(expires(&before), expires(&fresh), "{name}");
            for key in keys {
                let (admitted, verdicts) = place.decide(101 * S, &[shadow(key, &pair, 3)]).await;
                assert_eq!((admitted, verdicts[0].admitted), (true, false), "{name}");
                assert_eq!(verdicts[0].reset_after, expected[0].reset_after - i128::from(S), "{name}");
            }
            assert_eq!(place.held(&keys).await, before, "{name}");
            let end = 100 * S + expected[0].reset_after as i64;
            assert_eq!(place.told(end, &[shadow(&alone, &pair, 3)]).await, (true, vec![(true, 0)]), "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn lists_with_and_without_shadows_go_in_one_call() {
    on_each_store(async |store| {
        let [bucket, _, interval, window, _, log, _] = one_of_each().map(|(_, pair)| pair);
        let charges = |asks: &[Ask<'_>]| asks.iter().map(|ask| ask.of(&store)).collect::<Vec<_>>();
        let one = charges(&[required("a", &bucket, 2)]);
        let both = charges(&[shadow("a", &bucket, 2), required("b", &window, 2)]);
        let shadows = charges(&[shadow("b", &window, 2), shadow("c", &log, 2), shadow("a", &bucket, 2)]);
        let refused = charges(&[shadow("d", &interval, 2), required("c", &log, 2)]);
        let last = charges(&[required("d", &interval, 2)]);
        store.set(0).await;
        let outcomes = store.store.decide(&[&one, &both, &shadows, &refused, &last]).await;
        let told = outcomes.into_iter().map(|outcome| {
            let outcome = outcome.unwrap();
            (outcome.admitted, outcome.verdicts.iter().map(|verdict| verdict.admitted).collect())
        });
        let expected: [(bool, Vec<bool>); 5] = [
            (true, vec![true]),
            (true, vec![false, true]),
            (true, vec![false, true, false]),
            (false, vec![true, false]),
            (true, vec![true]),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    })
    .await;
}
