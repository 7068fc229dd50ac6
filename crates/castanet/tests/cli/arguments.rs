//! Arguments, handlers and files of single elements by the name `click`.

use crate::program::{RunResult, click, folder};

/// Standard output and standard error of a successful simulated run.
fn run(config: &str, input: &str) -> (String, String) {
    let RunResult { status, out, err } = click(&["--simtime", "-e", config], input.as_bytes());
    assert_eq!(status, Some(0), "{config}: {err}");
    (out, err)
}

#[test]
fn an_address_is_stored_in_any_header_of_20_bytes() {
    let stored = |data: &str, arguments: &str| {
        let config = format!(
            "InfiniteSource(DATA \\<{data}>, LIMIT 1, STOP true) -> MarkIPHeader -> s :: StoreIPAddress({arguments})
             -> Print(s, 40) -> Discard; s[1] -> Print(o, 40) -> Discard"
        );
        run(&config, "").1
    };
    // IP version 3, and shorter than its header.
    assert_eq!(stored("35000014 0000", "9.9.9.9, dst"), "s:    6 | 35000014 0000\n");
    let header = "35000014 00000000 40060000 01000001 02000002";
    let line = "s:   20 | 35000014 00000000 4006efef 01000001 09090909\n";
    assert_eq!(stored(header, "9.9.9.9, dst"), line);
    assert_eq!(stored("44000014 00000000", "9.9.9.9, src"), "o:    8 | 44000014 00000000\n");
    // Without a marked header, and without an annotation.
    let config = "InfiniteSource(DATA \\<45000014 00000000>, LIMIT 1, STOP true) -> s :: StoreIPAddress(src) -> Discard;
                  s[1] -> Print(o, 8) -> Discard";
    assert_eq!(run(config, "").1, "o:    8 | 45000014 00000000\n");
}

#[test]
fn rules_come_from_files() {
    let folder = folder("arguments");
    let file = folder.join("fw.rules");
    let rules = |text: &str| {
        std::fs::write(&file, text).unwrap();
        format!(
            "Idle -> f :: IPFilter(file {}, deny all) -> Discard; Script(print f.program, stop)",
            file.display()
        )
    };
    let program = run(&rules("allow src 1.0.0.1\n\n  allow tcp  \n"), "").0;
    assert!(
        program.contains("268/01000001%ffffffff") && program.contains("264/00060000"),
        "{program}"
    );
    let wrong = rules("allow src 1.0.0.1\n\nallow bla\n");
    let err = click(&["-e", &wrong], b"").err;
    let said = format!("  file {}/pattern 1: ", file.display());
    assert!(err.contains(&said), "{err}");
    let missing = "Idle -> IPFilter(allow tcp, file /no/such.rules) -> Discard";
    let err = click(&["-e", missing], b"").err;
    assert!(err.contains("  pattern 1: /no/such.rules: No such file or directory\n"), "{err}");
}

#[test]
fn tcp_options_are_not_merged() {
    let config =
        "FromIPSummaryDump(-, STOP true) -> Print(p, 80) -> ToIPSummaryDump(-, FIELDS tcp_opt)";
    let dump = "!data ip_src sport ip_dst dport ip_proto tcp_opt\n1.0.0.1 1 2.0.0.2 80 T sack3-5;sack7-9\n1.0.0.1 1 2.0.0.2 80 T sack3-5,sack7-9\n";
    let (out, err) = run(config, dump);
    assert!(err.contains("050a0000 00030000 0005050a 00000007 00000009"), "{err}");
    assert!(err.contains("05120000 00030000 00050000 00070000 00090000"), "{err}");
    assert_eq!(out.lines().filter(|line| *line == "sack3-5;sack7-9").count(), 2, "{out}");
}

#[test]
fn fragments_that_wait_are_shown() {
    let config = "FromIPSummaryDump(-, STOP true) -> r :: IPReassembler -> Discard; DriverManager(pause, print r.dump)";
    let dump = "!data ip_src sport ip_dst dport ip_proto ip_id ip_fragoff payload\n1.0.0.1 1 2.0.0.2 80 U 7 0+ \"sixteen bytes...\"\n1.0.0.1 0 2.0.0.2 0 U 7 48+ \"8 bytes.\"\n";
    let (out, _) = run(config, dump);
    assert_eq!(
        out,
        "frags seen total:    2\ngood reassemblies:   0\nfailed reassemblies: 0\nbad fragments seen:  0\ncached chunk data:\n (1.0.0.1, 1, 2.0.0.2, 80) 7 (0,24) (48,56)\n"
    );
}

#[test]
fn a_dump_has_the_header_of_another() {
    let folder = folder("arguments");
    let (ip, copy) = (folder.join("ip.pcap"), folder.join("copy.pcap"));
    let source = "FromIPSummaryDump(-, STOP true)";
    let dump = "!data ip_src ip_dst\n1.0.0.1 2.0.0.2\n";
    run(&format!("{source} -> ToDump({}, ENCAP IP)", ip.display()), dump);
    let config = format!(
        "f :: FromDump({}, STOP true) -> ToDump({}, USE_ENCAP_FROM f)",
        ip.display(),
        copy.display()
    );
    run(&config, "");
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&ip).unwrap());
    let ether = folder.join("ether.pcap");
    run(&format!("{source} -> ToDump({}, ENCAP ETHER)", ether.display()), dump);
    let config = format!(
        "f :: FromDump({}) -> ToDump({}, USE_ENCAP_FROM f g); g :: FromDump({}) -> Discard",
        ip.display(),
        copy.display(),
        ether.display()
    );
    let err = click(&["-e", &config], b"").err;
    assert!(err.contains("USE_ENCAP_FROM: 'f' and 'g' have different encapsulations"), "{err}");
    let config = format!("c :: Counter; Idle -> c -> ToDump({}, USE_ENCAP_FROM c)", copy.display());
    let err = click(&["-e", &config], b"").err;
    assert!(err.contains("USE_ENCAP_FROM: "), "{err}");
}

#[test]
fn sockets_have_keywords() {
    let config = "Idle -> Socket(TYPE UDP, ADDR 127.0.0.1, PORT 41733, LOCAL_ADDR 127.0.0.1, LOCAL_PORT 0) -> Discard;
                  Idle -> Socket(UDP, PORT 41734, ADDR 127.0.0.1) ; ControlSocket(TYPE TCP, PORT 41900+); Script(stop)";
    let RunResult { status, err, .. } = click(&["-e", config], b"");
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let config = "Idle -> Socket(TYPE UDP, ADDR 127.0.0.1)";
    let err = click(&["-e", config], b"").err;
    assert!(err.contains("  PORT: required argument missing\n"), "{err}");
}

#[test]
fn checks_look_at_first_fragments_and_at_the_end_of_source_routes() {
    // The data offset of the first fragment is beyond its end.
    let fragment = "4500003028002000 40060000 01000001 02000002 00010002 00000000 00000000 f0000000 00000000 00000000 00000000";
    let config = format!(
        "InfiniteSource(DATA \\<{fragment}>, LIMIT 1, STOP true) -> MarkIPHeader -> c :: CheckTCPHeader -> Print(good, 0) -> Discard;
         c[1] -> Print(bad, 0) -> Discard"
    );
    assert!(run(&config, "").1.contains("bad:   48"));
    // A loose source route through 2.0.0.2 to 3.0.0.3: the checksum is that for 3.0.0.3.
    let header = "47000030 28000000 40060000 01000001 02000002 83070403 00000300";
    let tcp = "00010002 00000000 00000000 50000000 %s";
    let config = format!(
        "InfiniteSource(DATA \\<{header} {}>, LIMIT 1, STOP true) -> MarkIPHeader -> SetTCPChecksum -> CheckTCPHeader
         -> Print(routed, 48) -> Discard",
        tcp.replace("%s", "0000aaaa")
    );
    let expected = format!("routed:   48 | {header} {}\n", tcp.replace("%s", "0134aaaa"));
    assert_eq!(run(&config, "").1, expected);
}
