use ratelimits::count_limit;

fn f() -> u32 {
    0
}

#[count_limit(5, "1m", fallback = f())]
async fn called() -> u32 {
    f()
}

#[count_limit(5, "1m", fallback = "no path")]
async fn no_path() -> u32 {
    f()
}

#[count_limit(5, "1m", fallback = self.f)]
async fn no_receiver() -> u32 {
    f()
}

#[count_limit(5, "1m", pass_args)]
async fn no_fallback() -> Result<u32, ratelimits::Error> {
    Ok(f())
}

fn main() {}
