//! What an attribute contains, as it is written, for the inventory of policies.

use ratelimit_syntax::expr::{literal, peel, shown};
use syn::Expr;

use crate::args::Args;

/// The arguments of an attribute as texts.
pub(crate) struct Written {
    /// The numbers and options with a value: `rate = "100/min", burst = 20`.
    pub(crate) arguments: String,
    /// The key as a template.
    pub(crate) key: Option<String>,
    /// The arguments without a value that concern the policy.
    pub(crate) flags: Vec<&'static str>,
}

impl Written {
    pub(super) fn read(args: &Args) -> Written {
        let arguments = args
            .kind
            .own()
            .chain([
                "cost",
                "timeout",
                "on_store_error",
                "charge_when",
                "settle",
                "pause_when",
                "penalty",
                "notify_at",
            ])
            .filter_map(|name| {
                let value = match peel(args.value(name)?) {
                    Expr::Closure(closure) => {
                        format!("|{}| {}", shown(&closure.inputs), shown(&closure.body))
                    }
                    value => shown(value),
                };
                Some(format!("{name} = {value}"))
            });
        let flags = args.kind.flags().iter().copied();
        Written {
            arguments: arguments.collect::<Vec<_>>().join(", "),
            key: key(args),
            flags: flags.filter(|flag| *flag != "pass_args" && args.has(flag)).collect(),
        }
    }
}

fn key(args: &Args) -> Option<String> {
    let placeholder = |expr: &Expr| format!("<{}>", shown(expr));
    match args.value("key") {
        Some(key) => Some(match (literal(key), peel(key)) {
            (Some(template), _) => template.value(),
            (None, Expr::Tuple(parts)) => parts.elems.iter().map(placeholder).collect::<Vec<_>>().join(":"),
            (None, key) => placeholder(key),
        }),
        None => match &*shown(args.value("key_type")?) {
            "IP" => Some("<@ip>".to_owned()),
            "USER" => Some("<@user>".to_owned()),
            _ => None,
        },
    }
}
