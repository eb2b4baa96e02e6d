//! Functions and other items under the attribute.

use proc_macro2::{Delimiter, Group, TokenTree};

use super::*;

#[test]
fn futures_are_limited_where_they_are_made() {
    let message = "the limit of a future is awaited in it; write `async fn send`, or end the body with \
                   `async move { … }` or `Box::pin(async move { … })`";
    for output in [
        "impl Future<Output = ()>",
        "(impl Send + Future)",
        "Pin<Box<dyn Future<Output = ()> + Send + '_>>",
        "BoxFuture<'_, ()>",
        "Self::Future",
        "<Self as Service<Request>>::Future",
    ] {
        fails_on(
            &format!("fn send() -> {output} {{ ready(()) }}"),
            Rate,
            "5, fallback = f",
            &[("fn", message)],
        );
    }
    for output in [
        "Result<impl Future<Output = ()>, E>",
        "Option<BoxFuture<'static, ()>>",
        "Vec<Pin<Box<dyn Future>>>",
        "Pin<&mut T>",
        "Box<dyn Fn() -> Ready<()>>",
    ] {
        expands(Rate, "5, fallback = f", &format!("fn send() -> {output} {{ g() }}"));
    }
}

#[test]
fn functions_run_when_they_are_called_by_rust() {
    let message = "a `const fn` cannot be limited, because it may run in the compiler; write `fn send`";
    fails_on("const fn send() -> Result<(), E> { Ok(()) }", Rate, "5", &[("const", message)]);
    let message = "a function that other languages call cannot be limited, because a refusal means nothing to them; write \
                   `#[rate_limit(…)]` on a function that `send` calls";
    for (before, span) in [
        ("extern \"C\"", "extern \"C\""),
        ("extern", "extern"),
        ("#[no_mangle]", "#[no_mangle]"),
        ("#[unsafe(no_mangle)] pub", "#[unsafe(no_mangle)]"),
        ("#[export_name = \"send\"]", "#[export_name = \"send\"]"),
    ] {
        let item = format!("{before} fn send() -> Result<(), E> {{ Ok(()) }}");
        fails_on(&item, Rate, "5", &[(span, message)]);
    }
    expands(Rate, "5", "extern \"Rust\" fn send() -> Result<(), E> { Ok(()) }");
}

/// Each function with what its prologue calls.
#[test]
fn plain_functions_block() {
    for (args, decides) in [("5", "decide_blocking"), ("5, bind = decision", "decide_bound_blocking")] {
        let expanded = expands(Rate, args, "unsafe fn f(self) -> R { #![allow(x)] half + ; typed . }");
        assert!(expanded.ends_with("{ half + ; typed . } }"), "{expanded}");
        assert!(
            expanded.contains(&format!("Call :: {decides} (")) && !expanded.contains("await"),
            "{expanded}"
        );
    }
    let expanded = expands(Rate, "5, settle = f", "fn f() -> Result<impl T, E> { typed . }");
    assert!(expanded.contains("run (move || -> Result < _ , E > { { typed . } })"), "{expanded}");
}

#[test]
fn functions_have_a_body() {
    let message =
        "expected a function with a body; write `#[count_limit(…)]` on the implementations of `send`";
    fails_on("async fn send(&self) -> Result<(), E>;", Count, "5, 60", &[("send", message)]);
}

#[test]
fn other_items_are_rejected() {
    let message = "expected a function; write `#[rate_limit(…)]` on each function";
    fails_on("/// Users.\n#[derive(Debug)] pub(crate) struct User;", Rate, "5", &[("struct", message)]);
    fails_on("impl Api { async fn send(&self) {} }", Rate, "5", &[("impl", message)]);
}

#[test]
fn output_can_represent_a_refusal() {
    let message = "`impl Trait` cannot represent a refused call; return `Result<_, E>` where `E: From<ratelimits::Error>`, \
                   or add `fallback = …`";
    let item = "async fn send() -> impl Future { ready(()) }";
    fails_on(item, Count, "5, 60", &[("-> impl Future", message)]);
    expands(Count, "5, 60, fallback = f", item);
}

#[test]
fn body_is_not_parsed() {
    let expanded = expands(Rate, "5", "async fn f() -> R { #![allow(x)] half + ; typed . }");
    assert!(expanded.ends_with("{ half + ; typed . } }"), "{expanded}");
    assert!(expanded.contains("{ #! [allow (x)] # [allow"), "{expanded}");
}

#[test]
fn syntax_errors_are_left_to_the_compiler() {
    for item in [
        "async fn f(a) -> R { #![allow(x)] g(1) }",
        "async fn f(a: u8 b: u8) -> R { #![allow(x)] g(1) }",
        "async fn f(a: u8) => R { #![allow(x)] g(1) }",
        "pub(crate) unsafe async fn f(a: u8) -> R { #![allow(x)] g(1) }",
        "fn f() -> impl Future { #![allow(x)] g(1) ; async move { user. } }",
        "fn f() -> impl Future { #![allow(x)] g(1) let x = 6; async move { 1 } }",
        "async fn f(a) -> R<{ 1 }> { #![allow(x)] g(1) }",
    ] {
        assert_guarded(item, tokens(item));
    }
}

#[test]
fn captured_blocks_that_do_not_parse_are_guarded() {
    for signature in ["fn f() -> impl Future", "async fn f(a) -> R"] {
        let block = "{ #![allow(x)] g(1) let x = 6; async move { 1 } }";
        let captured = Group::new(Delimiter::None, tokens(block));
        let item = [tokens(signature), TokenTree::from(captured).into()].into_iter().collect();
        assert_guarded(&format!("{signature} {block}"), item);
    }
}

/// Asserts that code for the item, written like this, is never generated.
#[track_caller]
fn assert_guarded(written: &str, item: TokenStream) {
    let expanded = expand::attribute(Count, tokens("5, 60"), item).to_string();
    let guard = "{ #[inline(never)] fn unlimited<T>() { const { \
                 ::core::panic!(\"`count_limit` cannot parse this function, which would not be limited\") } } \
                 unlimited::<()>(); }";
    let [expanded, guard, written] = [&expanded, guard, written].map(|text| text.replace(' ', ""));
    assert_eq!(expanded, written.replace("(x)]", &format!("(x)]{guard}")));
}

/// Each item with what its async block begins with.
#[test]
fn prologue_is_in_the_returned_async_block() {
    for (item, begins) in [
        (
            "fn f(&self) -> impl Future<Output = Result<u8, E>> { let a = 1; async move { body() } }",
            "{let()={use",
        ),
        (
            "fn f() -> Pin<Box<dyn Future<Output = Result<u8, E>> + Send>> { Box::pin(async { body() }) }",
            "{let()={use",
        ),
        ("fn f(&self) -> BoxFuture<'_, Result<u8, E>> { async move { body() }.boxed() }", "{let()={use"),
        (
            "fn f() -> Pin<Box<impl Future<Output = Result<u8, E>>>> { Box::pin((async move { if a { body() } })) }",
            "{let()={use",
        ),
        (
            "fn f() -> Pin<Box<dyn Future<Output = Result<u8, E>>>> { Box::pin(async move {
                if let Some(__ret) = None::<Result<u8, E>> { return __ret; } let a = a; body() }) }",
            "{ifletSome(__ret)=None::<Result<u8,E>>{return__ret;}let()={use",
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

/// `#[async_trait]` destructures arguments in the block, after the prologue.
#[test]
fn keys_see_arguments_that_async_trait_destructures() {
    let expanded = expands(
        Count,
        "5, 60, key = \"<id>\"",
        "fn f(__arg1: Path) -> Pin<Box<dyn Future<Output = Result<u8, E>>>> { Box::pin(async move {
            let Path(mut id) = { let __arg1 = __arg1; __arg1 }; body() }) }",
    );
    assert!(expanded.replace(' ', "").contains("letPath(id)=&__arg1;"), "{expanded}");
}

#[test]
fn returns_before_the_async_block_are_rejected() {
    let early = "this `return` would skip the limit; move it into the async block, or write an `async fn`";
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
fn functions_that_never_return_have_no_output() {
    let message = "a function that never returns has no output; leave out `charge_when`";
    let args = "5, 60, fallback = f, charge_when = |out| true";
    fails_on("async fn f() -> ! { loop {} }", Count, args, &[("|out| true", message)]);
    expands(Count, "5, 60, fallback = f", "async fn f() -> ! { loop {} }");
}

#[test]
fn statements_of_async_trait_are_split_off() {
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
