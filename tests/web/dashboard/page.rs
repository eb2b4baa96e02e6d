//! The page in a browser.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use ratelimits::{FixedWindow, Registry};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{HOUR, enter, once, open};
use crate::axum::serve;
use crate::browser::{Browser, ENTER, TAB};
use crate::client::Client;
use crate::service::{BOB, Service, until_limited};

/// A row of the table of policies by its name.
fn row(policy: &str) -> String {
    let policy = json!(policy);
    format!(
        "[...document.querySelectorAll('#policies tbody tr')].find(row => row.querySelector('.name').textContent === {policy})"
    )
}

/// Whether the row of a policy has these totals: admitted, limited and waited.
fn has_totals(policy: &str, totals: [u64; 3]) -> String {
    let row = row(policy);
    let totals = json!(totals.map(|total| format!("{total} total")));
    format!(
        "JSON.stringify([...{row}?.querySelectorAll('.number small') ?? []].map(it => it.textContent)) === '{totals}'"
    )
}

fn text_of(selector: &str) -> String {
    format!("document.querySelector('{selector}').textContent")
}

/// The names of the policies, in the order of the table, if they begin like this.
async fn order(browser: &Browser, prefix: &str) -> Value {
    let names = "[...document.querySelectorAll('#policies .name')].map(it => it.textContent)";
    browser.value(&format!("{names}.filter(name => name.startsWith('{prefix}'))")).await
}

/// Moves the focus forwards until the focused element satisfies an expression about `it`.
async fn tab_to(browser: &Browser, expression: &str) {
    for _ in 0..50 {
        browser.press(TAB).await;
        if browser.value(&format!("(it => {expression})(document.activeElement)")).await == json!(true) {
            let outline = "getComputedStyle(document.activeElement).outlineStyle";
            assert_eq!(browser.value(outline).await, "solid", "the focus is visible");
            return;
        }
    }
    panic!("no element is {expression}");
}

async fn assert_no_errors(browser: &Browser) {
    let console = browser.console().await;
    assert!(console.is_empty(), "{console:?}");
}

#[tokio::test]
async fn the_page_shows_the_traffic_of_the_service() {
    let service = Service::start("10.0.0.0/8");
    let read = async || service.client.get("/articles/7", &[]).await;
    let search = async || service.client.get("/search?cats", &[BOB]).await;
    let (reads, _) = until_limited(read).await;
    let (searches, _) = until_limited(search).await;

    let browser = Browser::open(&format!("http://{}/limits", service.client.0)).await;
    browser.wait_until(&has_totals("reads", [reads, 1, 0])).await;
    browser.wait_until(&has_totals("searches", [searches, 1, 0])).await;
    browser.wait_until(&has_totals("flood", [reads + searches + 2, 0, 0])).await;
    browser.wait_until(&has_totals("uploads", [0, 0, 0])).await;

    // While the page is open.
    let mut limited = 1;
    for _ in 0..5 {
        limited += u64::from(search().await.status == 429);
    }
    let all = searches + 1 + 5;
    browser.wait_until(&has_totals("searches", [all - limited, limited, 0])).await;
    let message = async |text: &str| service.client.post("/messages", &[BOB], text).await.status;
    assert_eq!(tokio::join!(message("one"), message("two")), (202, 202));
    browser.wait_until(&has_totals("messages", [2, 0, 1])).await;

    let keys = "[...document.querySelectorAll('#keys tbody tr')].map(row => [...row.children].map(it => it.textContent))";
    let keys = browser.value(keys).await;
    let (first, second) = (&keys[0], &keys[1]);
    assert_eq!((&first[1], &first[2]), (&json!("searches"), &json!(limited.to_string())), "{keys}");
    assert_eq!((&second[1], &second[2]), (&json!("reads"), &json!("1")), "{keys}");
    let hash = first[0].as_str().unwrap();
    assert!(hash.len() == 16 && u64::from_str_radix(hash, 16).is_ok(), "{keys}");

    let page = browser.value("document.body.innerText").await;
    let page = page.as_str().unwrap();
    for text in [
        "Limits are decided in this process.",
        "#[rate_limit(rate = \"60/min\", burst = 20)] by <@ip>",
        "examples/web/service/articles.rs:",
        "a limiter or a layer",
        "Healthy",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert!(!page.contains("bob") && !page.contains("Reset"), "{page}");
    assert_no_errors(&browser).await;
}

#[tokio::test]
async fn the_page_suggests_numbers_once_they_are_known() {
    let dashboard = open();
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    let Client(address) = serve(Router::new().nest_service("/limits", dashboard.router(&registry))).await;
    let millis = Duration::from_millis(1);
    let limiter = registry.limiter("suggested", FixedWindow::new(4, millis)).unwrap();
    let browser = Browser::open(&format!("http://{address}/limits")).await;
    let suggested = format!("{}?.querySelector('.suggestion')?.textContent", row("suggested"));
    limiter.try_acquire(0).await.unwrap();
    let unknown = "refuses at most 0.1 %: not known, 19999 more calls are needed";
    browser.wait_until(&format!("{suggested} === '{unknown}'")).await;
    // No key calls twice, so one call in a window is enough.
    for key in 1..20_000 {
        limiter.try_acquire(key).await.unwrap();
    }
    tokio::time::sleep(10 * millis).await;
    limiter.try_acquire(20_000).await.unwrap();
    let known = "refuses at most 0.1 %: limit = 1, period = \"1ms\" by 20,001 calls of ";
    browser.wait_until(&format!("{suggested}?.startsWith('{known}')")).await;
    assert_no_errors(&browser).await;
}

#[tokio::test]
async fn the_page_is_used_by_keyboard() {
    let dashboard = open().may_reset(|_| true).keep_keys();
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    let page = dashboard.router(&registry);
    let Client(address) = serve(Router::new().nest_service("/limits", page)).await;
    // Names may come from user input.
    let names = ["page-a <img src=x onerror=alert(1)>", "page-b", "page-c"];
    for (calls, name) in names.into_iter().enumerate() {
        let limiter = registry.limiter(name, FixedWindow::new(10, HOUR)).unwrap();
        for _ in 0..=calls {
            limiter.try_acquire("<b>key</b>").await.unwrap();
        }
    }
    for _ in 0..3 {
        _ = registry.scope(enter("ann <b>", 7)).await;
    }
    let browser = Browser::open(&format!("http://{address}/limits")).await;
    browser.wait_until(&has_totals("page-c", [3, 0, 0])).await;
    browser.wait_until(&has_totals("web:dashboard-rooms", [2, 1, 0])).await;
    assert_eq!(browser.value("document.querySelectorAll('img, b').length").await, 0);
    assert_eq!(browser.value(&text_of("#keys tbody th")).await, "ann <b> · 7");

    tab_to(&browser, "it.id === 'pause'").await;
    browser.press(ENTER).await;
    browser.wait_until("document.querySelector('#updated').textContent.startsWith('Paused.')").await;
    assert_eq!(browser.value(&text_of("#pause")).await, "Resume updates");
    assert_eq!(browser.value(&text_of("#announcement")).await, "Updates are paused");
    registry.limiter(names[1], FixedWindow::new(10, HOUR)).unwrap().try_acquire("key").await.unwrap();

    let sort = async |by: &str| {
        tab_to(&browser, &format!("it.dataset.sort === '{by}'")).await;
        browser.press(ENTER).await;
        browser
            .value(
                "document.querySelector('[aria-sort]').ariaSort + ' ' + document.activeElement.dataset.sort",
            )
            .await
    };
    assert_eq!(sort("name").await, "ascending name");
    assert_eq!(order(&browser, "page-").await, json!(names));
    assert_eq!(sort("admitted").await, "descending admitted");
    assert_eq!(order(&browser, "page-").await, json!([names[2], names[1], names[0]]));
    browser.press(ENTER).await;
    assert_eq!(browser.value("document.querySelector('[aria-sort]').ariaSort").await, "ascending");
    assert_eq!(order(&browser, "page-").await, json!(names));

    // Paused until here, so the last call is not shown yet.
    assert_eq!(browser.value(&has_totals(names[1], [2, 0, 0])).await, true);
    tab_to(&browser, "it.id === 'pause'").await;
    browser.press(ENTER).await;
    browser.wait_until(&has_totals(names[1], [3, 0, 0])).await;

    tab_to(&browser, "it.tagName === 'SELECT'").await;
    browser.press("web:dashboard-rooms").await;
    tab_to(&browser, "it.tagName === 'TEXTAREA'").await;
    browser.press(&format!("ann <b>{ENTER}7")).await;
    for expected in
        ["Reset this key of web:dashboard-rooms.", "This key of web:dashboard-rooms had used nothing."]
    {
        tab_to(&browser, "it.form && it.textContent === 'Reset'").await;
        browser.press(ENTER).await;
        browser.wait_until(&format!("{} === '{expected}'", text_of("#reset output"))).await;
    }
    for _ in 0..2 {
        registry.scope(enter("ann <b>", 7)).await.unwrap();
    }

    tab_to(&browser, "it.ariaLabel === 'Reset ann <b> · 7 of dashboard-rooms'").await;
    browser.press(ENTER).await;
    browser
        .wait_until(&format!("{} === 'Reset this key of dashboard-rooms.'", text_of("#keys output")))
        .await;
    registry.scope(enter("ann <b>", 7)).await.unwrap();

    // The field has 30s, which is replaced.
    tab_to(&browser, "it.tagName === 'INPUT' && it.value === '30s'").await;
    browser.press(&format!("1h{ENTER}")).await;
    let is_paused = "is paused for 60 min.";
    let said = |id: &str, policy: &str| format!("{} === 'This key of {policy} {is_paused}'", text_of(id));
    browser.wait_until(&said("#reset output", "web:dashboard-rooms")).await;
    registry.scope(enter("ann <b>", 7)).await.unwrap_err();
    browser
        .wait_until("document.querySelector('#keys tbody .badge')?.textContent === 'paused, 60 min left'")
        .await;
    tab_to(&browser, "it.ariaLabel === 'Pause ann <b> · 7 of dashboard-rooms for 1h'").await;
    browser.press(ENTER).await;
    browser.wait_until(&said("#keys output", "dashboard-rooms")).await;
    tab_to(&browser, "it.ariaLabel === 'Reset ann <b> · 7 of dashboard-rooms'").await;
    browser.press(ENTER).await;
    browser.wait_until("!document.querySelector('#keys tbody .badge')").await;
    registry.scope(enter("ann <b>", 7)).await.unwrap();
    assert_no_errors(&browser).await;
}

#[tokio::test]
async fn the_page_shows_overrides_outages_and_an_absent_server() {
    let file = std::env::temp_dir().join(format!("ratelimits-dashboard-{}.toml", std::process::id()));
    fs::write(&file, "[dashboard-once]\nlimit = 5\nshadow = true\n").unwrap();
    let dashboard = open();
    let observed = Registry::builder().observer(dashboard.observer()).overrides(&file);
    let registry = observed.connect_lazy("redis://127.0.0.1:1").unwrap();
    let app = Router::new().nest_service("/limits", dashboard.router(&registry));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let server = Runtime::new().unwrap();
    server.spawn(async { axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await });

    let browser = Browser::open(&format!("http://{address}/limits")).await;
    let contains =
        |id: &str, text: &str| format!("document.querySelector('#{id}').innerText.includes({})", json!(text));
    browser.wait_until(&contains("overrides", "limit = 5, shadow = true")).await;
    assert_eq!(
        browser.value(&format!("{}.querySelectorAll('.badge').length", row("dashboard-once"))).await,
        2
    );
    browser.wait_until(&contains("policies", "in force: limit = 5, shadow = true")).await;
    browser.wait_until(&contains("place", "Limits are decided in Redis at 127.0.0.1:1 (single).")).await;
    browser.wait_until(&contains("policies", "No calls yet.")).await;
    browser.wait_until(&contains("store", "Healthy")).await;
    registry.scope(once()).await.unwrap();
    browser.wait_until(&contains("store", "Outage")).await;
    browser.wait_until(&contains("health", "1 outage, 1 failed decision;")).await;
    browser.wait_until("document.title.startsWith('(!)')").await;

    fs::write(&file, "[dashboard-once]\nlimit = 0\n").unwrap();
    browser.wait_until(&contains("problems", "dashboard-once")).await;
    browser.wait_until(&contains("overrides", "None.")).await;
    fs::write(&file, "# none\n").unwrap();
    browser.wait_until("document.querySelector('#problems').hidden").await;
    fs::remove_file(file).unwrap();
    assert_no_errors(&browser).await;

    server.shutdown_background();
    browser.wait_until(&contains("updated", "The server does not answer.")).await;
    assert_eq!(browser.value("document.body.className").await, "stale");
    assert_eq!(browser.value(&text_of("#announcement")).await, "The server does not answer.");
}

#[tokio::test]
async fn the_page_fits_a_narrow_screen() {
    let dashboard = open().may_reset(|_| true).keep_keys();
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    let Client(address) = serve(Router::new().nest_service("/limits", dashboard.router(&registry))).await;
    for _ in 0..3 {
        _ = registry.scope(enter(&"a-key-without-any-blanks".repeat(9), 7)).await;
    }
    let browser = Browser::open(&format!("http://{address}/limits/")).await;
    browser.wait_until(&has_totals("web:dashboard-rooms", [2, 1, 0])).await;
    browser.set_width(320).await;
    assert_eq!(browser.value("document.documentElement.scrollWidth").await, 320);
}

/// A name that its owner points to this machine once its page is loaded makes the dashboard a part of that page's site.
#[tokio::test]
async fn pages_of_other_sites_neither_read_nor_change_keys() {
    let dashboard = open().may_reset(|_| true).hosts(["limits.test"]);
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    // The page of the other site, as it was loaded before.
    let app = Router::new()
        .route("/page", get(async || Html("a page")))
        .nest_service("/limits", dashboard.router(&registry));
    let Client(address) = serve(app).await;
    let port = address.port();
    registry.scope(once()).await.unwrap();
    let attempt = |to: &str| {
        format!(
            "(async () => {{
                const status = async (path, options) => {{
                    try {{ return (await fetch('{to}/limits' + path, options)).status; }} catch {{ return 'no answer'; }}
                }};
                const headers = {{ 'content-type': 'application/json' }};
                const body = '{{\"policy\":\"dashboard-once\",\"key\":[],\"duration\":\"1ms\"}}';
                const post = path => status(path, {{ method: 'POST', headers, body }});
                return [await status(''), await status('/data'), await post('/reset'), await post('/pause')];
            }})()"
        )
    };
    let (other, own) = (format!("http://rebound.test:{port}"), format!("http://limits.test:{port}"));
    let rules = "--host-resolver-rules=MAP *.test 127.0.0.1";
    let browser = Browser::open_with(&format!("{other}/page"), &[rules]).await;
    assert_eq!(browser.value(&attempt(&other)).await, json!([403, 403, 403, 403]));
    for site in [format!("http://{address}"), own.clone()] {
        assert_eq!(browser.value(&attempt(&site)).await, json!(vec!["no answer"; 4]), "{site}");
    }
    assert_eq!(registry.policy("dashboard-once").unwrap().usage(()).await.unwrap().used, 1);
    let operator = Browser::open_with(&format!("{own}/page"), &[rules]).await;
    assert_eq!(operator.value(&attempt(&own)).await, json!([200, 200, 200, 200]));
}
