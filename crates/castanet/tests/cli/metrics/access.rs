//! Addresses and tokens: what is refused at the start, and which clients are.

use super::Target;
use crate::ctl::{COUNTING, RUNNING, RuntimeFolder, ends_well, fails};
use crate::http::get;
use std::net::TcpListener;

/// A configuration that says when it runs.
const TELLING: &str = "Idle -> Discard; Script(print \"it has started\");";
/// A token.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Insists that `castanet run` with these words fails with this status and these words, and starts
/// nothing.
#[track_caller]
fn is_refused(it: &RuntimeFolder, words: &[&str], status: i32, told: &[&str]) {
    let result = it.client(&[&["run", "-e", TELLING, "--name", "refused"], words].concat(), "");
    fails(&result, status, told);
    let said = result.out + &result.err;
    assert!(!said.contains("it has started") && !said.contains(RUNNING), "{said}");
    assert!(!it.socket("refused").exists());
}

#[test]
fn an_address_that_cannot_be_is_an_error_before_anything_starts() {
    let it = RuntimeFolder::new("m-refused");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    is_refused(&it, &["--metrics", &port], 1, &[&port, "another program listens there"]);
    is_refused(&it, &["--metrics", "192.0.2.77:0", "--metrics-token", "t"], 1, &["t: "]);
    let token = it.write("token", TOKEN).display().to_string();
    let elsewhere = ["--metrics", "192.0.2.77:0", "--metrics-token", &token];
    is_refused(&it, &elsewhere, 1, &["this host does not have this address"]);
    is_refused(&it, &["--metrics", "eth0"], 2, &["an address is IP:PORT"]);
    is_refused(&it, &["--metrics-token", &token], 2, &["--metrics <ADDR>"]);
    is_refused(&it, &["--metrics", "0", "--simtime"], 2, &["no --metrics under --simtime"]);
    // A client of a middlebox has no metrics of its own.
    let client = it.client(&["middlebox", "--metrics", "0", "--connect", "socket", "list"], "");
    fails(&client, 2, &["--metrics wants --in and --out"]);
}

#[test]
fn an_address_that_others_reach_takes_a_token() {
    let it = RuntimeFolder::new("m-open");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.77:9273"] {
        let told = [address, "other hosts reach this address", "--metrics-token"];
        is_refused(&it, &["--metrics", address], 2, &told);
    }
    for (name, text) in [("empty", ""), ("short", "abc\n"), ("words", "one two three four five")] {
        let token = it.write(name, text).display().to_string();
        let words = ["--metrics", "0.0.0.0:0", "--metrics-token", &token];
        is_refused(&it, &words, 1, &["a token is one word of at least 16"]);
    }
}

#[test]
fn only_clients_with_the_token_are_answered() {
    let it = RuntimeFolder::new("m-token");
    let token = it.write("token", &format!("{TOKEN}\n")).display().to_string();
    let options = ["--metrics", "0.0.0.0:0", "--metrics-token", &token];
    let target = Target::with("m-with-token", COUNTING, &options);
    let address = ([127, 0, 0, 1], target.address.port()).into();
    let wrong = [
        String::new(),
        "Authorization: Bearer".to_owned(),
        format!("Authorization: Basic {TOKEN}"),
        format!("Authorization: Bearer {}0", &TOKEN[1..]),
        format!("Authorization: Bearer {TOKEN}0"),
    ];
    for header in wrong {
        let headers: Vec<&str> =
            [header.as_str()].into_iter().filter(|it| !it.is_empty()).collect();
        for page in ["/metrics", "/", "/other"] {
            let reply = get(address, page, &headers);
            assert_eq!(reply.status, 401, "{header}");
            assert!(reply.head.contains("www-authenticate: bearer"), "{}", reply.head);
            assert!(!reply.body.contains("castanet_"), "{}", reply.body);
        }
    }
    let reply = get(address, "/metrics", &[&format!("Authorization: Bearer {TOKEN}")]);
    assert_eq!(reply.status, 200);
    assert!(reply.body.contains("castanet_build_info"), "{}", reply.body);
    target.it.output(&["ctl", "one", "stop"]);
    let said = ends_well(target.process);
    assert!(!said.contains(TOKEN), "{said}");
}
