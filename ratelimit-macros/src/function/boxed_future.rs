//! Functions that return a future without being async: written by hand, or by `#[async_trait]`.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::{Block, Expr, ExprAsync, ExprLet, FnArg, Local, Pat, PatIdent, Signature, Stmt, Type, parse_quote};

use super::arguments::{Destructured, cfgs};
use super::output;

/// The async block at the end of such a function: `Box::pin(async move { … })`, `async move { … }.boxed()`.
pub(crate) struct AsyncBlock {
    /// The statements of the function. The last one holds the block, emptied.
    outer: Vec<Stmt>,
    inner: Vec<Stmt>,
    output: Type,
    destructured: Vec<Destructured>,
    /// The arguments that `#[async_trait]` moves: `let id = id;`.
    moved: Vec<Ident>,
    /// How many statements of `#[async_trait]` declare the output type.
    typing: usize,
    /// How many statements after those bind the arguments.
    binding: usize,
}

impl AsyncBlock {
    /// Fails if the body does not parse.
    pub(super) fn find(body: TokenStream, signature: &Signature) -> syn::Result<Option<AsyncBlock>> {
        let mut outer = Block::parse_within.parse2(body)?;
        let Some(block) = last(&mut outer) else { return Ok(None) };
        let inner = std::mem::take(&mut block.block.stmts);
        let typing = usize::from(inner.first().is_some_and(declares_type));
        let binds =
            |statement: &&Stmt| moved(statement).is_some() || destructured(statement, signature).is_some();
        let arguments = || inner[typing..].iter().take_while(binds);
        let destructured = arguments().filter_map(|statement| destructured(statement, signature)).collect();
        let (moved, binding) = (arguments().filter_map(moved).collect(), arguments().count());
        let output = output::of_future(&signature.output).cloned().unwrap_or_else(|| parse_quote!(_));
        Ok(Some(AsyncBlock { outer, inner, output, destructured, moved, typing, binding }))
    }

    /// Returns the output of the future, or `_` if it is not written.
    pub(super) fn output(&self) -> &Type {
        &self.output
    }

    /// Returns the arguments that `#[async_trait]` destructures in the block.
    pub(crate) fn destructured(&self) -> &[Destructured] {
        &self.destructured
    }

    /// Returns the arguments that `#[async_trait]` moves into the block as they are.
    pub(crate) fn moved(&self) -> &[Ident] {
        &self.moved
    }

    /// Splits the statements in the block: those by which `#[async_trait]` declares the output type, which must stay first so
    /// that every other `return` is checked against it, those that bind the arguments, and the others.
    pub(crate) fn split(&self) -> [TokenStream; 3] {
        let (typing, rest) = self.inner.split_at(self.typing);
        let (binding, rest) = rest.split_at(self.binding);
        [typing, binding, rest].map(|statements| statements.iter().map(ToTokens::to_token_stream).collect())
    }

    /// Returns a `return` outside the block, which would skip the decision.
    pub(crate) fn early_return(&self) -> Option<Span> {
        early_return(self.outer.iter().map(ToTokens::to_token_stream).collect())
    }

    /// Returns the statements of the function, with these in the block.
    pub(crate) fn with(&self, inner: TokenStream) -> TokenStream {
        let mut outer = self.outer.clone();
        if let Some(block) = last(&mut outer) {
            block.block.stmts = vec![Stmt::Expr(Expr::Verbatim(inner), None)];
        }
        outer.iter().map(ToTokens::to_token_stream).collect()
    }
}

/// Finds a `return` outside closures, async blocks and nested functions.
fn early_return(tokens: TokenStream) -> Option<Span> {
    // Only the bars of a closure are directly before a block.
    let (mut after_bar, mut after_word) = (false, false);
    for token in tokens {
        let was_after_bar = std::mem::take(&mut after_bar);
        match token {
            TokenTree::Ident(word) if word == "return" => return Some(word.span()),
            TokenTree::Ident(word) => after_word |= word == "async" || word == "fn",
            TokenTree::Punct(punct) => {
                after_bar = punct.as_char() == '|';
                after_word &= punct.as_char() != ';';
            }
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Brace && (was_after_bar || after_word) =>
            {
                after_word = false;
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

/// Returns the async block that the expression is or boxes.
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

/// Returns whether it is `if let Some(__ret) = None::<R> { return __ret; }`.
fn declares_type(statement: &Stmt) -> bool {
    let Stmt::Expr(Expr::If(statement), None) = statement else { return false };
    match &*statement.cond {
        Expr::Let(ExprLet { pat, .. }) => pat.to_token_stream().to_string().contains("__ret"),
        _ => false,
    }
}

/// Returns the argument that is moved in `let argument = argument;`, or in `let __self = self;`.
fn moved(statement: &Stmt) -> Option<Ident> {
    let Stmt::Local(Local { pat: Pat::Ident(pattern), init: Some(init), .. }) = statement else {
        return None;
    };
    let Expr::Path(path) = &*init.expr else { return None };
    path.path.get_ident().filter(|name| **name == pattern.ident || *name == "self")?;
    Some(pattern.ident.clone())
}

/// Returns the argument that is destructured in `let PATTERN = { let argument = argument; argument };`.
fn destructured(statement: &Stmt, signature: &Signature) -> Option<Destructured> {
    let Stmt::Local(Local { attrs, pat, init: Some(init), .. }) = statement else { return None };
    let Expr::Block(block) = &*init.expr else { return None };
    let [Stmt::Local(Local { pat: Pat::Ident(inner), .. }), Stmt::Expr(Expr::Path(path), None)] =
        &*block.block.stmts
    else {
        return None;
    };
    let name = path.path.get_ident().filter(|name| **name == inner.ident)?;
    // The name in the signature, for its hygiene.
    let name = signature.inputs.iter().find_map(|argument| match argument {
        FnArg::Typed(argument) => match &*argument.pat {
            Pat::Ident(PatIdent { ident, .. }) if ident == name => Some(ident),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })?;
    Some(Destructured {
        name: name.clone(),
        pattern: pat.clone(),
        cfgs: cfgs(attrs),
        attributes: attrs.clone(),
    })
}
