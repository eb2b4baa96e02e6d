//! Argument patterns.

use super::limits::{count_limit, rate_limit};
use super::{AppResult, Text, assert_admits_one, assert_limited, assert_outputs, isolated, text};

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
fn mut_arguments() {
    isolated(async {
        assert_admits_one!(mutable(1, vec![]) => [2]);
        assert_outputs!(mutable_and_passed(1, vec![5]) => [5, 2], [5]);
    });
}

#[count_limit(1, "1d", key = "<id>:<first>")]
async fn destructured(
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
async fn destructured_and_passed(
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
fn destructured_arguments() {
    isolated(async {
        let (pair, mut list) = ((3, text("b")), [1, 2, 3]);
        let body = "1 ann path 3 b 4 7 2";
        let result =
            destructured(user(1), Path("path"), &pair, [4, 5, 6, 7], &mut list, text("unused")).await;
        assert_eq!(result.unwrap(), body);
        let result = destructured(user(1), Path(""), &pair, [4; 4], &mut list, text("")).await;
        assert_limited(result);
        list[0] = 1;
        let mut call = async |id| {
            destructured_and_passed(user(id), Path("path"), &pair, [4, 5, 6, 7], &mut list, text("c")).await
        };
        assert_outputs!(call(1) => body, "ann path b [4, 5, 6, 7] [12, 2, 3] c");
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
fn nested_and_or_patterns() {
    isolated(async {
        let (Path((changed, number)), array) = nested(Path((user(1), Err(5))), [2, 3]).await;
        assert_eq!((changed.id, changed.name.0.as_str(), number, array), (2, "ann!", Ok(5), [4, 5]));
        let (Path((same, number)), array) = nested(Path((user(1), Err(5))), [2, 4]).await;
        assert_eq!((same.id, same.name.0.as_str(), number, array), (1, "ann", Err(5), [2, 4]));
    });
}

#[count_limit(1, "1d", fallback = sum, pass_args, key = "<a>:<first>")]
async fn changes_binding((mut a, ref b): (u8, Vec<u8>), [first, _]: &[u8; 2], _: Text, _: &User) -> u64 {
    a += 1;
    u64::from(a + b[0] + first)
}

fn sum((_, list): (u8, Vec<u8>), _: &[u8], Text(text): Text, user: &User) -> u64 {
    list.len() as u64 + text.len() as u64 + user.id
}

#[test]
fn mut_bindings_do_not_affect_the_fallback() {
    isolated(async {
        let ann = user(10);
        let call = |a| changes_binding((a, vec![1]), &[2, 3], text("text"), &ann);
        assert_outputs!(call(1) => 2 + 1 + 2, 1 + 4 + 10);
        assert_eq!(call(2).await, 3 + 1 + 2);
    });
}

#[count_limit(1, "1d", key = _hidden)]
async fn underscores(_hidden: u8, __private: u8) -> AppResult<()> {
    Ok(())
}

#[rate_limit("1/day", key = "<__private>:<_hidden.len()>", fallback = none, pass_args)]
async fn underscores_and_passed(_hidden: &str, __private: u8, _: u8) -> Option<u8> {
    Some(1)
}

fn none(_: &str, _: u8, _: u8) -> Option<u8> {
    None
}

#[test]
fn underscore_arguments_in_keys() {
    isolated(async {
        underscores(1, 2).await.unwrap();
        underscores(2, 2).await.unwrap();
        assert_limited(underscores(1, 3).await);
        assert_eq!(underscores_and_passed("a", 1, 1).await, Some(1));
        assert_eq!(underscores_and_passed("b", 1, 1).await, None);
    });
}

#[count_limit(limit = limit, period = "1d", key = "<id>", fallback = last, pass_args)]
async fn only_in_the_limit((id, limit): (u8, u8), #[expect(unused_variables)] (a, b): (u8, u8)) -> u8 {
    0
}

fn last(_: (u8, u8), pair: (u8, u8)) -> u8 {
    pair.1
}

#[test]
fn bindings_used_only_by_the_attribute() {
    isolated(async {
        assert_outputs!(only_in_the_limit((1, 1), (2, 3)) => 0, 3);
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
fn ref_mut_bindings() {
    isolated(async {
        let call = || borrowed(Text("a".to_owned()), ("b".to_owned(), 1));
        assert_outputs!(call() => ("abb!".to_owned(), 1), ("ab".to_owned(), 1));
    });
}

struct Counters {
    first: u8,
    second: u8,
}

#[count_limit(1, "1d", key = counters.first)]
async fn assigns_field(mut counters: Counters) -> AppResult<u8> {
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
fn field_assignment_and_raw_identifiers() {
    isolated(async {
        assert_admits_one!(assigns_field(Counters { first: 1, second: 2 }) => 5);
        assert_outputs!(raw((1, 2)) => 9, 2);
    });
}
