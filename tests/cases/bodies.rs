//! The body keeps its meaning.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppError, AppResult, assert_admits_one, assert_limited, isolated};

#[count_limit(4, "1d")]
async fn question_mark(text: &str) -> AppResult<u32> {
    let number = text.parse()?;
    if number == 7 {
        return Ok(0);
    }
    let list: Vec<_> = (0..number).collect();
    Ok(list.iter().sum())
}

#[test]
fn question_mark_and_early_return() {
    isolated(async {
        assert_eq!(question_mark("4").await.unwrap(), 6);
        assert_eq!(question_mark("7").await.unwrap(), 0);
        assert!(matches!(question_mark("x").await, Err(AppError::Parse)));
        assert!(matches!(question_mark("-1").await, Err(AppError::Parse)));
        assert_limited(question_mark("4").await);
    });
}

/// Only the return type determines these types.
#[rate_limit("1/day", 2)]
async fn inferred(text: &str) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    if text.is_empty() {
        return Ok([].into());
    }
    if text == "!" {
        Err("not a number")?;
    }
    text.split(',').map(|part| Ok(part.parse()?)).collect()
}

#[test]
fn return_type_drives_inference() {
    isolated(async {
        assert_eq!(inferred("1,2").await.unwrap(), [1, 2]);
        assert_eq!(inferred("!").await.unwrap_err().to_string(), "not a number");
        let refused = inferred("").await.unwrap_err();
        assert!(refused.downcast_ref::<ratelimits::Error>().is_some_and(ratelimits::Error::is_limited));
    });
}

#[count_limit(1, "1d", fallback = nothing)]
async fn unit() {}

#[count_limit(1, "1d", fallback = nothing)]
async fn explicit_unit() -> () {}

#[count_limit(1, "1d", fallback = add_ten, pass_args)]
async fn unit_of_a_statement(count: &Cell<u8>) {
    count.set(count.get() + 1);
}

#[count_limit(1, "1d", fallback = add_ten, pass_args)]
async fn unit_with_returns(count: &Cell<u8>) {
    if count.get() > 100 {
        return;
    }
    count.set(count.get() + 1);
}

#[count_limit(1, "1d")]
async fn unit_in_a_result(count: &Cell<u8>) -> AppResult<()> {
    count.set(count.get() + 1);
    Ok(())
}

fn nothing() {}

fn add_ten(count: &Cell<u8>) {
    count.set(count.get() + 10);
}

#[test]
fn unit_return_types() {
    isolated(async {
        let count = Cell::new(0);
        unit().await;
        unit().await;
        explicit_unit().await;
        unit_of_a_statement(&count).await;
        unit_of_a_statement(&count).await;
        assert_eq!(count.get(), 11);
        unit_with_returns(&count).await;
        unit_with_returns(&count).await;
        assert_eq!(count.get(), 22);
        assert_admits_one!(unit_in_a_result(&count));
        assert_eq!(count.get(), 23);
    });
}

#[count_limit(1, "1d")]
async fn panics() -> AppResult<u8> {
    panic!("not yet")
}

#[count_limit(1, "1d")]
async fn not_implemented(_id: u8) -> AppResult<String> {
    unimplemented!()
}

#[count_limit(1, "1d")]
async fn not_written(_id: u8) -> AppResult<u8> {
    todo!()
}

#[count_limit(1, "1d")]
async fn returns_from_a_loop(list: &[u8]) -> AppResult<u8> {
    let mut index = 0;
    loop {
        if list[index] > 2 {
            return Ok(list[index]);
        }
        index += 1;
        tokio::task::yield_now().await;
    }
}

#[count_limit(1, "1d")]
async fn breaks_with_a_value(list: &[u8]) -> AppResult<u8> {
    Ok('outer: loop {
        for number in list {
            match number {
                0 => break 'outer 0,
                1 => continue 'outer,
                _ => {}
            }
        }
        break 1;
    })
}

#[count_limit(1, "1d")]
#[allow(clippy::needless_return, reason = "the case")]
async fn only_returns() -> AppResult<u8> {
    return Ok(1);
}

/// Returns the message that the call panics with.
fn panic_message<T: std::fmt::Debug>(test: impl Future<Output = T>) -> &'static str {
    let test = AssertUnwindSafe(|| isolated(test));
    let panic = catch_unwind(test).unwrap_err();
    panic.downcast_ref::<&str>().copied().unwrap_or_default()
}

#[test]
fn diverging_bodies_compile_without_warnings() {
    assert_eq!(panic_message(panics()), "not yet");
    assert_eq!(panic_message(not_implemented(1)), "not implemented");
    assert_eq!(panic_message(not_written(1)), "not yet implemented");
    isolated(async {
        assert_eq!(returns_from_a_loop(&[1, 2, 3]).await.unwrap(), 3);
        assert_limited(returns_from_a_loop(&[3]).await);
        assert_eq!(breaks_with_a_value(&[2, 0]).await.unwrap(), 0);
        assert_limited(breaks_with_a_value(&[2]).await);
        assert_admits_one!(only_returns() => 1);
    });
}

#[window_limit(1, "1d")]
async fn one_expression(number: u8) -> AppResult<u8> {
    Ok(number)
}

#[window_limit(1, "1d")]
async fn one_block(number: u8) -> AppResult<u8> {
    {
        let number = number + 1;
        Ok(number)
    }
}

/// Editions differ in when they drop temporaries of the last expression.
#[window_limit(1, "1d")]
async fn temporary_at_the_end(cell: RefCell<Vec<u8>>, lock: Mutex<u8>) -> AppResult<usize> {
    *lock.lock().unwrap() += 1;
    let length = cell.borrow().len();
    Ok(length)
}

#[window_limit(1, "1d")]
async fn closures_and_blocks(number: u8) -> AppResult<u8> {
    let doubled = (|| {
        if number > 100 {
            return None;
        }
        Some(number * 2)
    })();
    let in_a_block = async { Ok::<_, AppError>("3".parse::<u8>()?) }.await?;
    let Some(doubled) = doubled else { return Err(AppError::Parse) };
    Ok(doubled + in_a_block)
}

#[test]
fn single_expression_or_block() {
    isolated(async {
        assert_admits_one!(
            one_expression(1) => 1,
            one_block(1) => 2,
        );
        assert_eq!(temporary_at_the_end(RefCell::default(), Mutex::new(1)).await.unwrap(), 0);
        assert_admits_one!(closures_and_blocks(1) => 5);
    });
}

/// Appends its name to the log when dropped.
struct Recorder<'a>(&'a str, &'a RefCell<String>);

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        self.1.borrow_mut().push_str(self.0);
    }
}

#[count_limit(1, "1d", fallback = dropped_second, pass_args)]
async fn drops<'a>(_first: Recorder<'a>, _: Recorder<'a>, list: &'a RefCell<String>) -> Recorder<'a> {
    let _local = Recorder("local ", list);
    tokio::task::yield_now().await;
    Recorder("output ", list)
}

fn dropped_second<'a>(first: Recorder<'a>, second: Recorder<'a>, _: &'a RefCell<String>) -> Recorder<'a> {
    drop(second);
    first
}

#[test]
fn drop_order_is_preserved() {
    isolated(async {
        let list = RefCell::default();
        drop(drops(Recorder("first ", &list), Recorder("second ", &list), &list).await);
        assert_eq!(list.take(), "local second first output ");
        drop(drops(Recorder("first ", &list), Recorder("second ", &list), &list).await);
        assert_eq!(list.take(), "second first ");
    });
}
