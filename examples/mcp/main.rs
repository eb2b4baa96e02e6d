//! Run with `cargo run -p mcp-examples --example mcp`: what the clients of an MCP server read when its tools are limited.

mod http;
mod tools;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http_body_util::BodyExt;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};
use tower::ServiceExt as _;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    println!("over stdio:");
    // In place of the pipes between two processes.
    let (ours, theirs) = tokio::io::duplex(4096);
    let (server, client) = tokio::join!(tools::Articles.serve(theirs), ().serve(ours));
    let (_server, client) = (server?, client?);
    let arguments = json!({ "words": "rust" });
    let call = CallToolRequestParams::new("search")
        .with_arguments(arguments.as_object().cloned().unwrap_or_default());
    for _ in 0..4 {
        println!("  {}", serde_json::to_value(client.call_tool(call.clone()).await?)?);
    }

    println!("over HTTP:");
    for user in ["ann", "ann", "ann", "ann", "bob"] {
        println!("  {user}: {}", call_over_http(user).await?);
    }
    Ok(())
}

/// What a user's client gets.
async fn call_over_http(user: &str) -> Result<Value> {
    let params = json!({ "name": "search", "arguments": { "words": "rust" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = Request::post("/mcp")
        .header(HOST, "localhost")
        .header(AUTHORIZATION, format!("Bearer token-of-{user}"))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .body(Body::from(call.to_string()))?;
    let response = http::app().oneshot(request).await?;
    let reply: Value = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
    Ok(reply["result"].clone())
}
