//! The tests in the guide, with its own text.

use std::time::Duration;

use ratelimits::{Error, rate_limit};
use tokio::time::{Instant, advance};

#[rate_limit(rate = 2.0, burst = 2, key = user)]
async fn send(user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn third_message_is_refused_for_half_a_second() {
    for _ in 0..2 {
        send("ann").await.unwrap();
    }
    let error = send("ann").await.unwrap_err();
    assert!(error.is_limited());
    assert_eq!(error.retry_after(), Some(Duration::from_millis(500)));
    send("bob").await.unwrap();

    advance(Duration::from_millis(500)).await;
    send("ann").await.unwrap();
}

#[rate_limit(rate = 1.0, burst = 1, timeout = "1m")]
async fn look_up() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn calls_are_a_second_apart() {
    let begin = Instant::now();
    for _ in 0..4 {
        look_up().await.unwrap();
    }
    assert_eq!(begin.elapsed(), Duration::from_secs(3));
}

#[test]
fn guide_has_these_tests() {
    let (_, tests) = include_str!("guide.rs").split_once("\n\n").expect("there is code");
    let (tests, _) = tests.split_once("\n#[test]\n").expect("this is one");
    assert!(include_str!("../../guide/testing.md").contains(&format!("# mod tests {{\n{tests}# }}\n```")));
}
