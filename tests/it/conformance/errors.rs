//! An error on any key leaves every key as it was, and is never taken for a limit.

use ratelimit_runtime::store::Charge;

use crate::support::policies::{Pair, one_of_each};
use crate::support::scheduled::{Held, Scheduled};
use crate::support::server::Server;

/// Values that are no state of the algorithm, as commands without the key.
fn corrupt(algorithm: &str) -> Vec<Vec<&'static str>> {
    match algorithm {
        "token bucket" | "leaky bucket" => {
            vec![vec!["SET", "soon"], vec!["SET", ""], vec!["SADD", "x"]]
        }
        "log" | "counter" => vec![
            // Within a list only what is read is looked at.
            vec!["SET", "1700000000000000 1"],
            vec!["RPUSH", "x"],
            vec!["RPUSH", "0", "1700000000000000"],
            vec!["RPUSH", "0", "soon", "1"],
            vec!["RPUSH", "x", "1700000000000000", "1"],
            vec!["RPUSH", "0", "soon", "1", "1700000000000000", "2"],
        ],
        _ => vec![
            vec!["SET", "soon"],
            vec!["SET", "1700000000000000"],
            vec!["SET", "1700000000000000 "],
            vec!["SET", "1700000000000000 x"],
            vec!["SET", "-1 -1"],
            vec!["RPUSH", "0", "1700000000000000", "1"],
        ],
    }
}

fn charges(store: &Scheduled, policies: &[(&str, Pair)]) -> Vec<Charge> {
    policies
        .iter()
        .map(|(name, pair)| Charge { key: store.key(name), spec: pair.spec, cost: 1, wait: 0, shadow: false })
        .collect()
}

async fn held(store: &Scheduled, policies: &[(&str, Pair)]) -> Vec<Option<Held>> {
    let names: Vec<&str> = policies.iter().map(|(name, _)| *name).collect();
    store.held(&names).await.expect("the store is in Redis")
}

async fn send(store: &Scheduled, command: &[&str]) {
    let mut connection = store.connection().expect("the store is in Redis");
    let mut call = redis::Cmd::new();
    call.arg(command);
    let _: redis::Value = call.query_async(&mut connection).await.expect("the server answers");
}

#[tokio::test]
async fn a_key_that_is_no_state_leaves_the_others_as_they_were() {
    let store = Scheduled::redis(Server::shared()).await;
    store.set(0).await;
    // Some of the others hold something, some do not.
    for charged in [0, 2, 7] {
        for bad in 0..7 {
            let mut policies = one_of_each();
            for i in 0..charged {
                assert!(store.decide(&charges(&store, &policies[i..=i])).await.admitted);
            }
            policies.rotate_left(charged / 2);
            let (name, key) = (policies[bad].0, store.text(policies[bad].0));
            for value in corrupt(name) {
                let mut command = vec![value[0], &key];
                command.extend(&value[1..]);
                send(&store, &["DEL", &key]).await;
                send(&store, &command).await;
                send(&store, &["EXPIRE", &key, "3600"]).await;
                let before = held(&store, &policies).await;
                let list = charges(&store, &policies);
                let fine = [Charge { key: store.key("fine"), ..list[(bad + 1) % 7].clone() }];
                let outcomes = store.store.decide(&[&list, &fine]).await;
                assert!(outcomes[0].is_err(), "{name} was taken for a state: {value:?}");
                assert_eq!(held(&store, &policies).await, before, "{name} at {bad}: {value:?}");
                // One key that is broken is nobody else's trouble.
                let fine = outcomes[1].as_ref().expect("the other decision is answered");
                assert!(fine.admitted, "{name}: {value:?}");
                send(&store, &["DEL", &store.text("fine")]).await;
            }
            for (name, _) in policies {
                send(&store, &["DEL", &store.text(name)]).await;
            }
        }
    }
}

#[tokio::test]
async fn a_shadow_whose_key_is_no_state_refuses_nobody() {
    let store = Scheduled::redis(Server::shared()).await;
    store.set(0).await;
    let policies = one_of_each();
    for bad in 0..7 {
        let (name, key) = (policies[bad].0, store.text(policies[bad].0));
        for value in corrupt(name) {
            let mut command = vec![value[0], &key];
            command.extend(&value[1..]);
            send(&store, &command).await;
            send(&store, &["EXPIRE", &key, "3600"]).await;
            let before = held(&store, &policies).await;
            let mut list = charges(&store, &policies);
            list[bad].shadow = true;
            // The others in shadow too, in a decision of their own that comes after.
            let shadows = list.iter().map(|charge| Charge { shadow: true, ..charge.clone() });
            for list in [list.clone(), shadows.collect()] {
                let outcome = store.decide(&list).await;
                let admitted: Vec<_> = outcome.verdicts.iter().map(|verdict| verdict.admitted).collect();
                assert!(outcome.admitted, "{name} at {bad}: {value:?}");
                assert!((0..7).all(|at| admitted[at] == (at != bad)), "{name} at {bad}: {admitted:?}");
            }
            let after = held(&store, &policies).await;
            for at in 0..7 {
                assert_eq!(after[at] == before[at], at == bad, "{name} at {bad}, {}", policies[at].0);
            }
            for (name, _) in &policies {
                send(&store, &["DEL", &store.text(name)]).await;
            }
        }
    }
}

#[tokio::test]
async fn a_look_at_a_key_that_is_no_state_is_an_error() {
    let store = Scheduled::redis(Server::shared()).await;
    store.set(0).await;
    for (name, pair) in one_of_each() {
        for value in corrupt(name) {
            let key = store.text(name);
            let mut command = vec![value[0], &key];
            command.extend(&value[1..]);
            send(&store, &["DEL", &key]).await;
            send(&store, &command).await;
            let charge = Charge { key: store.key(name), spec: pair.spec, cost: 0, wait: 0, shadow: false };
            assert!(store.store.decide(&[&[charge]]).await[0].is_err(), "{name}: {value:?}");
        }
    }
}
