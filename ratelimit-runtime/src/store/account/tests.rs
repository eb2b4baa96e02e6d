use super::*;

const TTL: u64 = 10_000_000;
/// A store that has heard everything replies so.
const YES: Reply = Reply::Taken(Taken::Yes);

/// An account of calls that run.
fn running(calls: u64) -> Account {
    let mut account = Account::new(7, TTL, 1);
    for _ in 0..calls {
        let sent = account.take(1, 1, false);
        assert!(account.hear(2, sent, YES).starts);
    }
    account
}

fn released(sent: Sent) -> Option<u64> {
    match sent.message {
        Message::Take(take) => Some(take.released),
        Message::Release(released) => Some(released),
        Message::Extend | Message::Report(_) => None,
    }
}

#[test]
fn take_says_what_has_ended() {
    let mut account = running(3);
    assert!(account.release(10, 1) && account.release(11, 1));
    let sent = account.take(12, 1, false);
    assert_eq!(released(sent), Some(2));
    assert!(account.say_released(13).is_none(), "it was said");
    // The next message says all of it once more.
    account.hear(14, sent, Reply::Taken(Taken::No));
    assert!(account.release(15, 1));
    assert_eq!(account.say_released(16).and_then(released), Some(3));
}

#[test]
fn release_of_a_take_that_was_not_decided_is_said_again() {
    let mut account = running(2);
    account.release(10, 1);
    let sent = account.take(11, 1, false);
    let heard = account.hear(12, sent, Reply::Undone);
    assert!(heard.releases && !heard.starts && !account.is_unsure());
    assert_eq!(account.say_released(13).and_then(released), Some(1));
    // One that takes nothing along leaves nothing to say.
    let sent = account.take(14, 1, false);
    assert!(!account.hear(15, sent, Reply::Undone).releases);
}

#[test]
fn report_is_not_repeated_while_it_is_on_its_way() {
    let mut account = running(2);
    let sent = account.take(10, 1, false);
    account.hear(20, sent, Reply::Unknown);
    let report = account.speak(30).expect("a reply was lost");
    assert_eq!(report.message, Message::Report(2));
    // What goes wrong meanwhile is reported once, afterwards.
    for at in 31..40 {
        let sent = account.take(at, 1, false);
        account.hear(at, sent, Reply::Unknown);
        assert!(account.is_unsure() && account.speak(at).is_none());
    }
    account.hear(50, report, Reply::Done);
    let report = account.speak(60).expect("replies were lost");
    assert_eq!(report.message, Message::Report(2));
    account.hear(70, report, Reply::Done);
    assert!(account.speak(80).is_none());
}

#[test]
fn account_of_an_outage_is_dropped_after_it() {
    let mut account = running(1);
    account.admit(10, 1);
    // Redis hears nothing, however often it is told.
    for second in 1..30 {
        let now = second * 1_000_000;
        let sent = account.speak(now).expect("there is something to report");
        account.hear(now + 250_000, sent, Reply::Unknown);
    }
    account.release(30_000_000, 1);
    account.release(30_000_000, 1);
    let mut now = 30_000_000;
    while let Some(sent) = account.speak(now) {
        assert!(now < 60_000_000, "it ends");
        account.hear(now + 250_000, sent, Reply::Unknown);
        now += 1_000_000;
    }
    assert!(account.is_idle(now + 2 * TTL));
}

#[test]
fn call_that_the_store_does_not_know_frees_no_permits_of_others() {
    let mut account = running(3);
    account.admit(10, 1);
    assert!(!account.release(11, 1) && account.say_released(12).is_none());
    // One that it knows is released.
    assert!(account.release(13, 1));
    assert_eq!(released(account.take(14, 1, false)), Some(1));
    assert_eq!(account.speak(15).map(|sent| sent.message), Some(Message::Report(3)));
}
