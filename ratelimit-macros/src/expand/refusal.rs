//! What a refused call returns.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Block, Expr, ExprMacro, Path, ReturnType, Stmt, parse_quote};

use super::{hygienic, local, output};
use crate::function::{Argument, Function, Renamed};
use crate::model::{Fallback, Policy, Target};

/// Awaits the decision, and returns if it is a refusal: what the fallback of the policy says that refused, or without one
/// what the return type makes of the error.
pub(super) fn refusal(
    function: &Function,
    policies: &[Policy],
    arguments: (&[Argument], &[Renamed]),
    deciding: &Ident,
) -> TokenStream {
    let [charged, refusal, verdict] = ["charged", "refusal", "verdict"].map(local);
    let mut refusing = policies.iter().filter(|policy| !policy.shadow).peekable();
    let never = refusing.peek().is_none();
    let every = refusing.all(|policy| policy.fallback.is_some());
    let mut otherwise =
        if never { quote!(__ratelimits::Charged::NOTHING) } else { refuse(function, &refusal) };
    // What no policy is to blame for is answered by the first fallback that there is.
    let first = policies.iter().position(|policy| policy.fallback.is_some() && !policy.shadow);
    let mut arms = Vec::new();
    for (at, policy) in policies.iter().enumerate() {
        let Some(fallback) = &policy.fallback else { continue };
        let answer = call_fallback(fallback, function, arguments, &refusal);
        let blamed = quote!(::core::option::Option::Some(#at));
        match first == Some(at) {
            true if every => otherwise = answer,
            true => arms.push(quote!(#blamed | ::core::option::Option::None => #answer)),
            // That of a policy in shadow too, though it never answers: it is no dead code for the time being.
            false => arms.push(quote!(#blamed => #answer)),
        }
    }
    let (refused, otherwise) = match arms.is_empty() {
        true if never => (quote!(_), otherwise),
        true => (quote!(#refusal), otherwise),
        false => (quote!(#refusal), quote!(match #refusal.policy { #(#arms)* _ => #otherwise })),
    };
    // The value is what the call was charged: a refusal that does not return has none, and so is no program.
    quote! {
        let #verdict = #deciding.await;
        match #verdict {
            ::core::result::Result::Ok(#charged) => #charged,
            ::core::result::Result::Err(#refused) => #otherwise,
        }
    }
}

fn refuse(function: &Function, refusal: &Ident) -> TokenStream {
    let (output, place) = output::written(function);
    let returned = quote_spanned!(hygienic(place)=> return __ratelimits::refuse::<#output>(#refusal.error));
    quote!({ #returned; })
}

/// Whether the fallback is async is asked of its value, so that a mistake in the call is an ordinary type error there.
fn call_fallback(
    fallback: &Fallback,
    function: &Function,
    (arguments, renamed): (&[Argument], &[Renamed]),
    refusal: &Ident,
) -> TokenStream {
    let place = hygienic(fallback.span);
    let receiver = function.receiver().filter(|_| fallback.pass_args);
    let arguments = if fallback.pass_args { arguments } else { &[] };
    let [called, error_name, kind] = ["called", "error", "kind"].map(local);
    let answer = format_ident!("ratelimits_answer", span = place);
    // Only a closure is told why. Others let go of it first, so that nothing of it lives on while they are awaited.
    let error = match fallback.target {
        Target::Closure(_) => {
            let restored = function.taken_apart(renamed).map(|Renamed { name, pattern, cfgs, .. }| {
                quote!(#(#cfgs)* #[allow(unused_variables, unused_mut)] let #pattern = #name;)
            });
            quote!(let #error_name = #refusal.error; #(#restored)*)
        }
        _ => quote!(::core::mem::drop(#refusal);),
    };
    let answers = variants(arguments).map(|(cfg, names)| {
        let call = match &fallback.target {
            Target::Function(path) => quote_spanned!(place=> #path(#(#names),*)),
            Target::Associated(path) => {
                let receiver = receiver.into_iter();
                quote_spanned!(place=> #path(#(#receiver,)* #(#names),*))
            }
            Target::Method(base, method) => quote_spanned!(place=> #base.#method(#(#names),*)),
            Target::Closure(closure) => {
                let closure = typed(closure, function);
                quote_spanned!(place=> __ratelimits::call_fallback(#error_name, #closure))
            }
        };
        let returned = quote_spanned!(place=> return #answer.await);
        quote! {
            #cfg {
                let #answer = {
                    let #called = #call;
                    {
                        use __ratelimits::{FutureFallback as _, ValueFallback as _};
                        let #kind = (&&__ratelimits::Fallback(&#called)).ratelimits_kind();
                        #kind.ratelimits_answer(#called)
                    }
                };
                #returned;
            }
        }
    });
    quote!({ #error #(#answers)* })
}

/// The closure, with its return type where it plainly returns that and no future: so its value is coerced to it like that of
/// the function, and one that only panics has a type at all.
fn typed(closure: &Expr, function: &Function) -> TokenStream {
    let Expr::Closure(closure) = closure else { return closure.to_token_stream() };
    let is_typed = !matches!(closure.output, ReturnType::Default);
    if is_typed || closure.asyncness.is_some() || !is_value(&closure.body) {
        return closure.to_token_stream();
    }
    let (mut closure, (output, _)) = (closure.clone(), output::written(function));
    if !matches!(*closure.body, Expr::Block(_)) {
        let body = &closure.body;
        closure.body = parse_quote!({ #body });
    }
    closure.output = parse_quote!(-> #output);
    closure.to_token_stream()
}

/// Whether the expression is no future, as far as is plain to see.
fn is_value(expr: &Expr) -> bool {
    const MACROS: [&str; 7] = ["format", "panic", "todo", "unimplemented", "unreachable", "vec", "matches"];
    const VARIANTS: [&str; 4] = ["Err", "None", "Ok", "Some"];
    let ends_in = |path: &Path, names: &[&str]| {
        path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
    };
    match expr {
        Expr::Lit(_) => true,
        Expr::Macro(called) => ends_in(&called.mac.path, &MACROS),
        Expr::Call(call) => matches!(&*call.func, Expr::Path(path) if ends_in(&path.path, &VARIANTS)),
        Expr::Path(path) => ends_in(&path.path, &VARIANTS),
        Expr::Block(block) => ends_in_value(&block.block),
        Expr::If(choice) => {
            ends_in_value(&choice.then_branch)
                && choice.else_branch.as_ref().is_some_and(|(_, otherwise)| is_value(otherwise))
        }
        Expr::Match(choice) => choice.arms.iter().all(|arm| is_value(&arm.body)),
        _ => false,
    }
}

fn ends_in_value(block: &Block) -> bool {
    match block.stmts.last() {
        Some(Stmt::Expr(last, None)) => is_value(last),
        Some(Stmt::Macro(last)) => {
            is_value(&Expr::Macro(ExprMacro { attrs: Vec::new(), mac: last.mac.clone() }))
        }
        _ => false,
    }
}

/// The arguments under each combination of the conditions that some of them have, as a call cannot carry a `#[cfg]`.
fn variants(arguments: &[Argument]) -> impl Iterator<Item = (Option<TokenStream>, Vec<&Ident>)> {
    let conditional = arguments.iter().filter(|argument| !argument.cfgs.is_empty()).count();
    (0..1usize << conditional).map(move |combination| {
        let (mut conditions, mut names) = (Vec::new(), Vec::new());
        for Argument { name, cfgs } in arguments {
            let predicates = cfgs.iter().map(predicate);
            if cfgs.is_empty() {
                names.push(name);
            } else if combination & (1 << conditions.len()) != 0 {
                conditions.push(quote!(all(#(#predicates),*)));
                names.push(name);
            } else {
                conditions.push(quote!(not(all(#(#predicates),*))));
            }
        }
        ((!conditions.is_empty()).then(|| quote!(#[cfg(all(#(#conditions),*))])), names)
    })
}

fn predicate(cfg: &Attribute) -> TokenStream {
    cfg.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default()
}
