//! What stands under the attribute.

use super::*;

#[test]
fn are_async_and_have_a_body() {
    fails_on(
        "fn send() -> Result<(), E> { Ok(()) }",
        Rate,
        "5",
        &[(
            "fn",
            "a decision is awaited, and this function is not async; write `async fn send`, or put this attribute above the one that made it so, or keep it and ask a `Limiter` where it is called: `limiter.try_acquire(key, 1).await?`",
        )],
    );
    fails_on(
        "fn send() -> impl Future<Output = ()> { ready(()) }",
        Rate,
        "5",
        &[(
            "fn",
            "a decision is awaited, and `send` does not end in the async block that it returns; write `async fn send`, or end it in `async move { … }` or `Box::pin(async move { … })`",
        )],
    );
    fails_on(
        "/// Users.\n#[derive(Debug)] pub(crate) struct User;",
        Rate,
        "5",
        &[("struct", "this is no function; write `#[rate_limit(…)]` on each `async fn`")],
    );
    fails_on(
        "const fn send() -> Result<(), E> { Ok(()) }",
        Rate,
        "5",
        &[("const", "a `const fn` runs while compiling, where no limit is known; write `async` for `const`")],
    );
    fails_on(
        "async fn send(&self) -> Result<(), E>;",
        Count,
        "5, 60",
        &[(
            "send",
            "there is no body to keep calls from; write `#[count_limit(…)]` on the implementations of `send`",
        )],
    );
    fails_on(
        "impl Api { async fn send(&self) {} }",
        Count,
        "5, 60",
        &[("impl", "this is no function; write `#[count_limit(…)]` on each `async fn`")],
    );
    fails_on(
        "async fn send() -> impl Future { ready(()) }",
        Count,
        "5, 60",
        &[(
            "-> impl Future",
            "`impl Trait` does not say what a refused call returns; write `Result<_, E>` where `E: From<ratelimits::Error>`, or `fallback = …`",
        )],
    );
    expands(Count, "5, 60, fallback = f", "async fn send() -> impl Future { ready(()) }");
}

#[test]
fn the_body_is_not_parsed() {
    let expanded = expands(Rate, "5", "async fn f() -> R { #![allow(x)] half + ; typed . }");
    assert!(expanded.ends_with("{ half + ; typed . } }"), "{expanded}");
    assert!(expanded.contains("{ #! [allow (x)] # [allow"), "{expanded}");
}

/// Futures that are made by hand, as `#[async_trait]` makes them, and what their block then begins with.
#[test]
fn that_return_a_future_are_entered() {
    for (item, begins) in [
        (
            "fn f(&self) -> impl Future<Output = Result<u8, E>> { let a = 1; async move { body() } }",
            "{let_={use",
        ),
        (
            "fn f() -> Pin<Box<dyn Future<Output = Result<u8, E>> + Send>> { Box::pin(async { body() }) }",
            "{let_={use",
        ),
        ("fn f(&self) -> BoxFuture<'_, Result<u8, E>> { async move { body() }.boxed() }", "{let_={use"),
        (
            "fn f() -> Pin<Box<impl Future<Output = Result<u8, E>>>> { Box::pin((async move { if a { body() } })) }",
            "{let_={use",
        ),
        (
            "fn f() -> Pin<Box<dyn Future<Output = Result<u8, E>>>> { Box::pin(async move {
                if let Some(__ret) = None::<Result<u8, E>> { return __ret; } let a = a; body() }) }",
            "{ifletSome(__ret)=None::<Result<u8,E>>{return__ret;}let_={use",
        ),
    ] {
        let expanded = expands(Count, "5, 60", item);
        let expanded = expanded.replace(' ', "");
        let block = expanded.split("async").nth(1).unwrap().trim_start_matches("move");
        let (allowed, rest) = block.split_once("#[allow(").map_or(("", block), |(start, rest)| (start, rest));
        let block = format!("{allowed}{}", rest.split_once(")]").unwrap().1);
        assert!(block.starts_with(begins), "{block}");
        assert!(expanded.contains("refuse::<Result<u8,E>>"), "{expanded}");
    }
}

/// `#[async_trait]` has taken the argument apart in the block, where a key is not yet.
#[test]
fn that_async_trait_has_rewritten_keep_the_names_of_their_arguments() {
    let expanded = expands(
        Count,
        "5, 60, key = \"<id>\"",
        "fn f(__arg1: Path) -> Pin<Box<dyn Future<Output = Result<u8, E>>>> { Box::pin(async move {
            let Path(mut id) = { let __arg1 = __arg1; __arg1 }; body() }) }",
    );
    assert!(expanded.replace(' ', "").contains("letPath(id)=&__arg1;"), "{expanded}");
}

/// Before the block there is no decision.
#[test]
fn that_return_a_future_return_only_that() {
    let early = "this `return` leaves before the decision, so such a call would have no limit; write it in the async block, \
                 or write an `async fn`";
    fails_on(
        "fn f(a: u8) -> BoxFuture<'static, u8> { if a == 1 { return Box::pin(async { 1 }); } Box::pin(async move { a }) }",
        Count,
        "5, 60, fallback = g",
        &[("return", early)],
    );
    fails_on(
        "fn f(a: u8, b: bool) -> BoxFuture<'static, u8> { if b || c { return g(); } async move { a }.boxed() }",
        Count,
        "5, 60, fallback = g",
        &[("return", early)],
    );
    for inside in [
        "fn g() -> u8 { return 1; } let n = { fn h() -> bool { return true; } h() };",
        "let n = v.iter().filter(|x| { if **x == 0 { return false; } **x == 2 }).count();",
        "let n = async move { return 0; }; let m = async { return 1; }; let o = || { return 2; };",
    ] {
        let item = format!(
            "fn f(a: u8) -> BoxFuture<'static, u8> {{ {inside} Box::pin(async move {{ return a; }}) }}"
        );
        expands(Count, "5, 60, fallback = g", &item);
    }
}

#[test]
fn that_never_return_are_not_asked_what_they_come_to() {
    fails_on(
        "async fn f() -> ! { loop {} }",
        Count,
        "5, 60, fallback = f, charge_when = |out| true",
        &[("|out| true", "a function that never returns comes to nothing; leave `charge_when` out")],
    );
    expands(Count, "5, 60, fallback = f", "async fn f() -> ! { loop {} }");
}

#[test]
fn pass_arguments_that_can_be_passed() {
    let whole = "`pass_args` passes an argument whole, and here it is taken apart before the async block; write a name for \
                 it, and take it apart in the block";
    let boxed = "fn f((a, b): (u8, u8)) -> BoxFuture<'static, u8> { Box::pin(async move { a }) }";
    fails_on(boxed, Count, "5, 60, fallback = g, pass_args", &[("(a, b)", whole)]);
    expands(Count, "5, 60, fallback = g", boxed);

    let most = "`pass_args` passes at most three arguments that have a `#[cfg]`; write `fallback = |_| …`, which sees them \
                by itself";
    let conditional = |most: usize| {
        let arguments: String = (0..most).map(|at| format!("#[cfg(a{at})] a{at}: u8, ")).collect();
        format!("async fn f({arguments}b: u8) {{}}")
    };
    fails_on(&conditional(4), Count, "5, 60, fallback = g, pass_args", &[("a3", most)]);
    for (number, calls) in [(0, 1), (1, 2), (3, 8)] {
        let expanded = expands(Count, "5, 60, fallback = g, pass_args", &conditional(number));
        assert_eq!(expanded.matches("let ratelimits_called = g").count(), calls, "{expanded}");
    }
}

/// Those of the user's stay together, as they may see the items among them.
#[test]
fn that_async_trait_has_rewritten_have_its_statements_first() {
    let split = |inside: &str| {
        let item = format!(
            "fn f(&self, __arg1: Path) -> Pin<Box<dyn Future<Output = u8>>> {{ Box::pin(async move {{ {inside} }}) }}"
        );
        let function = Function::parse(tokens(&item)).unwrap();
        function.block.unwrap().split().map(|part| part.to_string().matches(';').count())
    };
    let typing = "if let Some(__ret) = None::<u8> { return __ret; }";
    let binding = "let __self = self; let a = a; let Path(mut id) = { let __arg1 = __arg1; __arg1 };";
    assert_eq!(split(&format!("{typing} {binding} let __ret: u8 = {{ body() }}; __ret")), [1, 4, 1]);
    assert_eq!(split("let more = helper(); let a = a; fn helper() -> u8 { 1 } a + more"), [0, 0, 2]);
}
