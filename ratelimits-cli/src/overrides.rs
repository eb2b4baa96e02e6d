//! `ratelimits override`.

mod known;
mod setting;

use clap::{Args, Subcommand};
use ratelimit_runtime::inspect::Keyspace;
use ratelimit_runtime::overrides::{Override, Value, parse};
use serde_json::{Map, json};

use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};
use crate::inventory::InventoryFile;
use crate::message::write_message;
use crate::output::{write, write_json};
use known::Known;
use setting::Setting;

/// How often another change of the overrides is tolerated.
const ATTEMPTS: usize = 5;

/// Change the numbers of policies, put them in shadow, or turn them off, without a restart.
///
/// The overrides are in Redis. Programs apply them within three seconds if their registries are made with
/// `Registry::builder().overrides_in_redis()`.
#[derive(Debug, Subcommand)]
pub(crate) enum Overrides {
    Set(Set),
    Show(Show),
    Clear(Clear),
}

/// Change a policy. Replaces what was changed of it before.
///
/// The policy is one of the inventory, or one that has keys.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Set {
    /// The name of the policy, as in the code: `app::send`, or with its prefix `sms:app::send`.
    policy: String,
    /// Numbers as in the attribute, `shadow=true` or `off=true`: rate=100/min burst=20.
    #[arg(required = true, value_name = "SETTING")]
    settings: Vec<Setting>,
    #[command(flatten)]
    inventory: InventoryFile,
    #[command(flatten)]
    connection: Connection,
}

/// Show what is changed.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Show {
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Change a policy no longer.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Clear {
    /// The name of the policy, as in `override show`.
    #[arg(required_unless_present = "all")]
    policy: Option<String>,
    /// Change no policy any longer.
    #[arg(long, conflicts_with = "policy")]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Overrides {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Overrides::Set(set) => set.run().await,
            Overrides::Show(show) => show.run().await,
            Overrides::Clear(clear) => clear.run().await,
        }
    }
}

impl Set {
    async fn run(self) -> Result<(), Failure> {
        let inventory = self.inventory.read()?;
        let change = setting::override_of(&self.policy, &self.settings);
        if change.settings().is_empty() {
            let problem =
                "this changes nothing; write a number, shadow=true or off=true, or use `override clear`";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let keyspace = self.connection.open().await?;
        let (_, text) = read(&self.connection, &keyspace).await?;
        let others = parse_all(&text)?;
        let known = Known::read(&self.connection, &keyspace, &inventory, &change, &others).await?;
        update(&self.connection, &keyspace, |overrides| {
            overrides.retain(|other| other.policy != change.policy);
            known.check(&change, overrides)?;
            overrides.push(change.clone());
            Ok(())
        })
        .await?;
        write(&change.to_string())
    }
}

impl Show {
    async fn run(self) -> Result<(), Failure> {
        let keyspace = self.connection.open().await?;
        let (version, text) = read(&self.connection, &keyspace).await?;
        let overrides = parse_all(&text)?;
        if !self.json {
            if overrides.is_empty() {
                write_message("no overrides");
            }
            return write(&text_of(&overrides));
        }
        let overrides: Map<_, _> = overrides.iter().map(|it| (it.policy.clone(), json_of(it))).collect();
        write_json(&json!({"version": version, "overrides": overrides}))
    }
}

impl Clear {
    async fn run(self) -> Result<(), Failure> {
        let keyspace = self.connection.open().await?;
        let Some(policy) = &self.policy else {
            // Also those that cannot be read, and those that Redis has lost: programs keep them until there is a version again.
            let (version, text) = read(&self.connection, &keyspace).await?;
            return match text.is_empty() && !version.is_empty() {
                true => Err(Failure::NoSuchKey("there are no overrides".to_owned())),
                false => replace(&self.connection, &keyspace, |_| Ok(String::new())).await,
            };
        };
        update(&self.connection, &keyspace, |overrides| {
            let before = overrides.len();
            overrides.retain(|other| other.policy != *policy);
            if overrides.len() == before {
                return Err(Failure::NoSuchKey(format!(
                    "`{policy}` has no override; `override show` lists them"
                )));
            }
            Ok(())
        })
        .await
    }
}

async fn read(connection: &Connection, keyspace: &Keyspace) -> Result<(String, String), Failure> {
    let read = keyspace.overrides(&connection.namespace).await;
    read.map_err(|error| connection.overrides_failure(keyspace, &error))
}

/// Changes the overrides, those of all policies.
async fn update(
    connection: &Connection,
    keyspace: &Keyspace,
    change: impl Fn(&mut Vec<Override>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    replace(connection, keyspace, |text| {
        let mut overrides = parse_all(text)?;
        change(&mut overrides)?;
        overrides.sort_by(|one, other| one.policy.cmp(&other.policy));
        Ok(text_of(&overrides))
    })
    .await
}

/// Replaces the text of the overrides, again if somebody else does so at the same time.
async fn replace(
    connection: &Connection,
    keyspace: &Keyspace,
    change: impl Fn(&str) -> Result<String, Failure>,
) -> Result<(), Failure> {
    for _ in 0..ATTEMPTS {
        let (version, text) = read(connection, keyspace).await?;
        let replaced = keyspace.replace_overrides(&connection.namespace, &version, &change(&text)?).await;
        if replaced.map_err(|error| connection.overrides_failure(keyspace, &error))? {
            return Ok(());
        }
    }
    Err(Failure::Redis("the overrides change all the time; try again".to_owned()))
}

fn parse_all(text: &str) -> Result<Vec<Override>, Failure> {
    let invalid = |problem: &str| {
        Failure::Redis(format!(
            "the overrides in Redis are invalid: {problem}\nDelete them: ratelimits override clear --all"
        ))
    };
    let parsed = parse(text).map_err(|problem| invalid(&problem))?;
    if parsed.problems.is_empty() { Ok(parsed.overrides) } else { Err(invalid(&parsed.problems.join("; "))) }
}

fn text_of(overrides: &[Override]) -> String {
    overrides.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn json_of(it: &Override) -> serde_json::Value {
    let mut settings = Map::new();
    for (argument, value) in &it.numbers {
        let value = match value {
            Value::Integer(integer) => json!(integer),
            Value::Float(float) => json!(float),
            Value::Text(text) => json!(text),
        };
        settings.insert(argument.clone(), value);
    }
    if let Some(shadow) = it.shadow {
        settings.insert("shadow".to_owned(), json!(shadow));
    }
    if it.off {
        settings.insert("off".to_owned(), json!(true));
    }
    settings.into()
}
