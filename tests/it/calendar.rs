//! Calendar windows: in many time zones, and as attributes have them.

use std::time::Duration;

use ratelimit_runtime::CalendarPeriod;
use ratelimits::{Error, FixedWindow, Registry, count_limit};

use crate::model::starts;
use crate::support::budget::budget;
use crate::support::policies::{Pair, calendar_window};
use crate::support::random::Random;
use crate::support::test_store::{START, TestStore};

/// Among them some whose clocks are set at midnight, by half an hour, to another side of the date line, or often.
const ZONES: [&str; 30] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Moscow",
    "Europe/Istanbul",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Havana",
    "America/Asuncion",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Caracas",
    "America/Scoresbysund",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "Asia/Gaza",
    "Asia/Beirut",
    "Asia/Tehran",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Asia/Pyongyang",
    "Asia/Amman",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Antarctica/Troll",
];

const PERIODS: [CalendarPeriod; 4] =
    [CalendarPeriod::Day, CalendarPeriod::Week, CalendarPeriod::Month, CalendarPeriod::Year];

/// 1 January 2006, and twenty years.
const FROM: i64 = 1_136_073_600 * 1_000_000;
const SPAN: u64 = 20 * 31_556_952 * 1_000_000;

/// The clock of this process is years away from that of the stores in Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_begin_where_a_walk_through_the_zone_finds_them() {
    let (seeded, stores) = (Random::seeded(), TestStore::all().await);
    for instant in 0..budget(1_000, 10_000) {
        let mut random = seeded.run(instant);
        let (zone, period) = (random.pick(&ZONES), random.pick(&PERIODS));
        let once = calendar_window(1, period, zone).unwrap();
        let at = FROM + random.below(SPAN) as i64;
        let [_, end, after] = starts(zone, period, at.into(), 2)[..] else {
            unreachable!("three were asked for")
        };
        let context = format!("{period} in {zone} at {at}");
        for store in &stores {
            let name = instant.to_string();
            // Opens a window, finds it open up to its last microsecond, and opens the next one.
            for (time, admitted, end) in [
                (at, true, end),
                (end as i64 - 1, false, end),
                (end as i64, true, after),
                (after as i64 - 1, false, after),
            ] {
                assert_eq!(
                    decide(store, &name, &once, time).await,
                    (admitted, end as i64),
                    "{context}, {}",
                    store.name
                );
            }
        }
    }
}

/// As each zone has its midnight at another time, the same month ends in one after the other.
#[tokio::test]
async fn zones_in_turn_open_no_window_twice() {
    const HOUR: i64 = 3_600_000_000;
    // 1 December 2023 in the zone that has it first.
    let first = 1_701_338_400_000_000;
    for store in &TestStore::all().await {
        let mut admitted = [0; 2];
        for hour in -5..=30 {
            // East of Greenwich, offsets have a minus there.
            let offset = (hour - 14).clamp(-14, 12);
            let zone = if offset == 0 { "Etc/GMT".to_owned() } else { format!("Etc/GMT{offset:+}") };
            let once = calendar_window(5, CalendarPeriod::Month, zone.leak()).unwrap();
            for minute in 0..10 {
                let (is_admitted, _) =
                    decide(store, "zones", &once, first + hour * HOUR + minute * HOUR / 10).await;
                admitted[usize::from(hour >= 0)] += u32::from(is_admitted);
            }
        }
        assert_eq!(admitted, [5; 2], "{}", store.name);
    }
}

/// One of the windows is as of now, and the other as of the end of a pause, a day later.
#[tokio::test]
async fn paused_and_other_calendars_are_decided_together() {
    const HOUR: i64 = 3_600_000_000;
    let [utc, tokyo] =
        ["UTC", "Asia/Tokyo"].map(|zone| calendar_window(5, CalendarPeriod::Day, zone).unwrap());
    // 5 October 2024, when clocks go forward in New Zealand, and 6 April 2025.
    for midnight in [1_728_086_400_000_000, 1_743_897_600_000_000] {
        for store in &TestStore::all().await {
            for hour in 0..24 {
                let (a, b) = (format!("a{hour}"), format!("b{hour}"));
                for other in [utc, calendar_window(5, CalendarPeriod::Day, "Pacific/Auckland").unwrap()] {
                    store.set_time(midnight + hour * HOUR - START as i64).await;
                    store.pause(&b, &tokyo, 24 * HOUR as u64).await;
                    let charges = [store.charge(&a, &other, 1), store.charge(&b, &tokyo, 1)];
                    let outcome = store.decide(&charges).await;
                    assert_eq!(
                        outcome.verdicts.iter().map(|it| it.admitted).collect::<Vec<_>>(),
                        [true, false],
                        "{}",
                        store.name
                    );
                    store.reset(&a).await;
                    store.reset(&b).await;
                }
            }
        }
    }
}

/// Decides a call at a time since the epoch. Returns whether it is admitted, and when the window ends.
async fn decide(store: &TestStore, name: &str, pair: &Pair, time: i64) -> (bool, i64) {
    store.set_time(time - START as i64).await;
    let verdict = store.decide(&[store.charge(name, pair, 1)]).await.verdicts[0];
    (verdict.admitted, time + verdict.reset_after as i64)
}

#[count_limit(2, "year", key = id, name = "calendar.utc")]
async fn in_utc(id: u32) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[count_limit(limit = 2, period = "month", zone = "America/New_York", key = id, name = "calendar.literal")]
async fn in_literal_zone(id: u32) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[count_limit(limit = limit, period = "month", zone = zone, key = id, name = "calendar.computed")]
async fn in_computed_zone(id: u32, limit: u32, zone: &str) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[count_limit(limit = 2, period = "month", zone = "Europe/Berlim", key = id, name = "calendar.unknown")]
async fn in_unknown_zone(id: u32) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[count_limit(limit = limit, period = "month", zone = "Europe/Berlim", key = id, name = "calendar.unknown.computed")]
async fn in_unknown_zone_with_computed_limit(id: u32, limit: u32) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[count_limit(limit = 2, period = period, key = id, name = "calendar.no-literal")]
async fn of_computed_period(id: u32, period: &str) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

const UNKNOWN: &str = "`zone` is not the name of a time zone; did you mean \"Europe/Berlin\"?";

#[tokio::test]
async fn attributes_have_calendars() {
    let registry = Registry::in_memory();
    let calls = async {
        for _ in 0..2 {
            in_utc(1).await.unwrap();
            in_literal_zone(1).await.unwrap();
            in_computed_zone(1, 2, "Asia/Tokyo").await.unwrap();
        }
        // Another zone is no way to another window.
        for refused in [
            in_utc(1).await,
            in_literal_zone(1).await,
            in_computed_zone(1, 2, "Asia/Tokyo").await,
            in_computed_zone(1, 2, "Europe/Berlin").await,
        ] {
            let left = refused.unwrap_err().retry_after().unwrap();
            assert!(left > Duration::ZERO && left <= Duration::from_secs(366 * 86_400), "{left:?}");
        }
        in_computed_zone(1, 3, "Europe/Berlin").await.unwrap();
    };
    registry.scope(calls).await;

    let policy = registry.policy("calendar.literal").unwrap();
    assert_eq!(policy.peek(1).await.unwrap().remaining, 0);
    let info = ratelimits::policies().into_iter().find(|info| &*info.name == "calendar.literal").unwrap();
    assert_eq!(info.arguments, "limit = 2, period = \"month\", zone = \"America/New_York\"");
}

#[tokio::test]
async fn unknown_zones_are_errors() {
    let registry = Registry::in_memory();
    for _ in 0..2 {
        for call in [
            registry.scope(in_unknown_zone(1)).await,
            registry.scope(in_unknown_zone_with_computed_limit(1, 2)).await,
            registry.scope(in_computed_zone(1, 2, "europe/berlim")).await,
        ] {
            let Err(Error::Invalid(invalid)) = call else { panic!("{call:?}") };
            assert_eq!(invalid.to_string(), UNKNOWN);
        }
    }
    let computed = registry.scope(of_computed_period(1, "month")).await.unwrap_err().to_string();
    assert!(
        computed.contains("`period` is a calendar window, which cannot be computed for each call"),
        "{computed}"
    );
    let problems = ratelimits::check_policies().unwrap_err();
    let own: Vec<_> = problems.problems().filter(|problem| problem.contains("calendar.")).collect();
    assert_eq!(own.len(), 2, "{own:?}");
    assert!(
        own[0].starts_with("`calendar.unknown` (tests/it/calendar.rs:") && own[0].ends_with(UNKNOWN),
        "{own:?}"
    );
    let peek = registry.policy("calendar.unknown").unwrap().peek(1).await;
    assert!(matches!(&peek, Err(Error::Invalid(invalid)) if invalid.to_string() == UNKNOWN), "{peek:?}");
    let usage = registry.policy("calendar.unknown").unwrap().usage(1).await.map(|usage| usage.used);
    assert!(matches!(&usage, Err(Error::Invalid(invalid)) if invalid.to_string() == UNKNOWN), "{usage:?}");

    let calendar = FixedWindow::calendar(1, CalendarPeriod::Day);
    assert_eq!(calendar.zone("Europe/Berlim").unwrap_err().to_string(), UNKNOWN);
    let no_calendar = FixedWindow::new(1, Duration::from_secs(60)).zone("UTC").unwrap_err();
    assert_eq!(
        no_calendar.to_string(),
        "`zone` belongs to the windows of a calendar; write period = \"month\", for example"
    );
}
