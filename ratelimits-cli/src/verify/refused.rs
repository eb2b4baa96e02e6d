//! Which calls of a log were refused.

use std::str::FromStr;

use crate::log::{Field, Fields};

/// A value of a field that refused calls have.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    field: Field,
    value: String,
}

impl FromStr for Refused {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (field, value) = text.split_once('=').ok_or("write a field and a value: status=429")?;
        Ok(Refused { field: field.parse()?, value: value.to_owned() })
    }
}

/// Returns whether the call of a line was refused, or the field that does not say so.
pub(super) fn is_refused(refused: &[Refused], fields: &Fields<'_, '_>) -> Result<bool, String> {
    if refused.is_empty() {
        let status = fields.get(&Field::Name("status".to_owned()));
        // Each line of an access log has a status.
        return match (status, fields) {
            (None, Fields::Access(_)) => Err("`status`".to_owned()),
            (status, _) => Ok(status.as_deref() == Some("429")),
        };
    }
    let mut is_refused = false;
    for Refused { field, value } in refused {
        is_refused |= fields.get(field).ok_or_else(|| field.to_string())? == *value;
    }
    Ok(is_refused)
}
