//! Fragments and malformed segments, from outside: what rules, `lb`, `test` and a replaced
//! configuration do with them.

use castanet_bench::example::{self, WAYS};
use castanet_element::class::Library;
use castanet_middlebox::CLASSES;

fn library() -> Library {
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    library
}

/// Runs an example in bursts of every size, on one worker and on three.
fn matches_packet(text: &str) {
    let library = library();
    for (workers, burst) in WAYS {
        example::run(text, &library, workers, burst)
            .unwrap_or_else(|error| panic!("{workers} workers, bursts of {burst}: {error}"));
    }
}

/// A segment of 24 bytes to port 5000, whose header says that it is so many fours of bytes long, in
/// a packet of IPv4 with this in the word of fragments.
fn segment(fours: u8, fragment: u16) -> String {
    let ip = format!("4500002c 0001{fragment:04x} 4006 0000 01000001 02000002");
    format!("hex {ip} 00091388 00000000 00000000 {fours}0020000 00000000 01010101")
        .replace("  ", " ")
}

#[test]
fn segments_whose_header_has_no_possible_length_are_malformed() {
    for rule in ["tcp-dport 5000 accept", "add-stateful proto tcp accept"] {
        let mut text = format!("in -> m :: Middlebox({rule}) -> out\n");
        text += &format!("> in {0}\n< out {0}\n", segment(6, 0));
        // Shorter than any, longer than the packet; and shorter than any in a first fragment.
        for (n, (fours, fragment)) in [(0, 0), (4, 0), (7, 0), (4, 0x2000)].into_iter().enumerate()
        {
            text += &format!("> in {}\n", segment(fours, fragment));
            text += &format!("= m.drops.malformed {}\n", n + 1);
        }
        // Whose header may go on in the next fragment is another matter.
        text += &format!("> in {}\n= m.drops.tiny_fragment 1\n", segment(7, 0x2000));
        matches_packet(&text);
    }
    // Rules about addresses alone do not look so far.
    matches_packet(&format!(
        "in -> m :: Middlebox(ip-saddr 9.9.9.9 drop) -> out\n> in {0}\n< out {0}\n",
        segment(4, 0)
    ));
}

/// Whether whole packets of a connection and its fragments, in either order, go to this hop.
fn go_to(hop: &str, rules: &str, is_ip6: bool, port: u16) -> bool {
    let [from, to] = if is_ip6 { ["[1::1]", "[2::2]"] } else { ["1.0.0.1", "2.0.0.2"] };
    let whole = format!("{from}:{port} > {to}:53 udp \"a packet\"");
    let first = |id: u8| format!("{from}:{port} > {to}:53 udp id {id} frag 0+ \"a packet\"");
    let later =
        |id: u8| format!("{from} > {to} udp id {id} frag 16 \"late\"").replace(['[', ']'], "");
    let mut text = format!("in -> m :: Middlebox({rules}) -> out\n");
    for packet in [&whole, &first(1), &later(1), &later(2), &first(2)] {
        text += &format!("> in {packet}\n");
    }
    let note = if is_ip6 { "dst6" } else { "dst" };
    let set = |packet: &str| match rules.contains("udp-dport") {
        true => packet.replace(":53", ":54"),
        false => packet.to_owned(),
    };
    for packet in [&whole, &first(1), &later(1), &first(2), &later(2)] {
        text += &format!("< out {} ; {note} {hop}\n", set(packet));
    }
    WAYS.iter().all(|&(workers, burst)| example::run(&text, &library(), workers, burst).is_ok())
}

#[test]
fn fragments_go_to_the_hop_of_their_connection() {
    for (is_ip6, hops) in
        [(false, ["9.9.9.1", "9.9.9.2", "9.9.9.3"]), (true, ["9::1", "9::2", "9::3"])]
    {
        let lb = format!("all lb {}", hops.join(" "));
        for rules in [lb.clone(), format!("proto udp mod udp-dport 54, {lb}")] {
            let chosen: Vec<Vec<&str>> = (1..7)
                .map(|port| {
                    hops.into_iter().filter(|hop| go_to(hop, &rules, is_ip6, port)).collect()
                })
                .collect();
            assert!(chosen.iter().all(|hops| hops.len() == 1), "{rules}: {chosen:?}");
            assert!(chosen.iter().any(|hops| hops != &chosen[0]), "by ports: {chosen:?}");
        }
    }
}

#[test]
fn a_trial_says_what_becomes_of_fragments_and_changes_nothing() {
    let first = "1.0.0.1:9 > 2.0.0.2:80 tcp syn id 1 frag 0+ \"data\"";
    let later = "1.0.0.1 > 2.0.0.2 tcp id 1 frag 24 \"late\"";
    let tiny = "hex 4500002400032000400600000100000102000002 00091388000000000000000050020000";
    let said = |packet: &str, last: &str| format!("! m.command test {packet}\n= m.said {last}\n");
    let tried =
        |packet: &str, last: &str| said(packet, &format!("in 0: {}\\n{last}", shown(packet)));
    let waits = "goes where the first fragment of its packet goes, and waits for it";
    let follows = "follows the first fragment of its packet, by whose headers it is judged";
    let overlaps = "dropped: fragments of its packet overlap or contradict each other (`overlapping_fragment`)";
    let mut text = "in -> m :: Middlebox(tcp-dport 5000 drop) -> out\n".to_owned();
    text += &tried(later, waits);
    text += "= m.waiting_fragments 0\n";
    text += &tried(tiny, "dropped: the headers of its packet are cut in two (`tiny_fragment`)");
    text += &tried(&segment(4, 0), "dropped: its headers are malformed");
    text += &tried(&segment(4, 0x2000), "dropped: its headers are malformed");
    text += &tried(first, &format!("out 0: {}", shown(first)));
    // None of them was noted.
    text += &tried(later, waits);
    text += &format!("> in {first}\n< out {first}\n");
    text += &tried(later, &format!("{follows}\\nout 0: {}", shown(later)));
    text += &tried(&first.replace("data", "longer data."), overlaps);
    text += &tried(&first.replace(":80", ":81"), overlaps);
    text += &format!("> in {later}\n< out {later}\n");
    // One whose first fragment was dropped.
    let [first, later] =
        [first, later].map(|it| it.replace(":80", ":5000").replace("id 1", "id 2"));
    text += &format!("> in {first}\n= m.drops.rule 1\n");
    text += &tried(&later, "dropped: the first fragment of its packet is dropped (`rule`)");
    text += "= m.drops.rule 1\n";
    matches_packet(&text);
}

/// A packet as answers show it.
fn shown(packet: &str) -> String {
    use castanet_element::wire::sketch;
    let built = sketch::build(packet).unwrap_or_else(|error| panic!("{packet}: {error}"));
    sketch::print(&built.bytes, built.layer)
}

/// After any command that changes the rules, a fragment that waits goes on with the first one, or is
/// dropped under a name: the runner of examples counts each packet.
#[test]
fn fragments_that_wait_outlast_other_rules() {
    let first = "1.0.0.1:9 > 2.0.0.2:80 udp id 1 frag 0+ \"a packet\"";
    let later = "1.0.0.1 > 2.0.0.2 udp id 1 frag 16 \"late\"";
    let passes = format!("> in {first}\n< out {first}\n");
    let follows = format!("{passes}< out {later}\n= m.waiting_fragments 0\n");
    let in_vain = "+ 5s\n= m.drops.lone_fragment 1\n= m.waiting_fragments 0\n";
    // If no rule needs the first fragment any more, the others wait in vain.
    let in_vain = format!("{passes}{in_vain}");
    let dropped = format!("> in {first}\n= m.drops.rule 2\n= m.waiting_fragments 0\n");
    for (command, wanted) in [
        ("add tcp-syn drop", &follows),
        ("replace 1 udp-dport 80 drop", &dropped),
        ("flush", &in_vain),
        ("replace 1 ip-saddr 9.9.9.9 drop", &in_vain),
        ("disable 0", &in_vain),
    ] {
        let config = "in -> m :: Middlebox(udp-dport 5000 drop) -> out\n";
        let waits = "= m.waiting_fragments 1\n";
        matches_packet(&format!(
            "{config}> in {later}\n{waits}! m.command {command}\n{waits}{wanted}"
        ));
    }
}

#[test]
fn packets_are_found_behind_many_tags_and_too_many_tags_are_malformed() {
    let stations = "060000000002060000000001";
    let ip = "45000014000000004000000001000001 02000002";
    let mut text = "in -> m :: Middlebox(ip-saddr 1.0.0.1 drop) -> out\n".to_owned();
    for tags in 0..=8 {
        let tag = ["81000000", "88a80000"][tags % 2].repeat(tags);
        text += &format!("> in eth hex {stations} {tag}0800 {ip}\n= m.drops.rule {}\n", tags + 1);
    }
    text += &format!("> in eth hex {stations} {}0800 {ip}\n", "81000000".repeat(9));
    text += "= m.drops.malformed 1\n";
    matches_packet(&text);
}
