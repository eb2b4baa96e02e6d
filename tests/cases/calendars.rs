//! Windows of a calendar, whose time zone is borrowed from the arguments.

use super::limits::count_limit;
use super::{AppResult, Text, assert_admits_one, isolated, text};

struct Org {
    id: u8,
    zone: String,
}

#[count_limit(1, "month", zone = org.zone, key = org.id)]
async fn of_a_field(org: &Org) -> AppResult<u8> {
    Ok(org.id)
}

#[count_limit(1, "week", zone = zone)]
async fn of_an_owned_argument(zone: String, text: Text) -> AppResult<(String, Text)> {
    Ok((zone, text))
}

#[count_limit(1, period = "day", zone = if id > 1 { "Asia/Tokyo" } else { "UTC" }, key = id)]
async fn of_an_expression(id: u8) -> AppResult<u8> {
    Ok(id)
}

#[count_limit(1, period = "year", zone = zone.as_deref().unwrap_or("UTC"))]
async fn of_an_option(zone: Option<String>) -> AppResult<Option<String>> {
    Ok(zone)
}

#[count_limit(limit = 1, period = r"month", zone = ("Europe/Berlin"))]
async fn of_a_literal() -> AppResult<u8> {
    Ok(1)
}

#[test]
fn zones_are_borrowed() {
    isolated(async {
        let org = Org { id: 1, zone: "America/New_York".to_owned() };
        assert_admits_one!(of_a_field(&org) => 1);
        let zone = || "Pacific/Apia".to_owned();
        assert_admits_one!(of_an_owned_argument(zone(), text("a")) => (zone(), text("a")));
        assert_admits_one!(of_an_expression(2) => 2);
        assert_admits_one!(of_an_option(Some(zone())) => Some(zone()));
        assert_admits_one!(of_a_literal() => 1);
    });
}

const DAY: &str = "1d";

#[count_limit(1, period = DAY)]
async fn of_a_constant() -> AppResult<u8> {
    Ok(1)
}

#[test]
fn constants_may_have_the_names_of_periods() {
    isolated(async {
        assert_admits_one!(of_a_constant() => 1);
    });
}
