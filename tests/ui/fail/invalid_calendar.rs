use ratelimits::{Error, count_limit, window_limit};

#[count_limit(5, "month", aligned)]
async fn aligned() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1d", zone = "Europe/Berlin")]
async fn zone_without_a_calendar() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, month)]
async fn without_quotes() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "Months")]
async fn plural() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1 month")]
async fn numbered() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "2weeks")]
async fn several() -> Result<(), Error> {
    Ok(())
}

#[window_limit(5, "month")]
async fn sliding() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "month", zone = 2)]
async fn offset() -> Result<(), Error> {
    Ok(())
}

#[count_limit(0, "month", zone = "Europe/Berlin")]
async fn nothing() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "mounth")]
async fn misspelled() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "month", zone = hours)]
async fn zone_of_wrong_type(hours: i8) -> Result<(), Error> {
    Ok(())
}

fn main() {}
