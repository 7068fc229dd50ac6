//! A session of WebDriver: `chromedriver`, its browser, and requests to it.
//!
//! `curl` carries the requests, as it carries those of other tests: it runs in the namespace of the
//! browser, has a timeout, and adds no library to the programs that contain this crate for
//! `castanet bench io`. The commands are those of <https://www.w3.org/TR/webdriver2/>.

use std::cell::Cell;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::text;
use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::process::{Command, Process};

/// Timeout of the start of `chromedriver` and of the browser.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Time within which a page must be loaded, and a script must end, in milliseconds.
const PAGE_TIMEOUT: u32 = 60_000;

/// Timeout of a request, longer than that of a page.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);

/// Words that `chromedriver` prints when it listens.
const READY: &str = "started successfully";

/// Number of ports to try, because another process may take a port before the driver does.
const PORTS: u32 = 5;

/// Arguments of Chromium: no window, no service of its own in the background, no network but the
/// pages', and no sandbox, which it refuses to root.
const ARGUMENTS: &[&str] = &[
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-proxy-server",
    "--force-color-profile=srgb",
    "--window-size=1280,800",
];

/// A session of a driver; dropping it kills the driver and the browser.
pub(super) struct Session {
    /// The driver's process, which runs until the session is dropped.
    _driver: Process,
    namespace: Option<Namespace>,
    /// The address of the session's commands.
    address: String,
    /// The folder for bodies of requests.
    directory: PathBuf,
    /// Number of requests sent, which names their files.
    requests: Cell<u64>,
}

impl Session {
    /// Starts a driver and its browser, in a namespace or on the machine; all their files lie in
    /// `directory`.
    pub(super) fn start(namespace: Option<Namespace>, directory: &Path) -> Result<Session> {
        let (driver, port) = start_driver(namespace.as_ref(), directory)?;
        let mut session = Session {
            _driver: driver,
            namespace,
            address: format!("http://127.0.0.1:{port}/session"),
            directory: directory.to_owned(),
            requests: Cell::new(0),
        };
        let started = session.post("start", "", &capabilities(directory))?;
        session.address += &format!("/{}", text(started["sessionId"].clone()));
        Ok(session)
    }

    /// Sends a command with a body and returns the value of its answer; `step` says in errors what
    /// the test wanted.
    pub(super) fn post(&self, step: &str, path: &str, body: &Value) -> Result<Value> {
        let number = self.requests.replace(self.requests.get() + 1);
        let file = self.directory.join(format!("request-{number}.json"));
        let write_error = Error::io(format!("write {}", file.display()));
        fs::write(&file, body.to_string()).map_err(write_error)?;
        let body = format!("@{}", file.display());
        let content = "content-type: application/json";
        let answer = self.send(step, path, &["--header", content, "--data-binary", &body]);
        // The folder is removed in the end, and this file with it.
        let _ = fs::remove_file(&file);
        answer
    }

    /// Sends a command without a body and returns the value of its answer.
    pub(super) fn get(&self, step: &str, path: &str) -> Result<Value> {
        self.send(step, path, &[])
    }

    fn send(&self, step: &str, path: &str, options: &[&str]) -> Result<Value> {
        let slash = if path.is_empty() { "" } else { "/" };
        let output = command(self.namespace.as_ref(), "curl")
            .args(["--silent", "--show-error", "--noproxy", "*"])
            .args(options)
            .arg(format!("{}{slash}{path}", self.address))
            .timeout(REQUEST_TIMEOUT)
            .check()?;
        let failed = |message| Error::Browser { step: step.to_owned(), message };
        let mut answer: Value = serde_json::from_str(&output.stdout)
            .map_err(|e| failed(format!("its driver answered no JSON ({e}): {}", output.stdout)))?;
        let value = answer["value"].take();
        match value["error"].as_str() {
            // The message ends with the driver's stack, which says nothing about the page.
            Some(kind) if value["message"].is_string() => {
                let message = text(value["message"].clone());
                let message = message.lines().next().unwrap_or_default();
                Err(failed(format!("{kind}: {message}")))
            }
            _ => Ok(value),
        }
    }
}

/// Makes a command in the namespace of a browser, or on the machine.
fn command(namespace: Option<&Namespace>, program: &str) -> Command {
    match namespace {
        Some(namespace) => namespace.command(program),
        None => Command::on_host(program),
    }
}

/// Starts a driver and returns it with its port.
fn start_driver(namespace: Option<&Namespace>, directory: &Path) -> Result<(Process, u16)> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        // Without IPv6 the driver's own choice, `--port=0`, is printed as 0.
        let port = match namespace {
            Some(namespace) => {
                namespace.enter(free_port).join().unwrap_or_else(|panic| resume_unwind(panic))
            }
            None => free_port(),
        }?;
        // The kernel ends a PID namespace as a whole. Without one, Chromium's crash handler, which
        // leaves the process group, would outlive the test.
        let mut driver = command(namespace, "unshare")
            .args(["--pid", "--fork", "--kill-child", "--mount-proc", "chromedriver"])
            .arg(format!("--port={port}"))
            .env("HOME", directory)
            .env("TMPDIR", directory)
            .spawn()?;
        match driver.wait_for(READY, START_TIMEOUT) {
            Ok(()) => return Ok((driver, port)),
            Err(Error::Ended { .. }) if attempts < PORTS => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns a port of the loopback interface that no process listens on.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    Ok(address.map_err(Error::io("find a free port"))?.port())
}

/// Returns the request for a session: a browser with a new profile, and its console's messages.
fn capabilities(directory: &Path) -> Value {
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let arguments: Vec<&str> = ARGUMENTS.iter().copied().chain([profile.as_str()]).collect();
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        "goog:chromeOptions": { "args": arguments },
        "goog:loggingPrefs": { "browser": "ALL" },
        "timeouts": { "pageLoad": PAGE_TIMEOUT, "script": PAGE_TIMEOUT },
    } } })
}
