//! Flow rules. No driver without hardware takes them but net_tap, on kernels with `multiq` and
//! `flower`; so a library in front of DPDK's flow API records what a driver would get, from Castanet
//! and from DPDK's own testpmd.

use super::{QUIET, require_dpdk};
use crate::program::{castanet, folder, root};
use castanet_lab::Command;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Rules with every item, every relation and every action.
const RULES: &[&str] = &[
    "ingress pattern eth / ipv4 src is 10.0.0.1 / udp / end actions queue index 1 / end",
    "group 2 priority 3 ingress egress pattern eth dst is 02:00:00:00:00:01 src spec 02:00:00:00:00:02 src mask ff:ff:ff:00:00:00 type is 0x0800 / end actions drop / end",
    "transfer pattern eth / vlan tci is 5 inner_type is 0x86dd / end actions port_id id 0 / end",
    "ingress pattern eth / vlan pcp is 3 vid is 100 dei is 1 / end actions of_pop_vlan / queue index 0 / end",
    "ingress pattern ipv4 src spec 10.1.0.0 src prefix 16 dst spec 10.2.0.1 dst last 10.2.0.9 dst mask 255.255.255.255 / end actions count / passthru / end",
    "ingress pattern eth / ipv4 tos is 4 ttl is 64 proto is 17 fragment_offset is 0 / end actions mark id 0x12345 / rss / end",
    "ingress pattern eth / ipv6 src is 2001:db8::1 dst spec 2001:db8:: dst prefix 33 proto is 6 hop is 9 tc is 7 flow is 0x12345 / tcp dst is 443 / end actions rss queues 1 0 end / end",
    "ingress pattern eth / ipv4 / tcp src spec 1000 src last 2000 src mask 0xffff flags spec 2 flags mask 0x12 / end actions rss func toeplitz level 1 types ipv4-tcp udp end queues 0 end / end",
    "ingress pattern eth / ipv4 / icmp type is 8 code is 0 ident is 7 seq is 8 / end actions flag / end",
    "ingress pattern eth / ipv6 / icmp6 type is 128 code is 0 / end actions void / drop / end",
    "ingress pattern eth / ipv4 / sctp src is 1 dst is 2 tag is 3 cksum is 4 / end actions jump group 7 / end",
    "ingress pattern eth / arp_eth_ipv4 sha is 02:00:00:00:00:01 spa is 10.0.0.1 tha is 02:00:00:00:00:02 tpa is 10.0.0.2 / end actions queue index 0 / end",
    "ingress pattern eth / ipv4 / udp dst is 4789 / vxlan vni is 0x123456 / eth / ipv4 / end actions vxlan_decap / queue index 1 / end",
    "ingress pattern eth / ipv4 / udp / vxlan-gpe vni is 5 / end actions drop / end",
    "ingress pattern eth / ipv4 / udp / geneve vni is 77 protocol is 0x6558 optlen is 2 / end actions drop / end",
    "ingress pattern eth / ipv4 / gre protocol is 0x6558 k_bit is 1 / gre_key value is 0x01020304 / end actions drop / end",
    "ingress pattern eth / ipv4 / gre c_bit is 1 s_bit is 1 / nvgre tni is 9 / end actions drop / end",
    "ingress pattern eth / mpls label is 0x12345 tc is 5 s is 1 / end actions drop / end",
    "ingress pattern eth / ipv4 / udp / gtpu teid is 0x11223344 msg_type is 255 / end actions drop / end",
    "ingress pattern eth / ipv4 / udp / gtp teid is 1 / end actions drop / end",
    "ingress pattern eth / ipv4 / udp / gtpc teid is 2 / end actions drop / end",
    "ingress pattern eth / ipv4 / esp spi is 99 / end actions drop / end",
    "ingress pattern any num is 2 / mark id is 77 / end actions dec_ttl / mac_swap / count identifier 4 / end",
    "ingress pattern port_id id is 1 / invert / void / eth / end actions rss types none end / end",
];

/// Compiles the library that records rules.
fn recorder(name: &str) -> PathBuf {
    require_dpdk();
    let library = folder("dpdk").join(format!("{name}-{}.so", std::process::id()));
    let flags =
        Command::on_host("pkg-config").args(["--cflags", "libdpdk"]).check().unwrap().stdout;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dpdk/flow_recorder.c");
    let words = ["-shared", "-fPIC", "-w", "-DALLOW_EXPERIMENTAL_API", source, "-o"];
    let cc = Command::on_host("cc").args(flags.split_whitespace()).args(words);
    cc.args([library.display().to_string()]).check().unwrap_or_else(|error| panic!("{error}"));
    library
}

/// Runs a program with the library; returns its output and the records.
fn recorded(name: &str, library: &Path, program: &str, words: &[String]) -> (String, String) {
    let records = folder("dpdk").join(format!("{name}-{}.txt", std::process::id()));
    let (library, to) = (library.display(), records.display());
    let preload = [format!("LD_PRELOAD={library}"), format!("FLOWS={to}"), program.to_owned()];
    let command = Command::on_host("env").current_dir(root()).args(preload).args(words);
    let output = command.timeout(Duration::from_secs(60)).check();
    let output = output.unwrap_or_else(|error| panic!("{error}"));
    let found =
        std::fs::read_to_string(&records).unwrap_or_else(|_| panic!("{}", output.printed()));
    std::fs::remove_file(&records).unwrap();
    (output.stdout, found)
}

/// A file of lines, for this test alone.
fn file(name: &str, lines: &str) -> PathBuf {
    let path = folder("dpdk").join(format!("{name}-{}.txt", std::process::id()));
    std::fs::write(&path, lines).unwrap();
    path
}

/// The words of `castanet run` over a port with two queues.
fn run(config: &str) -> Vec<String> {
    let options = format!("{QUIET} --vdev net_null0");
    ["run", "--quiet", "--dpdk", &options, "-e", config].map(str::to_owned).to_vec()
}

#[test]
fn drivers_get_the_rules_that_testpmd_would_give_them() {
    let library = recorder("rules");
    let rules = file("rules", &format!("# Rules\n\n{}\n", RULES.join("\n")));
    let config = format!(
        "DPDKInfo(2048); FromDPDKDevice(0, N_QUEUES 2, FLOW_RULES_FILE {}) -> Discard;
         Script(wait 50ms, stop)",
        rules.display()
    );
    let (_, ours) = recorded("ours", &library, env!("CARGO_BIN_EXE_castanet"), &run(&config));
    let lines = RULES.iter().map(|rule| format!("flow create 0 {rule}\n"));
    let commands = file("commands", &lines.chain(["quit\n".to_owned()]).collect::<String>());
    let words = format!(
        "--lcores 0@0,1@0 --no-huge -m 256 --no-pci --no-shconf --no-telemetry --vdev net_null0 -- \
         --rxq=2 --txq=2 --total-num-mbufs=4096 -i --cmdline-file={}",
        commands.display()
    );
    let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
    let (output, theirs) = recorded("theirs", &library, "dpdk-testpmd", &words);
    let created = |records: &str| -> Vec<String> {
        records.lines().filter(|line| line.starts_with("create")).map(str::to_owned).collect()
    };
    let (ours, theirs) = (created(&ours), created(&theirs));
    for ((rule, ours), theirs) in RULES.iter().zip(&ours).zip(&theirs) {
        assert_eq!(ours, theirs, "{rule}\n{output}");
    }
    assert_eq!((ours.len(), theirs.len()), (RULES.len(), RULES.len()), "{output}");
    [library, rules, commands].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn rules_come_and_go_by_handlers() {
    let library = recorder("handled");
    let rules = file("handled-rules", &format!("{}\n{}\n", RULES[0], RULES[4]));
    let config = format!(
        "DPDKInfo(2048);
         f :: FromDPDKDevice(0, N_QUEUES 2, MODE flow, FLOW_ISOLATE true, FLOW_RULES_FILE {}) -> Discard;
         Script(wait 10ms, print $(f.rules_count) $(f.flow_isolate) $(f.rules_ids_global),
                write f.rule_add flow create 0 ingress pattern eth / end actions drop / end,
                print $(f.rules_list), print $(f.rules_count_with_hits),
                print $(f.rules_list_with_hits), print $(f.nb_vf_pools) $(f.vf_mac_addr),
                print $(f.rule_packet_hits 1) $(f.rule_byte_count 1) $(f.rule_packet_hits 0),
                write f.rules_del 0, print $(f.rules_ids_internal),
                write f.flow_isolate false, print $(f.flow_isolate),
                write f.rules_flush, print $(f.rules_count), stop)",
        rules.display()
    );
    let (output, records) =
        recorded("handled", &library, env!("CARGO_BIN_EXE_castanet"), &run(&config));
    let stats =
        |packets, bytes| format!("Stats: Matched packets: {packets}, Matched bytes: {bytes}]");
    let expected = format!(
        "2 1 0 1\n\
         Flow rule #0: [Group: 0, Prio: 0, Scope: ingress/-/-, Matches: ETH IPV4 UDP => Actions: QUEUE, {}\n\
         Flow rule #1: [Group: 0, Prio: 0, Scope: ingress/-/-, Matches: IPV4 => Actions: COUNT PASSTHRU, {}\n\
         Flow rule #2: [Group: 0, Prio: 0, Scope: ingress/-/-, Matches: ETH => Actions: DROP, {}\n\
         1\n\
         Flow rule #1: [Group: 0, Prio: 0, Scope: ingress/-/-, Matches: IPV4 => Actions: COUNT PASSTHRU, {}\n\
         0 []\n20 1200 -1\n1 2\n0\n0\n",
        stats(0, 0),
        stats(20, 1200),
        stats(0, 0),
        stats(20, 1200),
    );
    assert_eq!(output, expected);
    let steps: Vec<_> = records.lines().map(|line| line.split(" 0 ").next().unwrap()).collect();
    let expected = [
        "isolate 1",
        "create",
        "create",
        "create",
        "destroy 1",
        "isolate 0",
        "destroy 3",
        "destroy 2",
    ];
    assert_eq!(steps, expected, "{records}");
    [library, rules].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

/// The error of a configuration.
fn refused(config: &str) -> String {
    require_dpdk();
    let words = run(&format!("DPDKInfo(2048); {config} -> Discard"));
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let result = castanet(&words, b"");
    assert_eq!(result.status, Some(1), "{config}\n{}", result.err);
    result.err
}

#[test]
fn rules_that_cannot_be_are_errors() {
    let wrong = file(
        "wrong",
        "# One\ningress pattern eth / end actions drop / end\n\n ingress pattern ip / end\n",
    );
    let at = wrong.display();
    let error = refused(&format!("FromDPDKDevice(0, FLOW_RULES_FILE {at})"));
    assert!(
        error.contains(&format!("cannot read flow rules: {at}:4: `ip` is no item; known are void")),
        "{error}"
    );
    let text = format!("FromDPDKDevice(0, FLOW_RULES_FILE {at}) -> Discard");
    let checked = castanet(&["check", "-e", &text], b"");
    assert!(checked.err.contains(&format!("{at}:4: `ip` is no item")), "{}", checked.err);
    let right = file("right", RULES[1]);
    let at = right.display();
    let error = refused(&format!("FromDPDKDevice(0, FLOW_RULES_FILE {at})"));
    assert!(error.contains("its driver net_null refuses `group 2 priority 3 ingress"), "{error}");
    let queue = file("queue", RULES[0]);
    let at = queue.display();
    let error = refused(&format!("FromDPDKDevice(0, FLOW_RULES_FILE {at})"));
    assert!(error.contains("the port has no queue 1: 1 queues, from 0"), "{error}");
    let error = refused("FromDPDKDevice(0, FLOW_ISOLATE true)");
    assert!(error.contains("its driver net_null does not isolate flows: "), "{error}");
    let error = refused("FromDPDKDevice(0, FLOW_RULES_FILE /nowhere)");
    assert!(error.contains("/nowhere: "), "{error}");
    [wrong, right, queue].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn pools_need_a_port_that_has_them() {
    for (arguments, error) in [
        ("MODE vmdq, VF_POOLS 8", "its driver net_null has no VMDq, and so no pools (VF_POOLS)"),
        ("MODE vmdq_rss, VF_POOLS 2, VF_VLAN 5 6", "its driver net_null has no VMDq"),
        ("MODE vmdq", "MODE vmdq and vmdq_rss need VF_POOLS, the number of pools"),
        ("VF_POOLS 8", "VF_POOLS and VF_VLAN need MODE vmdq or vmdq_rss"),
        (
            "MODE vmdq, VF_POOLS 3, VF_VLAN 5 6",
            "VF_VLAN has 2 VLANs, and VF_POOLS 3 pools: one for each",
        ),
        ("MODE vmdq, VF_POOLS 1, VF_VLAN 4095", "VF_VLAN: 4095 is no VLAN: 0 to 4094"),
    ] {
        let said = refused(&format!("FromDPDKDevice(0, {arguments})"));
        assert!(said.contains(error), "{arguments}\n{said}");
    }
}

#[test]
fn ports_without_timestamps_are_refused() {
    let error = refused("FromDPDKDevice(0, TIMESTAMP true)");
    assert!(error.contains("its driver net_null does not stamp packets (TIMESTAMP)"), "{error}");
}
