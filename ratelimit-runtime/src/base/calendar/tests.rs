use proptest::prelude::*;

use super::*;
use crate::base::property_tests::config;

fn calendar(period: CalendarPeriod, zone: &str) -> Calendar {
    Calendar::new(period, Zone::named(zone).unwrap())
}

/// Returns the start and end of the window that a time belongs to, in UTC.
fn window(period: CalendarPeriod, zone: &str, time: &str) -> [String; 2] {
    let time: Timestamp = time.parse().unwrap();
    let window = calendar(period, zone).window(time.as_microsecond() as u64);
    window.map(|time| Timestamp::from_microsecond(time as i64).unwrap().to_string())
}

#[test]
fn windows_begin_with_their_first_days() {
    let time = "2026-11-27T12:34:56Z";
    for (period, zone, start, end) in [
        (CalendarPeriod::Day, "UTC", "2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z"),
        (CalendarPeriod::Day, "Europe/Berlin", "2026-11-26T23:00:00Z", "2026-11-27T23:00:00Z"),
        (CalendarPeriod::Day, "Asia/Kathmandu", "2026-11-26T18:15:00Z", "2026-11-27T18:15:00Z"),
        // The 27th is a Friday.
        (CalendarPeriod::Week, "UTC", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"),
        (CalendarPeriod::Month, "America/New_York", "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"),
        (CalendarPeriod::Year, "Pacific/Kiritimati", "2025-12-31T10:00:00Z", "2026-12-31T10:00:00Z"),
    ] {
        assert_eq!(window(period, zone, time), [start, end], "{period} in {zone}");
    }
    let week = window(CalendarPeriod::Week, "UTC", "1970-01-01T00:00:00Z");
    assert_eq!(week, ["1970-01-01T00:00:00Z", "1970-01-05T00:00:00Z"], "nothing begins before the epoch");
}

#[test]
fn days_are_as_long_as_clocks_make_them() {
    for (zone, time, start, end) in [
        // 23 and 25 hours.
        ("Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
        ("Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
        // Without a midnight: clocks go from 23:59 to 1:00.
        ("America/Asuncion", "2023-10-01T12:00:00Z", "2023-10-01T04:00:00Z", "2023-10-02T03:00:00Z"),
        // With two midnights: clocks go from 0:59 to 0:00.
        ("America/Havana", "2026-11-01T04:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
        ("America/Havana", "2026-11-01T05:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
        // Set back over midnight, from 0:01 to 23:01: the day has begun.
        ("America/St_Johns", "2010-11-07T03:00:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"),
        // There was no 30 December.
        ("Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"),
    ] {
        assert_eq!(window(CalendarPeriod::Day, zone, time), [start, end], "{zone} at {time}");
    }
}

#[test]
fn windows_follow_each_other() {
    let month = calendar(CalendarPeriod::Month, "Europe/Berlin");
    let starts = |day: &str| {
        format!("{day}[Europe/Berlin]").parse::<jiff::Zoned>().unwrap().timestamp().as_microsecond()
    };
    let [june, july, january] =
        ["2026-06-01T00:00", "2026-07-01T00:00", "2027-01-01T00:00"].map(starts).map(|it| it as u64);
    assert_eq!(month.after(june, 0, 0), june);
    assert_eq!(month.after(june, 1, 0), july);
    assert_eq!(month.after(june, 7, 0), january);
    assert_eq!(month.after(june + 5, 7, 0), january, "by a clock that is ahead");
}

#[test]
fn unknown_zones_are_errors_that_name_the_closest() {
    assert_eq!(Zone::named("europe/berlin"), Zone::named("Europe/Berlin"));
    let problem = |name| Zone::named(name).unwrap_err().to_string();
    assert_eq!(
        problem("Europe/Berlim"),
        "`zone` is not the name of a time zone; did you mean \"Europe/Berlin\"?"
    );
    let unknown = "`zone` is not the name of a time zone; write one like \"Europe/Berlin\" or \"UTC\"";
    let long = "Europe/Berlin".repeat(10_000);
    for name in ["", "nowhere at all", "../../etc/passwd", "\0", "localtime", "posixrules", "Factory", &long]
    {
        assert_eq!(problem(name), unknown, "{name:?}");
    }
    for name in ["+02:00", "-5", "UTC+2", "gmt-03:30"] {
        let offset = "`zone` is an offset, and not the name of a time zone; write one like \"Europe/Berlin\", or \"Etc/GMT-2\" for two hours ahead of UTC";
        assert_eq!(problem(name), offset);
    }
    assert!(["Etc/GMT-2", "GMT+0"].into_iter().all(|name| Zone::named(name).is_ok()));
    assert_eq!(Zone::unchecked("Europe/Berlim").check().unwrap_err().argument(), "zone");
    assert_eq!(Zone::unchecked("UTC").check(), Ok(()));
}

proptest! {
    #![proptest_config(config())]

    /// Whoever has another time, by less than a window, is told of the one that the server is in.
    #[test]
    fn windows_around_a_time_include_those_of_other_clocks(
        time in 1_000_000_000_000_000..4_000_000_000_000_000_u64,
        off in -22 * 3_600_000_000..22 * 3_600_000_000_i64,
        period in prop::sample::select(&CalendarPeriod::ALL[..]),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Asia/Gaza"]),
    ) {
        let calendar = calendar(period, zone);
        let starts = calendar.around(time.saturating_add_signed(off));
        prop_assert!(starts.is_sorted_by(|one, next| one < next));
        let begun = starts.iter().filter(|start| **start <= time).count();
        prop_assert!((1..4).contains(&begun), "{begun}");
        prop_assert_eq!(calendar.window(time), [starts[begun - 1], starts[begun]]);
    }

    /// Whatever a server says.
    #[test]
    fn any_time_has_windows_around_it(time in any::<u64>(), period in prop::sample::select(&CalendarPeriod::ALL[..])) {
        let calendar = calendar(period, "Europe/Berlin");
        prop_assert!(calendar.around(time).is_sorted());
        prop_assert!(calendar.after(time.min(1 << 53), time, 0) >= time.min(1 << 53));
    }
}
