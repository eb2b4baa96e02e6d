//! Values that are no state of a limiter.

use super::cases::CASES;
use super::{Bench, is_defect, lists, text};

#[tokio::test]
async fn a_value_of_another_program_is_a_defect_and_charges_nobody() {
    let mut bench = Bench::start().await;
    for case in &CASES {
        let key = case.text();
        let huge = "9".repeat(400);
        for value in [
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
        ] {
            for list in lists() {
                bench.prepare("nothing").await;
                let words: Vec<&str> = value.splitn(3, ' ').collect();
                // A text with blanks is one argument of SET.
                if words[0] == "SET" {
                    let _: () =
                        redis::cmd("SET").arg(&words[1..]).query_async(&mut bench.admin).await.unwrap();
                } else {
                    bench.send(&value).await;
                }
                bench.send(&format!("EXPIRE {key} 1000")).await;
                let Some(place) = list.iter().position(|charge| charge.key == case.key()) else { continue };
                let before = bench.held().await;
                let at = format!("{} over {value} in {list:?}", case.name);
                match bench.decide(&list).await {
                    Err(error) => {
                        let told = text(&error);
                        assert!(is_defect(&error), "{at}: {told}");
                        assert!(!told.contains("secret-value") && !told.contains("rl:"), "{told}");
                        assert_eq!(before, bench.held().await, "{at}");
                    }
                    Ok(outcome) => {
                        assert!(list[place].shadow && outcome.failed[0].0 == place, "{at}: {outcome:?}");
                        let own = CASES.iter().position(|other| other.name == case.name).unwrap();
                        assert_eq!(before[own], bench.held().await[own], "{at}");
                    }
                }
                let before = bench.held().await;
                bench.store.refund(&case.key(), &case.spec(), 1, None).await.unwrap_err();
                assert_eq!(before, bench.held().await, "{at}");
            }
        }
    }
}
