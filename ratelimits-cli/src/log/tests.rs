use super::*;

const COMMON: &str = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif?x=1 HTTP/1.0" 200 2326"#;
const COMBINED: &str = r#"2001:db8:1:2:3::4 - - [10/Oct/2000:13:55:36 -0700] "POST / HTTP/1.1" 200 9 "https://example.com" "Mozilla/5.0 [en]""#;
const JSON: &str = r#"{"ts": 971211336.25, "ip": "::ffff:192.0.2.7", "user": 42, "request": {"host": "a.example", "headers": []}, "a.b": true, "bytes": 2326, "7": "seven"}"#;
const TIME: u64 = 971_211_336_000_000_000;

fn format(key: &str) -> Format {
    Format::new(Selection { key: key.parse().unwrap(), cost: None, time: None })
}

fn key(key: &str, line: &str) -> Option<String> {
    match format(key).parse(line) {
        Ok(call) => Some(call.key.into_owned()),
        Err(Problem::Key(_)) => None,
        Err(problem) => panic!("{line}: {problem}"),
    }
}

#[test]
fn keys_are_read() {
    let line = "2000-10-10T20:55:36Z GET /a tenant-7";
    for (field, line, expected) in [
        ("ip", COMMON, Some("127.0.0.1")),
        ("user", COMMON, Some("frank")),
        ("method", COMMON, Some("GET")),
        ("path", COMMON, Some("/a.gif")),
        ("9", COMMON, Some("200")),
        ("11", COMMON, None),
        ("host", COMMON, None),
        ("ip", COMBINED, Some("2001:db8:1:2::")),
        ("user", COMBINED, None),
        ("path", COMBINED, Some("/")),
        ("ip", JSON, Some("192.0.2.7")),
        ("user", JSON, Some("42")),
        ("request.host", JSON, Some("a.example")),
        ("request.headers", JSON, None),
        ("request", JSON, None),
        ("a.b", JSON, Some("true")),
        ("7", JSON, Some("seven")),
        ("a.b.c", JSON, None),
        ("4", line, Some("tenant-7")),
        ("5", line, None),
        ("ip", line, None),
        ("2", "971211336 tenant-7", Some("tenant-7")),
        ("ip", r#"host.example - - [10/Oct/2000:13:55:36 -0700] "-" 408 0"#, Some("host.example")),
        ("path", r#"host.example - - [10/Oct/2000:13:55:36 -0700] "-" 408 0"#, None),
        ("method", "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700]", None),
        ("status", COMMON, Some("200")),
        ("status", COMBINED, Some("200")),
        ("status", r#"a - - [10/Oct/2000:13:55:36 -0700] "GET /\"x\" HTTP/1.1" 429 0"#, Some("429")),
        ("status", r#"a - - [10/Oct/2000:13:55:36 -0700] "GET /" - 0"#, None),
        ("user", r#"{"ts": 1, "user": "a\u0062c", "us\u0065r2": 7}"#, Some("abc")),
        ("user2", r#"{"ts": 1, "user": "a\u0062c", "us\u0065r2": 7}"#, Some("7")),
        ("user", r#"{"ts": 1, "user": "a", "user": "b"}"#, None),
    ] {
        assert_eq!(key(field, line).as_deref(), expected, "{field} of {line}");
    }
}

#[test]
fn times_are_read() {
    for (line, time) in [
        (COMMON, TIME),
        (COMBINED, TIME),
        (JSON, TIME + 250_000_000),
        ("2000-10-10T20:55:36Z tenant-7", TIME),
        ("2000-10-10 20:55:36Z tenant-7", TIME),
        ("2000-10-10 20:55:36+00:00", TIME),
        ("971211336.5 tenant-7", TIME + 500_000_000),
        ("971211336000 tenant-7", TIME),
        ("971211336", TIME),
        (r#"{"time": "10/Oct/2000:13:55:36 -0700"}"#, TIME),
        (r#"{"@timestamp": "2000-10-10T20:55:36Z"}"#, TIME),
        (r#"{"timestamp": 971211336000, "level": "info"}"#, TIME),
    ] {
        assert_eq!(format("1").split(line).map(|(time, _)| time), Ok(time), "{line}");
    }
    let mut nested = format("ip");
    nested.fields.time = Some("request.at".to_owned());
    let line = r#"{"request": {"at": "971211336"}, "ts": 5, "ip": "a"}"#;
    assert_eq!(nested.parse(line).unwrap().time, TIME);
}

#[test]
fn lines_without_a_time_are_errors() {
    for line in [
        "",
        "garbage",
        "10/Oct/2000:13:55:36 -0700",
        "127.0.0.1 - - [] \"GET / HTTP/1.0\"",
        "127.0.0.1 - - [10/Oct/2000:13:55:36] \"GET / HTTP/1.0\"",
        "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700",
        "2000-10-10T20:55:36 tenant-7",
        "{}",
        "[971211336]",
        r#"{"ts": null}"#,
        r#"{"ts": "yesterday"}"#,
        r#"{"ts": [971211336]}"#,
        r#"{"at": 971211336}"#,
    ] {
        assert_eq!(format("ip").parse(line), Err(Problem::Time), "{line}");
    }
    for line in ["{", r#"{"ts": 971211336"#, r#"{"ts": 971211336} x"#, "{\"ts\": \u{fffd}}"] {
        assert_eq!(format("ip").parse(line), Err(Problem::Json), "{line}");
    }
}

#[test]
fn costs_are_read() {
    let cost = |field: &str, line| {
        let mut format = format("ip");
        format.fields.cost = Some(field.parse().unwrap());
        format.parse(line).map(|call| call.cost)
    };
    assert_eq!(cost("10", COMMON), Ok(Some(2326)));
    assert_eq!(cost("bytes", JSON), Ok(Some(2326)));
    assert_eq!(cost("method", COMMON), Err(Problem::Cost("`method`".to_owned())));
    assert_eq!(cost("11", COMMON), Err(Problem::Cost("field 11".to_owned())));
    assert_eq!(format("ip").parse(COMMON).unwrap().cost, None);
}

#[test]
fn fields_have_names_or_numbers() {
    assert!("0".parse::<Field>().is_err());
    assert!("".parse::<Field>().is_err());
    assert_eq!("7".parse::<Field>().unwrap().to_string(), "field 7");
    assert_eq!("a.b".parse::<Field>().unwrap().to_string(), "`a.b`");
}

#[test]
fn csv_has_a_header() {
    let csv = |key: &str, time: Option<&str>, header: &str, line| {
        let mut format = format(key);
        format.fields.time = time.map(str::to_owned);
        assert!(format.read_header(header), "{header}");
        format.parse(line).map(|call| (call.time, call.key.into_owned()))
    };
    let read = |key: &str| Ok((TIME, key.to_owned()));
    assert_eq!(csv("user", None, "\u{feff}ts,user,path", r#"971211336,"a,b",/"#), read("a,b"));
    assert_eq!(csv("2", None, "ts,user", "971211336,a"), read("a"));
    assert_eq!(csv("ip", None, "time,ip", "2000-10-10T20:55:36Z,2001:db8:1:2:3::4"), read("2001:db8:1:2::"));
    assert_eq!(csv("user", Some("at"), "user,ts,at", "a,5,971211336"), read("a"));
    assert_eq!(csv("user", None, "ts,user", "971211336"), Err(Problem::Columns(1, 2)));
    assert_eq!(csv("user", None, "ts,user", "971211336,a,b"), Err(Problem::Columns(3, 2)));
    assert_eq!(csv("user", None, "ts,user", "971211336,\"a"), Err(Problem::Quotes));
    assert_eq!(csv("user", None, "ts,user", "now,a"), Err(Problem::Time));
    let without_key = Err(Problem::Key("`user`".to_owned()));
    assert_eq!(csv("user", None, "ts,user", "971211336,"), without_key);
    assert_eq!(csv("user", None, "ts,user,user", "971211336,a,b"), without_key);
    for line in [COMMON, JSON, "ts", "971211336,a", "at,user"] {
        assert!(!format("ip").read_header(line), "{line}");
    }
}
