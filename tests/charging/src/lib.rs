//! The attributes of `ratelimits` with a `charge_when` that charges every call, and a `pause_when` that pauses no key, so that
//! `tests/cases` also covers the code generated for them; and with a `concurrency_limit` beside them, which is never reached.

use proc_macro::{Delimiter, Group, Punct, Spacing, TokenStream, TokenTree};

macro_rules! forwarded {
    ($($name:ident $held:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "` with `charge_when` and `pause_when`.")]
        #[proc_macro_attribute]
        pub fn $name(args: TokenStream, item: TokenStream) -> TokenStream {
            forward(stringify!($name), args, item)
        }

        #[doc = concat!("`", stringify!($name), "` above a `concurrency_limit`.")]
        #[proc_macro_attribute]
        pub fn $held(args: TokenStream, item: TokenStream) -> TokenStream {
            hold(stringify!($name), args, item)
        }
    )*};
}
forwarded! {
    rate_limit held_rate_limit
    count_limit held_count_limit
    funnel_limit held_funnel_limit
    window_limit held_window_limit
}

/// Puts the item under `#[::ratelimits::<name>(<args>, charge_when = |_| true, pause_when = |_| None)]` and keeps all spans.
fn forward(name: &str, mut args: TokenStream, item: TokenStream) -> TokenStream {
    let needs_comma = match args.clone().into_iter().last() {
        Some(TokenTree::Punct(last)) => last.as_char() != ',',
        last => last.is_some(),
    };
    if needs_comma {
        args.extend(tokens(","));
    }
    args.extend(tokens("charge_when = |_| true, pause_when = |_| ::core::option::Option::None"));
    attribute(name, args).into_iter().chain(item).collect()
}

/// Puts the item under `#[::ratelimits::<name>(<args>)] #[::ratelimits::concurrency_limit(1000, shadow)]`, with the same registry,
/// and keeps all spans. A shadow, because it needs no fallback where the others have one.
fn hold(name: &str, args: TokenStream, item: TokenStream) -> TokenStream {
    let mut held = tokens("1000, shadow,");
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ',');
    let tokens: Vec<_> = args.clone().into_iter().collect();
    for argument in tokens.split(is_comma) {
        let is_registry =
            matches!(argument.first(), Some(TokenTree::Ident(name)) if name.to_string() == "registry");
        if is_registry {
            held.extend(argument.iter().cloned());
        }
    }
    let attributes = attribute(name, args).into_iter().chain(attribute("concurrency_limit", held));
    attributes.chain(item).collect()
}

fn attribute(name: &str, args: TokenStream) -> TokenStream {
    let mut attribute = tokens(&format!("::ratelimits::{name}"));
    attribute.extend([group(Delimiter::Parenthesis, args)]);
    let hash = TokenTree::from(Punct::new('#', Spacing::Alone));
    [hash, group(Delimiter::Bracket, attribute)].into_iter().collect()
}

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("valid tokens")
}

fn group(delimiter: Delimiter, tokens: TokenStream) -> TokenTree {
    Group::new(delimiter, tokens).into()
}
