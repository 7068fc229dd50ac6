//! A hundred clients of one instance, and one that never reads: all are answered, and no packet is lost.

use castanet_lab::{Lab, Port, Router, are_answered, require};
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::control::Control;
use crate::testbed::{LATER, SOON, program};

/// Clients that read all handlers.
const CLIENTS: usize = 100;
/// Pings during that time, and the seconds between two.
const PINGS: usize = 1500;
const INTERVAL: &str = "0.005";

/// Sends requests without reading an answer, until no more are taken.
fn never_read(path: &Path, is_over: &AtomicBool) -> usize {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_nonblocking(true).unwrap();
    let (request, mut sent) = (b"READ config\r\n".repeat(100), 0);
    while !is_over.load(Ordering::Relaxed) {
        match stream.write(&request) {
            Ok(bytes) => sent += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
    sent
}

#[test]
fn a_hundred_clients_are_answered_while_packets_pass() {
    require(&["ip", "ping"]).unwrap();
    let lab = Lab::new("clients").unwrap();
    let [a, middle, b] = ["a", "m", "b"].map(|it| lab.namespace(it).unwrap());
    for (host, address, device) in [(&a, "10.9.0.1/24", "m0"), (&b, "10.9.0.2/24", "m1")] {
        let here = Port::new(host, "eth0").address(address);
        lab.link(here, Port::new(&middle, device)).unwrap();
    }
    let text = "in :: FromDevice(m0, PROMISC true, METHOD AF_XDP) -> a :: Counter
                    -> q :: Queue -> out :: ToDevice(m1, METHOD AF_XDP);
                from :: FromDevice(m1, PROMISC true, METHOD AF_XDP) -> b :: Counter
                    -> back :: ToDevice(m0, METHOD AF_XDP);";
    let socket = lab.directory().join("control");
    let command = middle.command(program()).args(["run", "--control"]).arg(&socket);
    let mut router = command.args(["-e", text]).spawn().unwrap();
    router.wait_for(Router::READY, SOON).unwrap();
    let options = ["-i", INTERVAL, "-w", "60"];
    // Neighbours are known from here on.
    a.ping(&options, 3, "10.9.0.2").unwrap();

    let mut first = Control::connect(&socket);
    let handlers = first.handlers();
    let values = |client: &mut Control| {
        handlers.iter().filter(|handler| client.value(handler).is_ok()).count()
    };
    // A few want a parameter.
    let wanted = values(&mut first);
    assert!(wanted > 40 && wanted + 10 > handlers.len(), "{wanted} of {handlers:?}");
    // All of them are connected before the first reads.
    let clients: Vec<Control> = (0..CLIENTS).map(|_| Control::connect(&socket)).collect();
    let is_over = AtomicBool::new(false);
    let mut pings = a.pings(&options, PINGS, "10.9.0.2").timeout(LATER).spawn().unwrap();
    let unread = std::thread::scope(|scope| {
        let (values, is_over) = (&values, &is_over);
        let silent = scope.spawn(|| never_read(&socket, is_over));
        let polls = clients.into_iter().map(|mut client| {
            scope.spawn(move || {
                let mut passes = 0;
                while passes == 0 || !is_over.load(Ordering::Relaxed) {
                    assert_eq!(values(&mut client), wanted);
                    passes += 1;
                }
                passes
            })
        });
        let polls: Vec<_> = polls.collect();
        pings.wait(LATER).unwrap();
        is_over.store(true, Ordering::Relaxed);
        let passes: Vec<u32> = polls.into_iter().map(|it| it.join().unwrap()).collect();
        // Nobody waits for others' second pass.
        let (least, most) = (passes.iter().min().unwrap(), passes.iter().max().unwrap());
        assert!(*most <= 2 * least + 1, "{passes:?}");
        silent.join().unwrap()
    });
    assert!(unread > 0);
    let output = pings.stdout();
    assert!(are_answered(&output, PINGS), "{output}");
    let mut last = Control::connect(&socket);
    for handler in ["out.drops.full", "back.drops.full", "in.kernel_drops"] {
        assert_eq!(last.read(handler), "0", "{handler}");
    }
    router.interrupt();
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
}
