//! Arguments, with and without names.

use super::limits::{count_limit, rate_limit};
use super::{AppResult, Text, alone, assert_limited, text};

struct User {
    id: u64,
    name: Text,
}

struct Path<T>(T);

fn user(id: u64) -> User {
    User { id, name: text("ann") }
}

#[count_limit(1, "1d", key = count)]
async fn mutable(mut count: u8, mut list: Vec<u8>) -> AppResult<Vec<u8>> {
    count += 1;
    list.push(count);
    Ok(list)
}

#[count_limit(1, "1d", key = count, fallback = unchanged, pass_args)]
async fn mutable_and_passed(mut count: u8, mut list: Vec<u8>) -> Vec<u8> {
    count += 1;
    list.push(count);
    list
}

fn unchanged(_: u8, list: Vec<u8>) -> Vec<u8> {
    list
}

#[test]
fn mutable_ones_are_passed_without_their_mut() {
    alone(async {
        assert_eq!(mutable(1, vec![]).await.unwrap(), [2]);
        assert_limited(mutable(1, vec![]).await);
        assert_eq!(mutable_and_passed(1, vec![5]).await, [5, 2]);
        assert_eq!(mutable_and_passed(1, vec![5]).await, [5]);
    });
}

#[count_limit(1, "1d", key = "<id>:<first>")]
async fn taken_apart(
    User { id, ref name }: User,
    Path(path): Path<&str>,
    &(first, ref second): &(u8, Text),
    [a, .., z]: [u8; 4],
    [whole @ .., _]: &mut [u8; 3],
    _: Text,
) -> AppResult<String> {
    whole[0] += 1;
    Ok(format!("{id} {} {path} {first} {} {a} {z} {}", name.0, second.0, whole[0]))
}

#[count_limit(1, "1d", key = "<id>:<first>", fallback = whole, pass_args)]
async fn taken_apart_and_passed(
    User { id, ref name }: User,
    Path(path): Path<&str>,
    &(first, ref second): &(u8, Text),
    [a, .., z]: [u8; 4],
    [whole @ .., _]: &mut [u8; 3],
    _: Text,
) -> String {
    whole[0] += 1;
    format!("{id} {} {path} {first} {} {a} {z} {}", name.0, second.0, whole[0])
}

fn whole(
    User { name, .. }: User,
    Path(path): Path<&str>,
    pair: &(u8, Text),
    array: [u8; 4],
    list: &mut [u8; 3],
    Text(text): Text,
) -> String {
    list[0] += 10;
    format!("{} {path} {} {array:?} {list:?} {text}", name.0, pair.1.0)
}

#[test]
fn patterns_bind_for_the_key_and_for_the_body_and_pass_whole() {
    alone(async {
        let (pair, mut list) = ((3, text("b")), [1, 2, 3]);
        let body = "1 ann path 3 b 4 7 2";
        let result = taken_apart(user(1), Path("path"), &pair, [4, 5, 6, 7], &mut list, text("unused")).await;
        assert_eq!(result.unwrap(), body);
        let result = taken_apart(user(1), Path(""), &pair, [4; 4], &mut list, text("")).await;
        assert_limited(result);
        list[0] = 1;
        let mut call = async |id| {
            taken_apart_and_passed(user(id), Path("path"), &pair, [4, 5, 6, 7], &mut list, text("c")).await
        };
        assert_eq!(call(1).await, body);
        assert_eq!(call(1).await, "ann path b [4, 5, 6, 7] [12, 2, 3] c");
        assert_eq!(call(2).await, "2 ann path 3 b 4 7 13");
    });
}

#[count_limit(1, "1d", key = "<id>:<number>:<inner>", fallback = identity, pass_args)]
async fn nested(
    Path((User { id, name: Text(mut name) }, Ok(number) | Err(number))): Path<(User, Result<u8, u8>)>,
    all @ [inner, _]: [u8; 2],
) -> (Path<(User, Result<u8, u8>)>, [u8; 2]) {
    name.push('!');
    (Path((User { id: id + 1, name: Text(name) }, Ok(number))), all.map(|number| number + inner))
}

fn identity<T, U>(first: T, second: U) -> (T, U) {
    (first, second)
}

#[test]
fn nested_and_alternative_patterns_pass_whole() {
    alone(async {
        let (Path((changed, number)), array) = nested(Path((user(1), Err(5))), [2, 3]).await;
        assert_eq!((changed.id, changed.name.0.as_str(), number, array), (2, "ann!", Ok(5), [4, 5]));
        let (Path((same, number)), array) = nested(Path((user(1), Err(5))), [2, 4]).await;
        assert_eq!((same.id, same.name.0.as_str(), number, array), (1, "ann", Err(5), [2, 4]));
    });
}

#[count_limit(1, "1d", fallback = sum, pass_args, key = "<a>:<first>")]
async fn changing((mut a, ref b): (u8, Vec<u8>), [first, _]: &[u8; 2], _: Text, _: &User) -> u64 {
    a += 1;
    u64::from(a + b[0] + first)
}

fn sum((_, list): (u8, Vec<u8>), _: &[u8], Text(text): Text, user: &User) -> u64 {
    list.len() as u64 + text.len() as u64 + user.id
}

#[test]
fn what_a_pattern_changes_is_the_body_s_alone() {
    alone(async {
        let ann = user(10);
        let call = |a| changing((a, vec![1]), &[2, 3], text("text"), &ann);
        assert_eq!(call(1).await, 2 + 1 + 2);
        assert_eq!(call(1).await, 1 + 4 + 10);
        assert_eq!(call(2).await, 3 + 1 + 2);
    });
}

#[count_limit(1, "1d", key = _hidden)]
async fn underscored(_hidden: u8, __private: u8) -> AppResult<()> {
    Ok(())
}

#[rate_limit("1/day", key = "<__private>:<_hidden.len()>", fallback = none, pass_args)]
async fn underscored_and_passed(_hidden: &str, __private: u8, _: u8) -> Option<u8> {
    Some(1)
}

fn none(_: &str, _: u8, _: u8) -> Option<u8> {
    None
}

#[test]
fn underscored_ones_are_counted_by_without_a_warning() {
    alone(async {
        underscored(1, 2).await.unwrap();
        underscored(2, 2).await.unwrap();
        assert_limited(underscored(1, 3).await);
        assert_eq!(underscored_and_passed("a", 1, 1).await, Some(1));
        assert_eq!(underscored_and_passed("b", 1, 1).await, None);
    });
}

#[count_limit(limit = limit, period = "1d", key = "<id>", fallback = last, pass_args)]
async fn for_the_limit_alone((id, limit): (u8, u8), #[expect(unused_variables)] (a, b): (u8, u8)) -> u8 {
    0
}

fn last(_: (u8, u8), pair: (u8, u8)) -> u8 {
    pair.1
}

#[test]
fn patterns_may_bind_for_the_key_and_for_numbers_alone() {
    alone(async {
        assert_eq!(for_the_limit_alone((1, 1), (2, 3)).await, 0);
        assert_eq!(for_the_limit_alone((1, 1), (2, 3)).await, 3);
    });
}

#[count_limit(1, "1d", fallback = swapped, pass_args)]
async fn borrowed(ref mut text: Text, (ref mut more, number): (String, u8)) -> (String, u8) {
    text.0.push_str(more);
    more.push('!');
    (format!("{}{more}", text.0), number)
}

fn swapped(Text(text): Text, (more, number): (String, u8)) -> (String, u8) {
    (text + &more, number)
}

#[test]
fn those_that_patterns_borrow_mutably_pass_whole() {
    alone(async {
        let call = || borrowed(Text("a".to_owned()), ("b".to_owned(), 1));
        assert_eq!(call().await, ("abb!".to_owned(), 1));
        assert_eq!(call().await, ("ab".to_owned(), 1));
    });
}

struct Counters {
    first: u8,
    second: u8,
}

#[count_limit(1, "1d", key = counters.first)]
async fn changed_in_part(mut counters: Counters) -> AppResult<u8> {
    counters.first = 3;
    let Counters { first, second } = counters;
    Ok(first + second)
}

#[count_limit(1, "1d", key = r#type, fallback = both, pass_args)]
async fn raw((r#type, _): (u8, u8)) -> u8 {
    9
}

fn both(pair: (u8, u8)) -> u8 {
    pair.1
}

#[test]
fn those_that_are_changed_in_part_and_those_of_raw_names() {
    alone(async {
        assert_eq!(changed_in_part(Counters { first: 1, second: 2 }).await.unwrap(), 5);
        assert_limited(changed_in_part(Counters { first: 1, second: 2 }).await);
        assert_eq!((raw((1, 2)).await, raw((1, 2)).await), (9, 2));
    });
}
