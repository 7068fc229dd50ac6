//! `FromDump` on captures that are cut, compressed, or replayed otherwise than they were taken.

use crate::program::{RunResult, castanet, click, folder, root};
use std::process::Command;

/// A file of this name with UDP packets over IP of these lengths, a second apart; at most `keep` bytes
/// of each are captured.
fn capture(name: &str, lengths: &[usize], keep: usize) -> String {
    let file = folder("captures").join(name).display().to_string();
    let lines: String = lengths
        .iter()
        .enumerate()
        .map(|(n, length)| format!("{} 1.0.0.{n} 2.0.0.2 {length} U\\n", 1000 + n))
        .collect();
    let config = format!(
        "FromIPSummaryDump(-, STOP true, CHECKSUM true, FIELDS timestamp ip_src ip_dst ip_len ip_proto)
            -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> ToDump({file}, SNAPLEN {keep})"
    );
    let lines = lines.replace("\\n", "\n");
    let result = castanet(&["run", "-q", "-e", &config], lines.as_bytes());
    assert_eq!((result.status, &*result.err), (Some(0), ""));
    file
}

/// The values of handlers after a run in simulated time.
fn values(config: &str, handlers: &[&str]) -> Vec<String> {
    let asked = handlers.iter().flat_map(|handler| ["--handler", handler]);
    let words = ["run", "-q", "--simtime", "-e", config].into_iter().chain(asked);
    let result = castanet(&words.collect::<Vec<_>>(), b"");
    assert_eq!((result.status, &*result.err), (Some(0), ""), "{config}");
    match handlers.len() {
        1 => vec![result.out.trim().to_owned()],
        _ => {
            result.out.split("\n\n").filter_map(|it| Some(it.split_once(":\n")?.1.into())).collect()
        }
    }
}

#[test]
fn packets_that_a_snap_length_has_cut_are_ip_packets() {
    let file = capture("cut.pcap", &[100, 30, 1000], 60);
    let config = format!(
        "FromDump({file}, FORCE_IP true, STOP true) -> c :: Counter -> IPClassifier(udp) -> u :: Counter
            -> Discard"
    );
    assert_eq!(values(&config, &["c.count", "c.byte_count", "u.count"]), ["3", "164", "3"]);
    // A header that is not complete is none.
    let file = capture("header.pcap", &[100], 33);
    let config = format!(
        "f :: FromDump({file}, FORCE_IP true, STOP true) -> c :: Counter -> Discard;
            f[1] -> n :: Counter -> Discard"
    );
    assert_eq!(values(&config, &["c.count", "n.count"]), ["0", "1"]);
}

#[test]
fn packets_get_the_length_that_is_wanted() {
    let file = capture("lengths.pcap", &[100, 30, 1000], 60);
    for (length, frames, totals) in [
        ("-1", 164, "100\n30\n1000\n"),
        ("0", 1172, "100\n30\n1000\n"),
        ("200", 600, "186\n186\n186\n"),
        ("60", 180, "46\n46\n46\n"),
    ] {
        let config = format!(
            "FromDump({file}, FORCE_LEN {length}, FORCE_IP true, STOP true) -> c :: Counter -> Strip(14)
                -> ToIPSummaryDump(-, FIELDS ip_len, HEADER false);
             DriverManager(pause, print \"bytes $(c.byte_count)\", stop)"
        );
        let result = castanet(&["run", "-q", "--simtime", "-e", &config], b"");
        assert_eq!(result.err, "", "{length}");
        let mut lines: Vec<&str> = result.out.lines().collect();
        lines.sort_unstable();
        let mut want: Vec<String> = totals.lines().map(str::to_owned).collect();
        want.push(format!("bytes {frames}"));
        want.sort_unstable();
        assert_eq!(lines, want, "{length}");
    }
    // The header's checksum holds for its new length.
    let config = format!(
        "FromDump({file}, FORCE_LEN 200, STOP true) -> Strip(14) -> CheckIPHeader -> c :: Counter
            -> Discard"
    );
    assert_eq!(values(&config, &["c.count"]), ["3"]);
    let config = format!("FromDump({file}, FORCE_LEN 59) -> Discard");
    let result = castanet(&["check", "-e", &config], b"");
    assert!(result.err.contains("FORCE_LEN: 59 is not -1, 0 or 60 to 9000"), "{}", result.err);
    let result = click(&["-e", &config], b"");
    assert!(result.err.contains("FORCE_LEN requires a valid frame size"), "{}", result.err);
}

#[test]
fn ip_packets_are_not_searched_in_frames_of_an_unknown_kind() {
    let file = folder("captures").join("unknown-link-type.pcap");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let file = file.display();
    let written = format!("InfiniteSource(LIMIT 2, STOP true) -> ToDump({file}, ENCAP #777)");
    assert_eq!(click(&["-e", &written], b"").err, "");
    let read = |arguments: &str| {
        let config =
            format!("f :: FromDump({file}, STOP true{arguments}) -> c :: Counter -> Discard");
        click(&["-e", &config, "-h", "c.count"], b"")
    };
    assert_eq!(read("").out, "2\n");
    let refused = read(", FORCE_IP true");
    assert_eq!(refused.status, Some(1));
    let words = format!(
        "While initializing 'f :: FromDump':\n  {file}: unknown linktype 777; can't force IP packets\n\
         Router could not be initialized!\n"
    );
    assert!(refused.err.ends_with(&words), "{}", refused.err);
}

#[test]
fn a_capture_is_replayed_faster_or_slower() {
    let file = capture("timed.pcap", &[100; 11], 2000);
    for (speed, seconds) in [("", "10"), (", ACCELERATION 200", "5"), (", ACCELERATION 50", "20")] {
        let config = format!(
            "FromDump({file}, true, END_CALL s.run{speed}) -> c :: Counter -> Discard;
             s :: Script(TYPE PASSIVE, print \"$(c.count) $(idiv $(sub $(now) $start) 1)\", stop,
                init start $(now))"
        );
        let result = castanet(&["run", "-q", "--simtime", "-e", &config], b"");
        assert_eq!(result.err, "");
        assert_eq!(result.out, format!("11 {seconds}\n"), "{speed}");
    }
}

#[test]
fn the_speed_of_a_replay_may_be_a_function_of_time() {
    // The sample lasts a second: half as fast, and faster from the first packet after 0.4 s on.
    let script = "s :: Script(TYPE PASSIVE, print \"$(c.count) $(idiv $(mul 10 $(sub $(now) $start)) 1)\", stop,
                              init start $(now))";
    let replay = |function: &str| {
        let config = format!(
            "FromDump(conf/sample.pcap, true, TIMING_FNT \"{function}\", PRELOAD 200, END_CALL s.run)
             -> c :: Counter -> Discard; {script}"
        );
        castanet(&["run", "-q", "--simtime", "-e", &config], b"")
    };
    let steady = replay("50");
    assert_eq!(steady.err, "FromDump@1 : Preloaded 4 packets (240 bytes)\n");
    let step = replay("50 + 50 * min(1, floor(x + 0.6))");
    let lines: Vec<&str> = step.err.lines().collect();
    assert_eq!(lines[1], "Current accel 100.000000", "{}", step.err);
    let seconds = |result: &RunResult| -> (String, u32) {
        let (count, tenths) = result.out.trim().split_once(' ').unwrap();
        (count.to_owned(), tenths.parse().unwrap())
    };
    let (steady, step) = (seconds(&steady), seconds(&step));
    assert_eq!(steady.0, step.0);
    assert!(step.1 < steady.1, "{step:?} {steady:?}");
    let stopped = replay("50 * (1 - floor(x + 0.5))");
    assert!(stopped.err.ends_with("Current accel 0.000000\n"), "{}", stopped.err);
    let wrong = replay("50 +");
    assert!(wrong.err.contains("a number is missing at the end"), "{}", wrong.err);
}

const COMPRESSORS: [(&str, &str); 4] =
    [("gzip", "gz"), ("bzip2", "bz2"), ("xz", "xz"), ("zstd", "zst")];

#[test]
fn compressed_texts_are_read() {
    let dump = "!data ip_src count\n1.0.0.1 3\n2.0.0.2 4\n";
    let trace = "12:00:00.5 IP 1.0.0.1.1024 > 2.0.0.2.80: Flags [S], seq 7, win 512, length 0\n";
    for (program, suffix) in COMPRESSORS {
        for (class, text, count) in [("FromIPSummaryDump", dump, "2"), ("FromTcpdump", trace, "1")]
        {
            let plain = folder("captures").join(format!("{class}.{program}.txt"));
            std::fs::write(&plain, text).unwrap();
            let packed = Command::new(program).arg("-c").arg(&plain).output().unwrap().stdout;
            let file = plain.with_extension(suffix);
            std::fs::write(&file, &packed).unwrap();
            for name in [file.display().to_string(), "-".to_owned()] {
                let config = format!("{class}({name}, STOP true) -> c :: Counter -> Discard");
                let words = ["run", "-q", "-e", &config, "--handler", "c.count"];
                let result = castanet(&words, &packed);
                assert_eq!(result.out.trim(), count, "{program} {class}: {}", result.err);
            }
        }
    }
}

#[test]
fn compressed_captures_are_read() {
    let plain = std::fs::read(root().join("conf/sample.pcap")).unwrap();
    let count = |file: &str| {
        let config = format!("f :: FromDump({file}, STOP true) -> c :: Counter -> Discard");
        values(&config, &["c.count", "c.byte_count", "f.filesize"])
    };
    let want = count("conf/sample.pcap");
    assert_eq!(want[2], plain.len().to_string());
    for (program, suffix) in COMPRESSORS {
        let mut command = Command::new(program);
        let packed =
            command.args(["-c", "conf/sample.pcap"]).current_dir(root()).output().unwrap().stdout;
        assert!(!packed.is_empty() && packed.len() < plain.len());
        let file = folder("captures").join(format!("sample.{suffix}"));
        std::fs::write(&file, &packed).unwrap();
        let file = file.display().to_string();
        assert_eq!(count(&file), [&want[0], &want[1], "-"], "{program}");
        // The name may be any, and standard input may be compressed, too.
        let config = "FromDump(-, STOP true) -> c :: Counter -> Discard";
        let result = castanet(&["run", "-q", "-e", config, "--handler", "c.count"], &packed);
        assert_eq!(result.out.trim(), want[0], "{program}: {}", result.err);
        // A damaged file ends with a message.
        std::fs::write(&file, &packed[..packed.len() / 2]).unwrap();
        let config = format!("FromDump({file}, STOP true) -> Discard");
        let result = castanet(&["run", "-q", "-e", &config], b"");
        assert!(result.err.contains(&file), "{program}: {}", result.err);
    }
}
