//! HTTP clients that mean harm: they cost the router nothing, and others are answered.

use super::Target;
use crate::ctl::{COUNTING, ends_well};
use crate::http::{ask, connect, get};
use crate::program::wait_until;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Insists that packets are counted, that clients are answered, and that the instance ends as if nothing
/// had happened.
fn goes_on_and_ends(target: Target) {
    let counted =
        || target.value("castanet_counted_packets_total{element=\"c\",class=\"Counter\"}");
    let before = counted();
    wait_until("the source has stopped", || counted() > before);
    target.it.output(&["ctl", "one", "stop"]);
    let said = ends_well(target.process);
    assert!(!said.contains("panic"), "{said}");
}

#[test]
fn garbage_is_refused() {
    let target = Target::new("m-garbage", COUNTING);
    let garbage: Vec<u8> =
        (0..1_u32 << 16).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for bytes in [&garbage[..], b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"] {
        let mut stream = connect(target.address);
        // The other side may close before it has all of it.
        _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    for (request, status) in [
        (
            "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            405,
        ),
        ("DELETE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 405),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 413),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        ("GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404),
    ] {
        assert_eq!(ask(target.address, request).status, status, "{request}");
    }
    goes_on_and_ends(target);
}

#[test]
fn an_endless_header_takes_no_memory() {
    let target = Target::new("m-header", COUNTING);
    let before = target.process.memory();
    for beginning in ["GET /metrics HTTP/1.1\r\nA: ", "GET /"] {
        let mut stream = connect(target.address);
        stream.write_all(beginning.as_bytes()).unwrap();
        // A thousand times 1 MB, if the other side took them.
        let part = vec![b'a'; 1 << 20];
        let sent = (0..1000).take_while(|_| stream.write_all(&part).is_ok()).count();
        assert!(sent < 100, "{sent} MB were taken");
    }
    let grown = target.process.memory().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes");
    goes_on_and_ends(target);
}

#[test]
fn clients_that_never_read_or_never_write_keep_no_one_waiting_for_long() {
    let target = Target::new("m-idle", COUNTING);
    // As many as may be connected: half of them ask again and again and read nothing, the others say
    // nothing.
    let mut clients: Vec<_> = (0..256).map(|_| connect(target.address)).collect();
    let request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2000);
    for client in clients.iter_mut().step_by(2) {
        client.set_write_timeout(Some(Duration::from_millis(10))).unwrap();
        _ = client.write_all(request.as_bytes());
    }
    // The packets do not wait for any of them.
    let before = target.it.number("one", "c.count");
    wait_until("the source has stopped", || target.it.number("one", "c.count") > before);
    let began = Instant::now();
    assert_eq!(get(target.address, "/metrics", &[]).status, 200);
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    drop(clients);
    goes_on_and_ends(target);
}

#[test]
fn a_hundred_clients_at_once_are_answered_by_few_collections() {
    let target = Target::new("m-crowd", COUNTING);
    let address = target.address;
    let began = Instant::now();
    let before = target.value("castanet_metrics_collections_total");
    let clients: Vec<_> = (0..100)
        .map(|_| std::thread::spawn(move || get(address, "/metrics", &[]).status))
        .collect();
    assert!(clients.into_iter().all(|client| client.join().unwrap() == 200));
    let collections = target.value("castanet_metrics_collections_total") - before;
    let most = began.elapsed().as_secs_f64() * 5.0 + 1.0;
    assert!(collections <= most, "{collections} collections, but at most {most}");
    goes_on_and_ends(target);
}
