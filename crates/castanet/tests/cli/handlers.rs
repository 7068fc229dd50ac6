//! Handlers of every class from outside: `click` and a Script play the manual's examples, and the
//! handlers return the values that the examples give.

use crate::program::{RunResult, click, folder, link, root, run};
use castanet_wire::sketch::{self, Layer};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;

/// The examples that a configuration cannot play for itself, and why.
const BY_HAND: [(&str, &str); 24] = [
    ("AggregateCounter, example 2", "it stops the driver"),
    ("AggregateCounterVector, example 1", "it stops the driver"),
    ("FastUDPFlows, example 2", "it stops the driver"),
    ("ICMPPingSource, example 2", "it stops the driver"),
    ("FromIPSummaryDump, example 1", "it stops the driver"),
    ("FromTcpdump, example 1", "it stops the driver"),
    ("IP6Encap, example 1", "its packets have a destination that no element sets"),
    ("IP6NDSolicitor, example 1", "its packets have a destination that no element sets"),
    ("IPRateMonitor, example 1", "a value has commas"),
    ("IPOutputCombo, example 1", "its packets have a mark that no element sets"),
    ("Queue, example 1", "sources wait while the queue is full"),
    ("Queue, example 2", "sources wait while the queue is full"),
    ("ReplayUnqueue, example 1", "it stops the driver"),
    ("ReplayUnqueue, example 2", "it stops the driver"),
    ("ResetIPChecksum, example 1", "a Discard does not look at checksums, so they are left"),
    ("Script, example 2", "it prints what it is asked"),
    ("SplitBoxClient, example 1", "it needs the files of parties"),
    ("SplitBoxEntry, example 1", "it needs the files of parties"),
    ("SplitBoxProcessor, example 1", "it needs the files of parties"),
    ("TSCClock, example 1", "its handlers count the nanoseconds of the script"),
    ("UDPIP6Encap, example 1", "its packets have a destination that no element sets"),
    ("WasmElement, example 1", "programs without WebAssembly do not have it"),
    ("WasmElement, example 2", "programs without WebAssembly do not have it"),
    ("WasmElement, example 3", "programs without WebAssembly do not have it"),
];

/// An example of the manual, made into a configuration that plays itself.
struct ExampleScript {
    config: String,
    /// Values that the handlers must return, with their line numbers.
    wanted: Vec<(usize, String)>,
}

/// Whether a line belongs to the script rather than to the configuration.
fn is_script(line: &str) -> bool {
    line.starts_with(['>', '<', '=', '!', '~', '+']) && !line.starts_with("=>")
}

/// The examples of one page, with names for messages.
fn examples(page: &str, text: &str) -> Vec<(String, String)> {
    let blocks = text.split("```").skip(1).step_by(2).filter_map(|it| it.strip_prefix("click\n"));
    blocks.enumerate().map(|(n, it)| (format!("{page}, example {}", n + 1), it.into())).collect()
}

fn play(config: &str) -> RunResult {
    // The clock stands still but for the waits of the script.
    click(&["--simtime", "--simtick=0"], config.as_bytes())
}

/// The names that a configuration leaves undeclared, from its error messages.
fn open_ends(config: &str) -> BTreeSet<String> {
    // The configuration must not run, even if it declares all names.
    let output = play(&format!("{config}\nIdle -> nowhere;")).err;
    let names = output.lines().filter_map(|line| {
        line.split_once("undeclared element '")?.1.split_once('\'').map(|(name, _)| name.to_owned())
    });
    names.filter(|name| name != "nowhere").collect()
}

/// The elements that make one packet once, and the marks on it that an example's packet has.
fn source(number: usize, port: &str, packet: &str) -> Option<String> {
    let (text, annotations) = packet.split_once(" ; ").unwrap_or((packet, ""));
    let built = sketch::build(text.trim()).ok()?;
    let data: String = built.bytes.iter().fold(String::new(), |mut hex, byte| {
        _ = write!(hex, "{byte:02x}");
        hex
    });
    let mut chain = format!(
        "line{number} :: InfiniteSource(DATA \\<{data}>, LIMIT 1, ACTIVE false, STOP false)"
    );
    match (built.layer, built.bytes.first().map_or(0, |byte| byte >> 4)) {
        (Layer::Network, 4) => chain += " -> MarkIPHeader -> GetIPAddress(16)",
        (Layer::Network, 6) => chain += " -> MarkIP6Header -> GetIP6Address(24)",
        (Layer::Network, _) => {}
        (Layer::Ethernet, _) => chain += " -> MarkMACHeader",
    }
    for pair in annotations.split_whitespace().collect::<Vec<_>>().chunks(2) {
        chain += &match *pair {
            ["paint", color] => format!(" -> Paint({color})"),
            ["dst", address] => format!(" -> SetIPAddress({address})"),
            ["network", at] => format!(" -> MarkIPHeader({at})"),
            ["time", time] => format!(" -> SetTimestamp({time})"),
            ["type", kind] => format!(" -> SetPacketType({})", kind.to_uppercase()),
            _ => return None,
        };
    }
    Some(format!("{chain} -> {port};\n"))
}

/// A line's first word, with what stands there in brackets, and the rest.
fn split(line: &str) -> (&str, &str) {
    let first = line.find(char::is_whitespace).unwrap_or(line.len());
    let open = line[..first].find('(');
    let end = open.and_then(|open| Some(open + line[open..].find(')')? + 1)).unwrap_or(first);
    (&line[..end], &line[end..])
}

/// `None` if packets have annotations that no element sets.
fn plan(text: &str) -> Option<ExampleScript> {
    let shown: Vec<(usize, &str)> = text.lines().map(str::trim).enumerate().collect();
    let config: Vec<&str> = shown.iter().filter(|it| !is_script(it.1)).map(|it| it.1).collect();
    let mut config = config.join("\n") + ";\n";
    let (mut ports, mut ends) = (String::new(), open_ends(&config));
    let (mut steps, mut wanted) = (String::new(), Vec::new());
    for &(number, line) in shown.iter().filter(|it| is_script(it.1)) {
        let rest = line[1..].trim();
        let (name, value) = split(rest);
        match line.as_bytes()[0] {
            b'>' => {
                config += &source(number, name, value.trim())?;
                if ends.remove(name) {
                    _ = writeln!(ports, "{name} :: Null;");
                }
                _ = writeln!(steps, "write line{number}.active true, wait 0.000000001,");
            }
            b'=' => {
                let name = name.replacen('(', " ", 1).replace(')', "");
                _ = writeln!(steps, "print \"<{number}>\", print $({name}),");
                wanted.push((number, value.trim().to_owned()));
            }
            b'!' => _ = writeln!(steps, "write {name} {}, wait 0.000000001,", value.trim()),
            b'+' => _ = writeln!(steps, "wait {rest},"),
            _ => {}
        }
    }
    for end in ends {
        _ = writeln!(ports, "{end} :: Discard;");
    }
    _ = writeln!(config, "Script(wait 0.000000001, {steps}print \"<end>\", stop);");
    Some(ExampleScript { config: ports + &config, wanted })
}

/// Whether a line says which answer comes next, or that it is the end.
fn is_sign(line: &str) -> bool {
    let inside = line.strip_prefix('<').and_then(|line| line.strip_suffix('>'));
    inside.is_some_and(|it| it == "end" || it.parse::<usize>().is_ok())
}

impl ExampleScript {
    /// Differences from the values that the example gives.
    fn wrong(&self) -> Vec<String> {
        let result = play(&self.config);
        if result.status != Some(0) || !result.out.ends_with("<end>\n") {
            return vec![format!("status {:?}\n{}{}", result.status, result.out, result.err)];
        }
        let answer = |number: usize| {
            let after = result.out.split_once(&format!("<{number}>\n"))?.1;
            let end = after.match_indices('<').find(|(at, _)| {
                (*at == 0 || after[..*at].ends_with('\n'))
                    && after[*at..].lines().next().is_some_and(is_sign)
            });
            Some(after[..end?.0].trim_end().replace('\n', "\\n").replace('\t', "\\t"))
        };
        let wrong = self.wanted.iter().filter_map(|(number, want)| {
            let got = answer(*number).unwrap_or_default();
            (got != *want).then(|| format!("line {}: want {want}, got {got}", number + 1))
        });
        wrong.collect()
    }
}

#[test]
fn handlers_of_all_classes_answer_as_the_manual_says() {
    let mut pages: Vec<_> = std::fs::read_dir(root().join("docs/elements")).unwrap().collect();
    pages.sort_by_key(|page| page.as_ref().unwrap().path());
    let (mut answers, mut wrong, mut by_hand) = (0, Vec::new(), 0);
    for page in pages {
        let path = page.unwrap().path();
        let page = path.file_stem().unwrap().to_string_lossy().into_owned();
        for (name, text) in examples(&page, &std::fs::read_to_string(&path).unwrap()) {
            if !text.lines().any(|line| line.starts_with(['=', '!']) && is_script(line)) {
                continue;
            }
            if BY_HAND.iter().any(|(other, _)| *other == name) {
                by_hand += 1;
                continue;
            }
            let play = plan(&text).expect(&name);
            answers += play.wanted.len();
            wrong.extend(play.wrong().iter().map(|it| format!("{name}: {it}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(by_hand, BY_HAND.len(), "an example that has gone is still named");
    assert!(answers > 480, "{answers} answers");
}

/// Handlers that no example reads or writes: a configuration, what a script does there, and
/// what it prints.
const MORE: [(&str, &str, &str); 31] = [
    (
        "Idle -> Discard",
        "print $(mul 3 4) $(div 7 2) $(idiv 7 2) $(ceil 1.5) $(neg 5) $(avg 1 2 6),
         print $(popcount 255 0 1) $(gt_vec 2 1 2 3) $(nand true false) $(nor true false),
         print $(unquote \"a\\<62>\") $(htons 1) $(htonl 1) $(ntohs 256) $(ntohl 16777216),
         print $(hz) $(now_steady)",
        "12 3.5 3 2 -5 3\n2 1 true false\nab 256 16777216 1 1\n1000 1000000000.000000\n",
    ),
    (
        "r :: RatedSource(DATA ab, RATE 1, LIMIT 5) -> Discard;
         t :: TimedSource(DATA ab, INTERVAL 1, LIMIT 5, HEADROOM 40) -> Discard;
         i :: InfiniteSource(DATA ab, LIMIT 5, BURST 2, ACTIVE false) -> Discard",
        "print $(r.data) $(r.limit) $(t.data) $(t.limit) $(t.headroom) $(i.data) $(i.limit),
         write r.data cd, write t.data cd, write t.limit 6, write t.headroom 50,
         write i.burst 8, print $(r.data) $(t.data) $(t.limit) $(t.headroom) $(i.burst)",
        "ab 5 ab 5 40 ab 5\ncd cd 6 50 8\n",
    ),
    (
        "x :: RandomSource(64, LIMIT 5, BURST 3, ACTIVE false) -> Queue
         -> u :: Unqueue(BURST 4, LIMIT 7, ACTIVE false) -> Discard",
        "print $(x.limit) $(x.burst) $(u.burst) $(u.limit), write x.limit 9, write x.burst 1,
         write u.burst 2, write u.limit 3, print $(x.limit) $(x.burst) $(u.burst) $(u.limit)",
        "5 3 4 7\n9 1 2 3\n",
    ),
    (
        "Idle -> q :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1) -> Discard; Idle -> [1] q",
        "print $(q.ipaddr) $(q.responses) $(q.broadcast), write q.broadcast 1.0.0.255,
         write q.ipaddr 1.0.0.9, print $(q.ipaddr) $(q.broadcast)",
        "1.0.0.1 0 255.255.255.255\n1.0.0.9 1.0.0.255\n",
    ),
    (
        "Idle -> a :: AggregateCounter(AGGREGATE_CALL 3 stop) -> Discard",
        "print $(a.aggregate_call), write a.aggregate_call 5 a.clear, print $(a.aggregate_call)",
        "3 stop\n5 a.clear\n",
    ),
    (
        "b :: BalancedThreadSched(INCREASING false); c :: BalancedThreadSched",
        "print $(b.increasing) $(c.increasing)",
        "false true\n",
    ),
    (
        "InfiniteSource(\\<00>, LIMIT 2) -> c :: CheckIPHeader2(DETAILS true, VERBOSE false) -> Discard",
        "wait 1us, print $(c.drop_details)",
        "2\ttiny packet\n0\tbad IP version\n0\tbad IP header length\n0\tbad IP length\n\
         0\tbad IP checksum\n0\tbad source address\n",
    ),
    (
        "InfiniteSource(\\<00>, LIMIT 2, LENGTH 30)
         -> c :: IPInputCombo(0) -> Discard",
        "wait 1us, print $(c.drop_details)",
        "2\ttiny packet\n0\tbad IP version\n0\tbad IP header length\n0\tbad IP length\n\
         0\tbad IP checksum\n0\tbad source address\n",
    ),
    (
        "Idle -> e :: EtherEncap(0x0800, 0:0:0:0:0:1, 0:0:0:0:0:2) -> Discard",
        "write e.src 0:0:0:0:0:3, write e.ethertype 0x86dd, print $(e.src) $(e.ethertype)",
        "00-00-00-00-00-03 34525\n",
    ),
    (
        "Idle -> e :: EtherRewrite(0:0:0:0:0:1, 0:0:0:0:0:2) -> Discard",
        "write e.src 0:0:0:0:0:3, print $(e.src)",
        "00-00-00-00-00-03\n",
    ),
    (
        "Idle -> e :: EtherVLANEncap(0x0800, 0:0:0:0:0:1, 0:0:0:0:0:2, 5) -> Discard",
        "print $(e.ethertype) $(e.src), write e.src 0:0:0:0:0:3, print $(e.src)",
        "2048 00-00-00-00-00-01\n00-00-00-00-00-03\n",
    ),
    (
        "Idle -> e :: ICMPError(1.0.0.1, unreachable, needfrag, PMTU 1400) -> Discard",
        "print $(e.src) $(e.pmtu), write e.src 1.0.0.2, write e.pmtu 900, print $(e.src) $(e.pmtu)",
        "1.0.0.1 1400\n1.0.0.2 900\n",
    ),
    (
        "Idle -> e :: ICMPPingEncap(1.0.0.1, 2.0.0.2) -> Discard",
        "write e.src 1.0.0.3, print $(e.src)",
        "1.0.0.3\n",
    ),
    (
        "Idle -> s :: IP6NDSolicitor(3ffe::1, 0:0:0:0:0:1) -> Discard; Idle -> [1] s",
        "print $(s.responses)",
        "0\n",
    ),
    (
        "Idle -> c :: IPClassifier(tcp, -); c[0] -> Discard; c[1] -> Discard",
        "print $(c.pattern0) $(c.pattern1), write c.pattern0 udp, print $(c.pattern0),
         print $(c.program)",
        "tcp -\nudp\n 0 264/00110000%00ff0000  yes->[0]  no->[1]\n\
         safe length 266\nalignment offset 0\n",
    ),
    (
        "AlignmentInfo(c 4 2); Idle -> c :: Classifier(12/0800, -) -> Discard; c[1] -> Discard",
        "print $(c.program)",
        " 0  10/00000800%0000ffff  yes->[0]  no->[1]\n\
         safe length 14\nalignment offset 2\n",
    ),
    (
        "elementclass P { input -> c :: Classifier(12/0800, -) -> output; c[1] -> Discard;
                          AlignmentInfo(c 4 2) }
         Idle -> p :: P -> Discard",
        "print $(p/c.program)",
        " 0  10/00000800%0000ffff  yes->[0]  no->[1]\n\
         safe length 14\nalignment offset 2\n",
    ),
    (
        "Idle -> c :: IPClassifier(rst and not fin, port < 512); c[0] -> Discard; c[1] -> Discard",
        "print $(c.program)",
        " 0 264/00060000%00ff0000  yes->step 1  no->step 3\n \
          1 260/00000000%00001fff  yes->step 2  no->[X]\n \
          2 524/00040000%00050000  yes->[0]  no->step 5\n \
          3 264/00110000%00ff0000  yes->step 4  no->[X]\n \
          4 260/00000000%00001fff  yes->step 5  no->[X]\n \
          5 512/00000000%fe00fe00  yes->[1]  no->[X]\n\
         safe length 526\nalignment offset 0\n",
    ),
    (
        "Idle -> f :: IPFilter(allow tcp, deny all) -> Discard",
        "print $(f.pattern0), write f.pattern0 allow udp, print $(f.pattern0), print $(f.program)",
        "allow tcp\nallow udp\n 0 264/00110000%00ff0000  yes->[0]  no->[X]\n\
         safe length 266\nalignment offset 0\n",
    ),
    (
        "InfiniteSource(\\<00>, LIMIT 1) -> UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 6)
         -> rw :: IPRewriter(pattern 9.9.9.9 1024-2048# - - 0 0) -> Discard;
         Idle -> t :: TCPRewriter(keep 0 0, CAPACITY rw) -> Discard",
        "wait 1us, print \"<$(rw.udp_mappings)>\", print \"<$(rw.tcp_mappings)$(t.mappings)>\",
         print \"<$(t.table)$(t.lookup 1.0.0.1 5 2.0.0.2 6)>\", print \"$(t.patterns)\",
         print $(rw.mapping_count) $(rw.table_size) $(rw.nmappings) $(t.nmappings) $(t.size) $(t.capacity) $(t.mapping_failures),
         write rw.capacity 7, write rw.pattern0 pass 0, print $(t.capacity) $(t.size),
         write t.clear, print $(rw.size), print \"$(t.mapping_events)\"",
        "<(1.0.0.1, 5, 2.0.0.2, 6) => (9.9.9.9, 1024, 2.0.0.2, 6) [*0 0] i0 exp300\n\
         (2.0.0.2, 6, 9.9.9.9, 1024) => (2.0.0.2, 6, 1.0.0.1, 5) [0 *0] i0 exp300\n>\n\
         <>\n<>\n<keep>\n1 1 1 0 1 1048576 0\n7 0\n0\n\
         1\tadded\n0\texpired\n0\tevicted\n1\tremoved\n0\trefused\n",
    ),
    (
        "Idle -> q :: Queue -> r :: ReplayUnqueue(STOP 1, TIMING 50) -> Discard",
        "print $(r.timing), write r.timing 200, print $(r.timing)",
        "50\n200\n",
    ),
    (
        "Idle -> [0] s :: StrideSched(1, 2) -> Discard; Idle -> [1] s;
         Idle -> w :: StrideSwitch(3, 4) -> Discard; w[1] -> Discard",
        "print $(s.tickets0) $(s.tickets1) $(w.tickets1), write s.tickets1 9,
         write w.tickets0 8, print $(s.tickets1) $(w.tickets0)",
        "1 2 4\n9 8\n",
    ),
    (
        "s :: EtherSpanTree(0:0:0:0:0:9, i, o, w, BRIDGE_PRIORITY 1); Idle -> s -> Discard;
         Idle -> i :: Suppressor -> w :: EtherSwitch -> o :: Suppressor -> Discard",
        "print $(s.msgs), print $(i.active0), wait 17s, print $(i.active0) $(o.active0), wait 17s,
         print $(i.active0) $(o.active0)",
        " ffffffffffffffff:0000: tc  ffff -> ffffffffffffffff  m/h/d: 14/2/f\n    \
         1000000000009:0000: tc  0 ->    1000000000009  m/h/d: 14/2/f\n\
         false\ntrue false\ntrue true\n",
    ),
    (
        "t :: TSCClock",
        "print $(idiv $(t.now) 1000) $(idiv $(t.now_steady) 1000) $(idiv $(t.cycles) 1000),
         print $(t.cycles_hz) $(t.phase)",
        "1000000000000000 0 0\n1000000000 2\n",
    ),
    (
        "Idle -> s :: Suppressor -> Discard; Idle -> [1] s [1] -> Discard",
        "print $(s.active0) $(s.active1), write s.active1 false, print $(s.active0) $(s.active1)",
        "true true\ntrue false\n",
    ),
    (
        "Idle -> t :: TimedSink(1s)",
        "print $(t.interval), write t.interval 2s, print $(t.interval)",
        "1s\n2s\n",
    ),
    (
        "InfiniteSource(\\<00>, LIMIT 4) -> NumberPacket(0) -> r :: RecordTimestamp(OFFSET 0)
         -> d :: TimestampDiff(r, OFFSET 0, MAXDELAY 50, N 100) -> Discard",
        "wait 1us, print $(d.perc50)",
        "0\n",
    ),
    (
        "Idle -> u :: UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 6) -> Discard",
        "write u.src 1.0.0.9, write u.dport 7, print $(u.src) $(u.sport) $(u.dport)",
        "1.0.0.9 5 7\n",
    ),
    (
        "InfiniteSource(LIMIT 2) -> q :: Queue -> u :: Unqueue -> c :: Counter -> Discard",
        "wait 1us, print $(u.count) $(c.count), write u.reset_counts, write c.reset_counts,
         print $(u.count) $(c.count)",
        "2 2\n0 0\n",
    ),
    (
        "f :: FromDump(FILE, SAMPLE 0.5, TIMING true, ACTIVE false) -> t :: ToDump(COPY) ;
         s :: FromIPSummaryDump(TEXT, SAMPLE 0.25, ACTIVE false) -> Discard;
         p :: FromTcpdump(EMPTY, ACTIVE false) -> Discard",
        "print $(f.sampling_prob) $(f.filesize) $(s.sampling_prob) $(s.filesize) $(p.filesize),
         write f.active true, wait 1us, write f.reset_counts, write f.reset_timing,
         write t.reset_counts, print $(f.count) $(t.count)",
        "0.5 24 0.25 19 0\n0 0\n",
    ),
    (
        "Idle -> m :: Middlebox(all mod ip-ttl 9, ip-proto udp drop) -> Discard",
        "print $(m.test 1.0.0.1 > 2.0.0.2 udp), print $(m.list), write m.save RULES,
         write m.flush, print $(m.list_json), write m.load RULES, print $(m.rules),
         print $(m.warnings)",
        "in 0: 1.0.0.1 > 2.0.0.2 udp ttl 64 len 28\nrule 1 id1: add all mod ip-ttl 9\n\
         rule 2 id2: add ip-proto udp drop\ndropped by rule 2 id2\n\
         rule  id   l3   l4   in   out  stateful  matches       targets       packets  bytes  drops\n\
         1     id1  any  any  any  any  no        all           mod ip-ttl 9  0        0      0\n\
         2     id2  ip4  any  any  any  no        ip-proto udp  drop          0        0      0\n\
         [\n]\nadd all mod ip-ttl 9\nadd ip-proto udp drop\n\
         rule 2: `ip-proto udp`: IPv6 passes by this rule: ip-proto is about IPv4 alone; \
         `proto udp` is about both, and `net-proto ip4` beside it says that one is meant\n",
    ),
];

#[test]
fn handlers_that_no_example_has_answer_too() {
    let folder = folder("handlers");
    let place = |name: &str| folder.join(name).display().to_string();
    // A capture without packets, and text that says nothing.
    let head = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0];
    std::fs::write(place("empty.pcap"), [&head[..], &[0, 0]].concat()).unwrap();
    std::fs::write(place("text"), "!IPSummaryDump 1.3\n").unwrap();
    std::fs::write(place("nothing"), "").unwrap();
    let mut wrong = String::new();
    for (config, steps, want) in MORE {
        let files =
            [("FILE", "empty.pcap"), ("TEXT", "text"), ("EMPTY", "nothing"), ("COPY", "copy.pcap")];
        let named = files.iter().fold(config.to_owned(), |config, (word, file)| {
            config.replace(&format!("({word}"), &format!("({}", place(file)))
        });
        let steps = steps.replace("RULES", &place("rules.mmb"));
        let result = play(&format!("{named};\nScript({steps}, stop)"));
        if result.status != Some(0) || result.out != want {
            _ = writeln!(wrong, "{config}\nwant {want}\ngot  {}{}\n", result.out, result.err);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Configurations that need an interface; they run in a network namespace that has only a loopback.
const DEVICES: [(&str, &str, &str); 4] = [
    (
        "f :: FromDevice(lo, METHOD AF_PACKET, SNIFFER true, PROMISC false) -> Discard;
         InfiniteSource(DATA \\<000000000000 000000000000 88b5 00>, LENGTH 60, LIMIT 3)
         -> q :: Queue -> t :: ToDevice(lo, METHOD AF_PACKET)",
        "wait 300ms, print $(ge $(f.count) 3) $(t.count), write f.reset_counts,
         write t.reset_counts, print $(f.count) $(t.count), print $(t.q) $(t.debug),
         write t.debug true, print $(t.debug)",
        "true 3\n0 0\nfalse false\ntrue\n",
    ),
    (
        "tap :: KernelTap(10.77.0.1/24) -> Discard; Idle -> tap",
        "write tap.reset_counts, print $(tap.count) $(tap.packets)",
        "0 0\n",
    ),
    (
        "tun :: KernelTun(10.77.0.1/24) -> Discard; Idle -> tun",
        "write tun.reset_counts, print $(tun.count) $(tun.packets)",
        "0 0\n",
    ),
    (
        "h :: FromHost(fake0, 10.77.0.1/24) -> Discard; Idle -> t :: ToHost(fake0);
         r :: RawSocket(TCP) -> Discard; u :: Socket(UDP, 0.0.0.0, 0) -> Discard;
         m :: McastSocket(224.0.0.251, 5353) -> Discard; Idle -> m",
        "write h.reset_counts, write t.reset_counts, write r.reset_counts, write u.reset_counts,
         write m.reset_counts, write u.judged \"1.2.3.4 true\", write r.judged \"1.2.3.4 true\",
         write m.judged \"1.2.3.4 true\", print $(h.packets) $(t.packets) $(r.packets) $(u.packets) $(m.packets)",
        "0 0 0 0 0\n",
    ),
];

#[test]
fn handlers_of_devices_answer_too() {
    let mut wrong = String::new();
    for (config, steps, want) in DEVICES {
        let config = format!("{config};\nScript({steps}, stop)");
        let words = [
            "--net",
            "sh",
            "-c",
            // With IPv6, the kernel says something on every new interface.
            "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 &&
             ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo &&
             exec \"$0\"",
        ];
        let command = &mut Command::new("unshare");
        let result = run(command.args(words).arg(link("click")), config.as_bytes());
        if result.status != Some(0) || result.out != want {
            _ = writeln!(wrong, "{config}\nwant {want}\ngot  {}{}\n", result.out, result.err);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
