//! Tests of IP summary dumps, written and read by whole configurations.
#![allow(clippy::unwrap_used)] // a test

use castanet_bench::example;
use castanet_element::class::Library;
use castanet_runtime::console::Console;
use castanet_runtime::router::{Options, Router, TeardownReport};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Lines(Mutex<String>);

impl Console for Lines {
    fn chatter(&self, lines: &str) {
        self.0.lock().unwrap().push_str(lines);
    }
    fn print(&self, text: &str) {
        self.chatter(text);
    }
}

fn library() -> Library {
    let mut library = Library::default();
    castanet_io::elements::CLASSES.iter().for_each(|class| library.add(class));
    library
}

/// Runs a configuration to its end; returns the messages of its elements.
fn run(text: &str) -> Result<String, String> {
    let library = library();
    let (flat, mut found, sources) = library.flatten("test", text);
    assert!(!found.has_errors(), "{}", found.render_click(&sources));
    let lines = Arc::new(Lines::default());
    let mut options = Options::new(lines.clone());
    options.simulated = true;
    let router = Router::build(&flat, &library, &options, &mut found);
    let mut router = router.ok_or_else(|| found.render_click(&sources))?;
    router.run(None);
    router.end();
    assert_eq!(router.dismantle(), TeardownReport { leaked_frames: 0, panics: 0, lost_workers: 0 });
    Ok(std::mem::take(&mut *lines.0.lock().unwrap()))
}

/// Copies a dump from `FromIPSummaryDump` to `ToIPSummaryDump`; returns the written file and the
/// messages.
fn copy(name: &str, from: &str, to: &str) -> (String, String) {
    let path = std::env::temp_dir().join(format!("castanet-{}-{name}", std::process::id()));
    let file = path.display();
    let config = format!("FromIPSummaryDump({from}, STOP true) -> ToIPSummaryDump({file}{to})");
    let said = run(&config).unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    (written, said)
}

#[test]
fn the_examples_run() {
    let library = library();
    for name in ["FromIPSummaryDump", "FromTcpdump", "ToIPSummaryDump"] {
        let class = library.get(name).unwrap();
        let count = example::run_all(class, &library).unwrap_or_else(|error| panic!("{error}"));
        assert!(count > 0, "{name} has no example");
        let refused =
            example::refuse_all(class, &library).unwrap_or_else(|error| panic!("{error}"));
        assert!(refused > 0, "{name}: no example came so far");
    }
}

#[test]
fn output_of_tcpdump_becomes_a_summary() {
    let path = std::env::temp_dir().join(format!("castanet-{}-tcpdump", std::process::id()));
    let lines = "tcpdump: listening on eth0\n\
                 12:00:00.25 IP 10.0.0.1.1024 > 10.0.0.2.80: Flags [S], seq 7, win 512, length 0\n\
                 12:00:01 IP 10.0.0.2.53 > 10.0.0.1.99: UDP, length 12\n";
    std::fs::write(&path, lines).unwrap();
    let file = path.display();
    let fields = "timestamp ip_src sport ip_dst dport ip_proto ip_len tcp_flags tcp_seq thread";
    let config = format!(
        "FromTcpdump({file}, STOP true) -> ToIPSummaryDump(-, FIELDS {fields}, HEADER false)"
    );
    let out = path.with_extension("out");
    let said = run(&config.replace("(-,", &format!("({},", out.display()))).unwrap();
    let written = std::fs::read_to_string(&out).unwrap();
    [&path, &out].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert!(said.contains(":1: warning: first line suspicious"), "{said}");
    assert!(said.contains(":1: packet parse error"), "{said}");
    let want = "43200.250000 10.0.0.1 1024 10.0.0.2 80 T 40 S 7 0\n\
                43201.000000 10.0.0.2 53 10.0.0.1 99 U 40 - - 0\n";
    assert_eq!(written, want);
}

#[test]
fn a_dump_is_written_as_it_was_read() {
    let lines = "1.500000 1.0.0.1 53 2.0.0.2 99 U 60\n2.000001 3.0.0.3 - 4.0.0.4 - I 28\n";
    let fields = "timestamp ip_src sport ip_dst dport ip_proto ip_len";
    let data = format!("DATA \"{}\", FIELDS {fields}", lines.replace('\n', "\\n"));
    let (written, said) = copy("same", &data, &format!(", FIELDS {fields}, BANNER me"));
    let header = format!("!IPSummaryDump 1.3\n!creator \"me\"\n!data {fields}\n");
    assert_eq!(written, header + lines);
    // The first line is no banner, but FIELDS gives the contents of lines.
    assert_eq!(said, "");
}

#[test]
fn several_packets_in_one_line() {
    let data =
        "DATA \"!data timestamp first_timestamp ip_src ip_len count\\n4 1 1.0.0.1 163 4\\n\"";
    let (whole, _) = copy("whole", data, ", FIELDS timestamp ip_len count, HEADER false");
    assert_eq!(whole, "4.000000 163 4\n");
    let apart = "1.000000 40\n2.000000 40\n3.000000 40\n4.000000 43\n";
    let multipacket = format!("{data}, MULTIPACKET true");
    let (read, _) = copy("read", &multipacket, ", FIELDS timestamp ip_len, HEADER false");
    assert_eq!(read, apart);
    let to = ", FIELDS timestamp, HEADER false, MULTIPACKET true";
    let (written, _) = copy("written", data, to);
    assert_eq!(written, "1.000000\n2.000000\n3.000000\n4.000000\n");
}

#[test]
fn errors_name_their_line() {
    let data = "DATA \"x y\\n!data ip_src nonsense\\n1.0.0.1 2\\nx y\\nz\\n\"";
    let (written, said) = copy("wrong", data, ", FIELDS ip_src, VERBOSE true");
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), 5, "{written}");
    assert!(lines[1].starts_with("!host ") && lines[2].starts_with("!runtime 1000000000.0"));
    assert!(lines[2].ends_with("(Sun Sep  9 01:46:40 2001)"), "{written}");
    assert_eq!((lines[3], lines[4]), ("!data ip_src", "1.0.0.1"));
    assert_eq!(
        said,
        "<data>:1: warning: missing banner line; is this an IP summary dump?\n\
         <data>:1: no '!data' provided\n\
         <data>:2: unknown content type 'nonsense'\n"
    );
}

#[test]
fn bad_configurations_are_refused() {
    for (config, message) in [
        ("FromIPSummaryDump() -> ToIPSummaryDump(/dev/null)", "FILENAME: is missing"),
        (
            "FromIPSummaryDump(a, DATA b) -> ToIPSummaryDump(/dev/null)",
            "FILENAME and DATA conflict",
        ),
        ("FromIPSummaryDump(/nonexistent) -> ToIPSummaryDump(/dev/null)", "/nonexistent"),
        ("FromIPSummaryDump(/dev/null) -> ToIPSummaryDump(/dev/null)", "/dev/null: empty file"),
        ("FromIPSummaryDump(DATA x, SAMPLE -1) -> ToIPSummaryDump(/dev/null)", "SAMPLE"),
        ("FromIPSummaryDump(DATA x, FLOWID 1) -> ToIPSummaryDump(/dev/null)", "bad !flowid"),
        ("FromIPSummaryDump(DATA x) -> ToIPSummaryDump(/)", "/"),
        (
            "FromIPSummaryDump(DATA x) -> ToIPSummaryDump(/dev/null, FIELDS x)",
            "unknown content type 'x'",
        ),
        (
            "FromIPSummaryDump(DATA x) -> ToIPSummaryDump(/dev/null, FIELDS x timestamp 'ip Y' \"z z\")",
            "unknown content type 'x'; unknown content type 'ip Y'; unknown content type 'z z'",
        ),
        (
            "FromIPSummaryDump(DATA x) -> ToIPSummaryDump(/dev/null, FIELDS payload, BINARY true)",
            "payload has no place in a binary summary dump",
        ),
    ] {
        let error = run(config).expect_err(config);
        assert!(error.contains(message), "{config}: {error}");
    }
    for allowed in ["/nonexistent", "/dev/null"] {
        let (written, _) = copy("none", &format!("{allowed}, ALLOW_NONEXISTENT true"), "");
        assert_eq!(written, "!IPSummaryDump 1.3\n!data timestamp ip_src\n");
    }
}

/// Copies a dump by way of binary records; returns the records, the second dump and the messages.
fn by_records(name: &str, dump: &str, fields: &str) -> (Vec<u8>, String, String) {
    let path = std::env::temp_dir().join(format!("castanet-{}-{name}-b", std::process::id()));
    let file = path.display();
    let from = format!("FromIPSummaryDump(DATA \"{dump}\", STOP true, CHECKSUM true)");
    let to = format!("ToIPSummaryDump({file}, FIELDS {fields}, BINARY true, BAD_PACKETS true)");
    run(&format!("{from} -> {to}")).unwrap();
    let records = std::fs::read(&path).unwrap();
    let again = format!("{file}, CHECKSUM true");
    let (written, said) = copy(name, &again, &format!(", FIELDS {fields}"));
    std::fs::remove_file(&path).unwrap();
    (records, written, said)
}

#[test]
fn the_binary_form_loses_nothing() {
    let fields = "ntimestamp ts_usec1 count aggregate link ip_src ip_dst ip_proto ip_len ip_id \
                  ip_tos ip_ttl ip_fragoff ip_opt sport dport tcp_seq tcp_ack tcp_flags tcp_opt \
                  payload_len";
    let lines = "\
        1000000000.123456 1000000000123456 1 7 3 1.0.0.1 2.0.0.2 T 64 48759 28 250 0! . 80 99 \
        93167339 93178192 SA mss1400;sackok;wscale10 12\n\
        1000000001.500000 1000000001500000 3 8 0 255.0.0.1 2.0.0.2 U 100 1 0 1 0 \
        rr{10.0.0.1}+5 53 65535 - - - - 48\n\
        1000000002.000000 1000000002000000 1 0 0 1.0.0.1 2.0.0.2 17 1500 2 0 9 1480+ . - - - - - - \
        1480\n";
    let (records, written, said) =
        by_records("records", &format!("!data {fields}\n{lines}"), fields);
    let head = format!("!IPSummaryDump 1.3\n!data {fields}\n!binary\n");
    let head = head.split_inclusive(' ').filter(|word| *word != " ").collect::<String>();
    assert!(records.starts_with(head.as_bytes()), "{:?}", String::from_utf8_lossy(&records));
    let straight = copy(
        "straight",
        &format!("DATA \"!data {fields}\n{lines}\", CHECKSUM true"),
        &format!(", FIELDS {fields}"),
    );
    assert_eq!((written, said), straight);
    // The first record, as Click's manual describes it.
    let first = &records[head.len()..];
    assert_eq!(first[..4], 79u32.to_be_bytes(), "its length");
    assert_eq!(first[4..12], [0x3b, 0x9a, 0xca, 0, 0x07, 0x5b, 0xca, 0], "seconds, nanoseconds");
    assert_eq!(first[29..37], [1, 0, 0, 1, 2, 0, 0, 2], "addresses");
}

#[test]
fn binary_dumps_that_are_wrong_are_reported() {
    let record = "\\<00000008 01000001>";
    for (dump, said) in [
        (format!("!data ip_src\n!binary\n{record}\\<0000>"), "record 2: unexpected end of file"),
        ("!data ip_src\n!binary\n\\<00000003>".to_owned(), "record 1: bad record length"),
        ("!data ip_src\n!binary\n\\<00000006 0101>".to_owned(), "record 1: packet parse error"),
        ("!data payload\n!binary\n".to_owned(), "'payload' in a binary summary dump"),
        (format!("!data ip_src foo\n!binary\n{record}"), "unknown content type 'foo'"),
        ("!data ip_src\n!binary\n\\<8000000b>!proto\n".to_owned(), "record 1: bad !proto"),
    ] {
        let config = format!(
            "FromIPSummaryDump(DATA \"{dump}\", STOP true) \
                              -> ToIPSummaryDump(/dev/null)"
        );
        let heard = run(&config).unwrap();
        assert!(heard.contains(said), "{dump}: {heard}");
    }
}

#[test]
fn a_file_that_fills_up_is_given_up() {
    let config = "FromIPSummaryDump(DATA \"!data ip_src\\n1.0.0.1\\n\", STOP true) \
                  -> ToIPSummaryDump(/dev/full)";
    assert!(run(config).unwrap().starts_with("ToIPSummaryDump(/dev/full): No space left"));
}
