//! A hundred clients of one instance, and one that never reads: all are answered, and no packet is lost.

use castanet_lab::{Lab, Port, Router, require};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::testbed::{LATER, SOON, program};

/// Clients that read all handlers.
const CLIENTS: usize = 100;
/// Pings during that time, and the seconds between two.
const PINGS: &str = "1500";
const INTERVAL: &str = "0.005";

/// A client of an instance's control socket.
struct Client(BufReader<UnixStream>);

impl Client {
    fn connect(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(LATER)).unwrap();
        let mut client = Client(BufReader::new(stream));
        let greeting = client.line();
        assert!(greeting.starts_with("Click::ControlSocket/"), "{greeting}");
        client
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the router has gone");
        line
    }

    /// Value of a handler; `None` if the answer says why it has none, as where it wants a parameter.
    fn read(&mut self, handler: &str) -> Option<String> {
        self.0.get_mut().write_all(format!("READ {handler}\r\n").as_bytes()).unwrap();
        let mut answer = self.line();
        let is_error = answer.starts_with('5');
        // All lines of an error but the last have a hyphen.
        while is_error && answer.as_bytes()[3] == b'-' {
            answer = self.line();
        }
        if is_error {
            return None;
        }
        assert!(answer.starts_with("200"), "{handler}: {answer}");
        let length = self.line().trim().strip_prefix("DATA ").unwrap().parse().unwrap();
        let mut data = vec![0; length];
        self.0.read_exact(&mut data).unwrap();
        Some(String::from_utf8(data).unwrap())
    }

    /// The names of all handlers that can be read.
    fn handlers(&mut self) -> Vec<String> {
        let list = self.read("list").unwrap();
        // The first line is their number.
        let elements: Vec<&str> = list.lines().skip(1).collect();
        let mut all = Vec::new();
        for element in elements {
            let told = self.read(&format!("{element}.handlers")).unwrap();
            let readable = told.lines().filter_map(|line| {
                let (name, rights) = line.split_once('\t')?;
                rights.contains('r').then(|| format!("{element}.{name}"))
            });
            all.extend(readable);
        }
        all
    }
}

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
    let ping = |count: &str| {
        let words = ["-n", "-q", "-W", "5", "-i", INTERVAL, "-c", count, "10.9.0.2"];
        a.command("ping").args(words).timeout(LATER)
    };
    // Neighbours are known from here on.
    ping("3").check().unwrap();

    let handlers = Client::connect(&socket).handlers();
    assert!(handlers.len() > 40, "{handlers:?}");
    // All of them are connected before the first reads.
    let clients: Vec<Client> = (0..CLIENTS).map(|_| Client::connect(&socket)).collect();
    let is_over = AtomicBool::new(false);
    let mut pings = ping(PINGS).spawn().unwrap();
    let (reads, unread) = std::thread::scope(|scope| {
        let handlers = &handlers;
        let silent = scope.spawn(|| never_read(&socket, &is_over));
        let polls = clients.into_iter().map(|mut client| {
            scope.spawn(move || {
                let values = handlers.iter().filter_map(|handler| client.read(handler));
                values.count()
            })
        });
        let polls: Vec<_> = polls.collect();
        let reads: Vec<usize> = polls.into_iter().map(|it| it.join().unwrap()).collect();
        pings.wait(LATER).unwrap();
        is_over.store(true, Ordering::Relaxed);
        (reads, silent.join().unwrap())
    });
    // Each has every value; a few handlers want a parameter.
    assert!(reads.iter().all(|&count| count == reads[0] && count > 40), "{reads:?}");
    assert!(unread > 0);
    let output = pings.stdout();
    assert!(output.contains(&format!(" {PINGS} received")), "{output}");
    let mut last = Client::connect(&socket);
    for handler in ["out.drops.full", "back.drops.full", "in.kernel_drops"] {
        assert_eq!(last.read(handler).as_deref(), Some("0"), "{handler}");
    }
    router.interrupt();
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
}
