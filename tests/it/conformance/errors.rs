//! An error on any key leaves every key as it was, and is never reported as limited.

use ratelimit_runtime::store::Charge;

use crate::support::policies::{Pair, one_of_each};
use crate::support::server::Server;
use crate::support::test_store::{StoredValue, TestStore};

/// Returns values that are not a state of the algorithm, as commands without the key.
fn corrupt(algorithm: &str) -> &'static [&'static [&'static str]] {
    match algorithm {
        "token bucket" | "leaky bucket" => &[&["SET", "soon"], &["SET", ""], &["SADD", "x"]],
        // Of a list, only the entries that are read are checked.
        "log" | "counter" => &[
            &["SET", "1700000000000000 1"],
            &["RPUSH", "x"],
            &["RPUSH", "5"],
            &["RPUSH", "0", "1700000000000000"],
            &["RPUSH", "0", "1700000000000000", "1", "2"],
            &["RPUSH", "0", "soon", "1"],
            &["RPUSH", "x", "1700000000000000", "1"],
            &["RPUSH", "0", "soon", "1", "1700000000000000", "2"],
        ],
        // A state of numbers that cannot change.
        "changing refill" => &[&["SET", "1700000000000000 1"], &["SET", "1700000000000000 1 0 0 0"]],
        _ => &[
            &["SET", "soon"],
            &["SET", "1700000000000000"],
            &["SET", "1700000000000000 "],
            &["SET", "1700000000000000 x"],
            &["SET", "-1 -1"],
            &["RPUSH", "0", "1700000000000000", "1"],
        ],
    }
}

/// A store in Redis, and a policy of each kind with a key of its name.
struct Fixture {
    store: TestStore,
    policies: [(&'static str, Pair); 10],
}

impl Fixture {
    async fn new() -> Self {
        let store = TestStore::redis(Server::shared()).await;
        store.set_time(0).await;
        Fixture { store, policies: one_of_each() }
    }

    fn charges(&self) -> Vec<Charge> {
        self.policies.iter().map(|(name, pair)| self.store.charge(name, pair, 1)).collect()
    }

    async fn stored(&self) -> Vec<Option<StoredValue>> {
        self.store.stored(&self.policies.map(|(name, _)| name)).await.expect("the store is in Redis")
    }

    async fn send(&self, command: &[&str]) {
        let mut connection = self.store.connection().expect("the store is in Redis");
        let mut call = redis::Cmd::new();
        call.arg(command);
        let _: redis::Value = call.query_async(&mut connection).await.expect("the server responds");
    }

    async fn delete(&self, name: &str) {
        self.send(&["DEL", &self.store.key_text(name)]).await;
    }

    async fn delete_all(&self) {
        for (name, _) in &self.policies {
            self.delete(name).await;
        }
    }

    /// Replaces the state under this name.
    async fn corrupt(&self, name: &str, value: &[&str]) {
        let key = self.store.key_text(name);
        self.delete(name).await;
        self.send(&[&[value[0], &key], &value[1..]].concat()).await;
        self.send(&["EXPIRE", &key, "3600"]).await;
    }
}

#[tokio::test]
async fn corrupt_values_leave_other_keys_unchanged() {
    let mut fixture = Fixture::new().await;
    // Before the decision, none, some or all of the keys exist.
    for charged in [0, 2, 7] {
        for bad in 0..9 {
            fixture.policies = one_of_each();
            for charge in &fixture.charges()[..charged] {
                assert!(fixture.store.decide(std::slice::from_ref(charge)).await.admitted);
            }
            fixture.policies.rotate_left(charged / 2);
            let (name, store) = (fixture.policies[bad].0, &fixture.store);
            for value in corrupt(name) {
                fixture.corrupt(name, value).await;
                let before = fixture.stored().await;
                let list = fixture.charges();
                let fine = [Charge { key: store.key("fine"), ..list[(bad + 1) % 9].clone() }];
                let outcomes = store.try_decide_lists(&[&list, &fine]).await;
                assert!(outcomes[0].is_err(), "{name} accepts {value:?}");
                assert_eq!(fixture.stored().await, before, "{name} at {bad}: {value:?}");
                let fine = outcomes[1].as_ref().expect("other decisions are made");
                assert!(fine.admitted, "{name}: {value:?}");
                fixture.delete("fine").await;
            }
            fixture.delete_all().await;
        }
    }
}

#[tokio::test]
async fn corrupt_shadows_refuse_nothing() {
    let fixture = Fixture::new().await;
    for bad in 0..9 {
        let name = fixture.policies[bad].0;
        for value in corrupt(name) {
            fixture.corrupt(name, value).await;
            let before = fixture.stored().await;
            let mut list = fixture.charges();
            list[bad].shadow = true;
            // Then a second decision in which the others are shadows too.
            let shadows = list.iter().map(|charge| Charge { shadow: true, ..charge.clone() });
            for list in [list.clone(), shadows.collect()] {
                let outcome = fixture.store.decide(&list).await;
                let admitted: Vec<_> = outcome.verdicts.iter().map(|verdict| verdict.admitted).collect();
                assert!(outcome.admitted, "{name} at {bad}: {value:?}");
                assert!((0..9).all(|i| admitted[i] == (i != bad)), "{name} at {bad}: {admitted:?}");
            }
            let after = fixture.stored().await;
            for (i, (other, _)) in fixture.policies.iter().enumerate() {
                assert_eq!(after[i] == before[i], i == bad, "{name} at {bad}, {other}");
            }
            fixture.delete_all().await;
        }
    }
}

#[tokio::test]
async fn peeks_at_corrupt_values_are_errors() {
    let fixture = Fixture::new().await;
    for (name, pair) in &fixture.policies {
        for value in corrupt(name) {
            fixture.corrupt(name, value).await;
            let peek = fixture.store.charge(name, pair, 0);
            assert!(fixture.store.try_decide_lists(&[&[peek]]).await[0].is_err(), "{name}: {value:?}");
        }
    }
}
