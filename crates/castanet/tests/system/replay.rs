//! The router without devices: a pcap file in, three out, and tcpdump's opinion of them.

use std::fs;
use std::process::Command;

use castanet_lab::{Capture, Lab, demo};

use crate::testbed::{conf, program};

/// Output of tcpdump for a pcap file.
fn read(path: &std::path::Path) -> String {
    let output =
        Command::new("tcpdump").args(["-n", "-e", "-vv", "-r"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_sample_is_routed_and_answered() {
    let lab = Lab::new("replay").unwrap();
    let outs = [0, 1, 2].map(|i| lab.directory().join(format!("{i}.pcap")));
    demo::run(program(), &outs).unwrap();
    let [first, second, third] = outs.each_ref().map(|out| read(out));
    for sent in [&first, &second, &third] {
        assert!(Capture::wrong_checksums(sent).is_empty(), "{sent}");
        assert_eq!(sent.matches("Reply 10.0.").count(), 1, "ARP: {sent}");
        // A packet that an ICMP error quotes is indented by a tab, and was longer when it was refused.
        let own = sent.lines().filter(|line| !line.starts_with('\t'));
        let too_long = own.filter_map(|line| {
            line.split("proto ").nth(1)?.split("length ").nth(1)?.split([')', ',']).next()
        });
        assert!(
            too_long.into_iter().all(|length| length.parse::<u32>().unwrap() <= 1500),
            "{sent}"
        );
    }
    for answer in [
        "10.0.1.1 > 10.0.1.2: ICMP echo reply",
        "10.0.1.1 > 10.0.1.2: ICMP time exceeded in-transit",
        "10.0.1.1 > 10.0.1.2: ICMP 10.0.2.2 unreachable - need to frag (mtu 1500)",
        "10.0.1.1 > 10.0.1.2: ICMP redirect 10.0.1.3 to host 10.0.1.3",
        "10.0.1.1 > 10.0.1.2: ICMP net 192.0.2.1 unreachable",
        "10.0.1.1 > 10.0.1.2: ICMP 10.0.1.1 udp port 9 unreachable",
        "10.0.1.1 > 10.0.1.2: ICMP parameter problem",
    ] {
        assert_eq!(first.matches(answer).count(), 1, "{answer}: {first}");
    }
    // The whole HTTP answer came back, one hop older.
    assert_eq!(
        first.matches("10.0.3.2.80 > 10.0.1.2.50000: Flags [.], cksum").count(),
        11,
        "{first}"
    );
    assert_eq!(third.matches("10.0.1.2.50000 > 10.0.3.2.80: Flags").count(), 14, "{third}");
    assert!(!third.contains("ttl 64"), "{third}");
    // One echo request of 1628 bytes in two parts, and a datagram that came in two.
    assert_eq!(second.matches("flags [+]").count(), 2, "{second}");
    assert!(second.contains("RR 10.0.2.1"), "{second}");
    assert!(!second.contains("10.0.1.255"), "a broadcast source passed: {second}");
}

#[test]
fn the_demo_without_a_network_finds_every_answer() {
    let seen = demo::replay(program()).unwrap();
    assert!(seen.replayed && seen.all_passed(), "{seen:#?}");
}

#[test]
fn both_configurations_hold_the_same_router() {
    let core = |name: &str| -> String {
        let text = fs::read_to_string(conf(name)).unwrap();
        let (_, rest) = text.split_once("// == The router ==").unwrap();
        rest.split_once("// == The devices ==").unwrap().0.to_owned()
    };
    assert!(core("router.click").contains("elementclass Interface"));
    assert_eq!(core("router.click"), core("router-pcap.click"));
}

#[test]
fn the_sample_equals_its_scripts_output() {
    let lab = Lab::new("sample").unwrap();
    let path = lab.directory().join("again.pcap");
    let made = Command::new("python3").arg(conf("make-sample.py")).arg(&path).status().unwrap();
    assert!(made.success());
    assert!(fs::read(&path).unwrap() == fs::read(conf("sample.pcap")).unwrap());
}
