//! Different keys never collide.

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppResult, assert_limited, isolated};

#[count_limit(1, "1d", key = (first, second))]
async fn pair(first: &str, second: &str) -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", key = "<first>:<second>")]
async fn template(first: &str, second: &str) -> AppResult<()> {
    Ok(())
}

#[rate_limit("1/day", key = "<first>-<second><third>")]
async fn with_separators(first: &str, second: &str, third: &str) -> AppResult<()> {
    Ok(())
}

#[window_limit(1, "1d", key = text)]
async fn single(text: &str) -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", key = name, fallback = missing, pass_args)]
async fn destructured_option((name, _): (&Option<String>, u8)) -> bool {
    name.is_some()
}

#[count_limit(1, "1d", key = (part, 1))]
async fn part(part: impl std::fmt::Display) -> AppResult<()> {
    Ok(())
}

#[expect(clippy::option_option, reason = "as a nullable field of a JSON patch is one")]
#[count_limit(1, "1d", key = (id, &&id), fallback = missing, pass_args)]
async fn option_of_option([id]: [Option<Option<u8>>; 1]) -> bool {
    id.is_some()
}

#[count_limit(1, "1d", key = "<id>", fallback = missing, pass_args)]
async fn references(id: Option<&Option<String>>) -> bool {
    id.is_some()
}

fn missing<T>(_: T) -> bool {
    false
}

#[test]
fn options_may_be_nested_and_borrowed() {
    isolated(async {
        let ann = Some(String::from("ann"));
        assert!(destructured_option((&ann, 1)).await);
        assert!(!destructured_option((&ann, 1)).await);
        assert!(!destructured_option((&None, 1)).await);
        assert!(option_of_option([Some(Some(1))]).await);
        assert!(option_of_option([Some(Some(2))]).await);
        assert!(!option_of_option([Some(Some(2))]).await);
        assert!(!option_of_option([Some(None)]).await);
        assert!(!option_of_option([None]).await);
        assert!(references(Some(&ann)).await);
        assert!(!references(Some(&None)).await);
    });
}

#[test]
fn parts_with_the_same_text_are_one_key() {
    isolated(async {
        part(7).await.unwrap();
        assert_limited(part("7").await);
        assert_limited(part(&7_u128).await);
        assert_limited(part('7').await);
        assert_limited(part(format_args!("{}", 7)).await);
        part("07").await.unwrap();
        part(-7).await.unwrap();
        assert_limited(part(String::from("-7")).await);
    });
}

/// Pairs that a naive join would confuse.
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

/// Lookalikes, and long strings that differ only at their ends.
fn texts() -> Vec<String> {
    let long = "x".repeat(10_000);
    ["", " ", ":", "é", "e\u{301}", "É", "a", "а", "\u{200b}", "🦀", "{a}", "*", "\r\n", "\0"]
        .map(String::from)
        .into_iter()
        .chain([format!("{long}a"), format!("{long}b"), format!("a{long}"), long])
        .collect()
}

#[test]
fn shifted_parts_do_not_collide() {
    isolated(async {
        for (first, second) in PAIRS {
            pair(first, second).await.unwrap();
            template(first, second).await.unwrap();
            with_separators(first, second, "").await.unwrap();
        }
        for (first, second) in PAIRS {
            assert_limited(pair(first, second).await);
            assert_limited(template(first, second).await);
            assert_limited(with_separators(first, second, "").await);
        }
        with_separators("a", "b-", "c").await.unwrap();
        with_separators("a-b", "", "c").await.unwrap();
        with_separators("a-", "b", "c").await.unwrap();
    });
}

#[test]
fn unusual_keys_do_not_collide() {
    isolated(async {
        for text in texts() {
            single(&text).await.unwrap();
        }
        for text in texts() {
            assert_limited(single(&text).await);
        }
    });
}
