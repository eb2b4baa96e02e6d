//! Derived names of methods: implementations of one trait, and of traits with one method name, are counted separately.

use super::limits::count_limit;
use super::names::assert_names;
use super::{AppError, AppResult, assert_admits_one, assert_limited, isolated};

struct Actor;
struct Ping;
struct Pong;
struct Generic<T>(T);
struct Pair<A, B>(A, B);
struct Char<const C: char>;
struct Ring<'a, const N: usize>(&'a [u8; N]);

trait Handle<M> {
    async fn handle(&self, message: M) -> AppResult<()>;

    #[count_limit(1, "1d")]
    async fn ignore<R>(&self, _message: M, _reason: R) -> AppResult<()> {
        Ok(())
    }
}

trait Observe {
    async fn handle(&self, message: Ping) -> AppResult<()>;
}

trait Peek {
    async fn peek<M>(&self, message: M) -> AppResult<()>;
}

macro_rules! handle {
    ($([$($parameter:ident)?] $trait:ty, $message:ty, $type:ty;)*) => {$(
        impl<$($parameter)?> $trait for $type {
            #[count_limit(1, "1d")]
            async fn handle(&self, _message: $message) -> AppResult<()> {
                Ok(())
            }
        }
    )*};
}
handle! {
    [] Handle<Ping>, Ping, Actor;
    [] Handle<Pong>, Pong, Actor;
    [] Handle<Vec<Ping>>, Vec<Ping>, Actor;
    [] Handle<fn(&str) -> u8>, fn(&str) -> u8, Actor;
    [] Handle<[u8; 3]>, [u8; 3], Actor;
    [] Handle<char>, char, Char<'<'>;
    [] Handle<char>, char, Char<'>'>;
    [] Observe, Ping, Actor;
    [] Observe, Ping, Generic<u8>;
    [] Observe, Ping, Generic<u16>;
    [] Observe, Ping, [u8];
    [] Observe, Ping, (u8, Actor);
    [] Observe, Ping, &Actor;
    [] Observe, Ping, fn(u8) -> u32;
    [] Observe, Ping, dyn Send;
    [T] Handle<T>, T, Generic<T>;
    [T] Handle<Vec<T>>, Vec<T>, Pair<T, u8>;
    [T] Handle<T>, T, Box<T>;
}

impl<const N: usize> Ring<'_, N> {
    #[count_limit(1, "1d")]
    async fn call(&self) -> AppResult<usize> {
        Ok(self.0.len())
    }
}

impl<T> Pair<T, u8> {
    #[count_limit(1, "1d")]
    async fn call<U>(&self, _: U) -> AppResult<()> {
        Ok(())
    }
}

impl<T: ?Sized> Peek for T {
    #[count_limit(1, "1d")]
    async fn peek<M>(&self, _message: M) -> AppResult<()> {
        Ok(())
    }
}

mod elsewhere {
    use super::{Actor, AppResult, Generic, Observe, Ping, Pong, count_limit};

    handle! {
        [] Observe, Ping, Pong;
        [T] super::Handle<T>, T, Ping;
    }

    impl Actor {
        #[count_limit(1, "1d")]
        pub(super) async fn elsewhere(&self) -> AppResult<()> {
            Ok(())
        }
    }

    impl Generic<Ping> {
        #[count_limit(1, "1d")]
        pub(super) async fn elsewhere(&self) -> AppResult<()> {
            Ok(())
        }
    }

    pub(super) async fn in_type() -> AppResult<()> {
        struct Actor;
        handle!([] Observe, Ping, Actor;);
        Actor.handle(Ping).await
    }
}

const _: () = {
    struct Hidden;
    handle!([] Observe, Ping, Hidden;);

    impl Pong {
        #[count_limit(1, "1d")]
        async fn in_block(&self) -> AppResult<()> {
            Observe::handle(&Hidden, Ping).await
        }
    }
};

#[test]
fn implementations_have_separate_derived_names() {
    isolated(async {
        assert_names!(
            Handle::handle(&Actor, Ping) => "<Actor as Handle<Ping>>::handle",
            Handle::handle(&Actor, Pong) => "<Actor as Handle<Pong>>::handle",
            Handle::handle(&Actor, vec![Ping]) => "<Actor as Handle<alloc::vec::Vec<Ping>>>::handle",
            Handle::<fn(&str) -> u8>::handle(&Actor, |_| 1) => "<Actor as Handle<fn(&str) -> u8>>::handle",
            Handle::handle(&Actor, [1_u8, 2, 3]) => "<Actor as Handle<[u8; 3]>>::handle",
            Char::<'<'>.handle('a') => "<Char<'<'> as Handle<char>>::handle",
            Char::<'>'>.handle('a') => "<Char<'>'> as Handle<char>>::handle",
            Observe::handle(&Actor, Ping) => "<Actor as Observe>::handle",
            Observe::handle(&Generic(1_u8), Ping) => "<Generic<u8> as Observe>::handle",
            Observe::handle(&Generic(1_u16), Ping) => "<Generic<u16> as Observe>::handle",
            Observe::handle(&[1_u8][..], Ping) => "<[u8] as Observe>::handle",
            Observe::handle(&(1_u8, Actor), Ping) => "<(u8, Actor) as Observe>::handle",
            Observe::handle(&&Actor, Ping) => "<&Actor as Observe>::handle",
            Observe::handle(&(u8::count_zeros as fn(u8) -> u32), Ping) => "<fn(u8) -> u32 as Observe>::handle",
            <dyn Send as Observe>::handle(&'a', Ping) => "<dyn core::marker::Send as Observe>::handle",
            Handle::handle(&Generic(1), 1) => "<Generic as Handle>::handle",
            Pair(1, 1).handle(vec![1]) => "<Pair<_, u8> as Handle<alloc::vec::Vec>>::handle",
            Pair('a', 1).call('b') => "Pair<_, u8>::call",
            Ring(&[1, 2]).call() => "Ring<N>::call",
            Actor.elsewhere() => "Actor::elsewhere",
            Generic(Ping).elsewhere() => "Generic<Ping>::elsewhere",
        );
    });
}

/// Asserts the name of the policy that refuses the second of two calls, without the path of this module.
macro_rules! assert_policies {
    ($($call:expr => $name:literal),* $(,)?) => {$(
        $call.await.unwrap();
        match $call.await {
            Err(AppError::Refused(ratelimits::Error::Limited(limited))) => {
                assert_eq!(limited.policy().replace(concat!(module_path!(), "::"), "~"), $name);
            }
            other => panic!("{}: {other:?}", $name),
        }
    )*};
}

#[test]
fn names_have_the_paths_of_other_modules() {
    isolated(async {
        assert_policies!(
            Observe::handle(&Pong, Ping) => "~elsewhere::<~Pong as ~Observe>::handle",
            Handle::handle(&Ping, 1) => "~elsewhere::<~Ping as ~Handle>::handle",
            elsewhere::in_type() => "~elsewhere::<in_type::Actor as ~Observe>::handle",
            Pong.in_block() => "~Pong::in_block",
        );
    });
}

#[test]
fn generic_arguments_of_a_method_share_a_counter() {
    isolated(async {
        macro_rules! assert_shared {
            ($($first:expr, $second:expr;)*) => {$(
                $first.await.unwrap();
                assert_limited($second.await);
            )*};
        }
        assert_shared! {
            Pair(1, 1).call(1), Pair('a', 1).call('a');
            Handle::handle(&Generic(1), 1), Handle::handle(&Generic('a'), 'a');
            Ring(&[1]).call(), Ring(&[1, 2]).call();
            Handle::<Ping>::ignore(&Actor, Ping, 1), Handle::<Pong>::ignore(&Actor, Pong, 'a');
            Generic(1).peek(1), Generic('a').peek('a');
        }
    });
}

#[test]
fn types_of_one_method_have_separate_names() {
    isolated(async {
        assert_admits_one!(
            Handle::handle(&Box::new(1), 1),
            Handle::handle(&Box::new('a'), 'a'),
            Actor.peek(1),
            Ping.peek(1),
            Box::new(Actor).peek(1),
            Box::new(Ping).peek(1),
            Handle::<Ping>::ignore(&Actor, Ping, 1),
            Handle::<u8>::ignore(&Ping, 1, 1),
        );
    });
}
