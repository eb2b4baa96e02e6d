//! What tests use in place of a server.

#[cfg(feature = "test-util")]
pub(super) mod test_stream;
#[cfg(test)]
pub(super) mod test_values;
