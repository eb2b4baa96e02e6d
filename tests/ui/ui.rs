//! Compile errors, verbatim. `TRYBUILD=overwrite` rewrites the expected messages.

#[test]
fn compile_errors() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}
