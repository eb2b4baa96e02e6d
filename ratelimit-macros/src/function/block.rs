//! Functions that are not async themselves and return a future: boxed by hand, or rewritten by `#[async_trait]`.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::{Block, Expr, ExprAsync, ExprLet, FnArg, Local, Pat, PatIdent, Signature, Stmt, Type, parse_quote};

use super::{Renamed, cfgs, output};

/// The async block in which such a function ends: `Box::pin(async move { … })`, `async move { … }.boxed()`.
pub(crate) struct AsyncBlock {
    /// The statements of the function, the last of which holds the block, emptied.
    around: Vec<Stmt>,
    inside: Vec<Stmt>,
    output: Type,
    renamed: Vec<Renamed>,
    /// The arguments that `#[async_trait]` has only moved: `let id = id;`.
    moved: Vec<Ident>,
    /// How many statements come before those of the function: the type, and the arguments.
    typing: usize,
    binding: usize,
}

impl AsyncBlock {
    pub(super) fn find(body: TokenStream, signature: &Signature) -> Option<AsyncBlock> {
        let mut around = Block::parse_within.parse2(body).ok()?;
        let inside = std::mem::take(&mut last(&mut around)?.block.stmts);
        let typing = usize::from(inside.first().is_some_and(tells_type));
        let binds =
            |statement: &&Stmt| moved(statement).is_some() || taken_apart(statement, signature).is_some();
        let arguments = || inside[typing..].iter().take_while(binds);
        let renamed = arguments().filter_map(|statement| taken_apart(statement, signature)).collect();
        let (moved, binding) = (arguments().filter_map(moved).collect(), arguments().count());
        let output = output::of_future(&signature.output).cloned().unwrap_or_else(|| parse_quote!(_));
        Some(AsyncBlock { around, inside, output, renamed, moved, typing, binding })
    }

    /// What the future comes to, `_` where that is not written.
    pub(super) fn output(&self) -> &Type {
        &self.output
    }

    /// The patterns that `#[async_trait]` has moved from the arguments to the block.
    pub(crate) fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// The arguments that `#[async_trait]` has moved into the block as they are.
    pub(crate) fn moved(&self) -> &[Ident] {
        &self.moved
    }

    /// The statements in the block. Those by which `#[async_trait]` tells the compiler their type stay the first, so that
    /// it is what every other `return` is held against; then come those that bind the arguments, and the others.
    pub(crate) fn split(&self) -> [TokenStream; 3] {
        let (typing, rest) = self.inside.split_at(self.typing);
        let (binding, rest) = rest.split_at(self.binding);
        [typing, binding, rest].map(|statements| statements.iter().map(ToTokens::to_token_stream).collect())
    }

    /// A `return` that leaves the function before the block, and so before the decision.
    pub(crate) fn early_return(&self) -> Option<Span> {
        early_return(self.around.iter().map(ToTokens::to_token_stream).collect())
    }

    /// The statements of the function, with these in the block.
    pub(crate) fn with(&self, inside: TokenStream) -> TokenStream {
        let mut around = self.around.clone();
        if let Some(block) = last(&mut around) {
            block.block.stmts = vec![Stmt::Expr(Expr::Verbatim(inside), None)];
        }
        around.iter().map(ToTokens::to_token_stream).collect()
    }
}

/// Looks into all but what a `return` leaves by itself: closures, async blocks, functions.
fn early_return(tokens: TokenStream) -> Option<Span> {
    // The bars of a closure stand right before its block, as those of an `or` do not.
    let (mut behind_bar, mut behind_word) = (false, false);
    for token in tokens {
        let was_behind_bar = std::mem::take(&mut behind_bar);
        match token {
            TokenTree::Ident(word) if word == "return" => return Some(word.span()),
            TokenTree::Ident(word) => behind_word |= word == "async" || word == "fn",
            TokenTree::Punct(punct) => {
                behind_bar = punct.as_char() == '|';
                behind_word &= punct.as_char() != ';';
            }
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Brace && (was_behind_bar || behind_word) =>
            {
                behind_word = false;
            }
            TokenTree::Group(group) => {
                if let Some(found) = early_return(group.stream()) {
                    return Some(found);
                }
            }
            TokenTree::Literal(_) => {}
        }
    }
    None
}

fn last(statements: &mut [Stmt]) -> Option<&mut ExprAsync> {
    match statements.last_mut()? {
        Stmt::Expr(expr, None) => block(expr),
        _ => None,
    }
}

/// The async block that the expression is, or that it boxes.
fn block(expr: &mut Expr) -> Option<&mut ExprAsync> {
    const BOXING: [&str; 3] = ["pin", "new", "from"];
    const ADAPTING: [&str; 4] = ["boxed", "boxed_local", "instrument", "in_current_span"];
    match expr {
        Expr::Async(block) => Some(block),
        Expr::Group(group) => block(&mut group.expr),
        Expr::Paren(paren) => block(&mut paren.expr),
        Expr::Call(call) if call.args.len() == 1 => match &*call.func {
            Expr::Path(path)
                if BOXING
                    .iter()
                    .any(|name| path.path.segments.last().is_some_and(|last| last.ident == name)) =>
            {
                block(&mut call.args[0])
            }
            _ => None,
        },
        Expr::MethodCall(call) if ADAPTING.iter().any(|name| call.method == name) => {
            block(&mut call.receiver)
        }
        _ => None,
    }
}

/// Whether it is `if let Some(__ret) = None::<R> { return __ret; }`.
fn tells_type(statement: &Stmt) -> bool {
    let Stmt::Expr(Expr::If(statement), None) = statement else { return false };
    match &*statement.cond {
        Expr::Let(ExprLet { pat, .. }) => pat.to_token_stream().to_string().contains("__ret"),
        _ => false,
    }
}

/// The argument that is moved in `let argument = argument;`, or in `let __self = self;`.
fn moved(statement: &Stmt) -> Option<Ident> {
    let Stmt::Local(Local { pat: Pat::Ident(pattern), init: Some(init), .. }) = statement else {
        return None;
    };
    let Expr::Path(path) = &*init.expr else { return None };
    path.path.get_ident().filter(|name| **name == pattern.ident || *name == "self")?;
    Some(pattern.ident.clone())
}

/// The argument that is taken apart in `let PATTERN = { let argument = argument; argument };`.
fn taken_apart(statement: &Stmt, signature: &Signature) -> Option<Renamed> {
    let Stmt::Local(Local { attrs, pat, init: Some(init), .. }) = statement else { return None };
    let Expr::Block(block) = &*init.expr else { return None };
    let [Stmt::Local(Local { pat: Pat::Ident(inner), .. }), Stmt::Expr(Expr::Path(path), None)] =
        &*block.block.stmts
    else {
        return None;
    };
    let name = path.path.get_ident().filter(|name| **name == inner.ident)?;
    // The name as the signature has it, with the hygiene that it has there.
    let name = signature.inputs.iter().find_map(|argument| match argument {
        FnArg::Typed(argument) => match &*argument.pat {
            Pat::Ident(PatIdent { ident, .. }) if ident == name => Some(ident),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })?;
    Some(Renamed { name: name.clone(), pattern: pat.clone(), cfgs: cfgs(attrs), attributes: attrs.clone() })
}
