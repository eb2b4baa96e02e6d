//! The attributes of `ratelimits`, each with a `charge_when` that charges every call, as without one. So the cases of
//! `tests/cases` run a second time, over the other shape of the generated code.

use proc_macro::{Delimiter, Group, Punct, Spacing, TokenStream, TokenTree};

macro_rules! forwarded {
    ($($name:ident)*) => {$(
        /// The attribute of this name, charging every call.
        #[proc_macro_attribute]
        pub fn $name(args: TokenStream, item: TokenStream) -> TokenStream {
            forward(stringify!($name), args, item)
        }
    )*};
}
forwarded!(rate_limit count_limit funnel_limit window_limit);

/// The item under `#[::ratelimits::<name>(<args>, charge_when = |_| true)]`. Its tokens and those of the arguments keep
/// their spans.
fn forward(name: &str, mut args: TokenStream, item: TokenStream) -> TokenStream {
    let ended = match args.clone().into_iter().last() {
        Some(TokenTree::Punct(last)) => last.as_char() == ',',
        last => last.is_none(),
    };
    if !ended {
        args.extend(tokens(","));
    }
    args.extend(tokens("charge_when = |_| true"));
    let mut attribute = tokens(&format!("::ratelimits::{name}"));
    attribute.extend([group(Delimiter::Parenthesis, args)]);
    let hash = TokenTree::from(Punct::new('#', Spacing::Alone));
    let attribute = [hash, group(Delimiter::Bracket, attribute)];
    attribute.into_iter().chain(item).collect()
}

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("these are tokens")
}

fn group(delimiter: Delimiter, tokens: TokenStream) -> TokenTree {
    Group::new(delimiter, tokens).into()
}
