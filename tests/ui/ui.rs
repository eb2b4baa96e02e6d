//! Compile errors, verbatim. `TRYBUILD=overwrite` rewrites the expected messages.

#[test]
fn compile_errors() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("fail/*.rs");
    cases.pass("pass/*.rs");
}
