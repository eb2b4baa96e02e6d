//! Which policies may share a name.

use ratelimits::{Registry, count_limit, funnel_limit, rate_limit, window_limit};

use super::{AppError, AppResult, isolated};
use crate::support::log_capture::LogCapture;

/// Asserts that the policy's name clashes with another's. Returns the lines of both, in the order of the message.
#[track_caller]
fn assert_clash(name: &str, result: AppResult<()>) -> [u32; 2] {
    let Err(AppError::Refused(ratelimits::Error::Invalid(invalid))) = result else {
        panic!("`{name}`: {result:?}")
    };
    let problem = invalid.problem();
    assert_eq!(invalid.argument(), "name", "{problem}");
    assert!(problem.contains(&format!("`{name}`")), "{problem}");
    let places = problem.split(concat!(file!(), ":")).skip(1);
    let line = |text: &str| text.split(|char: char| !char.is_ascii_digit()).next().unwrap().parse().unwrap();
    let lines: Vec<u32> = places.map(line).collect();
    lines.try_into().unwrap_or_else(|_| panic!("not two places: {problem}"))
}

limited! {
    #[count_limit(2, "1d", name = "clash.shared", key = id)]
    shared(id: u8);
    #[count_limit(2, "24h", name = "clash.shared", key = "<id>")]
    #[window_limit(5, "1d", key = id)]
    shared_in_a_stack(id: u8);
    #[count_limit(id, "1d", name = "clash.shared", key = id)]
    shared_with_computed_limit(id: u8);
    #[count_limit(2, "1d", name = "clash.shared", prefix = "one", key = id)]
    other_prefix(id: u8);
    #[rate_limit(2, name = "clash.shared", prefix = "two")]
    other_prefix_and_algorithm();
    #[rate_limit(2, name = "clash.shared", key = id)]
    other_algorithm(id: u8);
    #[count_limit(3, "1d", name = "clash.shared", key = id)]
    other_limit(id: u8);
    #[count_limit(2, 3600, name = "clash.shared", key = id)]
    other_period(id: u8);
    #[count_limit(2, "1d", name = "clash.shared")]
    no_key();
    #[count_limit(2, "1d", name = "clash.shared", key = id)]
    #[count_limit(9, "1d")]
    other_tag(id: u8);
    #[count_limit(2, "1d", name = "clash.shared", key = id)]
    shared_after_clashes(id: u8);
}

#[test]
fn equal_policies_share_a_given_name() {
    isolated(async {
        shared(2).await.unwrap();
        shared_in_a_stack(2).await.unwrap();
        assert!(shared(2).await.unwrap_err().is_limited());
        assert!(shared_with_computed_limit(2).await.unwrap_err().is_limited());
        other_prefix(2).await.unwrap();
        other_prefix_and_algorithm().await.unwrap();

        for clash in [
            other_algorithm(2).await,
            other_limit(2).await,
            other_period(2).await,
            no_key().await,
            other_tag(2).await,
        ] {
            assert_clash("clash.shared", clash);
        }
        // A clash claims nothing.
        assert!(shared(2).await.unwrap_err().is_limited());
        shared_after_clashes(1).await.unwrap();
    });
}

limited! {
    #[count_limit(id, "1d", name = "clash.third")]
    computed_first(id: u8);
    #[count_limit(9, "1d", name = "clash.third")]
    literal_second();
    #[count_limit(8, "1d", name = "clash.third")]
    literal_third();

    #[rate_limit("60/min", burst = 2, name = "clash.computed")]
    literal_burst();
    #[rate_limit("60/min", burst = burst, name = "clash.computed")]
    computed_burst(burst: u8);

    #[count_limit(9, "1d", name = "clash.tag")]
    #[count_limit(9, "1h")]
    tag();
    #[count_limit(9, "1d", name = "clash.tag")]
    #[count_limit(9, "1h")]
    tag_of_another_function();

    #[rate_limit("60/min", 1, name = "clash.spelling")]
    spelled();
    #[rate_limit(rate = 1.0, burst = "1s", name = "clash.spelling")]
    spelled_differently();
    #[rate_limit(rate = 1.0, name = "clash.spelling", burst = 2)]
    other_burst();

    #[rate_limit(rate = "3/s", name = "clash.default")]
    default_burst();
    #[rate_limit(rate = "3/s", burst = 4, name = "clash.default")]
    other_than_default_burst();

    #[rate_limit("60/min", name = "clash.bucket")]
    plain();
    #[rate_limit("60/min", borrow, name = "clash.bucket")]
    borrowing();
    #[rate_limit("60/min", warmup = 1, name = "clash.bucket")]
    warming_up();

    #[rate_limit("60/min", warmup = 1, name = "clash.warmup")]
    warmup();
    #[rate_limit(1.0, warmup = "1000ms", name = "clash.warmup")]
    same_warmup();
    #[rate_limit("60/min", warmup = "2s", name = "clash.warmup")]
    longer_warmup();

    #[funnel_limit(5, 1.0, name = "clash.funnel")]
    meter();
    #[funnel_limit(5, 1.0, queue, name = "clash.funnel")]
    queue();
}

#[test]
fn unequal_policies_clash() {
    isolated(async {
        computed_first(9).await.unwrap();
        literal_second().await.unwrap();
        assert_clash("clash.third", literal_third().await);
        literal_burst().await.unwrap();
        assert_clash("clash.computed", computed_burst(2).await);
        tag().await.unwrap();
        assert_clash("clash.tag", tag_of_another_function().await);
        spelled().await.unwrap();
        assert!(spelled_differently().await.unwrap_err().is_limited());
        assert_clash("clash.spelling", other_burst().await);
        default_burst().await.unwrap();
        assert_clash("clash.default", other_than_default_burst().await);
        plain().await.unwrap();
        assert_clash("clash.bucket", borrowing().await);
        assert_clash("clash.bucket", warming_up().await);
        warmup().await.unwrap();
        assert!(same_warmup().await.unwrap_err().is_limited());
        assert_clash("clash.warmup", longer_warmup().await);
        meter().await.unwrap();
        assert_clash("clash.funnel", queue().await);
    });
}

limited! {
    #[count_limit(1, "1d")]
    derived();
    #[count_limit(1, "1d", name = "it::macros::name_clashes::derived")]
    given();
}

/// Two functions whose names the compiler does not tell apart.
async fn in_block(first: bool) -> AppResult<()> {
    if first {
        limited!(#[count_limit(1, "1d")] call(););
        call().await
    } else {
        limited!(#[window_limit(1, "1d")] call(););
        call().await
    }
}

#[test]
fn derived_names_are_not_shared() {
    isolated(async {
        in_block(true).await.unwrap();
        let name = "it::macros::name_clashes::in_block::call";
        assert_clash(name, in_block(false).await);
        assert!(in_block(true).await.unwrap_err().is_limited());
        assert_clash(name, Registry::in_memory().scope(in_block(false)).await);
        derived().await.unwrap();
        assert_clash("it::macros::name_clashes::derived", given().await);
    });
}

limited! {
    #[count_limit(1, "1d", name = "clash.logged")]
    first();
    #[count_limit(2, "1d", name = "clash.logged")]
    second();
    #[count_limit(3, "1d", name = "clash.logged", fallback = |_| Ok(()))]
    with_fallback();
    #[count_limit(4, "1d", name = "clash.logged", shadow)]
    in_shadow();

    #[count_limit(1, "1d", name = "clash.free")]
    charged();
    #[count_limit(2, "1d", name = "clash.free", cost = cost)]
    free(cost: u64);
    #[count_limit(2, "1d", name = "clash.free", cost = cost)]
    #[count_limit(2, "1d", cost = 1)]
    free_in_a_stack(cost: u64);
}

#[test]
fn free_calls_of_a_policy_that_clashes_go_ahead() {
    isolated(async {
        charged().await.unwrap();
        for _ in 0..2 {
            free(0).await.unwrap();
            free_in_a_stack(0).await.unwrap();
            assert_clash("clash.free", free(1).await);
            assert_clash("clash.free", free_in_a_stack(1).await);
        }
        assert!(free_in_a_stack(0).await.unwrap_err().is_limited());
    });
}

#[test]
fn clashes_are_logged_once_as_errors() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    isolated(async {
        first().await.unwrap();
        for _ in 0..3 {
            assert_clash("clash.logged", second().await);
            with_fallback().await.unwrap();
        }
        in_shadow().await.unwrap();
    });
    let event = |message: &str| ("clash.logged".to_owned(), message.to_owned());
    let start = (String::new(), "limits are decided in this process".to_owned());
    let clash = "two policies have the same name; calls of this one fail";
    let shadow = "shadow policy could not be evaluated";
    // The second one at most once a second.
    let messages = ["call was refused", "calls are refused, as their policy cannot decide them"];
    let of = |index: usize| move |(_, message): &(String, String)| message == messages[index];
    let (refused, others): (Vec<_>, Vec<_>) = log.events().into_iter().partition(of(0));
    let (warned, others): (Vec<_>, Vec<_>) = others.into_iter().partition(of(1));
    let [first, second, third, fourth] = [clash, clash, clash, shadow].map(event);
    assert_eq!(others, [start, first, second, third, fourth]);
    assert_eq!(refused.len(), 6);
    let text = log.text();
    assert_eq!(text.matches("level=ERROR").count(), 3, "{text}");
    assert_eq!(text.matches(concat!(file!(), ":")).count(), 2 * (4 + 6 + warned.len()), "{text}");
}

const LINE: u32 = line!() + 2;

#[count_limit(5, "1d", name = "clash.line")]
#[count_limit(5, "2d")]
async fn first_stack() -> AppResult<()> {
    Ok(())
}

#[window_limit(5, "1d", name = "clash.other")]
#[count_limit(6, "1d", name = "clash.line")]
#[count_limit(5, "2d")]
async fn second_stack() -> AppResult<()> {
    Ok(())
}

#[test]
fn clashes_name_the_attributes_in_a_stack() {
    isolated(async {
        first_stack().await.unwrap();
        assert_eq!(assert_clash("clash.line", second_stack().await), [LINE, LINE + 7]);
    });
}

struct A;

trait Blanket {
    async fn go(&self, id: u8) -> AppResult<()>;
}

impl<T> Blanket for T {
    #[count_limit(1, "1d", name = "clash.blanket", key = id)]
    #[count_limit(1, "1d")]
    async fn go(&self, id: u8) -> AppResult<()> {
        let _ = id;
        Ok(())
    }
}

#[test]
fn given_names_are_not_split_between_types() {
    isolated(async {
        A.go(1).await.unwrap();
        assert_clash("clash.blanket", 1u8.go(1).await);
    });
}

mod renamed {
    pub(super) use ratelimits::rate_limit as limited;
}

#[count_limit(5, "1d")]
#[renamed::limited("3/day", 3)]
async fn unrecognized() -> AppResult<()> {
    Ok(())
}

#[renamed::limited("5/day", 5)]
#[renamed::limited("3/day", 3, cost = cost)]
#[renamed::limited("4/day", 4, key = cost)]
async fn all_unrecognized(cost: u8) -> AppResult<()> {
    let _ = cost;
    Ok(())
}

fn policy_of(result: AppResult<()>) -> String {
    match result {
        Err(AppError::Refused(ratelimits::Error::Limited(limited))) => limited.policy().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unrecognized_siblings_count_separately() {
    isolated(async {
        for _ in 0..3 {
            unrecognized().await.unwrap();
        }
        assert_eq!(policy_of(unrecognized().await), concat!(module_path!(), "::unrecognized#2"));
        all_unrecognized(2).await.unwrap();
        assert_eq!(policy_of(all_unrecognized(2).await), concat!(module_path!(), "::all_unrecognized#2"));
    });
}

/// The parts of a key follow its charge.
#[test]
fn free_clash_adds_nothing_to_the_key_before_it() {
    #[count_limit(2, "1d", name = "clash.parts")]
    async fn first() -> AppResult<()> {
        Ok(())
    }

    #[count_limit(1, "1d", key = user, name = "clash.before")]
    #[count_limit(9, "1h", key = room, cost = cost, name = "clash.parts")]
    async fn second(user: &str, room: u32, cost: u64) -> AppResult<()> {
        Ok(())
    }

    isolated(async {
        first().await.unwrap();
        second("ada", 1, 0).await.unwrap();
        assert!(second("ada", 2, 0).await.unwrap_err().is_limited());
        assert_clash("clash.parts", second("grace", 1, 1).await);
    });
}
