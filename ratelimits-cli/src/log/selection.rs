//! The options of all commands that read logs.

use clap::Args;

use super::fields::Field;

/// Which fields of a line say what.
#[derive(Clone, Debug, Args)]
pub(crate) struct Selection {
    /// What calls are counted by: `ip`, `user`, `method` or `path` of an access log, the name of a JSON field, where dots lead into
    /// objects, or of a CSV column, or the number of a field from 1. `ip` counts an IPv6 address by its /64, as the library does.
    #[arg(long, value_name = "FIELD", default_value = "ip")]
    pub(super) key: Field,
    /// The field with the permits that each call takes, by all policies. Without it a call takes the `cost` of the policy, or
    /// one permit.
    #[arg(long, value_name = "FIELD")]
    pub(super) cost: Option<Field>,
    /// The JSON field or CSV column with the time. Without it: `time`, `timestamp`, `ts` or `@timestamp`.
    #[arg(long, value_name = "FIELD")]
    pub(super) time: Option<String>,
}

impl Selection {
    /// Returns the field that calls are counted by.
    pub(crate) fn key(&self) -> &Field {
        &self.key
    }

    /// Returns the field with the permits of a call.
    pub(crate) fn cost(&self) -> Option<&Field> {
        self.cost.as_ref()
    }

    /// Returns whether each line says what its call takes.
    pub(crate) fn has_cost(&self) -> bool {
        self.cost.is_some()
    }
}
