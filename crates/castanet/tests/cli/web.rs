//! The web view of running instances: who is answered, its data, and its page in a browser.

mod access;
mod data;
mod page;

use crate::ctl::RuntimeFolder;
use crate::http::{Reply, get, post};
use castanet_lab::Process;
use serde_json::Value;
use std::net::SocketAddr;

/// A running instance with a web view.
struct View {
    it: RuntimeFolder,
    process: Process,
    address: SocketAddr,
    /// The token that it has chosen and printed.
    token: Option<String>,
}

impl View {
    /// An instance of this configuration with the name `one` and these options.
    fn new(name: &str, text: &str, options: &[&str]) -> View {
        let it = RuntimeFolder::new(name);
        it.write("one.click", text);
        let process = it.run(&[&["one.click", "--web", "0"], options].concat());
        let said = process.stderr();
        let url = said.split_once("web view at http://").and_then(|(_, rest)| rest.lines().next());
        let url = url.unwrap_or_else(|| panic!("no address in {said}")).to_owned();
        let (address, token) = url.split_once('/').unwrap();
        let token = token.strip_prefix("#token=").map(str::to_owned);
        View { it, process, address: address.parse().unwrap(), token }
    }

    /// The address of the page, with the token if there is one.
    fn url(&self) -> String {
        let token = self.token.iter().map(|token| format!("#token={token}"));
        format!("http://{}/{}", self.address, token.collect::<String>())
    }

    fn headers(&self) -> Vec<String> {
        self.token.iter().map(|token| format!("Authorization: Bearer {token}")).collect()
    }

    /// The answer at a path.
    fn get(&self, path: &str) -> Reply {
        let headers = self.headers();
        get(self.address, path, &headers.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The JSON at a path.
    #[track_caller]
    fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        serde_json::from_str(&reply.body).unwrap_or_else(|e| panic!("{path}: {e}: {}", reply.body))
    }

    /// The answer to a body of JSON.
    fn post(&self, path: &str, body: &Value) -> Reply {
        let mut headers = self.headers();
        headers.push("Content-Type: application/json".to_owned());
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        post(self.address, path, &headers, &body.to_string())
    }
}
