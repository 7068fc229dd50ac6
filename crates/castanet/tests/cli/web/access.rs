//! Clients of the web view: who is answered, who may write, and what is refused.

use super::View;
use crate::ctl::{COUNTING, RUNNING, RuntimeFolder, ends_well, fails};
use crate::http::{ask, connect, get, post};
use serde_json::json;
use std::io::Write;

const JSON: &str = "Content-Type: application/json";

#[test]
fn what_cannot_be_is_an_error_before_anything_starts() {
    let it = RuntimeFolder::new("w-refused");
    let refused = |words: &[&str], status, told: &[&str]| {
        let configuration = "Idle -> Discard; Script(print \"it has started\");";
        let result = it.client(&[&["run", "-e", configuration], words].concat(), "");
        fails(&result, status, told);
        let said = result.out + &result.err;
        assert!(!said.contains("it has started") && !said.contains(RUNNING), "{said}");
    };
    let open = ["0.0.0.0:0", "other hosts reach this address", "--web-token FILE"];
    refused(&["--web", "0.0.0.0:0"], 2, &open);
    // A token that is chosen protects this host from its users, and not from the network.
    refused(&["--web", "[::]:0", "--web-write"], 2, &["--web-token FILE"]);
    refused(&["--web-write"], 2, &["--web <ADDR>"]);
    refused(&["--web", "0", "--simtime"], 2, &["no --web under --simtime"]);
    let token = it.write("token", "0123456789abcdef").display().to_string();
    let both = ["--web", "127.0.0.1:9", "--metrics", "127.0.0.1:9", "--metrics-token", &token];
    refused(&both, 2, &["--metrics-token", "--web-token"]);
}

#[test]
fn the_page_is_for_everybody_and_its_data_for_those_with_the_token() {
    let view = View::new("w-token", COUNTING, &["--web-write"]);
    let token = view.token.clone().unwrap();
    assert!(token.len() >= 32, "{token}");
    for path in ["/", "/app.js", "/style.css", "/icon.svg", "/vendor/preact.js"] {
        let reply = get(view.address, path, &[]);
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.body.contains(&token) && !reply.body.contains("RatedSource"), "{path}");
    }
    for path in ["/api/instance", "/api/graph", "/api/live", "/metrics", "/api/nothing", "/x"] {
        for header in ["X: y", "Authorization: Bearer 0123456789abcdef0123456789abcdef"] {
            let reply = get(view.address, path, &[header]);
            assert_eq!(reply.status, 401, "{path}: {}", reply.body);
        }
    }
    assert_eq!(view.json("/api/instance")["may_write"], true);
    assert!(view.get("/metrics").body.contains("castanet_element_packets_total"));
    // Each run chooses another token.
    let other = View::new("w-token-2", COUNTING, &["--web-write"]);
    assert_ne!(other.token, view.token);
}

#[test]
fn handlers_are_written_only_where_that_is_allowed() {
    let write = json!({ "handler": "c.reset", "value": "" });
    let view = View::new("w-read", COUNTING, &[]);
    assert!(view.token.is_none());
    assert_eq!(view.json("/api/instance")["may_write"], false);
    let reply = view.post("/api/write", &write);
    assert_eq!((reply.status, reply.body.contains("--web-write")), (403, true), "{}", reply.body);

    let view = View::new("w-write", COUNTING, &["--web-write", "--allow-reconfigure"]);
    let reply = view.post("/api/write", &json!({ "handler": "s.active", "value": "false" }));
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(view.it.read("one", "s.active"), "false");
    for (handler, value, told) in [
        ("s.active", "perhaps", "perhaps"),
        ("s.nothing", "1", "no element has the write handler 's.nothing'"),
        ("nobody.active", "1", "no element has the write handler"),
        ("c.count", "1", "no element has the write handler"),
        ("stop", "", "no element has the write handler"),
        ("hotconfig", "Idle -> Discard;", "no element has the write handler"),
    ] {
        let reply = view.post("/api/write", &json!({ "handler": handler, "value": value }));
        assert_eq!(reply.status, 400, "{handler}: {}", reply.body);
        assert!(reply.body.contains(told), "{handler}: {}", reply.body);
    }
    // Handlers of the instance itself are only for its control socket.
    let reply = view.post("/api/write", &json!({ "handler": "terminate", "value": "" }));
    assert_eq!(reply.status, 400, "{}", reply.body);
}

#[test]
fn pages_of_other_sites_get_nothing() {
    let view = View::new("w-sites", COUNTING, &[]);
    let address = view.address;
    // A name that its owner lets mean this host.
    let head = |host: &str, more: &str| {
        format!("GET /api/graph HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n")
    };
    assert_eq!(ask(address, &head("evil.example", "")).status, 403);
    assert_eq!(ask(address, &head(&format!("localhost:{}", address.port()), "")).status, 200);
    let foreign = head(&address.to_string(), "Origin: http://evil.example\r\n");
    assert_eq!(ask(address, &foreign).status, 403);
    // Types of bodies that forms of other sites send without leave.
    let query = r#"{"command":"start","query":{"pattern":"","packets":1,"snap_len":64}}"#;
    for kind in ["Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded"] {
        assert_eq!(post(address, "/api/trace", &[kind], query).status, 415);
    }
    // Images and links of another site have no origin.
    for site in ["cross-site", "same-site"] {
        for path in ["/api/graph", "/metrics"] {
            let reply = get(address, path, &[&format!("Sec-Fetch-Site: {site}")]);
            assert_eq!(reply.status, 403, "{path}: {}", reply.body);
        }
    }
    for site in ["same-origin", "none"] {
        assert_eq!(get(address, "/metrics", &[&format!("Sec-Fetch-Site: {site}")]).status, 200);
    }
    assert_eq!(
        ask(address, &head("evil.example", "").replace("/api/graph", "/metrics")).status,
        403
    );
    let own = format!("Origin: http://{address}");
    assert_eq!(post(address, "/api/trace", &[JSON, &own], query).status, 200);
    let reply = view.get("/");
    for header in ["content-security-policy: default-src 'none'", "frame-ancestors 'none'"] {
        assert!(reply.head.contains(header), "{}", reply.head);
    }
    assert!(reply.head.contains("x-content-type-options: nosniff"), "{}", reply.head);
    assert!(!reply.head.contains("access-control-allow"), "{}", reply.head);
}

#[test]
fn bodies_that_are_wrong_long_or_late_are_refused() {
    let view = View::new("w-bodies", COUNTING, &[]);
    let address = view.address;
    for (body, told) in [
        ("", "the body"),
        ("null", "the body"),
        (r#"{"command":"explode"}"#, "unknown variant"),
        (r#"{"command":"next","session":"x"}"#, "the body"),
        (r#"{"command":"next","session":77}"#, "77"),
        (r#"{"command":"start","query":{"packets":1}}"#, "snap_len"),
    ] {
        let reply = post(address, "/api/trace", &[JSON], body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        assert!(reply.body.contains(told), "{body}: {}", reply.body);
    }
    let wrong = json!({ "command": "start",
                        "query": { "pattern": "udp && dts port 5", "packets": 1, "snap_len": 64 } });
    let reply = view.post("/api/trace", &wrong);
    assert!(reply.status == 400 && reply.body.contains("dts"), "{}", reply.body);
    for (request, status) in [
        ("GET /api/trace HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 405),
        (
            "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            405,
        ),
        (
            "GET /api/read?handler=%ff%00 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
            200,
        ),
        ("GET /vendor/../app.js HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 404),
    ] {
        assert_eq!(ask(address, request).status, status, "{request}");
    }
    let mut stream = connect(address);
    let head = "POST /api/trace HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n";
    stream.write_all(format!("{head}Content-Length: 1000000000\r\n\r\n").as_bytes()).unwrap();
    let part = vec![b' '; 1 << 16];
    let sent = (0..1000).take_while(|_| stream.write_all(&part).is_ok()).count();
    assert!(sent < 200, "{sent} times 64 kB were taken");
    // A body that never comes.
    let late = format!("{head}Content-Length: 5\r\nConnection: close\r\n\r\n");
    assert_eq!(ask(address, &late).status, 408);
    let count = || view.it.number("one", "c.count");
    let before = count();
    crate::program::wait_until("packets are counted on", || count() > before);
    view.it.output(&["ctl", "one", "stop"]);
    let said = ends_well(view.process);
    assert!(!said.contains("panic"), "{said}");
}

#[test]
fn metrics_of_the_same_address_have_the_same_listener() {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port().to_string()
    };
    let it = RuntimeFolder::new("w-both");
    it.write("one.click", COUNTING);
    let process = it.run(&["one.click", "--web", &port, "--metrics", &port]);
    let said = process.stderr();
    assert!(said.contains("web view at") && !said.contains("metrics at"), "{said}");
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    assert!(get(address, "/metrics", &[]).body.contains("castanet_build_info"));
    assert_eq!(get(address, "/", &[]).status, 200);
}

#[test]
fn a_look_runs_no_program() {
    let text = format!("{COUNTING} p :: Script(TYPE PASSIVE, write s.active false);");
    let view = View::new("w-program", &text, &[]);
    let page = view.json("/api/element?name=p");
    assert!(page["handlers"].as_array().unwrap().iter().any(|it| it["name"] == "run"), "{page}");
    let read = view.json("/api/read?handler=p.run&handler=s.active&handler=count_cycles");
    assert!(read[0]["error"].as_str().unwrap().contains("--web-write"), "{read}");
    assert_eq!(read[1]["value"], "true", "{read}");
    assert!(read[2]["error"].as_str().unwrap().contains("no handler of an element"), "{read}");
    assert_eq!(view.it.read("one", "s.active"), "true");
    // Those who may write may run it, too.
    let view = View::new("w-program-2", &text, &["--web-write"]);
    view.json("/api/element?name=p");
    assert_eq!(view.it.read("one", "s.active"), "true");
    view.json("/api/read?handler=p.run");
    assert_eq!(view.it.read("one", "s.active"), "false");
}

#[test]
fn slow_clients_make_room_for_others() {
    let view = View::new("w-slow", COUNTING, &["--web-write"]);
    let head = "POST /api/trace HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n";
    let mut slow = Vec::new();
    for round in 0..5 {
        for number in 0..100 {
            let mut stream = connect(view.address);
            let beginning =
                ["GET /api", head, "GET /icon.svg HTTP/1.1\r\nHost: a\r\n\r\n"][number % 3];
            _ = stream.write_all(beginning.as_bytes());
            slow.push(stream);
        }
        assert_eq!(view.get("/api/graph").status, 200, "round {round}");
        assert_eq!(view.get("/metrics").status, 200, "round {round}");
    }
}
