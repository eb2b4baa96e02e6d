//! Run with `cargo run -p examples --example language-model`: three tenants call a language model, within its tokens a second.

use std::time::{Duration, Instant};

use ratelimits::{Error, Registry, TokenBucket, install, rate_limit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What the provider allows, and what a call usually uses of it. Some use four times as much.
const TOKENS_A_SECOND: u64 = 20_000;
const BURST: u64 = 5_000;
const USUAL: u64 = 500;

type Outcome = Result<Answer, Box<dyn std::error::Error + Send + Sync>>;

enum Answer {
    /// How many tokens the call has used.
    Tokens(u64),
    /// The provider's 429.
    TooManyRequests,
}

/// Waits for tokens of the provider, and of the tenant, of which each gets at most half.
#[rate_limit(rate = TOKENS_A_SECOND, burst = BURST, key = server, cost = USUAL, timeout = "10s", settle = used)]
#[rate_limit(rate = TOKENS_A_SECOND / 2, burst = BURST, key = tenant, cost = USUAL, timeout = "10s", settle = used)]
async fn complete(server: &str, tenant: &str, prompt: &str) -> Outcome {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(prompt.as_bytes()).await?;
    stream.shutdown().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.parse().map_or(Answer::TooManyRequests, Answer::Tokens))
}

/// What a call has used. One that was not answered used nothing.
fn used(out: &Outcome) -> u64 {
    match out {
        Ok(Answer::Tokens(tokens)) => *tokens,
        _ => 0,
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    install(Registry::in_memory())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?.to_string();
    tokio::spawn(provider(listener));

    let (began, mut calls) = (Instant::now(), JoinSet::new());
    for i in 0..150_usize {
        let (server, tenant) = (server.clone(), ["ann", "bob", "ida"][i % 3]);
        calls.spawn(async move { (tenant, complete(&server, tenant, &format!("prompt {i}")).await) });
    }
    let (mut tokens, mut refused) = ([("ann", 0), ("bob", 0), ("ida", 0)], 0);
    while let Some(call) = calls.join_next().await {
        match call? {
            (tenant, Ok(Answer::Tokens(used))) => {
                let of = tokens.iter_mut().find(|(name, _)| *name == tenant).ok_or("an unknown tenant")?;
                of.1 += used;
            }
            (_, Ok(Answer::TooManyRequests)) => refused += 1,
            (tenant, Err(error)) => println!("{tenant}: {error}"),
        }
    }
    let took = began.elapsed();
    tokens.iter().for_each(|(tenant, tokens)| println!("{tenant}: {tokens} tokens"));
    let total: u64 = tokens.iter().map(|(_, tokens)| tokens).sum();
    println!("{:.0} tokens a second of {TOKENS_A_SECOND}", total as f64 / took.as_secs_f64());
    println!("the provider refused {refused} calls");
    Ok(())
}

/// A model that answers in its own time, with the tokens that it used. It allows a larger burst than its clients take.
async fn provider(listener: TcpListener) -> Result<(), Error> {
    let policy = TokenBucket::per_second(TOKENS_A_SECOND).burst(4 * BURST);
    let limiter = Registry::in_memory().limiter("provider", policy)?;
    // From a quarter of what is usual to four times as much.
    let mut uses = [125, 250, 250, 500, 375, 125, 2_000, 375].into_iter().cycle();
    while let (Ok((mut stream, _)), Some(tokens)) = (listener.accept().await, uses.next()) {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            stream.read_to_end(&mut Vec::new()).await?;
            let answer = match limiter.try_acquire_n((), tokens).await {
                Ok(_) => tokens.to_string(),
                Err(_) => "429 Too Many Requests".to_owned(),
            };
            tokio::time::sleep(Duration::from_millis(20 + tokens / 10)).await;
            stream.write_all(answer.as_bytes()).await
        });
    }
    Ok(())
}
