//! Values that no limiter wrote.

use super::cases::{CASES, State};
use super::{Fixture, is_permanent, some_lists, text};

#[tokio::test]
async fn corrupt_values_are_permanent_errors() {
    let mut fixture = Fixture::start().await;
    let huge = "9".repeat(400);
    for case in &CASES {
        let key = case.text();
        for (round, value) in [
            format!("SADD {key} secret-value"),
            format!("SET {key} secret-value"),
            format!("SET {key} -5"),
            format!("SET {key} 9223372036854775807"),
            format!("SET {key} 9007199254740999"),
            format!("SET {key} {huge}"),
            format!("SET {key} {huge} {huge}"),
            format!("SET {key} 1 {huge} 1 1 1"),
            format!("RPUSH {key} secret-value secret-value secret-value"),
            format!("RPUSH {key} 0 {huge} 2"),
        ]
        .into_iter()
        .enumerate()
        {
            for list in some_lists(round) {
                let Some(index) = list.iter().position(|charge| charge.key == case.key()) else { continue };
                let context = format!("{} over {value} in {list:?}", case.name);
                fixture.prepare(State::Absent).await;
                let words: Vec<&str> = value.splitn(3, ' ').collect();
                // The text of SET is one argument even if it contains spaces.
                if words[0] == "SET" {
                    let _: () =
                        redis::cmd("SET").arg(&words[1..]).query_async(&mut fixture.admin).await.unwrap();
                } else {
                    fixture.send(&value).await;
                }
                fixture.send(&format!("EXPIRE {key} 1000")).await;
                let before = fixture.stored().await;
                match fixture.store.decide(&list).await {
                    Err(error) => {
                        let text = text(&error);
                        assert!(is_permanent(&error), "{context}: {text}");
                        assert!(!text.contains("secret-value"), "{text}");
                        assert_eq!(before, fixture.stored().await, "{context}");
                    }
                    Ok(outcome) => {
                        assert!(list[index].shadow && outcome.failed[0].0 == index, "{context}: {outcome:?}");
                        let own = CASES.iter().position(|other| other.name == case.name).unwrap();
                        assert_eq!(before[own], fixture.stored().await[own], "{context}");
                    }
                }
                let before = fixture.stored().await;
                fixture.store.refund(&case.key(), &case.spec(), 1, None).await.unwrap_err();
                assert_eq!(before, fixture.stored().await, "{context}");
            }
        }
    }
}
