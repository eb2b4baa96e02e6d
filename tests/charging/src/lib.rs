//! The attributes of `ratelimits` with a `charge_when` that charges every call, and a `pause_when` that pauses no key, so that
//! `tests/cases` also covers the code generated for them.

use proc_macro::{Delimiter, Group, Punct, Spacing, TokenStream, TokenTree};

macro_rules! forwarded {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "` with `charge_when` and `pause_when`.")]
        #[proc_macro_attribute]
        pub fn $name(args: TokenStream, item: TokenStream) -> TokenStream {
            forward(stringify!($name), args, item)
        }
    )*};
}
forwarded!(rate_limit count_limit funnel_limit window_limit);

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
    let mut attribute = tokens(&format!("::ratelimits::{name}"));
    attribute.extend([group(Delimiter::Parenthesis, args)]);
    let hash = TokenTree::from(Punct::new('#', Spacing::Alone));
    let attribute = [hash, group(Delimiter::Bracket, attribute)];
    attribute.into_iter().chain(item).collect()
}

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("valid tokens")
}

fn group(delimiter: Delimiter, tokens: TokenStream) -> TokenTree {
    Group::new(delimiter, tokens).into()
}
