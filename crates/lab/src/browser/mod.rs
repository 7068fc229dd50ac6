//! A web browser for tests of pages: Chromium without a window, driven through `chromedriver`.

mod axe;
mod element;
mod webdriver;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::namespace::Namespace;
use crate::process::Command;
use crate::tools::require;
use webdriver::Session;

pub use axe::Violation;
pub use element::PageElement;

/// Time within which a page must reach the state that a test waits for. It is long, because the
/// machine may have other work.
const WAIT: Duration = Duration::from_secs(20);

/// Interval at which the browser is asked for the awaited state.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Keys without a letter, for [`Browser::press`] and [`PageElement::send_keys`], as WebDriver
/// encodes them.
pub mod keys {
    /// The tabulator key.
    pub const TAB: &str = "\u{E004}";
    /// The return key.
    pub const ENTER: &str = "\u{E007}";
    /// The escape key.
    pub const ESCAPE: &str = "\u{E00C}";
    /// The arrow to the left.
    pub const LEFT: &str = "\u{E012}";
    /// The arrow up.
    pub const UP: &str = "\u{E013}";
    /// The arrow to the right.
    pub const RIGHT: &str = "\u{E014}";
    /// The arrow down.
    pub const DOWN: &str = "\u{E015}";
}

/// The color scheme that the user prefers, as pages see it (`prefers-color-scheme`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorScheme {
    /// Light background.
    Light,
    /// Dark background.
    Dark,
}

/// A browser with one page. Dropping it kills its processes and removes its files.
///
/// ```no_run
/// use castanet_lab::{Browser, keys};
///
/// # fn main() -> castanet_lab::Result<()> {
/// let browser = Browser::on_host()?;
/// browser.open("http://127.0.0.1:8080/")?;
/// browser.find("input[name=q]")?.send_keys(&format!("queue{}", keys::ENTER))?;
/// assert_eq!(browser.find("h1")?.text()?, "Results");
/// assert_eq!(browser.console_errors()?, Vec::<String>::new());
/// assert_eq!(browser.accessibility_violations()?, []);
/// # Ok(())
/// # }
/// ```
pub struct Browser {
    // The order is that of removal: the processes first, then the files.
    session: Session,
    lab: Lab,
}

impl Browser {
    /// Starts a browser in the machine's own network, for pages of files and of the loopback
    /// interface.
    pub fn on_host() -> Result<Browser> {
        Browser::start(None)
    }

    /// Starts a browser in a namespace of a lab, whose hosts it reaches.
    pub fn in_namespace(namespace: &Namespace) -> Result<Browser> {
        Browser::start(Some(namespace.clone()))
    }

    fn start(namespace: Option<Namespace>) -> Result<Browser> {
        require(&["chromium", "chromedriver", "curl", "unshare", "base64"])?;
        let lab = Lab::new("browser")?;
        let session = Session::start(namespace, lab.directory())?;
        Ok(Browser { session, lab })
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&self, url: &str) -> Result<()> {
        let step = format!("open {}", shorten(url));
        self.session.post(&step, "url", &json!({ "url": url })).map(drop)
    }

    /// Returns the address of the page.
    pub fn url(&self) -> Result<String> {
        self.session.get("tell the page's address", "url").map(text)
    }

    /// Runs a script, which is the body of a function: `arguments` are `args`, and `return` gives
    /// the result.
    pub fn execute(&self, script: &str, args: &[Value]) -> Result<Value> {
        let step = format!("run `{}`", shorten(script));
        self.session.post(&step, "execute/sync", &json!({ "script": script, "args": args }))
    }

    /// Runs a script that calls its last argument with the result.
    pub fn execute_async(&self, script: &str, args: &[Value]) -> Result<Value> {
        let step = format!("run `{}`", shorten(script));
        self.session.post(&step, "execute/async", &json!({ "script": script, "args": args }))
    }

    /// Waits until a script, the body of a function, returns a true value, and returns it.
    pub fn wait_for(&self, script: &str) -> Result<Value> {
        let step = format!("wait for `{}`", shorten(script));
        poll(&step, || {
            let value = self.execute(script, &[])?;
            let done = !matches!(&value, Value::Null | Value::Bool(false))
                && value != json!(0)
                && value != json!("");
            Ok(if done { Ok(value) } else { Err(format!("it is {value}")) })
        })
    }

    /// Finds the first element that a CSS selector matches; waits until there is one.
    pub fn find(&self, selector: &str) -> Result<PageElement<'_>> {
        let step = format!("find `{selector}`");
        poll(&step, || {
            let found = self.find_all(selector)?.into_iter().next();
            Ok(found.ok_or_else(|| "the page has none".to_owned()))
        })
    }

    /// Finds all elements that a CSS selector matches now.
    pub fn find_all(&self, selector: &str) -> Result<Vec<PageElement<'_>>> {
        let step = format!("find `{selector}`");
        let by = json!({ "using": "css selector", "value": selector });
        let found = self.session.post(&step, "elements", &by)?;
        let found = found.as_array().into_iter().flatten();
        Ok(found.filter_map(|id| PageElement::new(self, selector, id)).collect())
    }

    /// Clicks on the first element that a CSS selector matches; waits until that is possible.
    pub fn click(&self, selector: &str) -> Result<()> {
        self.find(selector)?.click()
    }

    /// Presses keys, which go to the element with the focus.
    pub fn press(&self, keys: &str) -> Result<()> {
        let active = self.session.get("find the element with the focus", "element/active")?;
        match PageElement::new(self, "the element with the focus", &active) {
            Some(element) => element.send_keys(keys),
            None => Err(Error::Browser {
                step: "find the element with the focus".into(),
                message: active.to_string(),
            }),
        }
    }

    /// Sets the size of the page in CSS pixels.
    pub fn set_size(&self, width: u32, height: u32) -> Result<()> {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", &size).map(drop)
    }

    /// Sets the color scheme that pages see from now on, the current page at once.
    pub fn set_color_scheme(&self, scheme: ColorScheme) -> Result<()> {
        let value = match scheme {
            ColorScheme::Light => "light",
            ColorScheme::Dark => "dark",
        };
        let features = json!({
            "features": [{ "name": "prefers-color-scheme", "value": value }],
        });
        self.devtools("Emulation.setEmulatedMedia", &features).map(drop)
    }

    /// Calls a method of the Chrome DevTools Protocol.
    pub fn devtools(&self, method: &str, parameters: &Value) -> Result<Value> {
        let body = json!({ "cmd": method, "params": parameters });
        self.session.post(&format!("call {method}"), "goog/cdp/execute", &body)
    }

    /// Writes the visible part of the page to a PNG file.
    pub fn screenshot(&self, file: &Path) -> Result<()> {
        let encoded = text(self.session.get("take a screenshot", "screenshot")?);
        let source = self.lab.directory().join("screenshot.base64");
        std::fs::write(&source, encoded)
            .map_err(Error::io(format!("write {}", source.display())))?;
        Command::on_host("sh")
            .args(["-c", "base64 -d \"$1\" > \"$2\"", "sh"])
            .arg(&source)
            .arg(file)
            .check()
            .map(drop)
    }

    /// Returns the errors that pages and their scripts have printed on the console since the last
    /// call: uncaught exceptions, `console.error`, and files that could not be loaded.
    pub fn console_errors(&self) -> Result<Vec<String>> {
        let wanted = json!({ "type": "browser" });
        let entries = self.session.post("read the console", "se/log", &wanted)?;
        let entries = entries.as_array().into_iter().flatten();
        let severe = entries.filter(|entry| entry["level"] == "SEVERE");
        Ok(severe.map(|entry| text(entry["message"].clone())).collect())
    }

    /// Returns the accessibility faults of the page that axe-core finds, too little contrast among
    /// them, in the order of the rules' names.
    pub fn accessibility_violations(&self) -> Result<Vec<Violation>> {
        axe::violations(self)
    }
}

/// Calls `attempt` until it returns `Ok(Ok(value))`; after [`WAIT`] the last message is the error.
fn poll<T>(step: &str, attempt: impl Fn() -> Result<std::result::Result<T, String>>) -> Result<T> {
    let deadline = Instant::now() + WAIT;
    loop {
        match attempt()? {
            Ok(value) => return Ok(value),
            Err(_) if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
            Err(message) => return Err(Error::Browser { step: step.to_owned(), message }),
        }
    }
}

/// Returns the text of a JSON string, or the JSON of another value.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Returns the first line of a text, of at most 100 letters, for messages.
fn shorten(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(100).collect();
    if short.len() < text.trim().len() { format!("{short}…") } else { short }
}
