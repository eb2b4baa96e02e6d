//! Several messages in one call of a script.

use ratelimit_runtime::algorithm::believed_holds::{HoldsState, Speaker, Take, Taken};
use ratelimit_runtime::store::account::Message;
use redis::Value;
use redis::aio::MultiplexedConnection;

use super::{Charge, KEY, KIND, SECOND, Said, Scripts, Stored, packed_correction};
use crate::support::budget::budget;
use crate::support::random::Random;
use crate::support::server::Server;

const TTL: u64 = 1000 * SECOND;
const MAX: u64 = 5;

/// Decides takes in one call, and returns of each whether it is admitted.
async fn take_all(scripts: &Scripts, connection: &mut MultiplexedConnection, takes: &[Charge]) -> Vec<bool> {
    let mut call = scripts.decide.prepare_invoke();
    let (mut packed, mut said) = (Vec::new(), Vec::new());
    for (index, take) in takes.iter().enumerate() {
        call.key(&take.key);
        if index == 1 {
            // All arguments of the others differ.
            packed.extend(*b"<bddddd\0\x01\x02\x03\x04\x05\x06");
        }
        packed.extend(take.pack());
        said.extend(take.pack_take());
    }
    call.arg(1).arg("<bddddd").arg(packed).arg(said);
    // What is decided by the pass is numbers, one if the take is admitted, or two, and all else is a list.
    let replies = match call.invoke_async(connection).await.unwrap() {
        Value::BulkString(packed) => {
            let numbers =
                packed.as_chunks().0.iter().map(|bytes| Value::Int(f64::from_le_bytes(*bytes) as i64));
            numbers.collect()
        }
        Value::Array(replies) => replies,
        other => panic!("{other:?}"),
    };
    let (mut admitted, mut replies) = (Vec::new(), replies.into_iter().skip(1));
    while let Some(reply) = replies.next() {
        admitted.push(match reply {
            Value::Int(signed) => {
                if signed < 0 {
                    replies.next();
                }
                signed > 0
            }
            Value::Array(decision) => decision[0] == Value::Int(1),
            other => panic!("{other:?}"),
        });
    }
    admitted
}

#[tokio::test]
async fn messages_of_a_call_are_heard_in_order() {
    let server = Server::start();
    let mut connection = server.connect().await;
    let random = Random::seeded();
    for run in 0..budget(200, 20_000) {
        let random = &mut random.run(run);
        let scripts = if run % 2 == 0 { Scripts::new() } else { Scripts::in_full() };
        let _: () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
        let (seconds, _): (u64, u64) = redis::cmd("TIME").query_async(&mut connection).await.unwrap();
        // Nothing expires, so the model need not have the same time.
        let (now, mut model) = (seconds * SECOND, HoldsState::default());
        for round in 0..8 {
            let mut speaker = || Speaker { process: random.between(1, 2), epoch: random.pick(&[1, 1, 1, 2]) };
            let context = format!("run {run}, round {round}");
            let of: Vec<_> = (0..4).map(|_| speaker()).collect();
            if random.percent(50) {
                let takes = of.into_iter().map(|of| {
                    let (has_share, waits) = (random.percent(40), random.percent(30));
                    (of, Take { permits: 1, released: random.pick(&[0, 0, 3, 9, 20]), has_share, waits })
                });
                let takes: Vec<_> = takes.collect();
                let expected: Vec<_> = takes
                    .iter()
                    .map(|(of, take)| model.take(now, TTL, *of, *take, MAX) == Taken::Yes)
                    .collect();
                let charges: Vec<_> =
                    takes.iter().map(|(of, take)| Charge::take(KEY, *of, *take, MAX, TTL)).collect();
                let admitted = take_all(&scripts, &mut connection, &charges).await;
                assert_eq!(admitted, expected, "{context}: {takes:?}");
            } else {
                let mut call = scripts.correct.prepare_invoke();
                let (mut packed, mut expected) = (Vec::new(), Vec::new());
                for of in of {
                    let message = match random.below(4) {
                        0 | 1 => Message::Release(random.between(1, 20)),
                        2 => Message::Extend,
                        _ => Message::Report(random.below(2)),
                    };
                    call.key(KEY);
                    packed.extend(packed_correction(KIND, Said { of, message, ttl: TTL }.numbers()));
                    let mut text = String::new();
                    match message {
                        Message::Release(released) => model.release(now, of, released),
                        Message::Report(permits) => model.report(now, TTL, of, permits),
                        _ => {
                            let believed = model.extend(now, TTL, of);
                            text = believed.map_or("HELD".to_owned(), |it| {
                                format!("HELD {} {}", it.permits, it.released)
                            });
                        }
                    }
                    expected.push(text);
                }
                call.arg(packed);
                if expected.iter().all(String::is_empty) {
                    // One stands for all.
                    expected.truncate(1);
                }
                let texts: Vec<String> = call.invoke_async(&mut connection).await.unwrap();
                assert_eq!(texts, expected, "{context}");
            }
            let stored = Stored::read(&mut connection, KEY).await.unwrap_or_default();
            stored.check(&context);
            assert_eq!(stored.total, model.held(now), "{context}");
        }
    }
}
