//! Keys: templates, expressions and the request context.

use ratelimits::error::MissingKey;
use ratelimits::{RequestContext, count_limit};

use super::{AppError, AppResult, User, assert_admits_one, assert_limited, isolated};
use crate::support::log_capture::LogCapture;

limited! {
    #[count_limit(1, "1d", key = "<user.id>:<room>")]
    template(user: &User, room: &str);
    #[count_limit(1, "1d", key = user.id)]
    bare(user: &User);
    #[count_limit(1, "1d", name = "tuple", key = (first, second))]
    tuple(first: &str, second: &str);
    #[count_limit(1, "1d", name = "tuple", key = "<first>:<second>")]
    same_as_template(first: &str, second: &str);
    #[count_limit(1, "1d", key = "<ids.iter().sum::<u64>()>")]
    expression(ids: &[u64]);
    #[count_limit(1, "1d", key = name)]
    optional(name: Option<&str>);
    #[count_limit(1, "1d", key_type = IP)]
    by_ip();
    #[count_limit(1, "1d", key_type = USER)]
    by_user();
    #[count_limit(1, "1d", key = "<user>:<@user>:<@ip>", key_type = CUSTOM)]
    by_user_and_ip(user: &str);
    #[count_limit(1, "1d", key = "<@method>:<@user_or_ip>")]
    by_user_or_ip();
    #[count_limit(1, "1d", key = "<@user_or_ip>:<name>", cost = cost)]
    priced(name: Option<&str>, cost: u8);
}

#[test]
fn keys_are_counted_separately() {
    isolated(async {
        let [ann, bob] = [1, 2].map(|id| User { id, daily: 1 });
        template(&ann, "a").await.unwrap();
        template(&ann, "b").await.unwrap();
        template(&bob, "a").await.unwrap();
        assert_limited(template(&ann, "a").await);
        assert_admits_one!(bare(&ann), bare(&bob));
        expression(&[1, 2]).await.unwrap();
        assert_limited(expression(&[3]).await);
        expression(&[4]).await.unwrap();
    });
}

#[test]
fn templates_and_tuples_are_equivalent() {
    isolated(async {
        tuple("a:b", "c").await.unwrap();
        tuple("a", "b:c").await.unwrap();
        assert_limited(same_as_template("a:b", "c").await);
    });
}

#[count_limit(1, "1d", key = text.parse::<u8>()?)]
async fn returns_early(text: &str) -> AppResult<&str> {
    Ok(text)
}

#[count_limit(1, "1d", key = later(id).await)]
async fn awaits(id: u8) -> AppResult<u8> {
    Ok(id)
}

async fn later(id: u8) -> u8 {
    tokio::task::yield_now().await;
    id
}

#[test]
fn key_expressions_may_return_and_await() {
    isolated(async {
        assert!(matches!(returns_early("x").await, Err(AppError::Parse)));
        assert_eq!(returns_early("1").await.unwrap(), "1");
        assert_limited(returns_early("01").await);
        assert_admits_one!(awaits(1));
    });
}

#[test]
fn request_context_keys() {
    isolated(async {
        let ann = || RequestContext::new().with_ip([127, 0, 0, 1]).with_user("ann");
        let bob = || RequestContext::new().with_ip([127, 0, 0, 1]).with_user("bob");
        ann().scope(by_ip()).await.unwrap();
        assert_limited(bob().scope(by_ip()).await);
        ann().scope(by_user()).await.unwrap();
        bob().scope(by_user()).await.unwrap();
        ann().scope(by_user_and_ip("x")).await.unwrap();
        assert_admits_one!(ann().scope(by_user_and_ip("y")), ann().scope(by_user_or_ip()));
    });
}

#[test]
fn free_calls_need_no_key() {
    isolated(async {
        priced(None, 0).await.unwrap();
        assert!(matches!(priced(None, 1).await, Err(AppError::Refused(ratelimits::Error::MissingKey(_)))));
    });
}

#[count_limit(1, "1d", key = keys[0], fallback = |error| format!("1: {error}"))]
#[count_limit(1, "1d", key = keys[1], fallback = |error| format!("2: {error}"))]
#[count_limit(1, "1d", key = keys[2], fallback = |error| format!("3: {error}"))]
#[count_limit(1, "1d", key = keys[3], fallback = |error| format!("4: {error}"))]
#[count_limit(1, "1d", key = keys[4], fallback = |error| format!("5: {error}"))]
async fn with_five_keys(keys: [Option<u64>; 5]) -> String {
    "body".to_owned()
}

#[test]
fn policy_whose_key_is_missing_refuses() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    isolated(async {
        for missing in 0..5 {
            let mut keys = [Some(7); 5];
            keys[missing] = None;
            assert_eq!(with_five_keys(keys).await, format!("{}: {}", missing + 1, MissingKey::Part));
        }
        // Of several, the first.
        assert!(with_five_keys([Some(7), Some(7), Some(7), None, None]).await.starts_with("4: "));
        assert_eq!(with_five_keys([Some(7); 5]).await, "body", "nothing was charged before");
        assert!(with_five_keys([Some(7); 5]).await.contains("limited"));
    });
    let refused = log.events().into_iter().filter(|(_, message)| message == "call was refused");
    let policies: Vec<_> = refused.map(|(policy, _)| policy).collect();
    let name = |number: &str| format!("{}::with_five_keys{number}", module_path!());
    assert_eq!(policies, ["", "#2", "#3", "#4", "#5", "#4", "#5"].map(name));
}

#[test]
fn missing_keys_are_refused() {
    isolated(async {
        optional(Some("a")).await.unwrap();
        optional(Some("b")).await.unwrap();
        for (result, expected) in [
            (optional(None).await, MissingKey::Part),
            (by_ip().await, MissingKey::Ip),
            (by_user().await, MissingKey::User),
        ] {
            match result {
                Err(AppError::Refused(ratelimits::Error::MissingKey(missing))) => {
                    assert_eq!(missing, expected)
                }
                other => panic!("{expected:?}: {other:?}"),
            }
        }
    });
}
