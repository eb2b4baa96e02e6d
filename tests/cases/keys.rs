//! No two different keys meet.

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppResult, alone, assert_limited};

#[count_limit(1, "1d", key = (first, second))]
async fn pair(first: &str, second: &str) -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", key = "<first>:<second>")]
async fn template(first: &str, second: &str) -> AppResult<()> {
    Ok(())
}

#[rate_limit("1/day", key = "<first>-<second><third>")]
async fn texts_between(first: &str, second: &str, third: &str) -> AppResult<()> {
    Ok(())
}

#[window_limit(1, "1d", key = text)]
async fn one(text: &str) -> AppResult<()> {
    Ok(())
}

/// Pairs that are easily taken for each other.
const PAIRS: [(&str, &str); 11] = [
    ("a:b", "c"),
    ("a", "b:c"),
    ("a:b:c", ""),
    ("", "a:b:c"),
    ("", ""),
    (":", ""),
    ("", ":"),
    ("a%3Ab", "c"),
    ("a\\:b", "c"),
    ("<a>", "{b}"),
    ("a\0b", "c"),
];

/// Texts that look alike, or are long and differ at their ends.
fn texts() -> Vec<String> {
    let long = "x".repeat(10_000);
    ["", " ", ":", "é", "e\u{301}", "É", "a", "а", "\u{200b}", "🦀", "{a}", "*", "\r\n", "\0"]
        .map(String::from)
        .into_iter()
        .chain([format!("{long}a"), format!("{long}b"), format!("a{long}"), long])
        .collect()
}

#[test]
fn whose_parts_are_shifted() {
    alone(async {
        for (first, second) in PAIRS {
            pair(first, second).await.unwrap();
            template(first, second).await.unwrap();
            texts_between(first, second, "").await.unwrap();
        }
        for (first, second) in PAIRS {
            assert_limited(pair(first, second).await);
            assert_limited(template(first, second).await);
            assert_limited(texts_between(first, second, "").await);
        }
        texts_between("a", "b-", "c").await.unwrap();
        texts_between("a-b", "", "c").await.unwrap();
        texts_between("a-", "b", "c").await.unwrap();
    });
}

#[test]
fn of_unicode_of_nothing_and_of_great_length() {
    alone(async {
        for text in texts() {
            one(&text).await.unwrap();
        }
        for text in texts() {
            assert_limited(one(&text).await);
        }
    });
}
