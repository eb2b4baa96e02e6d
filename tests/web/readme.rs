//! The program in the README is that of the guide, which is compiled.

#[test]
fn readme_and_guide_show_the_same_service() {
    let readme = include_str!("../../README.md").split("```rs\n").nth(1).unwrap();
    let guide = include_str!("../../guide/axum.md").split("```rust,no_run\n").nth(1).unwrap();
    let program = |text: &'static str| text.split("```").next().unwrap();
    assert_eq!(program(readme), program(guide));
}
