//! The inventory, as a program writes it.

use ratelimits::{Error, Registry, count_limit, rate_limit, window_limit};
use serde_json::{Value, json};

use crate::command::{registry, run, run_with_input};
use crate::support::server::Server;

#[rate_limit(rate = "1/h", burst = 5, key = user, name = "inventory::bucket")]
#[window_limit(limit = 2, period = "1h", key = user, prefix = "log", name = "inventory::log")]
async fn search(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = plan, period = "1h", key = "<user>:<plan>", name = "inventory::plan")]
async fn send(user: u64, plan: u64) -> Result<(), Error> {
    Ok(())
}

async fn some_calls(registry: &Registry) {
    registry
        .scope(async {
            for _ in 0..2 {
                search(7).await.unwrap();
            }
            send(7, 10).await.unwrap();
        })
        .await;
}

#[tokio::test]
async fn inventory_of_a_program_is_read() {
    let server = Server::shared();
    let url = server.url();
    some_calls(&registry(&url, "inventory").await).await;
    let inventory = serde_json::to_string(&ratelimits::policies()).unwrap();
    let listed =
        run_with_input(&url, &["list", "--json", "--namespace", "inventory", "--inventory", "-"], &inventory);
    let listed = listed.json();
    let counts = |row: &Value| json!([row["policy"], row["keys"], row["limited"], row["unknown"]]);
    let policies = listed["policies"].as_array().unwrap().iter();
    // Other tests have policies, too.
    let policies = policies.filter(|row| row["policy"].as_str().unwrap().starts_with("inventory::"));
    let counts: Vec<Value> = policies.map(counts).collect();
    assert_eq!(
        counts,
        [
            json!(["inventory::bucket", 1, 0, 0]),
            json!(["inventory::log", 1, 1, 0]),
            json!(["inventory::plan", 1, 0, 1]),
        ]
    );

    let peek = ["peek", "--json", "--namespace", "inventory", "inventory::plan", "7", "10"];
    let state =
        &run_with_input(&url, &[&peek[..], &["--inventory", "-"]].concat(), &inventory).json()["states"][0];
    assert_eq!((&state["used"], &state["limit"]), (&json!(1), &Value::Null), "{state}");
}

#[test]
fn invalid_inventories_are_errors() {
    let policy = |arguments: &str| {
        let policy = json!({"name": "app::a", "attribute": "rate_limit", "algorithm": "token bucket", "arguments": arguments});
        json!([policy]).to_string()
    };
    for (inventory, problem) in [
        ("no JSON", "`serde_json::to_string(&ratelimits::policies())`"),
        (r#"{"name": "a"}"#, "`serde_json::to_string(&ratelimits::policies())`"),
        (r#"[{"name": "a"}]"#, "missing field"),
        (&policy("rate = 0"), "app::a: rate_limit(rate = 0)"),
    ] {
        let listed = run_with_input("redis://127.0.0.1:1", &["list", "--inventory", "-"], inventory);
        assert_eq!(listed.code, 2, "{listed:?}");
        assert!(
            listed.err.starts_with("error: the inventory -: ") && listed.err.contains(problem),
            "{listed:?}"
        );
    }
    let listed = run("redis://127.0.0.1:1", &["list", "--inventory", "/no/such/file"]);
    assert_eq!(listed.code, 2, "{listed:?}");
    assert!(listed.err.contains("/no/such/file"), "{listed:?}");
}
