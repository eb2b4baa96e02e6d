//! A headless Chromium, driven by WebDriver.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

const MISSING: &str = "Chromium and its driver are needed; on Debian: apt-get install chromium chromium-driver, or run ./test.sh";

/// How long a page may take to show something, on a machine that is busy with other tests.
const WITHIN: Duration = Duration::from_secs(60);

/// A key of a keyboard, as WebDriver writes it.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";

/// A browser with one page. Ends when dropped.
pub(crate) struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    profile: PathBuf,
}

impl Browser {
    pub(crate) async fn open(url: &str) -> Self {
        Browser::open_with(url, &[]).await
    }

    /// Opens a page in a browser with these arguments.
    pub(crate) async fn open_with(url: &str, arguments: &[&str]) -> Self {
        // The port that it picks may be taken before it listens; it ends then.
        let (driver, port) = (0..5).find_map(|_| start_driver()).expect("chromedriver names its port");
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let profile =
            format!("ratelimits-browser-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let profile = std::env::temp_dir().join(profile);
        let address = ([127, 0, 0, 1], port).into();
        let mut browser = Browser { driver, address, session: String::new(), profile };
        browser.session = browser.start(arguments).await;
        browser.command("url", json!({ "url": url })).await;
        browser
    }

    /// Starts the browser. Returns the path of its session.
    async fn start(&self, arguments: &[&str]) -> String {
        let profile = format!("--user-data-dir={}", self.profile.display());
        let usual = [
            "--headless",
            // The pages are those of the tests.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1200,1000",
            &profile,
        ];
        let arguments = [&usual, arguments].concat();
        let capabilities = json!({ "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
            "timeouts": { "script": 2 * WITHIN.as_millis() as u64 },
        } });
        let started = self.post("/session", json!({ "capabilities": capabilities })).await;
        format!("/session/{}", started["sessionId"].as_str().expect(MISSING))
    }

    /// Returns the value of an expression on the page.
    pub(crate) async fn value(&self, expression: &str) -> Value {
        self.command("execute/sync", json!({ "script": format!("return {expression};"), "args": [] })).await
    }

    /// Waits until an expression on the page is true.
    pub(crate) async fn wait_until(&self, expression: &str) {
        let within = WITHIN.as_millis();
        let promise = format!(
            "new Promise(resolve => {{
                const end = Date.now() + {within};
                const check = () => {{
                    if ({expression}) resolve(null);
                    else if (Date.now() > end) resolve(document.body.innerText);
                    else setTimeout(check, 20);
                }};
                check();
            }})"
        );
        if let Value::String(shown) = self.value(&promise).await {
            panic!("not within {WITHIN:?}: {expression}\nThe page: {shown}");
        }
    }

    /// Shows the page on a screen of this width, in pixels.
    pub(crate) async fn set_width(&self, width: u32) {
        let params = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": true });
        let command = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": params });
        self.command("goog/cdp/execute", command).await;
    }

    /// Presses keys, one after another.
    pub(crate) async fn press(&self, keys: &str) {
        let press =
            |key: char| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }));
        let actions: Vec<_> = keys.chars().flat_map(press).collect();
        self.command(
            "actions",
            json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }),
        )
        .await;
    }

    /// Returns what the console got since the last time: errors of scripts, violations of the security policy, failed requests.
    pub(crate) async fn console(&self) -> Vec<Value> {
        let entries = self.command("se/log", json!({ "type": "browser" })).await;
        entries.as_array().unwrap().clone()
    }

    async fn command(&self, command: &str, arguments: Value) -> Value {
        self.post(&format!("{}/{command}", self.session), arguments).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (address, to) = (self.address, path.to_owned());
        let reply = tokio::task::spawn_blocking(move || request(address, "POST", &to, &body.to_string()));
        let mut reply: Value = serde_json::from_str(&reply.await.unwrap().unwrap()).unwrap();
        assert!(reply["value"].get("error").is_none(), "{path}: {reply}");
        reply["value"].take()
    }
}

/// Sends a request to the driver. Returns the body of the reply, after which the driver leaves the connection open.
fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(3 * WITHIN))?;
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n{body}")?;
    let (mut reader, mut length) = (BufReader::new(stream), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    String::from_utf8(body).map_err(io::Error::other)
}

/// Starts what drives the browser, and returns it with its port, unless it ends before it has one.
fn start_driver() -> Option<(Child, u16)> {
    let mut driver =
        Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn().expect(MISSING);
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port =
        |line: String| line.split_once("started successfully on port ")?.1.trim_end_matches('.').parse().ok();
    match lines.map_while(Result::ok).find_map(port) {
        Some(port) => Some((driver, port)),
        None => {
            driver.wait().expect("it has ended");
            None
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser, which the end of its driver would not.
        _ = request(self.address, "DELETE", &self.session, "");
        _ = self.driver.kill();
        _ = self.driver.wait();
        _ = fs::remove_dir_all(&self.profile);
    }
}
