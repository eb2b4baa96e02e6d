//! Run with `cargo run -p examples --example per-user-key`: keys from arguments and from the request context.

use ratelimits::{Error, RequestContext, count_limit};

struct Message {
    room: String,
    author: u64,
}

/// Counts by the fields of an argument. They are checked by the compiler: `message.autor` is an error.
#[count_limit(limit = 2, period = "1m", key = (message.room, message.author))]
async fn post(message: &Message) -> Result<(), Error> {
    Ok(())
}

/// The same key as a template.
#[count_limit(limit = 2, period = "1m", key = "<message.room>:<message.author>")]
async fn edit(message: &Message) -> Result<(), Error> {
    Ok(())
}

/// Counts by the user or address in the request context, which middleware sets.
#[count_limit(limit = 2, period = "1m", key = "<@user_or_ip>")]
async fn search(words: &str) -> Result<(), Error> {
    println!("  searching for {words}");
    Ok(())
}

#[tokio::main]
async fn main() {
    let message = |room: &str, author| Message { room: room.to_owned(), author };
    for (room, author) in [("rust", 7), ("rust", 7), ("rust", 7), ("rust", 8), ("redis", 7)] {
        println!("author {author} posts in {room}: {}", outcome(post(&message(room, author)).await));
    }
    for _ in 0..3 {
        println!("author 7 edits in rust: {}", outcome(edit(&message("rust", 7)).await));
    }

    let ann = || RequestContext::new().with_user("ann");
    for words in ["limits", "buckets", "windows"] {
        println!("ann searches: {}", outcome(ann().scope(search(words)).await));
    }
    println!("anonymous search: {}", outcome(search("limits").await));
}

fn outcome(result: Result<(), Error>) -> String {
    match result {
        Ok(()) => "admitted".to_owned(),
        Err(error) if error.is_limited() => "limited".to_owned(),
        Err(error) => format!("refused: {error}"),
    }
}
