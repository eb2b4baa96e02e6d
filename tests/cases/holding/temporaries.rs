//! A call holds its permits until all of its body is dropped, in every edition. Its arguments are dropped after it.

use super::*;

/// Returns what the probes of a call have seen, after the key was released.
fn seen<'a, T>(call: impl FnOnce(&'a str, &'a Seen) -> T, seen: &'a Seen) -> Vec<(&'static str, bool)>
where
    T: Future<Output = AppResult<u8>>,
{
    assert_eq!(released("a", call("a", seen)).unwrap(), 1);
    seen.take()
}

#[concurrency_limit(1, key = key, name = "held")]
async fn value<'a>(key: &'a str, seen: &'a Seen) -> AppResult<u8> {
    let _local = Probe::new("local", key, seen);
    Ok(Probe::new("last", key, seen).value())
}

#[concurrency_limit(1, key = key, name = "held")]
async fn returned<'a>(key: &'a str, seen: &'a Seen) -> AppResult<u8> {
    if !seen.borrow().is_empty() {
        return Ok(0);
    }
    let _local = Probe::new("local", key, seen);
    return Ok(Probe::new("last", key, seen).value());
}

#[concurrency_limit(1, key = key, name = "held")]
async fn matched<'a>(key: &'a str, seen: &'a Seen) -> AppResult<u8> {
    match Probe::new("last", key, seen).value() {
        0 => Err(AppError::Parse),
        value => Ok(value),
    }
}

#[concurrency_limit(1, key = key, name = "held")]
async fn in_a_block<'a>(key: &'a str, seen: &'a Seen) -> AppResult<u8> {
    {
        let _local = Probe::new("local", key, seen);
        Ok(Probe::new("last", key, seen).value())
    }
}

#[concurrency_limit(1, key = key, name = "held")]
async fn awaited<'a>(key: &'a str, seen: &'a Seen) -> AppResult<u8> {
    async fn answer(probe: &Probe<'_>) -> AppResult<u8> {
        Ok(probe.value())
    }
    answer(&Probe::new("last", key, seen)).await
}

#[concurrency_limit(1, key = key, name = "held")]
async fn if_let<'a>(key: &'a str, seen: &'a Seen) -> AppResult<u8> {
    if let 1 = Probe::new("last", key, seen).value() { Ok(1) } else { Err(AppError::Parse) }
}

#[test]
fn locals_and_temporaries_of_the_last_expression() {
    isolated(async {
        let list = Seen::default();
        let both = [("local", true), ("last", true)];
        let is_one_of_both = |seen: Vec<_>| seen == both || seen == [both[1], both[0]];
        assert!(is_one_of_both(seen(value, &list)));
        assert!(is_one_of_both(seen(returned, &list)));
        assert!(is_one_of_both(seen(in_a_block, &list)));
        assert_eq!(seen(matched, &list), [("last", true)]);
        assert_eq!(seen(awaited, &list), [("last", true)]);
        assert_eq!(seen(if_let, &list), [("last", true)]);
    });
}

#[concurrency_limit(1, key = key, name = "held")]
async fn unit<'a>(key: &'a str, seen: &'a Seen) -> Result<(), AppError> {
    Probe::new("first", key, seen).value();
    let _ = Probe::new("second", key, seen);
    drop(Probe::new("third", key, seen));
    Ok(())
}

#[test]
fn statements() {
    isolated(async {
        let list = Seen::default();
        released("a", unit("a", &list)).unwrap();
        assert_eq!(list.take(), [("first", true), ("second", true), ("third", true)]);
    });
}

#[concurrency_limit(1, key = key, name = "held")]
async fn arguments<'a>(
    key: &'a str,
    moved: Probe<'a>,
    kept: Probe<'a>,
    _: Probe<'a>,
    mut changed: Probe<'a>,
) -> AppResult<u8> {
    let moved = { moved };
    changed.name = "changed";
    tokio::task::yield_now().await;
    Ok(moved.value() + kept.value() - changed.value())
}

#[concurrency_limit(1, key = key, name = "held", fallback = first, pass_args)]
async fn destructured<'a>(key: &'a str, (first, _second): (Probe<'a>, Probe<'a>)) -> AppResult<u8> {
    Ok(first.value())
}

async fn first<'a>(_: &'a str, (first, _): (Probe<'a>, Probe<'a>)) -> AppResult<u8> {
    Ok(first.value() + 1)
}

#[test]
fn arguments_that_the_body_does_not_consume_are_dropped_after_it() {
    isolated(async {
        let list = Seen::default();
        let probe = |name| Probe::new(name, "a", &list);
        let call = arguments("a", probe("moved"), probe("kept"), probe("ignored"), probe("mut"));
        assert_eq!(call.await.unwrap(), 1);
        assert_eq!(list.take(), [("moved", true), ("changed", false), ("ignored", false), ("kept", false)]);
        assert_eq!(destructured("a", (probe("first"), probe("second"))).await.unwrap(), 1);
        assert!(list.take().iter().all(|(_, held)| !held));
        let mut holding =
            Box::pin(arguments("a", probe("moved"), probe("kept"), probe("ignored"), probe("mut")));
        assert!(poll(holding.as_mut()).is_pending());
        assert_eq!(destructured("a", (probe("first"), probe("second"))).await.unwrap(), 2);
        assert_eq!(list.take().len(), 2);
        // Dropped where it waits, what it holds is dropped in the same order.
        drop(holding);
        assert_eq!(list.take(), [("moved", true), ("changed", false), ("ignored", false), ("kept", false)]);
    });
}

/// The body is dropped first where the future is.
#[concurrency_limit(1, key = key, name = "held")]
async fn waits<'a>(key: &'a str, seen: &'a Seen) -> AppResult<u8> {
    let _local = Probe::new("local", key, seen);
    sum(Probe::new("last", key, seen).value(), std::future::pending().await)
}

fn sum(value: u8, other: u8) -> AppResult<u8> {
    Ok(value + other)
}

#[test]
fn dropped_where_it_waits() {
    isolated(async {
        let list = Seen::default();
        let mut future = Box::pin(waits("a", &list));
        assert!(poll(future.as_mut()).is_pending());
        drop(future);
        assert!(list.borrow().iter().all(|(_, held)| *held), "{list:?}");
        assert_eq!(list.take().len(), 2);
        assert!(!is_held("a"));
    });
}
