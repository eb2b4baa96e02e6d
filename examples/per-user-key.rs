//! Who is counted: keys from arguments, and from the request. Run it with: cargo run --example per-user-key

use ratelimits::{Error, RequestContext, count_limit};

struct Message {
    room: String,
    author: u64,
}

/// By an argument's fields. The compiler checks them: `message.autor` does not build.
#[count_limit(limit = 2, period = "1m", key = (message.room, message.author))]
async fn post(message: &Message) -> Result<(), Error> {
    Ok(())
}

/// The same as a template, as the annotations of other languages have it.
#[count_limit(limit = 2, period = "1m", key = "<message.room>:<message.author>")]
async fn edit(message: &Message) -> Result<(), Error> {
    Ok(())
}

/// By who makes the request, which a middleware has put into the context.
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
    println!("somebody searches: {}", outcome(search("limits").await));
}

fn outcome(result: Result<(), Error>) -> String {
    match result {
        Ok(()) => "admitted".to_owned(),
        Err(error) if error.is_limited() => "limited".to_owned(),
        Err(error) => format!("refused: {error}"),
    }
}
