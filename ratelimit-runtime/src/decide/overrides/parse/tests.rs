use super::*;

fn problems(text: &str) -> Vec<String> {
    parse(text).map_or_else(|problem| vec![problem], |parsed| parsed.problems)
}

/// Returns the overrides of a text without problems.
fn overrides(text: &str) -> Vec<Entry> {
    let parsed = parse(text).unwrap();
    assert_eq!(parsed.problems, [""; 0]);
    parsed.overrides
}

#[test]
fn overrides_are_parsed() {
    let text = "# a comment\n[\"a::b#2\"]\nrate = \"100/min\"\nburst = 20\n\n[\"sms.daily\"]\nshadow = true\nlimit = 1_000\n\n[c]\noff = true\nleak_rate = 0.5\n";
    let expected = [
        Entry {
            policy: "a::b#2".into(),
            numbers: vec![
                ("rate".into(), Value::Text("100/min".into())),
                ("burst".into(), Value::Integer(20)),
            ],
            ..Entry::default()
        },
        Entry {
            policy: "sms.daily".into(),
            numbers: vec![("limit".into(), Value::Integer(1000))],
            shadow: Some(true),
            ..Entry::default()
        },
        Entry {
            policy: "c".into(),
            numbers: vec![("leak_rate".into(), Value::Float(0.5))],
            off: true,
            ..Entry::default()
        },
    ];
    assert_eq!(overrides(text), expected);
    assert_eq!(overrides(""), []);
    assert_eq!(overrides("# nothing\n"), []);
}

#[test]
fn written_overrides_are_parsed_again() {
    let written = vec![
        Entry {
            policy: "a::<B as C<'\"'>>::d\\".into(),
            numbers: vec![
                ("rate".into(), Value::Float(1e300)),
                ("burst".into(), Value::Text("5s".into())),
                ("limit".into(), Value::Integer(i64::MAX)),
            ],
            shadow: Some(false),
            off: true,
            until: Some(1_764_110_000),
            author: Some("ann \"b\"".into()),
            reason: Some("too\nmany".into()),
            ..Entry::default()
        },
        Entry { policy: "b".into(), key: vec!["\"].x\n".into()], blocked: true, ..Entry::default() },
        Entry { policy: "b".into(), key: vec![String::new(), "2".into()], off: true, ..Entry::default() },
        Entry { policy: "é\n\u{7f}".into(), shadow: Some(true), ..Entry::default() },
    ];
    let text: String = written.iter().map(|it| format!("{it}\n")).collect();
    assert_eq!(overrides(&text), written, "{text}");
}

#[test]
fn problems_have_lines_and_remedies() {
    let text = "limit = 5\n[sms.daily]\nlimit = 5\n[\"a\"]\n[\"b\"]\nshadow = 1\nrate = [1]\n";
    assert_eq!(
        problems(text),
        [
            "line 1: `limit` is outside of a policy; write `[\"name of the policy\"]` above it",
            "line 2: `daily` is a table; if the policy is named `sms.daily`, write `[\"sms.daily\"]`",
            "line 4: `a` has no settings; write a number, `shadow = true` or `off = true`",
            "line 6: `shadow` is true or false",
            "line 7: `rate` is no number, rate or duration; write 10, \"100/min\" or \"5s\"",
        ]
    );
    assert_eq!(
        problems("[a]\noff = true\nuntil = -1\nauthor = 7\nwhy = \"contract\"\n"),
        [
            "line 3: `until` is a time in seconds since 1970, as `date -d 2027-03-01 +%s` prints it",
            "line 4: `author` is a text",
            "line 5: `why` is an option of the command; write `reason`"
        ]
    );
    assert_eq!(problems("[[a]]\noff = true\n"), ["line 1: `a` is a list; write `[\"a\"]` once"]);
    let [problem] = &problems("[a]\noff = false\n")[..] else { panic!() };
    assert!(problem.contains("has no settings"), "{problem}");
    assert_eq!(problems("[\"a\"]\noff = true"), ["the last line is not complete; end it with a line break"]);
    let [problem] = &problems("[\"a\"]\noff = \n")[..] else { panic!() };
    assert!(problem.starts_with("line 2: "), "{problem}");
    let [problem] = &problems("[\"a\"]\noff = true\n[\"a\"]\noff = true\n")[..] else { panic!() };
    assert!(problem.contains("duplicate"), "{problem}");
    let [problem] = &problems("[\"a\"]\nlimit = 99999999999999999999\n")[..] else { panic!() };
    assert!(problem.starts_with("line 2: `limit` is no number"), "{problem}");
}

#[test]
fn overrides_by_key_are_parsed() {
    let text = "[\"a::b\".keys.\"tenant-7\"]\nlimit = 50_000\n\n[x.keys.7]\nblocked = true\nuntil = 5\n\n\
                [\"a::b\"]\nlimit = 10\n\n[\"a::b\".keys.ann.\"room 5\"]\noff = true\n\n[\"a::b\".keys.ann]\nshadow = true\n";
    let entry = |policy: &str, key: &[&str]| Entry {
        policy: policy.into(),
        key: key.iter().map(ToString::to_string).collect(),
        ..Entry::default()
    };
    let limit = |limit| vec![("limit".to_owned(), Value::Integer(limit))];
    let expected = [
        Entry { blocked: true, until: Some(5), ..entry("x", &["7"]) },
        Entry { numbers: limit(10), ..entry("a::b", &[]) },
        Entry { numbers: limit(50_000), ..entry("a::b", &["tenant-7"]) },
        Entry { shadow: Some(true), ..entry("a::b", &["ann"]) },
        Entry { off: true, ..entry("a::b", &["ann", "room 5"]) },
    ];
    assert_eq!(overrides(text), expected);
}

#[test]
fn problems_of_keys_concern_no_other() {
    let text = "[a]\nblocked = true\n[a.keys]\nlimit = 5\n[a.keys.x]\nblocked = 1\n[a.keys.y]\nblocked = true\noff = true\n\
                [a.keys.z]\n[a.keys.v.w]\nlimit = true\n[a.keys.u]\nuntil = 5\n[a.keys.u.v]\noff = true\n[b]\noff = true\n[c.key.x]\noff = true\n";
    let parsed = parse(text).unwrap();
    assert_eq!(
        parsed.problems,
        [
            "line 2: `blocked` is for a key; write it under `[\"a\".keys.\"a key\"]`",
            "line 4: `limit` is outside of a key; write `[\"a\".keys.\"a key\"]` above it",
            "line 6: `blocked` is true or false",
            "line 7: `a`, key `y`: `blocked` refuses every call; write no other setting beside it",
            "line 10: `a`, key `z` has no settings; write a number, `blocked = true`, `shadow = true` or `off = true`",
            "line 12: `limit` is no number, rate or duration; write 10, \"100/min\" or \"5s\"",
            "line 13: `a`, key `u` has no settings; write a number, `blocked = true`, `shadow = true` or `off = true`",
            "line 19: `key` is a table; if the policy is named `c.key`, write `[\"c.key\"]`",
        ]
    );
    let valid: Vec<_> = parsed.overrides.iter().map(|it| (&*it.policy, it.key.join(" "))).collect();
    assert_eq!(valid, [("a", "u v".to_owned()), ("b", String::new())]);
}

#[test]
fn tables_beside_a_wrong_one_are_parsed() {
    let parsed = parse("[a]\nshadow = 1\n[b]\nlimit = 2\n[c]\n").unwrap();
    assert_eq!(parsed.overrides, overrides("[b]\nlimit = 2\n"));
    assert_eq!(parsed.problems.len(), 2, "{parsed:?}");
}

/// No prefix of a text but those that end with a section is a text, and no section is without settings.
#[test]
fn cut_off_texts_are_no_texts() {
    let text = "[\"a\"]\nrate = \"10/s\"\nburst = 20\n";
    let complete = (0..text.len()).filter(|end| problems(&text[..*end]).is_empty());
    // Empty, and one setting less.
    assert_eq!(complete.collect::<Vec<_>>(), [0, 20]);
}
