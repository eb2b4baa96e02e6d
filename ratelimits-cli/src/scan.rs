//! Goes through the states of policies in Redis.

use std::collections::HashMap;

use ratelimit_runtime::inspect::{
    KeyPieces, KeyState, Keyspace, Reading, inventory_key, key_text, override_log_key, overrides_key,
    path_of, policy_of,
};
use ratelimit_runtime::overrides::{Entry as Override, parse};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::in_force::{InForce, encoded, switch};
use crate::inventory::{Entry, Inventory};
use crate::message::write_message;
use crate::progress::Progress;

/// How many states are read at a time. In a Cluster each slot is asked by itself, so that fewer would take more commands.
const AT_ONCE: usize = 32_768;

/// Where to look for states, and what a program says about their policies.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) inventory: &'a Inventory,
    /// What an operator has changed.
    overrides: InForce,
}

/// Which states are meant: all those with these pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    pub(crate) prefix: Option<String>,
    pub(crate) name: Option<String>,
    /// The parts of a key.
    pub(crate) parts: Option<Vec<String>>,
}

/// What keys with the same beginning are states of.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) prefix: String,
    pub(crate) name: String,
    /// The algorithm and the numbers that belong to the state.
    pub(crate) shape: String,
    /// What all of them share a slot by, unless that is their parts.
    pub(crate) function: Option<String>,
    pub(crate) has_parts: bool,
    /// How their states are read. `None` if no policy of this version has such a shape.
    pub(crate) reading: Option<Reading>,
    /// What overrides put the policy in, so that it refuses no call, `off` or `shadow`, or the key, so that it refuses every call:
    /// `blocked`.
    pub(crate) switch: Option<&'static str>,
    /// Whether it is a single key, which has an override of its own.
    pub(crate) is_overridden: bool,
    /// Whether calls use them, as far as is known: not the states of a bucket from before its numbers were overridden.
    pub(crate) is_in_force: bool,
}

/// A selection as it is in keys.
struct Encoded {
    pattern: String,
    prefix: Option<String>,
    name: Option<String>,
    /// None inside for a key without parts.
    parts: Option<Option<String>>,
}

impl<'a> Scan<'a> {
    /// Reads the overrides that are in force. Without a permission for them, or a key that holds them, there are none.
    pub(crate) async fn new(
        connection: &'a Connection,
        keyspace: &'a Keyspace,
        inventory: &'a Inventory,
    ) -> Result<Self, Failure> {
        let ignored = |problem: &str| {
            write_message(format_args!("overrides are not considered: {problem}"));
            Vec::new()
        };
        let key = overrides_key(connection.namespace());
        let overrides = match keyspace.overrides(connection.namespace()).await {
            // Processes ignore invalid ones, too.
            Ok((_, text)) => match parse(&text) {
                Ok(parsed) if parsed.overrides.iter().any(|it| it.until.is_some()) => {
                    let now = keyspace.now(connection.namespace()).await;
                    let now = now.map_err(|error| connection.failure(keyspace, &error))?;
                    parsed.overrides.into_iter().filter(|it| !it.has_ended(now)).collect()
                }
                Ok(parsed) => parsed.overrides,
                Err(problem) => ignored(&format!("{key} is invalid: {problem}")),
            },
            Err(error) => match connection.overrides_failure(keyspace, &error) {
                Failure::NoPermission(problem) | Failure::NoOverrides(problem) => ignored(&problem),
                failure => return Err(failure),
            },
        };
        Ok(Scan { connection, keyspace, inventory, overrides: InForce::new(overrides) })
    }

    /// As if these were the only overrides.
    pub(crate) fn with_overrides(
        connection: &'a Connection,
        keyspace: &'a Keyspace,
        inventory: &'a Inventory,
        overrides: Vec<Override>,
    ) -> Self {
        Scan { connection, keyspace, inventory, overrides: InForce::new(overrides) }
    }

    /// For a command that needs no numbers.
    pub(crate) fn without_overrides(
        connection: &'a Connection,
        keyspace: &'a Keyspace,
        inventory: &'a Inventory,
    ) -> Self {
        Scan { connection, keyspace, inventory, overrides: InForce::default() }
    }

    /// Calls `each` with every selected state: `None` if its value is not one. Returns the number of keys in the namespace that
    /// belong to no policy.
    pub(crate) async fn states(
        &self,
        selection: &Selection,
        mut progress: Progress,
        mut each: impl FnMut(&Kind, &str, Option<&KeyState>),
    ) -> Result<u64, Failure> {
        let (mut kinds, mut pending) = (Kinds::default(), Vec::new());
        let foreign = self
            .keys(selection, &mut progress, async |page| {
                for key in page {
                    let Some(pieces) = KeyPieces::split(&key) else { continue };
                    let kind = kinds.of(&pieces, self);
                    match kinds.list[kind].reading {
                        Some(reading) => pending.push((kind, (key, reading))),
                        None => each(&kinds.list[kind], &key, None),
                    }
                }
                if pending.len() >= AT_ONCE {
                    self.read(&kinds, &mut pending, &mut each).await?;
                }
                Ok(())
            })
            .await?;
        self.read(&kinds, &mut pending, &mut each).await?;
        Ok(foreign)
    }

    /// Calls `each` with the selected keys, many at a time. Returns the number of those that belong to no policy.
    pub(crate) async fn keys(
        &self,
        selection: &Selection,
        progress: &mut Progress,
        mut each: impl AsyncFnMut(Vec<String>) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let failed = |error| self.connection.failure(self.keyspace, &error);
        let encoded = selection.encoded(self.connection.namespace());
        let mut pages = self.keyspace.scan(encoded.pattern.clone()).await.map_err(failed)?;
        let namespace = self.connection.namespace();
        let own = [overrides_key(namespace), override_log_key(namespace), inventory_key(namespace)];
        let (mut found, mut foreign) = (0, 0);
        while let Some(mut page) = pages.next().await.map_err(failed)? {
            page.retain(|key| match KeyPieces::split(key) {
                Some(pieces) => encoded.has(&pieces),
                None => {
                    foreign += u64::from(!own.contains(key));
                    false
                }
            });
            found += page.len() as u64;
            each(page).await?;
            progress.show(pages.progress(), found);
        }
        Ok(foreign)
    }

    /// Returns what the selected keys are states of.
    pub(crate) async fn kinds(&self, selection: &Selection) -> Result<Vec<Kind>, Failure> {
        let mut kinds = Kinds::default();
        self.keys(selection, &mut Progress::new(), async |page| {
            for pieces in page.iter().filter_map(|key| KeyPieces::split(key)) {
                kinds.of(&pieces, self);
            }
            Ok(())
        })
        .await?;
        Ok(kinds.list)
    }

    /// Returns what keys the inventory says that calls of the selected attributes or limiters use. A limiter may have keys of other
    /// kinds. Those of an attribute are unknown if they depend on a number that is computed.
    pub(crate) fn declared(&self, selection: &Selection, limiters: bool) -> Vec<Kind> {
        let is_selected = |entry: &&Entry| {
            entry.prefix.is_none() == limiters && selection.has(entry.prefix.as_deref(), &entry.name)
        };
        let kind = |entry: &Entry| {
            let prefix = entry.prefix.as_ref().or(selection.prefix.as_ref()).cloned().unwrap_or_default();
            let parts = selection.parts.as_deref().and_then(encoded);
            let changed = self.overrides.of_key(&prefix, &entry.name, parts.as_deref());
            let reading = entry.reading(changed.as_ref().map(|changed| &*changed.entry))?;
            Some(Kind {
                shape: reading.shape(),
                function: entry.tag.clone(),
                has_parts: entry.key.is_some(),
                reading: Some(reading),
                switch: changed.as_ref().and_then(|changed| switch(&changed.entry)),
                is_overridden: changed.is_some_and(|changed| changed.is_of_key),
                is_in_force: true,
                name: entry.name.clone(),
                prefix,
            })
        };
        self.inventory.entries().filter(is_selected).filter_map(kind).collect()
    }

    /// Returns what overrides put a policy in.
    pub(crate) fn switch(&self, prefix: &str, name: &str) -> Option<&'static str> {
        switch(self.overrides.of_policy(prefix, name)?)
    }

    async fn read(
        &self,
        kinds: &Kinds,
        pending: &mut Vec<(usize, (String, Reading))>,
        each: &mut impl FnMut(&Kind, &str, Option<&KeyState>),
    ) -> Result<(), Failure> {
        let (of, keys): (Vec<usize>, Vec<(String, Reading)>) = pending.drain(..).unzip();
        let each = |i: usize, state: Option<KeyState>| {
            let kind = &kinds.list[of[i]];
            let state = state.map(|state| match kind.switch {
                Some("blocked") => KeyState {
                    limited: Some(true),
                    retry_after: None,
                    limit: Some(0),
                    remaining: Some(0),
                    ..state
                },
                Some(_) => KeyState { limited: Some(false), retry_after: None, ..state },
                None => state,
            });
            each(kind, &keys[i].0, state.as_ref());
        };
        let read = self.keyspace.read(&keys, each).await;
        read.map_err(|error| self.connection.failure(self.keyspace, &error))
    }
}

/// What has been found so far.
#[derive(Default)]
struct Kinds {
    by_head: HashMap<String, usize>,
    /// Those of keys with an override of their own, by their texts after the namespace.
    by_key: HashMap<String, usize>,
    list: Vec<Kind>,
}

impl Kinds {
    fn of(&mut self, pieces: &KeyPieces<'_>, scan: &Scan<'_>) -> usize {
        let parts = pieces.encoded_parts;
        let is_own = scan.overrides.have_keys()
            && scan.overrides.has_own(&path_of(pieces.prefix), &path_of(pieces.name), parts);
        let (kinds, text) = match parts.filter(|_| is_own) {
            Some(parts) => (&mut self.by_key, format!("{}:{parts}", pieces.head)),
            None => (&mut self.by_head, pieces.head.to_owned()),
        };
        if let Some(index) = kinds.get(&text) {
            return *index;
        }
        kinds.insert(text, self.list.len());
        let (prefix, name) = (path_of(pieces.prefix), path_of(pieces.name));
        let policy = scan.inventory.entry(&prefix, &name).and_then(|entry| entry.policy.as_ref());
        let changed = scan.overrides.of_key(&prefix, &name, parts.filter(|_| is_own));
        let changed = changed.as_ref().map(|changed| &*changed.entry);
        let (shape, reading) = (pieces.shape.to_owned(), Reading::of(pieces.shape, policy, changed));
        let switch = changed.and_then(switch);
        let numbers_changed = changed.is_some_and(|changed| !changed.numbers.is_empty());
        let is_of_literals = policy_of(&shape).is_some_and(|(_, has_numbers)| has_numbers);
        self.list.push(Kind {
            prefix,
            name,
            shape,
            function: pieces.function(),
            has_parts: pieces.encoded_parts.is_some(),
            reading,
            switch,
            is_overridden: is_own,
            is_in_force: !(numbers_changed && is_of_literals),
        });
        self.list.len() - 1
    }
}

impl Selection {
    /// Whether a policy is meant. A limiter may have any prefix.
    pub(crate) fn has(&self, prefix: Option<&str>, name: &str) -> bool {
        self.name.as_deref().is_none_or(|selected| selected == name)
            && self.prefix.as_deref().is_none_or(|selected| prefix.is_none_or(|prefix| prefix == selected))
    }

    fn encoded(&self, namespace: &str) -> Encoded {
        let text = |piece: &Option<String>| piece.clone().unwrap_or_default();
        let parts = self.parts.as_deref().unwrap_or_default();
        // The shape and the tag do not matter.
        let key = key_text(namespace, &text(&self.prefix), &text(&self.name), &"x", None, parts);
        let key = key.unwrap_or_default();
        let pieces = KeyPieces::split(&key);
        let piece = |of: fn(&KeyPieces<'_>) -> String| pieces.as_ref().map(of).unwrap_or_default();
        let namespace = glob(&piece(|pieces| pieces.namespace.to_owned()));
        let prefix = self.prefix.is_some().then(|| piece(|pieces| pieces.prefix.to_owned()));
        let name = self.name.is_some().then(|| piece(|pieces| pieces.name.to_owned()));
        let parts = self.parts.is_some().then(|| pieces?.encoded_parts.map(str::to_owned));
        let any = |piece: &Option<String>| piece.as_deref().map_or("*".to_owned(), glob);
        let tail = match &parts {
            None => String::new(),
            Some(None) => ":{*}".to_owned(),
            Some(Some(parts)) => format!(":{{*}}:{}", glob(parts)),
        };
        let pattern = match (&prefix, &name, &parts) {
            (None, None, None) => format!("{namespace}:*"),
            _ => format!("{namespace}:{}:{}:*{tail}", any(&prefix), any(&name)),
        };
        Encoded { pattern, prefix, name, parts }
    }
}

impl Encoded {
    /// Whether a key that matches the pattern is meant.
    fn has(&self, pieces: &KeyPieces<'_>) -> bool {
        self.prefix.as_deref().is_none_or(|prefix| prefix == pieces.prefix)
            && self.name.as_deref().is_none_or(|name| name == pieces.name)
            && self.parts.as_ref().is_none_or(|parts| parts.as_deref() == pieces.encoded_parts)
    }
}

/// Escapes what has a meaning in a pattern of Redis.
fn glob(text: &str) -> String {
    let escape = |char| {
        let is_special = matches!(char, '*' | '?' | '[' | ']' | '\\');
        is_special.then_some('\\').into_iter().chain([char])
    };
    text.chars().flat_map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(prefix: Option<&str>, name: Option<&str>, parts: Option<&[&str]>) -> String {
        let parts = parts.map(|parts| parts.iter().map(|part| (*part).to_owned()).collect());
        let selection = Selection { prefix: prefix.map(str::to_owned), name: name.map(str::to_owned), parts };
        selection.encoded("rl").pattern
    }

    #[test]
    fn patterns_are_of_encoded_pieces() {
        for (selected, expected) in [
            ((None, None, None), "rl:*"),
            ((None, Some("app::send"), None), "rl:*:app/send:*"),
            ((Some("sms"), Some("a::<T as X<[u8]>>::f"), None), r"rl:sms:a/<T%20as%20X<\[u8\]>>/f:*"),
            ((None, Some("a"), Some(&["u*", "a:b"][..])), r"rl:*:a:*:{*}:u\*:a%3Ab"),
            ((None, Some("a"), Some(&[][..])), "rl:*:a:*:{*}"),
        ] {
            assert_eq!(pattern(selected.0, selected.1, selected.2), expected);
        }
    }

    #[test]
    fn keys_that_only_match_the_pattern_are_not_meant() {
        let selection =
            Selection { name: Some("a".to_owned()), parts: Some(vec!["b".to_owned()]), prefix: None };
        let encoded = selection.encoded("rl");
        for (key, is_meant) in [
            ("rl::a:fw2-1:{x}:b", true),
            ("rl:p:a:fw2-1:{x}:b", true),
            ("rl::z:fw2-1:{x}:a:fw2-1:{x}:b", false),
            ("rl::a:fw2-1:{x}:{y}:b", false),
        ] {
            let pieces = KeyPieces::split(key).unwrap();
            assert_eq!(encoded.has(&pieces), is_meant, "{key}");
        }
    }
}
