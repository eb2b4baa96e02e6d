//! Who is counted.

use ratelimits::{MissingKey, RequestContext, count_limit};

use super::{AppError, AppResult, User, assert_admits_one, assert_limited, isolated};

#[count_limit(1, "1d", key = "<user.id>:<room>")]
async fn template(user: &User, room: &str) -> AppResult<()> {
    let _ = (user.daily, room);
    Ok(())
}

#[count_limit(1, "1d", key = user.id)]
async fn bare(user: &User) -> AppResult<()> {
    let _ = user;
    Ok(())
}

#[count_limit(1, "1d", name = "tuple", key = (first, second))]
async fn tuple(first: &str, second: &str) -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", name = "tuple", key = "<first>:<second>")]
async fn same_parts(first: &str, second: &str) -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", key = "<ids.iter().sum::<u64>()>")]
async fn expression(ids: &[u64]) -> AppResult<()> {
    let _ = ids;
    Ok(())
}

#[count_limit(1, "1d", key = name)]
async fn optional(name: Option<&str>) -> AppResult<()> {
    let _ = name;
    Ok(())
}

#[count_limit(1, "1d", key_type = IP)]
async fn by_ip() -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", key_type = USER)]
async fn by_user() -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", key = "<user>:<@user>:<@ip>", key_type = CUSTOM)]
async fn of_both(user: &str) -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", key = "<@method>:<@user_or_ip>")]
async fn of_either() -> AppResult<()> {
    Ok(())
}

#[test]
fn each_key_counts_apart() {
    isolated(async {
        let [ann, bob] = [1, 2].map(|id| User { id, daily: 1 });
        template(&ann, "a").await.unwrap();
        template(&ann, "b").await.unwrap();
        template(&bob, "a").await.unwrap();
        assert_limited(template(&ann, "a").await);
        bare(&ann).await.unwrap();
        assert_admits_one!(bare(&bob));
        expression(&[1, 2]).await.unwrap();
        assert_limited(expression(&[3]).await);
        expression(&[4]).await.unwrap();
    });
}

#[test]
fn templates_and_tuples_have_the_same_parts() {
    isolated(async {
        tuple("a:b", "c").await.unwrap();
        tuple("a", "b:c").await.unwrap();
        assert_limited(same_parts("a:b", "c").await);
    });
}

#[count_limit(1, "1d", key = text.parse::<u8>()?)]
async fn leaves(text: &str) -> AppResult<&str> {
    Ok(text)
}

#[count_limit(1, "1d", key = later(id).await)]
async fn waits(id: u8) -> AppResult<u8> {
    Ok(id)
}

async fn later(id: u8) -> u8 {
    tokio::task::yield_now().await;
    id
}

#[test]
fn expressions_act_on_the_function() {
    isolated(async {
        assert!(matches!(leaves("x").await, Err(AppError::Parse)));
        assert_eq!(leaves("1").await.unwrap(), "1");
        assert_limited(leaves("01").await);
        assert_admits_one!(waits(1));
    });
}

#[test]
fn a_none_is_missing() {
    isolated(async {
        optional(Some("a")).await.unwrap();
        optional(Some("b")).await.unwrap();
        let error = optional(None).await.unwrap_err();
        assert!(matches!(error, AppError::Refused(ratelimits::Error::MissingKey(MissingKey::Part))));
    });
}

#[test]
fn the_context_has_address_and_user() {
    isolated(async {
        let ann = || RequestContext::new().with_ip([127, 0, 0, 1]).with_user("ann");
        let bob = || RequestContext::new().with_ip([127, 0, 0, 1]).with_user("bob");
        ann().scope(by_ip()).await.unwrap();
        assert_limited(bob().scope(by_ip()).await);
        ann().scope(by_user()).await.unwrap();
        bob().scope(by_user()).await.unwrap();
        ann().scope(of_both("x")).await.unwrap();
        assert_admits_one!(ann().scope(of_both("y")), ann().scope(of_either()),);
    });
}

#[count_limit(1, "1d", key = "<@user_or_ip>:<name>", cost = cost)]
async fn priced(name: Option<&str>, cost: u8) -> AppResult<()> {
    let _ = name;
    Ok(())
}

#[test]
fn a_call_that_costs_nothing_needs_no_key() {
    isolated(async {
        priced(None, 0).await.unwrap();
        assert!(matches!(priced(None, 1).await, Err(AppError::Refused(ratelimits::Error::MissingKey(_)))));
    });
}

#[test]
fn what_the_context_lacks_refuses_the_call() {
    isolated(async {
        let missing = |result: AppResult<()>| match result {
            Err(AppError::Refused(ratelimits::Error::MissingKey(missing))) => missing,
            other => panic!("{other:?}"),
        };
        assert_eq!(missing(by_ip().await), MissingKey::Ip);
        assert_eq!(missing(by_user().await), MissingKey::User);
    });
}
