//! A name is claimed by one place, and shared only if it is given.

use ratelimits::{Error, Registry, count_limit, rate_limit, window_limit};

use super::isolated;

struct A;

trait Reads {
    async fn get(&self) -> Result<(), Error>;
}

trait Writes {
    async fn get(&self) -> Result<(), Error>;
}

impl Reads for A {
    #[count_limit(1, "1d")]
    async fn get(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Writes for A {
    #[count_limit(1, "1d")]
    async fn get(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// The problem, with `LINE` for the places in this file.
#[track_caller]
fn problem(result: Result<(), Error>) -> String {
    let Err(Error::Invalid(invalid)) = result else { panic!("{result:?}") };
    assert_eq!(invalid.argument(), "name");
    let mut parts = invalid.problem().split(concat!(file!(), ":"));
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let behind = part.trim_start_matches(|char: char| char.is_ascii_digit());
        assert!(behind.len() < part.len(), "{part}");
        text = text + "LINE" + behind;
    }
    text
}

#[test]
fn a_name_that_is_not_given_is_not_shared() {
    isolated(async {
        Reads::get(&A).await.unwrap();
        let claimed = "`it::macros::claims::A::get` stands at LINE and at LINE, and only a name that is given is shared; \
                       give one of them a name of its own: `name = \"…\"`";
        assert_eq!(problem(Writes::get(&A).await), claimed);
        assert!(Reads::get(&A).await.unwrap_err().is_limited());
        assert_eq!(problem(Registry::in_memory().scope(Writes::get(&A)).await), claimed);
    });
}

#[count_limit(1, "1d")]
async fn claimed() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d", name = "it::macros::claims::claimed")]
async fn claiming() -> Result<(), Error> {
    Ok(())
}

#[test]
fn a_name_that_is_given_does_not_meet_one_that_is_not() {
    isolated(async {
        claimed().await.unwrap();
        assert!(
            problem(claiming().await).starts_with("`it::macros::claims::claimed` stands at LINE and at LINE")
        );
    });
}

#[count_limit(2, "1d", name = "claims.shared", key = id)]
async fn shared(id: u8) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[count_limit(2, "24h", name = "claims.shared", key = "<id>")]
#[window_limit(5, "1d", key = id)]
async fn shared_too(id: u8) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[rate_limit(2, name = "claims.shared", key = id)]
async fn of_another_algorithm(id: u8) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[count_limit(3, "1d", name = "claims.shared", key = id)]
async fn of_another_limit(id: u8) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[count_limit(id, 3600, name = "claims.shared", key = id)]
async fn of_another_period(id: u8) -> Result<(), Error> {
    Ok(())
}

#[count_limit(id, "1d", name = "claims.shared", key = id)]
async fn of_a_limit_of_its_own(id: u8) -> Result<(), Error> {
    Ok(())
}

#[count_limit(2, "1d", name = "claims.shared")]
async fn of_no_key() -> Result<(), Error> {
    Ok(())
}

#[count_limit(2, "1d", name = "claims.shared", key = id)]
#[count_limit(9, "1d")]
async fn within_a_function(id: u8) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[rate_limit(2, name = "claims.shared", prefix = "elsewhere")]
async fn elsewhere() -> Result<(), Error> {
    Ok(())
}

#[test]
fn a_name_that_is_given_is_shared_by_what_is_the_same() {
    isolated(async {
        shared(2).await.unwrap();
        shared_too(2).await.unwrap();
        assert!(shared(2).await.unwrap_err().is_limited());
        assert!(of_a_limit_of_its_own(2).await.unwrap_err().is_limited());
        elsewhere().await.unwrap();

        let apart = "give each a name of its own";
        for (result, told) in [
            (of_another_algorithm(2).await, "is a fixed window at LINE and a token bucket at LINE; "),
            (of_another_limit(2).await, "has a `limit` of 2 at LINE and of 3 at LINE; write the same, or "),
            (
                of_another_period(2).await,
                "has a `period` of 86400s at LINE and of 3600s at LINE; write the same, or ",
            ),
            (of_no_key().await, "counts by its key at LINE and by its name at LINE; "),
            (
                within_a_function(2).await,
                "counts by its key at LINE and by a key within the function `it::macros::claims::within_a_function` at LINE; ",
            ),
        ] {
            assert_eq!(problem(result), format!("`claims.shared` {told}{apart}"));
        }
        assert!(shared(2).await.unwrap_err().is_limited());
        // What failed has claimed nothing, and what came first is not all that counts.
        shared_last(1).await.unwrap();
        many_first(9).await.unwrap();
        many_second().await.unwrap();
        assert!(problem(many_third().await).contains("has a `limit` of 9 at LINE and of 8 at LINE"));
        within_one().await.unwrap();
        assert!(
            problem(within_two().await)
                .contains("a key within the function `it::macros::claims::within_one` at")
        );
    });
}

#[count_limit(2, "1d", name = "claims.shared", key = id)]
async fn shared_last(id: u8) -> Result<(), Error> {
    let _ = id;
    Ok(())
}

#[count_limit(most, "1d", name = "claims.many")]
async fn many_first(most: u8) -> Result<(), Error> {
    Ok(())
}

#[count_limit(9, "1d", name = "claims.many")]
async fn many_second() -> Result<(), Error> {
    Ok(())
}

#[count_limit(8, "1d", name = "claims.many")]
async fn many_third() -> Result<(), Error> {
    Ok(())
}

#[count_limit(9, "1d", name = "claims.within")]
#[count_limit(9, "1h")]
async fn within_one() -> Result<(), Error> {
    Ok(())
}

#[count_limit(9, "1d", name = "claims.within")]
#[count_limit(9, "1h")]
async fn within_two() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("60/min", 1, name = "claims.words")]
async fn in_words() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 1.0, burst = "1s", name = "claims.words")]
async fn in_other_words() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 1.0, name = "claims.words", burst = 2)]
async fn in_other_numbers() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "3/s", name = "claims.default")]
async fn by_default() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "3/s", burst = 4, name = "claims.default")]
async fn not_by_default() -> Result<(), Error> {
    Ok(())
}

#[test]
fn numbers_are_the_same_if_they_come_to_the_same() {
    isolated(async {
        in_words().await.unwrap();
        assert!(in_other_words().await.unwrap_err().is_limited());
        assert!(problem(in_other_numbers().await).starts_with("`claims.words` has "));
        by_default().await.unwrap();
        assert_eq!(
            problem(not_by_default().await),
            "`claims.default` has other numbers at LINE than at LINE; write the same, or give each a name of its own"
        );
    });
}

const FIRST: u32 = line!() + 2;

#[count_limit(5, "1d", name = "claims.place")]
#[count_limit(5, "2d")]
async fn placed() -> Result<(), Error> {
    Ok(())
}

#[window_limit(5, "1d", name = "claims.other")]
#[count_limit(6, "1d", name = "claims.place")]
#[count_limit(5, "2d")]
async fn placed_too() -> Result<(), Error> {
    Ok(())
}

#[test]
fn each_attribute_of_a_stack_is_told_at_its_own_place() {
    isolated(async {
        placed().await.unwrap();
        let Err(Error::Invalid(invalid)) = placed_too().await else { panic!("not invalid") };
        let lines = [FIRST, FIRST + 7].map(|line| format!(" at {}:{line}", file!()));
        assert!(lines.iter().all(|line| invalid.problem().contains(line)), "{invalid}, not {lines:?}");
    });
}

trait Blanket {
    async fn go(&self, id: u8) -> Result<(), Error>;
}

impl<T> Blanket for T {
    #[count_limit(1, "1d", name = "claims.blanket", key = id)]
    #[count_limit(1, "1d")]
    async fn go(&self, id: u8) -> Result<(), Error> {
        let _ = id;
        Ok(())
    }
}

#[test]
fn a_name_that_is_given_is_not_split_between_types() {
    isolated(async {
        A.go(1).await.unwrap();
        assert!(
            problem(1u8.go(1).await).starts_with("`claims.blanket` counts by a key within the function `")
        );
    });
}

trait Lists {
    async fn list(&self) -> Result<(), Error>;
}

trait Counts {
    async fn list(&self) -> Result<(), Error>;
}

impl Lists for A {
    #[count_limit(1, "1d")]
    async fn list(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Counts for A {
    #[window_limit(1, "1d")]
    async fn list(&self) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_name_that_is_not_given_is_not_shared_by_other_algorithms_either() {
    isolated(async {
        Lists::list(&A).await.unwrap();
        assert!(
            problem(Counts::list(&A).await).starts_with("`it::macros::claims::A::list` stands at LINE and")
        );
    });
}

mod renamed {
    pub(super) use ratelimits::rate_limit as limited;
}

#[count_limit(5, "1d")]
#[renamed::limited("3/day", 3)]
async fn unseen() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("5/day", 5)]
#[renamed::limited("3/day", 3)]
async fn unseen_twin() -> Result<(), Error> {
    Ok(())
}

#[test]
fn attributes_that_do_not_see_one_another_count_apart() {
    isolated(async {
        // Two of one algorithm meet under one name, and are told so.
        assert!(
            problem(unseen_twin().await).starts_with("`it::macros::claims::unseen_twin` stands at LINE and")
        );
        for _ in 0..3 {
            unseen().await.unwrap();
        }
        assert!(unseen().await.unwrap_err().is_limited());
    });
}
