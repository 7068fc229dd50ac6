//! `castanet trace`: what elements do to the next packets of a running router.

use super::capture::{lines_of, tshark};
use super::{RuntimeFolder, ends_well, fails, hang_up, has_members};
use crate::control::{PATIENCE, connect, talk};
use crate::program::wait_until;
use castanet_lab::Process;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Three ways: one with changes to its end, one to a drop, one into a queue that is opened by a handler.
const WAYS: &str = "
    s :: RatedSource(\\<4500001c00000000400166e10a000001 0a0000020800f7ff00000000>, 200)
        -> MarkIPHeader -> ttl :: DecIPTTL -> p :: Paint(3) -> d :: Discard;
    u :: RatedSource(\\<4500001c00000000011100000a000003 0a0000040009000900080000>, 200)
        -> MarkIPHeader -> old :: DecIPTTL -> e :: Discard;
    k :: RatedSource(\\<4500002800000000400666d00a000005 0a00000600010050000000000000000050022000 00000000>, 10)
        -> MarkIPHeader -> q :: Queue(1000) -> un :: Unqueue(ACTIVE false) -> g :: Discard;\n";

/// The steps that `castanet trace --json` prints with these words.
fn steps(it: &RuntimeFolder, words: &[&str]) -> Vec<Value> {
    lines_of(&it.output(&[&["trace", "--json"], words].concat()))
}

/// The elements of a packet's steps, each with the kind of step.
fn way(steps: &[Value]) -> Vec<(&str, &str)> {
    steps.iter().map(|it| (it["element"].as_str().unwrap(), it["step"].as_str().unwrap())).collect()
}

/// Insists that eight traces can be started: that none was left behind. Ends them.
#[track_caller]
pub(super) fn no_session_is_left(it: &RuntimeFolder, instance: &str) {
    let start =
        "READ trace start {\"packets\":1,\"snap_len\":9,\"pattern\":\"src host 9.9.9.9\"}\n";
    let socket = it.socket(instance);
    let said = talk(&socket, &start.repeat(8));
    let numbers: Vec<&str> =
        said.split("{\"session\":").skip(1).map(|it| it.split('}').next().unwrap()).collect();
    for number in &numbers {
        talk(&socket, &format!("READ trace stop {number}\n"));
    }
    assert_eq!(numbers.len(), 8, "{said}");
}

#[test]
fn the_way_of_a_packet_is_told_in_order() {
    let it = RuntimeFolder::new("trace");
    let _one = it.instance("one", WAYS);
    let text = it.output(&["trace", "-n", "2", "icmp"]);
    let packets: Vec<&str> = text.split("\n\n").filter(|packet| !packet.is_empty()).collect();
    assert_eq!(packets.len(), 2, "{text}");
    for (number, packet) in (1..).zip(packets) {
        let lines: Vec<&str> = packet.lines().collect();
        assert!(lines[0].starts_with(&format!("packet {number}  2")), "{packet}");
        assert!(lines[0].ends_with("  worker 0"), "{packet}");
        assert_eq!(lines[1], "  s :: RatedSource [0]", "{packet}");
        assert!(lines[2].starts_with("      10.0.0.1 > 10.0.0.2 icmp echo"), "{packet}");
        assert!(lines[2].ends_with("   (28 bytes)"), "{packet}");
        let at = |start: &str, end: &str| {
            let found = lines.iter().position(|it| it.starts_with(start) && it.contains(end));
            found.unwrap_or_else(|| panic!("no {start:?} with {end:?} in {packet}"))
        };
        let ttl = at("  [0] ttl :: DecIPTTL -> [0]  ", " ns");
        // The changed words have marks where there are no colours.
        let (changed, marks) = (lines[ttl + 1], lines[ttl + 2]);
        assert!(!text.contains('\x1b'), "{text:?}");
        let column = changed.find("ttl 63").unwrap_or_else(|| panic!("{packet}")) + 4;
        assert_eq!(marks.get(column..column + 2), Some("^^"), "{packet}");
        assert_eq!(marks.get(column - 1..column), Some(" "), "{packet}");
        let paint = at("  [0] p :: Paint -> [0]  ", " ns");
        assert_eq!(lines[paint + 1], "      annotations: paint 0 -> 3");
        let end = at("  [0] d :: Discard  ", " ns");
        assert_eq!(lines[end + 1], "      ends here");
        assert!(ttl < paint && paint < end && end + 2 == lines.len(), "{packet}");
    }
    let text = it.output(&["trace", "-n", "1", "udp"]);
    let told = "      dropped: expired. Packets whose TTL has expired";
    assert!(text.contains("  [0] old :: DecIPTTL  ") && text.contains(told), "{text}");
    assert!(!text.contains("Discard"), "{text}");
    no_session_is_left(&it, "one");
}

#[test]
fn options_may_stand_behind_the_pattern() {
    let it = RuntimeFolder::new("trace-words");
    let _one = it.instance("one", WAYS);
    let behind = it.output(&["trace", "udp", "-n", "1"]);
    assert_eq!(behind.matches("packet 1  ").count(), 1, "{behind}");
    let several = it.output(&["trace", "src", "host", "10.0.0.3", "--json", "-n", "1"]);
    assert_eq!(lines_of(&several)[0]["element"], "u");
    assert_eq!(it.client(&["trace", "-n=-1"], "").status, Some(2));
    assert_eq!(it.client(&["trace", "--no-such-option"], "").status, Some(2));
    // A pattern whose first sign is a hyphen means all packets.
    assert!(it.output(&["trace", "-n", "1", "-"]).starts_with("packet 1 "));
}

#[test]
fn a_packet_that_is_kept_is_followed_until_it_leaves() {
    let it = RuntimeFolder::new("trace-kept");
    let _one = it.instance("one", WAYS);
    // It stays, and the client does not wait for ever.
    let text = it.output(&["trace", "-n", "1", "--wait", "0.1", "tcp"]);
    assert!(text.contains("  [0] q :: Queue  ") && text.ends_with("      kept\n\n"), "{text}");
    let all = ["trace", "-n", "1", "--wait", "60", "tcp"];
    let client = it.command(&all).spawn().unwrap();
    let number = || it.number("one", "q.length");
    let before = number();
    wait_until("no packet is kept", || number() > before + 10);
    it.output(&["ctl", "one", "write", "un.active", "true"]);
    let text = ends_well(client);
    let places =
        ["      kept\n", "  q :: Queue: lets it go after ", "  [0] g :: Discard  ", "ends here\n"];
    let places: Vec<usize> = places
        .iter()
        .map(|it| text.find(it).unwrap_or_else(|| panic!("no {it:?}: {text}")))
        .collect();
    assert!(places.is_sorted(), "{text}");
    no_session_is_left(&it, "one");
}

#[test]
fn steps_are_told_as_json() {
    let it = RuntimeFolder::new("trace-json");
    let _one = it.instance("one", WAYS);
    let list = steps(&it, &["-n", "1", "--from", "s"]);
    let mark = list[1]["element"].as_str().unwrap();
    let visited = |name| (name, "visited");
    let expected = [
        ("s", "entered"),
        visited(mark),
        visited("ttl"),
        visited("p"),
        visited("d"),
        ("d", "finished"),
    ];
    assert_eq!(way(&list), expected);
    for step in &list {
        assert_eq!((&step["number"], &step["worker"]), (&json!(1), &json!(0)), "{step}");
        assert!(step["time"].as_i64() > Some(1_600_000_000_000_000_000), "{step}");
    }
    let common = ["number", "time", "worker", "element", "class", "step"];
    has_members(&list[0], &[&common[..], &["output", "packet"]].concat());
    has_members(&list[2], &[&common[..], &["input", "before", "nanoseconds", "results"]].concat());
    has_members(&list[5], &common);
    let ttl = &list[2]["results"];
    assert_eq!((&ttl[0]["result"], &ttl[0]["output"]), (&json!("sent"), &json!(0)));
    let bytes = |packet: &Value| packet["bytes"].as_str().unwrap().to_owned();
    assert_eq!(&bytes(&list[2]["before"])[..20], "4500001c000000004001");
    assert_eq!(&bytes(&ttl[0]["packet"])[..20], "4500001c000000003f01");
    assert_eq!(list[3]["results"][0]["packet"]["paint"], 3);
    assert_eq!(list[4]["results"], json!([{ "result": "consumed" }]));
    let list = steps(&it, &["-n", "1", "--from", "u", "--snaplen", "20"]);
    let drop = &list.iter().find(|it| it["element"] == "old").unwrap()["results"][0];
    assert_eq!((&drop["result"], &drop["reason"]), (&json!("dropped"), &json!("expired")));
    assert!(drop["meaning"].as_str().unwrap().starts_with("Packets whose TTL"), "{drop}");
    assert_eq!(bytes(&list[0]["packet"]).len(), 40);
    assert_eq!(list[0]["packet"]["length"], 28);
    let list = steps(&it, &["-n", "1", "--tcpdump", "icmp[icmptype] = icmp-echo"]);
    assert_eq!(list[0]["element"], "s");
}

#[test]
fn wrong_requests_for_a_trace_are_explained() {
    let it = RuntimeFolder::new("trace-wrong");
    let _one = it.instance("one", WAYS);
    let trace = |words: &[&str]| it.client(&[&["trace"], words].concat(), "");
    fails(&trace(&["udp && dts port 53"]), 1, &["dts", "'udp && dts port 53'"]);
    fails(&trace(&["--tcpdump", "udp prt 5"]), 1, &["udp prt 5", "syntax error"]);
    fails(&trace(&["--from", "nobody"]), 1, &["'nobody'"]);
    for words in [&["-n", "0"][..], &["-n", "x"], &["--wait=-1"], &["--wait=nan"]] {
        assert_eq!(trace(words).status, Some(2), "{words:?}");
    }
    fails(&trace(&["-i", "two"]), 1, &["two"]);
    no_session_is_left(&it, "one");
}

#[test]
fn help_says_what_would_be_right_for_a_trace() {
    let it = RuntimeFolder::new("trace-help");
    let _one = it.instance("one", WAYS);
    let trace = |words: &[&str]| it.client(&[&["trace"], words].concat(), "");
    fails(&trace(&["--from", "completely-different"]), 1, &["packets come from", "s, u, k"]);
    fails(&trace(&["udp && dts port 53"]), 1, &["IPFilter"]);
}

#[test]
fn a_trace_to_which_no_packet_belongs_ends_by_ctrl_c() {
    let it = RuntimeFolder::new("trace-none");
    let _one = it.instance("one", WAYS);
    let client = it.command(&["trace", "src host 9.9.9.9"]).spawn().unwrap();
    // It runs as soon as one trace fewer fits.
    let full = || talk(&it.socket("one"), "READ trace next 1\n").contains("\"remaining\":5");
    wait_until("no trace begins", full);
    client.interrupt();
    assert_eq!(ends_well(client), "castanet: no packet came\n");
    no_session_is_left(&it, "one");
}

#[test]
fn a_trace_is_a_file_for_wireshark() {
    let it = RuntimeFolder::new("trace-file");
    let _one = it.instance("one", WAYS);
    let client = it.client(&["trace", "-n", "2", "-w", "t.pcapng", "--from", "s"], "");
    assert_eq!((client.status, client.out.as_str()), (Some(0), ""), "{}", client.err);
    assert_eq!(client.err, "castanet: 2 packets in t.pcapng\n");
    let fields = ["frame.interface_name", "frame.interface_description", "ip.ttl", "frame.comment"];
    let table = tshark(&it, "t.pcapng", &fields);
    assert_eq!(table.len(), 10, "{table:?}");
    let row = |at: usize, column: usize| table[at][column].as_str();
    assert_eq!([row(0, 0), row(2, 0), row(3, 0), row(4, 0)], ["s", "ttl", "p", "d"]);
    assert_eq!([row(0, 1), row(2, 1), row(4, 1)], ["RatedSource", "DecIPTTL", "Discard"]);
    assert_eq!([row(2, 2), row(3, 2)], ["64", "63"]);
    assert!(row(4, 3).starts_with("packet 1, step 5: d :: Discard [0], "), "{table:?}");
    assert!(
        row(4, 3).contains("ends here") && row(4, 3).contains("way: s > MarkIPHeader"),
        "{table:?}"
    );
    assert!(row(4, 3).ends_with(" > ttl > p > d"), "{table:?}");
    assert!(row(9, 3).starts_with("packet 2, "), "{table:?}");
    // A file that cannot be written leaves no trace behind.
    for (file, why) in [("none/t.pcapng", "No such file"), (".", "Is a directory")] {
        let client = it.client(&["trace", "-n", "1", "-w", file], "");
        fails(&client, 1, &[file, why]);
        no_session_is_left(&it, "one");
    }
    fails(&it.client(&["trace", "-n", "1", "-w", "/dev/full"], ""), 1, &["/dev/full", "No space"]);
    no_session_is_left(&it, "one");
}

/// A trace to which 400 packets belong, at 200 a second, as soon as it has the first steps of them.
fn long_trace(it: &RuntimeFolder) -> Process {
    let words = ["trace", "--json", "-n", "400", "--from", "s"];
    let mut client = it.command(&words).spawn().unwrap();
    client.wait_for("\"step\":\"finished\"", PATIENCE).unwrap();
    client
}

#[test]
fn a_trace_goes_on_through_reloads() {
    let it = RuntimeFolder::new("trace-reload");
    let one = it.instance("one", WAYS);
    let client = long_trace(&it);
    // With another element on the way, and others in front of it: the numbers of all elements change.
    let text = WAYS.replace("-> p :: Paint(3)", "-> new :: Counter -> p :: Paint(4)");
    it.write("one.click", &format!("Idle -> Null -> Discard; {text}"));
    it.output(&["ctl", "one", "reload"]);
    hang_up(&one);
    let said = ends_well(client);
    let list = lines_of(&said);
    let of = |number: u64| list.iter().filter(move |it| it["number"] == number);
    assert_eq!(list.iter().filter(|it| it["step"] == "finished").count(), 400);
    assert!(of(1).all(|it| it["element"] != "new"));
    let last: Vec<Value> = of(400).cloned().collect();
    let last: Vec<&str> = way(&last).iter().map(|it| it.0).collect();
    assert_eq!(last[last.len() - 4..], ["new", "p", "d", "d"], "{said}");
    // Without its source it stays silent.
    let mut client =
        it.command(&["trace", "--from", "s", "-n", "100000", "--json"]).spawn().unwrap();
    client.wait_for("finished", PATIENCE).unwrap();
    it.write("one.click", "Idle -> Discard;");
    it.output(&["ctl", "one", "reload"]);
    assert!(client.is_running(), "{}", client.stderr());
    client.interrupt();
    ends_well(client);
    no_session_is_left(&it, "one");
    it.output(&["ctl", "one", "stop"]);
    ends_well(one);
}

#[test]
fn several_look_at_packets_at_a_time() {
    let it = RuntimeFolder::new("trace-several");
    let one = it.instance("one", WAYS);
    let long = long_trace(&it);
    let capture = it.command(&["capture", "--json", "-n", "300", "ttl", "ttl[0]"]).spawn().unwrap();
    let top = it.command(&["top", "one", "--once", "--json", "--interval", "0.3"]).spawn().unwrap();
    let other = it.command(&["trace", "-n", "50", "--json", "udp"]).spawn().unwrap();
    let whole = |process: Process, packets: usize| {
        let list = lines_of(&ends_well(process));
        let entered = list.iter().filter(|it| it["step"] == "entered").count();
        let finished = list.iter().filter(|it| it["step"] == "finished").count();
        assert_eq!((entered, finished), (packets, packets));
    };
    whole(other, 50);
    assert!(ends_well(top).contains("\"elements\""));
    let captured = lines_of(&ends_well(capture));
    assert_eq!(captured.len(), 300);
    // Each packet comes, and leaves: also those that are traced.
    let count = |place: &str| captured.iter().filter(|it| it["place"] == place).count();
    assert!(count("input").abs_diff(count("output")) <= 1, "{captured:?}");
    whole(long, 400);
    no_session_is_left(&it, "one");
    it.output(&["ctl", "one", "stop"]);
    ends_well(one);
}

#[test]
fn a_ninth_trace_is_refused() {
    let it = RuntimeFolder::new("trace-nine");
    let _one = it.instance("one", WAYS);
    let socket = it.socket("one");
    let said = talk(&socket, &request(&json!({})).repeat(8));
    assert_eq!(said.matches("200 Read").count(), 8, "{said}");
    let ninth = || it.client(&["trace", "-n", "1", "--from", "s"], "");
    fails(&ninth(), 1, &["there are 8 traces and captures already"]);
    fails(&it.client(&["capture", "-n", "1"], ""), 1, &["there are 8 traces and captures"]);
    talk(&socket, "READ trace stop 1\n");
    assert_eq!(ninth().status, Some(0));
}

#[test]
fn the_shell_traces_and_captures() {
    let it = RuntimeFolder::new("trace-shell");
    let _one = it.instance("one", WAYS);
    let input = "trace -n 1 udp\ncapture -n 2 --text ttl\nread ttl.class\ntrace --from nobody\n";
    let result = it.client(&["ctl", "one"], input);
    fails(&result, 1, &["'nobody'"]);
    assert!(result.out.starts_with("packet 1  "), "{}", result.out);
    assert_eq!(
        result.out.matches(" [0]ttl  10.0.0.1 > 10.0.0.2 icmp").count(),
        2,
        "{}",
        result.out
    );
    assert!(result.out.ends_with("\nDecIPTTL\n"), "{}", result.out);
    let result = it.client(&["ctl", "one", "trace", "-n", "1", "udp"], "");
    assert_eq!(result.status, Some(0), "{}", result.err);
    assert!(result.out.contains("dropped: expired"), "{}", result.out);
    no_session_is_left(&it, "one");
}

/// A request for a trace with these members in place of others.
fn request(members: &Value) -> String {
    let mut query = json!({ "packets": 1, "snap_len": 64, "pattern": "src host 9.9.9.9" });
    query.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    format!("READ trace start {query}\n")
}

#[test]
fn hostile_requests_are_for_their_sender_alone() {
    let it = RuntimeFolder::new("trace-hostile");
    let one = it.instance("one", WAYS);
    let socket = it.socket("one");
    for words in ["", " ", " start", " start garbage", " start {}", " bluh 1", " next", " next -1"]
    {
        let said = talk(&socket, &format!("READ trace{words}\nREAD capture{words}\n"));
        assert_eq!(said.matches("590-Read handler").count(), 2, "{words}: {said}");
    }
    for words in ["next 99", "stop 99", "next 99999999999999999999"] {
        let said = talk(&socket, &format!("READ trace {words}\nREAD capture {words}\n"));
        assert_eq!(said.matches("590-Read handler").count(), 2, "{words}: {said}");
    }
    let deep = "[".repeat(100_000);
    let long = "udp && ".repeat(20_000);
    let brackets = "(".repeat(100_000);
    for wrong in [
        format!("READ trace start {deep}\n"),
        format!("READ capture start {{\"places\":{deep}\n"),
        request(&json!({ "packets": -1 })),
        request(&json!({ "packets": 1e30 })),
        request(&json!({ "snap_len": -1 })),
        request(&json!({ "pattern": "udp\0" })),
        request(&json!({ "pattern": "udp \r\n 590" })),
        request(&json!({ "pattern": long })),
        request(&json!({ "pattern": brackets })),
        request(&json!({ "pattern": "!".repeat(1 << 20) })),
        request(&json!({ "tcpdump": "udp\0" })),
        request(&json!({ "tcpdump": brackets })),
        request(&json!({ "tcpdump": "not ".repeat(100_000) })),
        request(&json!({ "from": "s\0" })),
    ] {
        let said = talk(&socket, &wrong);
        let start = &said[..said.len().min(300)];
        assert!(
            said.starts_with("590-Read handler 'trace' error:\r\n590")
                || said.starts_with("590-Read handler 'capture'"),
            "{start}"
        );
        // All lines of the answer have the number.
        assert!(said.lines().all(|line| line.starts_with("590")), "{start}");
    }
    // Strange and possible.
    let strange = [
        request(&json!({ "snap_len": 0, "pattern": "" })),
        request(&json!({ "snap_len": usize::MAX, "packets": u32::MAX })),
        request(&json!({ "packets": 0 })),
        request(&json!({ "pattern": "udp\n" })),
        request(&json!({ "unknown": [1, 2, 3] })),
    ];
    for request in &strange {
        let said = talk(&socket, request);
        assert!(said.starts_with("200 "), "{request}: {said}");
        let number: u64 =
            said.split("{\"session\":").nth(1).unwrap().trim_end_matches('}').parse().unwrap();
        let said = talk(
            &socket,
            &format!(
                "READ trace next {number}\nREAD trace stop {number}\nREAD trace next {number}\n"
            ),
        );
        assert_eq!(
            (said.matches("200 Read").count(), said.matches("590-Read").count()),
            (2, 1),
            "{said}"
        );
    }
    assert_eq!(it.output(&["trace", "-n", "1", "-s", "0"]).matches("packet 1").count(), 1);
    no_session_is_left(&it, "one");
    it.output(&["ctl", "one", "stop"]);
    let said = ends_well(one);
    assert!(!said.contains("panic"), "{said}");
}

#[test]
fn steps_that_nobody_fetches_have_a_bound() {
    let it = RuntimeFolder::new("trace-memory");
    let outputs: Vec<String> = (1..8).map(|n| format!("t[{n}] -> Discard;")).collect();
    let config = format!(
        "InfiniteSource(LENGTH 60000) -> t :: Tee(8) -> c :: Counter -> Discard; {}",
        outputs.concat()
    );
    let one = it.instance("one", &config);
    let before = one.memory();
    let socket = it.socket("one");
    let query = json!({ "pattern": "", "packets": u32::MAX, "snap_len": 65_535 });
    assert!(talk(&socket, &request(&query)).starts_with("200 "));
    // The time of the lease is not needed: memory grows at once.
    let more = || one.memory().saturating_sub(before) >> 20;
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(4) && more() < 256 {
        std::thread::sleep(Duration::from_millis(50));
    }
    let more = more();
    drop(one);
    assert!(more < 256, "{more} MB of steps wait for a client that does not read");
}

/// A client that asks as fast as it is answered.
struct FastClient(BufReader<UnixStream>);

impl FastClient {
    fn new(it: &RuntimeFolder) -> FastClient {
        let mut client = FastClient(BufReader::new(connect(&it.socket("one"))));
        client.line();
        client
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    /// The value of a handler.
    fn read(&mut self, handler: &str) -> Value {
        self.0.get_mut().write_all(format!("READ {handler}\n").as_bytes()).unwrap();
        let said = self.line();
        assert!(said.starts_with("200 "), "{said}");
        let length = self.line().trim_start_matches("DATA ").trim_end().parse().unwrap();
        let mut value = vec![0; length];
        self.0.read_exact(&mut value).unwrap();
        serde_json::from_slice(&value).unwrap()
    }
}

#[test]
fn no_answer_says_that_all_is_there_before_it_is() {
    let it = RuntimeFolder::new("trace-race");
    let _one = it.instance("one", "RatedSource(LENGTH 60, RATE 500) -> Discard;");
    let mut client = FastClient::new(&it);
    let mut early = Vec::new();
    for what in ["trace", "capture"] {
        for _ in 0..400 {
            let start = client.read(&format!("{what} start {{\"packets\":1,\"snap_len\":60}}"));
            let number = &start["session"];
            let mut received = 0;
            loop {
                let answer = client.read(&format!("{what} next {number}"));
                let news = answer["steps"].as_array().or(answer["packets"].as_array());
                received += news.unwrap().len();
                // `castanet trace` and `castanet capture` end with an answer of this kind.
                if answer["remaining"] == 0 || answer["is_full"] == true {
                    break;
                }
            }
            if received == 0 {
                early.push(what);
            }
            client.read(&format!("{what} stop {number}"));
        }
    }
    assert!(early.is_empty(), "{} of 800 have ended without their packet: {early:?}", early.len());
}
