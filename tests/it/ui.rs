//! What the compiler says of mistakes, word for word. `TRYBUILD=overwrite` writes the expected messages anew.

#[test]
fn compile_errors() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/fail/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}
