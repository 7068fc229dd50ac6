//! One configuration replaces another while it runs: kept state, lost state, and messages.

use crate::control::{PATIENCE, SocketFile, command, socket};
use crate::program::{click, folder};
use castanet_lab::Process;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

/// One connection to a control socket, for as long as the test lasts.
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    fn new(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client(BufReader::new(stream));
        assert_eq!(client.line(), "Click::ControlSocket/1.3");
        client
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn say(&mut self, words: &str) {
        self.0.get_mut().write_all(words.as_bytes()).unwrap();
    }

    /// The lines of an answer, up to the one that ends it.
    fn answer(&mut self) -> (u32, String) {
        let mut all = String::new();
        loop {
            let line = self.line();
            let (code, last) = (line[..3].parse().unwrap(), line.as_bytes()[3] == b' ');
            all += &line[4..];
            if last {
                return (code, all);
            }
            all += "\n";
        }
    }

    pub(crate) fn read(&mut self, handler: &str) -> String {
        self.say(&format!("READ {handler}\n"));
        let (code, said) = self.answer();
        assert_eq!(code, 200, "{said}");
        let length: usize = self.line().strip_prefix("DATA ").unwrap().parse().unwrap();
        let mut data = vec![0; length];
        self.0.read_exact(&mut data).unwrap();
        String::from_utf8(data).unwrap()
    }

    fn write(&mut self, handler: &str, value: &str) {
        self.say(&format!("WRITE {handler} {value}\n"));
        let (code, said) = self.answer();
        assert_eq!(code, 200, "{said}");
    }

    /// Asks for another configuration; what was said if it was refused.
    fn swap(&mut self, config: &str) -> Result<(), String> {
        self.say(&format!("WRITEDATA hotconfig {}\n{config}", config.len()));
        match self.answer() {
            (200, _) => Ok(()),
            (_, said) => Err(said),
        }
    }

    pub(crate) fn wait_for(&mut self, handler: &str, value: &str) {
        let start = Instant::now();
        while self.read(handler) != value {
            assert!(start.elapsed() < PATIENCE, "{handler} is {}", self.read(handler));
        }
    }
}

/// A router that can be replaced.
pub(crate) struct SwapRouter {
    pub(crate) client: Client,
    /// The element that it listens with.
    socket: String,
    pub(crate) process: Process,
    /// Its path.
    _path: SocketFile,
}

pub(crate) fn run(name: &str, words: &[&str], config: &str) -> SwapRouter {
    let path = socket(name);
    let socket = format!("cs :: ControlSocket(UNIX, {});\n", path.display());
    let mut process =
        command(&format!("{socket}{config}")).args(["-R"]).args(words).spawn().unwrap();
    process.wait_for("castanet: running", PATIENCE).unwrap();
    SwapRouter { client: Client::new(&path), socket, process, _path: path }
}

impl SwapRouter {
    pub(crate) fn swap(&mut self, config: &str) -> Result<(), String> {
        self.client.swap(&format!("{}{config}", self.socket))
    }

    /// Ends it as Ctrl-C does; not a frame may be missing.
    pub(crate) fn end(self) {
        self.process.interrupt();
        let output = self.process.finish(PATIENCE).unwrap();
        assert!(output.success(), "{}", output.printed());
    }
}

#[test]
fn a_smaller_queue_drops_the_excess_at_once() {
    for class in ["Queue", "SimpleQueue", "FrontDropQueue", "MixedQueue"] {
        let more = if class == "MixedQueue" { "Idle -> [1] q" } else { "" };
        let text = |capacity| {
            format!(
                "InfiniteSource(LIMIT 100) -> q :: {class}({capacity}) -> u :: Unqueue(ACTIVE false)
                 -> c :: Counter -> Discard; {more}"
            )
        };
        let mut it = run("shrinks", &["-j", "2"], &text("1000"));
        it.client.wait_for("q.length", "100");
        it.swap(&text("10")).unwrap();
        assert_eq!(it.client.read("q.length"), "10", "{class}");
        // A larger one drops no more.
        it.swap(&text("500")).unwrap();
        it.client.write("u.active", "true");
        it.client.wait_for("c.count", "10");
        assert_eq!(it.client.read("q.drops.reset"), "90", "{class}");
        it.end();
    }
}

#[test]
fn handlers_that_elements_call_must_be_in_the_next_configuration_too() {
    let path = "s :: InfiniteSource(LIMIT 10, BURST 4, ACTIVE false) -> sw :: Switch -> Null
        -> c :: Counter(COUNT_CALL 7 x.switch 1) -> x :: Switch -> a :: Counter -> Discard;";
    let mut it = run("calls", &[], &format!("{path} x[1] -> b :: Counter -> Discard"));
    // `c` would go on as it is.
    let refused = it.swap(&path.replace("x ::", "y ::")).unwrap_err();
    assert!(refused.contains("c :: Counter: no element named 'x'"), "{refused}");
    let refused = it.swap(&path.replace("x :: Switch", "x :: Paint(1)")).unwrap_err();
    assert!(refused.contains("no write handler 'switch'"), "{refused}");
    it.client.write("s.active", "true");
    it.client.wait_for("b.count", "4");
    assert_eq!(it.client.read("a.count"), "6");
    it.end();
}

#[test]
fn a_call_that_a_handler_has_set_goes_over() {
    let text = |more| {
        format!(
            "s :: InfiniteSource(LIMIT 10, ACTIVE false, BURST 10) -> first :: Switch {more}
             -> c :: Counter -> Discard; first[1] -> b :: Counter -> Discard"
        )
    };
    let mut it = run("set-calls", &["-j", "2"], &text(""));
    it.client.write("c.count_call", "7 first.switch 1");
    it.swap(&text("-> x :: Null")).unwrap();
    it.client.write("s.active", "true");
    it.client.wait_for("b.count", "3");
    assert_eq!(it.client.read("c.count"), "7");
    it.end();
}

#[test]
fn elements_of_the_same_name_and_class_keep_their_state() {
    let arp = "arp :: ARPQuerier(10.0.0.1, 2:0:0:0:0:1) -> Discard; Idle -> [0]arp; Idle -> [1]arp;
               sw :: Switch(0); Idle -> sw; sw[0] -> Discard; sw[1] -> Discard;";
    let first = format!(
        "s :: InfiniteSource(LIMIT 700) -> c :: Counter -> q :: Queue(1000) -> Idle; {arp}"
    );
    let mut it = run("stay", &[], &first);
    it.client.wait_for("q.length", "700");
    it.client.write("arp.insert", "10.0.0.9 2:0:0:0:0:9");
    it.client.write("sw.switch", "1");
    // The queue gets other arguments, and somebody who empties it; an element comes between.
    let second = format!(
        "s :: InfiniteSource(LIMIT 700) -> x :: Null -> c :: Counter -> q :: Queue(2000)
         -> u :: Unqueue -> d :: Counter -> Discard; {arp}"
    );
    it.swap(&second).unwrap();
    it.client.wait_for("d.count", "700");
    for (handler, value) in
        [("c.count", "700"), ("q.capacity", "2000"), ("q.length", "0"), ("sw.switch", "1")]
    {
        assert_eq!(it.client.read(handler), value, "{handler}");
    }
    assert_eq!(it.client.read("q.highwater_length"), "700");
    assert!(it.client.read("arp.table").contains("10.0.0.9"));
    assert!(it.client.read("config").contains("x :: Null"), "the new text is shown");
    assert!(it.client.read("list").contains("\nx\n"));
    // Another name, another class, another argument: those begin anew.
    let third = "s :: InfiniteSource(LIMIT 700) -> e :: Counter -> c :: Paint(1) -> Discard;
                 sw :: Switch(0, 1); Idle -> sw; sw[0] -> Discard; sw[1] -> Discard;";
    let refused = it.swap(third).unwrap_err();
    assert!(refused.contains("one argument too many"), "{refused}");
    it.swap(&third.replace(", 1)", ")")).unwrap();
    assert_eq!(it.client.read("e.count"), "0");
    assert_eq!(it.client.read("c.color"), "1");
    assert_eq!(it.client.read("s.count"), "700");
    it.end();
}

/// Rules that came by a handler stay, with what they have counted and their connections; so do
/// those that say the same under other arguments, with their identifiers.
#[test]
fn rules_keep_their_connections() {
    let text = |rules: &str, more: &str| {
        format!(
            "s :: InfiniteSource(LIMIT 9, STOP false, ACTIVE false) -> UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 6)
                -> m :: Middlebox({rules}) -> c :: Counter -> Discard; {more}"
        )
    };
    for threads in ["1", "2"] {
        let first = "ip-proto tcp drop, ip-proto icmp drop";
        let mut it = run(&format!("rules{threads}"), &["-j", threads], &text(first, ""));
        it.client.write("m.command", "add-stateful udp-dport 6 accept");
        it.client.write("m.delete", "1");
        it.client.write("s.active", "true");
        it.client.wait_for("c.count", "9");
        let events = "1\tadded\n0\texpired\n0\tevicted\n0\trefused\n";
        let connection = |position: u32, it: &mut SwapRouter| {
            assert_eq!(it.client.read("m.connection_events"), events);
            assert_eq!(it.client.read(&format!("m.packets{position}")), "9");
            let listed = it.client.read("m.connections");
            assert_eq!(listed, "udp 1.0.0.1:5 > 2.0.0.2:6 id3\n");
        };
        connection(2, &mut it);
        // The same arguments: what handlers have changed stays changed.
        it.swap(&text(first, "Idle -> x :: Discard")).unwrap();
        it.client.wait_for("x.class", "Discard");
        connection(2, &mut it);
        // Other arguments, and the same rule elsewhere.
        it.swap(&text("add-stateful udp-dport 6 accept, all accept", "")).unwrap();
        it.client.wait_for("m.packets2", "0");
        connection(1, &mut it);
        // Others still, of this element alone.
        it.client.write("m.config", "all drop, add-stateful udp-dport 6 accept");
        connection(2, &mut it);
        it.end();
    }
}

#[test]
fn an_invalid_configuration_changes_nothing() {
    let config = "s :: RatedSource(RATE 1000) -> c :: Counter -> Discard;";
    let mut it = run("wrong", &["-j", "2"], config);
    let folder = folder("hot-swap");
    let nowhere = folder.join("no/such/folder/dump");
    for (wrong, words) in [
        ("c :: Counter".to_owned(), "'c :: Counter' input 0 unused"),
        ("Idle -> Counter ->".to_owned(), "syntax error"),
        (format!("{config} y :: Foo"), "unknown element class 'Foo'"),
        (format!("{config} Idle -> Queue(many) -> Idle"), "`many`"),
        (format!("{config} Idle -> ToDump({})", nowhere.display()), "No such file"),
        (format!("{config} Idle -> ToDevice(nowhere0)"), "nowhere0"),
        (String::new(), ""),
    ] {
        let before: u64 = it.client.read("c.count").parse().unwrap();
        if !wrong.is_empty() {
            let said = it.swap(&wrong).unwrap_err();
            assert!(said.contains(words), "{wrong}: {said}");
        }
        // It runs on.
        let start = Instant::now();
        while it.client.read("c.count").parse::<u64>().unwrap() <= before {
            assert!(start.elapsed() < PATIENCE, "{wrong} has stopped it");
        }
    }
    assert!(it.client.read("handlers").contains("hotconfig\tw\n"));
    it.end();
    // A router without the option has no such handler.
    let told = click(&["-e", "DriverManager(write hotconfig \"\", stop)"], b"");
    assert!(told.err.contains("hotconfig"), "{}", told.err);
}

#[test]
fn nothing_is_lost_in_hundreds_of_swaps() {
    const PACKETS: u64 = 400_000;
    // Elements come and go, tasks change their workers, queues their sizes, counters their rows.
    let config = |n: usize| {
        let home = ["s 0, u 1", "s 1, u 0", "s 0, u 0", "s 1, u 1"][n % 4];
        let more = ["", "-> Null", "-> CheckLength(100) -> Null -> Paint(3)"][n % 3];
        let (capacity, again) =
            (20_000 + n % 5, if n.is_multiple_of(2) { "-> t" } else { "-> Null -> t" });
        format!(
            "StaticThreadSched({home});
             s :: InfiniteSource(LIMIT {PACKETS}, BURST 8) -> a :: Counter {more}
               -> q :: ThreadSafeQueue({capacity}) -> u :: Unqueue {again} :: Tee;
             t[0] -> b :: Counter -> d :: Discard; t[1] -> c :: Counter -> Discard"
        )
    };
    let mut it = run("hundreds", &["-j", "2"], &config(0));
    let mut swaps = 0;
    while it.client.read("s.count") != PACKETS.to_string() || swaps < 200 {
        swaps += 1;
        it.swap(&config(swaps)).unwrap();
    }
    it.client.wait_for("q.length", "0");
    let all = PACKETS.to_string();
    let (dropped, came): (u64, u64) =
        (it.client.read("q.drops").parse().unwrap(), it.client.read("b.count").parse().unwrap());
    assert_eq!(it.client.read("a.count"), all);
    assert_eq!(dropped + came, PACKETS, "after {swaps} swaps");
    assert_eq!(it.client.read("c.count"), came.to_string());
    assert_eq!(it.client.read("d.count"), came.to_string());
    it.end();
}

#[test]
fn elements_without_a_name_go_on_where_they_are_the_only_ones_of_their_kind() {
    let dump = folder("hot-swap").join("unnamed.pcap");
    let to = format!("ToDump({}, ENCAP IP, UNBUFFERED true)", dump.display());
    let first = format!("s :: InfiniteSource(LENGTH 60, LIMIT 5) -> c :: Counter -> {to}");
    let mut it = run("unnamed", &[], &first);
    it.client.wait_for("ToDump@4.count", "5");
    // They get other numbers, and would truncate the file if they began anew.
    let second = "InfiniteSource(LIMIT 3) -> Queue(7) -> Unqueue(ACTIVE false) -> Discard;";
    it.swap(&format!("{second} {first}")).unwrap();
    it.client.wait_for("Queue@3.length", "3");
    assert_eq!(it.client.read("ToDump@8.count"), "5");
    // Two of a kind have nothing that tells them apart.
    it.swap(&format!("{second} {second} {first}")).unwrap();
    it.client.wait_for("Queue@7.length", "3");
    assert_eq!(it.client.read("ToDump@12.count"), "5");
    it.end();
    assert_eq!(std::fs::metadata(&dump).unwrap().len(), 24 + 5 * 76);
}

#[test]
fn shared_state_stays_shared() {
    let config = |more: &str| {
        format!(
            "r :: RecordTimestamp(N 64);
             InfiniteSource(LIMIT 10, LENGTH 60) -> n :: NumberPacket {more} -> r
               -> q :: Queue -> u :: Unqueue(ACTIVE false) -> d :: TimestampDiff(r) -> c :: Counter -> Discard"
        )
    };
    let mut it = run("shared", &[], &config(""));
    it.client.wait_for("q.length", "10");
    it.swap(&config("-> Null")).unwrap();
    // Flows recorded before the swap are found after it: none counts as unknown.
    it.client.write("u.active", "true");
    it.client.wait_for("c.count", "10");
    assert_ne!(it.client.read("d.max"), "0");
    it.end();
}

#[test]
fn an_arp_table_and_its_waiting_packets_stay_shared() {
    let config = |table: &str, with: &str| {
        format!(
            "{table} s :: InfiniteSource(LIMIT 3) -> SetIPAddress(1.0.0.2)
               -> x :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1{with}) -> c :: Counter -> Discard;
             x[1] -> Discard; Idle -> [1] x"
        )
    };
    let mut it = run("arp-table", &[], &config("", ""));
    it.client.wait_for("x.length", "3");
    // Packets that waited in the element's own table wait in the shared table.
    it.swap(&config("t :: ARPTable;", ", TABLE t")).unwrap();
    it.client.wait_for("t.length", "3");
    assert_eq!((it.client.read("x.length"), it.client.read("x.count")), ("3".into(), "1".into()));
    let said = it.swap(&config("t :: ClickyInfo;", ", TABLE t")).unwrap_err();
    assert!(said.contains("TABLE: `t` is no ARPTable"), "{said}");
    it.swap(&config("t :: ARPTable(CAPACITY 100);", ", TABLE t, POLL_TIMEOUT 0")).unwrap();
    assert_eq!((it.client.read("t.length"), it.client.read("c.count")), ("3".into(), "0".into()));
    it.client.write("t.insert", "1.0.0.2 0:0:0:0:0:2");
    it.client.wait_for("c.count", "3");
    assert!(it.client.read("x.table").starts_with("1.0.0.2 1 00-00-00-00-00-02 "));
    // One of its own again.
    it.swap(&config("", "")).unwrap();
    assert_eq!((it.client.read("x.length"), it.client.read("c.count")), ("0".into(), "3".into()));
    it.end();
}

#[test]
fn files_that_are_written_go_on() {
    let dump = folder("hot-swap").join("goes-on.pcap");
    let to = format!("ToDump({}, ENCAP IP, UNBUFFERED true)", dump.display());
    let config = |more: &str| {
        format!("s :: InfiniteSource(LENGTH 60, LIMIT 5) {more} -> c :: Counter -> d :: {to}")
    };
    let mut it = run("files", &[], &config(""));
    it.client.wait_for("d.count", "5");
    it.swap(&config("-> Null")).unwrap();
    it.client.write("s.reset", "");
    it.client.wait_for("d.count", "10");
    it.end();
    // A header, and ten packets of 60 bytes with their own.
    assert_eq!(std::fs::metadata(&dump).unwrap().len(), 24 + 10 * 76);
}

#[test]
fn a_refused_configuration_leaves_files_alone() {
    let folder = folder("hot-swap/refused");
    let [old, new] = ["old", "new"].map(|name| folder.join(name));
    for file in [&old, &new] {
        _ = std::fs::remove_file(file);
    }
    let [was, name] = [&old, &new].map(|file| file.display().to_string());
    let config = format!(
        "s :: InfiniteSource(LENGTH 60, LIMIT 5) -> c :: Counter -> d :: ToDump({was}, ENCAP IP);"
    );
    let mut it = run("refused", &[], &config);
    it.client.wait_for("d.count", "5");
    it.client.write("d.flush", "");
    let before = std::fs::read(&old).unwrap();
    assert_eq!(before.len(), 24 + 5 * 76);
    for file in [&was, &name] {
        for element in [
            format!("ToDump({file})"),
            format!("ToIPSummaryDump({file})"),
            format!("IPPrint(OUTFILE {file}) -> Discard"),
            format!("ARPPrint(OUTFILE {file}) -> Discard"),
            format!("MarkIPHeader -> AggregateIPFlows(TRACEINFO {file}) -> Discard"),
        ] {
            let wrong = format!("{config} Idle -> {element}; Idle -> ToDump(/no/such/folder/file)");
            let said = it.swap(&wrong).unwrap_err();
            assert!(said.contains("/no/such/folder/file"), "{said}");
            assert_eq!(std::fs::read(&old).unwrap(), before, "{element}");
            assert!(!new.exists(), "{element}");
        }
    }
    // In a valid configuration, another element takes the file over, and empties it.
    let other = config.replace(" d ::", " e ::").replace("s ::", "t ::");
    it.swap(&other).unwrap();
    it.client.wait_for("e.count", "5");
    it.end();
    assert_eq!(std::fs::read(&old).unwrap().len(), before.len());
}

#[test]
fn an_element_takes_other_arguments_while_it_runs() {
    let dump = folder("hot-swap").join("arguments.pcap");
    let config = format!(
        "s :: InfiniteSource(LIMIT 40) -> c :: Counter -> q :: Queue(100) -> u :: Unqueue(ACTIVE false)
           -> p :: Paint(1) -> d :: ToDump({}, ENCAP IP)",
        dump.display()
    );
    let mut it = run("arguments", &["-j", "2"], &config);
    it.client.wait_for("q.length", "40");
    it.client.write("q.config", "50");
    it.client.write("p.config", "COLOR 7");
    for (handler, value) in
        [("q.capacity", "50"), ("q.config", "50"), ("q.length", "40"), ("p.color", "7")]
    {
        assert_eq!(it.client.read(handler), value, "{handler}");
    }
    assert!(it.client.read("flatconfig").contains("q :: Queue(50);"));
    assert!(it.client.read("q.handlers").contains("config\trw\n"));
    for (handler, value, words) in [
        ("q.config", "many", "CAPACITY: invalid number"),
        ("p.config", "1, 2, 3", "too many arguments"),
        ("d.config", "/nowhere/at/all", "cannot go on under other arguments"),
        ("cs.config", "UNIX, /tmp/elsewhere", "read-only"),
    ] {
        it.client.say(&format!("WRITE {handler} {value}\n"));
        let (code, said) = it.client.answer();
        assert!(code != 200 && said.contains(words), "{handler}: {said}");
    }
    it.client.write("u.config", "ACTIVE true");
    it.client.wait_for("d.count", "40");
    it.end();
    // At once, for a script that goes on.
    let script = "Script(write q.config 7, print $(q.capacity), write q.config none, stop)";
    let ran = click(&["--simtime", "-e", &format!("Idle -> q :: Queue -> Idle; {script}")], b"");
    assert_eq!(ran.out, "7\n");
    assert!(ran.err.contains("  CAPACITY: invalid number"), "{}", ran.err);
}

#[test]
fn scripts_begin_anew_and_may_ask_themselves() {
    let second = "c :: Counter; RatedSource(RATE 10) -> c -> Discard;
                  DriverManager(print \"second\" $(c.count), wait 1s, print $(c.count), stop)";
    let file = folder("hot-swap").join("second.click");
    std::fs::write(&file, second).unwrap();
    let first = format!(
        "c :: Counter; RatedSource(RATE 10) -> c -> Discard;
         DriverManager(wait 2s, print \"first\" $(c.count),
                       write hotconfig $(cat {}), wait 100s, print \"never\")",
        file.display()
    );
    let ran = click(&["--allow-reconfigure", "--simtime", "-e", &first], b"");
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let counts: Vec<u64> =
        ran.out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(ran.out.starts_with("first ") && ran.out.contains("\nsecond "), "{}", ran.out);
    // The counter has gone on, by what ten a second come to.
    assert!((20..=21).contains(&counts[0]) && counts[1] == counts[0], "{counts:?}");
    assert!((counts[1] + 10..=counts[1] + 11).contains(&counts[2]), "{counts:?}");
}

/// Runs a configuration that another replaces after its step, and prints when it is over.
fn replaced(name: &str, words: &[&str], first: &str, second: &str) -> crate::program::RunResult {
    let file = folder("hot-swap").join(name);
    std::fs::write(&file, second).unwrap();
    let first = first.replace("SECOND", &format!("$(cat {})", file.display()));
    click(&[&["-R"], words, &["-e", &first]].concat(), b"")
}

#[test]
fn the_end_of_the_old_driver_stops_nothing() {
    let second = "DriverManager(wait 0.1s, print \"second\", stop)";
    for first in [
        "DriverManager(write hotconfig SECOND, print \"rest\")",
        "DriverManager(wait 0.05s, write hotconfig SECOND, print \"rest\", stop)",
        "Script(wait 0.05s, write hotconfig SECOND, print \"rest\", stop)",
        "Script(wait 0.05s, write hotconfig SECOND, print \"rest\"); Script(wait 0.05s, print \"never\", stop)",
        "DriverManager(wait 0.05s, write hotconfig SECOND, print \"rest\", write stop)",
    ] {
        for words in [&["--simtime"] as &[&str], &[], &["-j", "2"]] {
            let ran = replaced("driver.click", words, first, second);
            let (status, said) = (ran.status, ran.out.as_str());
            assert_eq!((status, said), (Some(0), "rest\nsecond\n"), "{first}: {}", ran.err);
        }
    }
}

#[test]
fn packets_that_wait_in_a_table_go_over_or_are_freed() {
    let querier = |table: &str, with: &str| {
        format!(
            "{table} InfiniteSource(LIMIT 3) -> SetIPAddress(1.0.0.2)
               -> x :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1{with}) -> Discard; x[1] -> Discard;
             Idle -> [1] x;"
        )
    };
    let table = "t :: ARPTable;";
    let (own, shared) = (querier("", ""), querier(table, ", TABLE t"));
    let renamed = querier("u :: ARPTable;", ", TABLE u");
    let driver = |length: &str| format!("DriverManager(wait 1.5s, print $({length}), stop)");
    for (first, second, length, left) in [
        (&own, own.clone(), "x.length", "3\n"),
        (&own, querier("", ", CAPACITY 77"), "x.length", "3\n"),
        (&own, shared.clone(), "t.length", "3\n"),
        (&own, "x :: Null; Idle -> x -> Discard;".into(), "x.name", "x\n"),
        (&shared, shared.clone(), "t.length", "3\n"),
        (&shared, querier("t :: ARPTable(CAPACITY 10);", ", TABLE t"), "t.length", "3\n"),
        (&shared, table.into(), "t.length", "3\n"),
        (&shared, own.clone(), "x.length", "0\n"),
        (&shared, renamed, "u.length", "0\n"),
        (&shared, "Idle -> t :: Null -> Discard;".into(), "t.name", "t\n"),
    ] {
        let first = format!("{first} DriverManager(wait 0.1s, write hotconfig SECOND)");
        let second = second + &driver(length);
        let ran = replaced("waiting.click", &["--simtime"], &first, &second);
        assert_eq!((ran.status, ran.out.as_str()), (Some(0), left), "{second}: {}", ran.err);
    }
    let ran = click(&["--simtime", "-e", &format!("{shared} {}", driver("t.length"))], b"");
    assert_eq!((ran.status, ran.out.as_str()), (Some(0), "3\n"), "{}", ran.err);
}

/// Later fragments that wait for the first one of their packet go on with it in the next
/// configuration, or are dropped under a name; none leaks, or the program would end otherwise.
#[test]
fn fragments_that_wait_go_over_or_are_dropped() {
    let packet = |name: &str, data: &str| {
        format!(
            "{name} :: InfiniteSource(DATA \\<{data}>, LIMIT 1) -> MarkIPHeader -> x;
             x -> c :: Counter -> Discard"
        )
    };
    let later = packet("later", "4500001800010002401100000100000102000002 6c617465");
    let first = packet(
        "first",
        "4500002400012000401100000100000102000002 000900500014000061207061636b6574",
    );
    let end = |read: &str| format!("DriverManager(wait 0.1s, print \"{read}\", stop)");
    let counts = "$(x.waiting_fragments) $(c.count)";
    let [middlebox, rewriter] = [
        "x :: Middlebox(udp-dport 5000 drop",
        "x :: UDPRewriter(pattern 9.9.9.9 1024-65535 - - 0 0, FRAGMENTS true",
    ];
    let null = "x :: Null";
    for (before, after, read, said) in [
        (middlebox, format!("{middlebox});"), counts, "0 2\n"),
        (middlebox, format!("{middlebox}, tcp-syn drop, MTU 99);"), counts, "0 2\n"),
        (middlebox, "x :: Middlebox(ip-saddr 9.9.9.9 drop);".into(), counts, "1 1\n"),
        (middlebox, format!("{null};"), "$(c.count)", "1\n"),
        (rewriter, format!("{rewriter});"), "$(c.count)", "2\n"),
        (rewriter, format!("{rewriter}, MAPPING_CAPACITY 7);"), "$(c.count)", "2\n"),
        (rewriter, "x :: UDPRewriter(pass 0);".into(), "$(c.count)", "1\n"),
        (rewriter, format!("{null};"), "$(c.count)", "1\n"),
    ] {
        let old = format!("{before}); {later}; DriverManager(wait 0.1s, write hotconfig SECOND)");
        let new = format!("{after} {first}; {}", end(read));
        let ran = replaced("fragments.click", &["--simtime"], &old, &new);
        assert_eq!((ran.status, ran.out.as_str()), (Some(0), said), "{new}: {}", ran.err);
    }
}

#[test]
fn a_configuration_that_cannot_be_initialized_answers_with_all_lines() {
    let said = |second: &str| {
        let first = "DriverManager(write hotconfig SECOND, stop)";
        replaced("refused.click", &["--simtime"], first, second).err
    };
    let lines = said("Idle -> Print");
    let end = "config:1: 'Print@2 :: Print' output 0 unused\nRouter could not be initialized!\n";
    let flush: String = lines.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    assert!(flush.ends_with(end), "{lines}");
    for wrong in ["Idle -> ->", "Idle -> x :: Foo -> Discard"] {
        assert!(!said(wrong).contains("initialized"), "{wrong}");
    }
}

#[test]
fn sockets_of_the_command_line_stay_and_settings_hold() {
    let path = socket("line");
    let by_name = folder("hot-swap").join("click");
    _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_castanet"), &by_name);
    let config = "s :: InfiniteSource(LIMIT $n) -> c :: Counter -> Discard";
    let command = castanet_lab::Command::on_host(&by_name)
        .args(["-R", "-u", path.to_str().unwrap(), "n=30", "-e", config])
        .timeout(PATIENCE);
    let process = command.spawn().unwrap();
    let start = Instant::now();
    while UnixStream::connect(&path).is_err() {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let mut client = Client::new(&path);
    client.wait_for("c.count", "30");
    client
        .swap("s :: InfiniteSource(LIMIT $n) -> d :: Counter -> c :: Counter -> Discard")
        .unwrap();
    assert_eq!(client.read("c.count"), "30");
    assert_eq!(client.swap("Idle -> x :: Foo -> Discard").unwrap_err(), {
        let words = "Write handler 'hotconfig' error:\nconfig:1: unknown element class 'Foo'";
        words.to_owned()
    });
    client.write("stop", "");
    assert!(process.finish(PATIENCE).unwrap().success());
}
