//! When a limit holds and what is charged; the registry and the crate.

use super::*;

#[test]
fn conditions_and_places_are_kept() {
    let args = "5, skip_when = user.is_admin && true, charge_when = |out| out.is_err(), registry = &user.registry, \
                crate = ::renamed::limits, shadow";
    let Ok(limits) = read(Rate, tokens(args), SEND) else { panic!("{args}") };
    let policy = &limits.policies[0];
    assert!(policy.skip_when.is_some() && policy.charge_when.is_some() && policy.registry.is_some());
    assert!(policy.shadow);
    assert_eq!(policy.krate.as_ref().unwrap().segments.len(), 2);

    let Ok(limits) = read(Rate, tokens("5"), SEND) else { panic!() };
    let policy = &limits.policies[0];
    assert!(policy.skip_when.is_none() && policy.charge_when.is_none() && policy.registry.is_none());
    assert!(!policy.shadow && policy.krate.is_none());
}

#[test]
fn skips() {
    for (written, meant) in [
        ("5", "user.is_admin"),
        ("1 + 1", "user.is_admin"),
        ("\"user.is_guest()\"", "user.is_guest()"),
        ("\"admins only\"", "user.is_admin"),
        ("|user| user.is_admin", "user.is_admin"),
    ] {
        let message = format!("`skip_when` is a condition; write `skip_when = {meant}`");
        fails(Rate, &format!("5, skip_when = {written}"), &[(written, &message)]);
    }
    for condition in ["true", "user.is_admin", "!(user.age < 18)", "matches!(user, User { .. })", "IS_TEST"] {
        expands(Rate, &format!("5, skip_when = {condition}"), SEND);
    }
}

#[test]
fn charges() {
    for (written, problem) in [
        ("true", "is a closure over the output"),
        ("\"Result::is_err\"", "is a closure over the output"),
        ("out.is_err()", "is a closure over the output"),
        ("out == 5", "is a closure over the output"),
        ("|| true", "gets one argument, the output"),
        ("|user, out| true", "gets one argument, the output"),
        ("async |out| true", "answers at once, without `async`"),
    ] {
        let message = format!("`charge_when` {problem}; write `charge_when = |out| out.is_err()`");
        fails(Rate, &format!("5, charge_when = {written}"), &[(written, &message)]);
    }
    for condition in
        ["|out| out.is_err()", "move |_| false", "Result::is_err", "<E as Failed>::failed", "is_err"]
    {
        expands(Rate, &format!("5, charge_when = {condition}"), SEND);
    }
}

#[test]
fn registries() {
    for (written, meant) in [
        ("5", "&state.registry"),
        ("\"redis://localhost\"", "&state.registry"),
        ("\"&self.registry\"", "&self.registry"),
    ] {
        let message = format!("`registry` is a `&Registry`; write `registry = {meant}`");
        fails(Rate, &format!("5, registry = {written}"), &[(written, &message)]);
    }
    for registry in ["&user.registry", "registry()", "REGISTRY.get()", "registry"] {
        expands(Rate, &format!("5, registry = {registry}"), SEND);
    }
}

#[test]
fn crates() {
    for (written, meant) in [
        ("\"renamed\"", "::renamed"),
        ("\"::renamed\"", "::renamed"),
        ("\"crate::limits\"", "crate::limits"),
        ("\"no path\"", "::renamed"),
        ("5", "::renamed"),
        ("limits()", "::renamed"),
        ("limits::<u8>", "::renamed"),
    ] {
        let message = format!("`crate` is the path of the renamed crate; write `crate = {meant}`");
        fails(Rate, &format!("5, crate = {written}"), &[(written, &message)]);
    }
    for path in ["::renamed", "renamed", "crate::limits", "self::limits", "super::limits"] {
        expands(Rate, &format!("5, crate = {path}"), SEND);
    }
}

#[test]
fn what_holds_where_the_store_fails() {
    for kind in [Rate, Count, Funnel, Window] {
        for (word, mode) in [("local", "Local"), ("allow", "Allow"), ("deny", "Deny")] {
            let expanded = expands(kind, &format!("5, 60, on_store_error = {word}"), SEND);
            let written = format!(
                "on_store_error : :: core :: option :: Option :: Some (__ratelimits :: OnStoreError :: {mode})"
            );
            assert!(expanded.contains(&written), "{expanded}");
        }
        let absent = expands(kind, "5, 60", SEND);
        assert!(absent.contains("on_store_error : :: core :: option :: Option :: None"), "{absent}");
        for (written, meant) in [
            ("\"deny\"", "`on_store_error = deny`"),
            ("Deny", "`on_store_error = deny`"),
            ("alow", "`on_store_error = allow`"),
            ("OnStoreError::Local", "`on_store_error = local`"),
            ("fail_open", "`on_store_error = allow`"),
            ("mode", "`local`, `allow` or `deny`"),
            ("5", "`local`, `allow` or `deny`"),
            ("|error| error", "`local`, `allow` or `deny`"),
        ] {
            let message = format!("unknown `on_store_error`; write {meant}");
            fails(kind, &format!("5, 60, on_store_error = {written}"), &[(written, &message)]);
        }
    }
    let needs = "`on_store_error` needs a value; write `on_store_error = …`";
    fails(Rate, "5, on_store_error", &[("on_store_error", needs)]);
}
