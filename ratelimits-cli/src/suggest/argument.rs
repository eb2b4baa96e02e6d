//! Arguments for the fields of a log.

use syn::Ident;

use crate::log::{Field, Selection};

/// Returns the arguments for the key, and for the cost if lines have one.
pub(super) fn arguments(fields: &Selection) -> Vec<String> {
    let key = match fields.key() {
        Field::Name(name) if name == "ip" => "key_type = IP".to_owned(),
        Field::Name(name) if name == "user" => "key_type = USER".to_owned(),
        field => format!("key = {}", expression(field, "key")),
    };
    let cost = fields.cost().map(|field| format!("cost = {}", expression(field, "cost")));
    [key].into_iter().chain(cost).collect()
}

/// Returns the name of a field, if it can stand for an expression of a function.
fn expression<'f>(field: &'f Field, otherwise: &'f str) -> &'f str {
    match field {
        Field::Name(name) if name.split('.').all(|part| syn::parse_str::<Ident>(part).is_ok()) => name,
        _ => otherwise,
    }
}
