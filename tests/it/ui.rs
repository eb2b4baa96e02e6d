//! Compile errors, verbatim. `TRYBUILD=overwrite` rewrites the expected messages.

#[test]
fn compile_errors() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/fail/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}
