//! `cargo xtask new ip/SetIPTTL`: a new element's file, already compiling.

use std::fs;
use std::path::{Path, PathBuf};

const ROOMS: &str = "crates/elements/src";

/// Writes the element's file and lists it in its room.
pub fn element(place: &str) -> Result<(), String> {
    let (room, class) = place.split_once('/').ok_or("wants ROOM/Class, e.g. ip/SetIPTTL")?;
    let folder = Path::new(ROOMS).join(room);
    if !folder.is_dir() {
        return Err(format!("no room `{room}`; there are {}", rooms().join(", ")));
    }
    let starts_right = class.starts_with(|c: char| c.is_ascii_uppercase());
    if !starts_right || !class.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(format!("`{class}` is no class name: capital first, letters and digits"));
    }
    let module = snake(class);
    let path = folder.join(format!("{module}.rs"));
    if path.exists() {
        return Err(format!("{} is there already", path.display()));
    }
    let list = folder.join("mod.rs");
    let text = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    let text = listed(&text, &module, class, room)
        .ok_or_else(|| format!("{} has no CLASSES", list.display()))?;
    write(&path, &template(room, class))?;
    write(&list, &text)?;
    println!("wrote {}; now say what it does, then `cargo xtask check`", path.display());
    Ok(())
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn rooms() -> Vec<String> {
    let entries = fs::read_dir(ROOMS).into_iter().flatten().flatten();
    let folders = entries.filter(|e| e.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Words that class names write in capitals.
const CAPITALS: &[&str] = &[
    "ARP", "CE", "CPU", "CRC", "DPDK", "DSCP", "ECN", "ESP", "FTP", "GRE", "GTP", "GW", "HTTP",
    "ICMP", "ID", "IP", "MAC", "MP", "MSS", "NAT", "RED", "RR", "SR", "TCP", "TTL", "UDP", "VLAN",
    "VXLAN",
];

/// `DecIPTTL` → `dec_ip_ttl`: a capital begins a word after a small letter or
/// before one, and runs of capitals are taken apart into known words.
pub fn snake(class: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest = class;
    while !rest.is_empty() {
        let capitals = rest.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(rest.len());
        let small_follows = rest[capitals..].starts_with(|c: char| c.is_ascii_lowercase());
        // The last capital of a run belongs to the small letters behind it.
        let run = if small_follows { capitals.saturating_sub(1) } else { capitals };
        words.extend(known_words(&rest[..run]));
        let tail = &rest[run..];
        let end = tail.char_indices().skip(1).find(|(_, c)| c.is_ascii_uppercase());
        let end = end.map_or(tail.len(), |(i, _)| i);
        match tail.starts_with(|c: char| c.is_ascii_digit()) {
            true => words.last_mut().into_iter().for_each(|w| *w += &tail[..end]),
            false if end > 0 => words.push(tail[..end].to_owned()),
            false => {}
        }
        rest = &tail[end..];
    }
    words.join("_").to_lowercase()
}

/// A run of capitals as known words, or as it is.
fn known_words(run: &str) -> Vec<String> {
    fn split(run: &str) -> Option<Vec<String>> {
        if run.is_empty() {
            return Some(Vec::new());
        }
        CAPITALS.iter().filter(|word| run.starts_with(**word)).find_map(|word| {
            let mut rest = split(&run[word.len()..])?;
            rest.insert(0, (*word).to_owned());
            Some(rest)
        })
    }
    match run.is_empty() {
        true => Vec::new(),
        false => split(run).unwrap_or_else(|| vec![run.to_owned()]),
    }
}

/// The room's list with the new element in its alphabetical place.
fn listed(text: &str, module: &str, class: &str, room: &str) -> Option<String> {
    let trait_word = if room == "source" || room == "queue" { "source" } else { "per_packet" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    insert(&mut lines, |l| l.starts_with("pub mod "), format!("pub mod {module};"), "use ")?;
    let entry = format!("    {trait_word}::<{module}::{class}>(),");
    insert(&mut lines, |l| l.contains("::<") && l.ends_with(">(),"), entry, "];")?;
    Some(lines.join("\n") + "\n")
}

/// Puts `new` before the first of its kind whose text is greater, after the
/// last of its kind, or before the line that begins with `or_before`.
fn insert(
    lines: &mut Vec<String>,
    kind: impl Fn(&str) -> bool,
    new: String,
    or_before: &str,
) -> Option<()> {
    let key = |line: &str| line.rsplit("::<").next().unwrap_or(line).to_owned();
    let of_kind: Vec<usize> = (0..lines.len()).filter(|&i| kind(&lines[i])).collect();
    let greater = of_kind.iter().find(|&&i| key(&lines[i]) > key(&new)).copied();
    let at = greater
        .or_else(|| of_kind.last().map(|i| i + 1))
        .or_else(|| lines.iter().position(|l| l.starts_with(or_before)))?;
    lines.insert(at, new);
    Some(())
}

fn template(room: &str, class: &str) -> String {
    if room == "source" || room == "queue" {
        return source_template(class);
    }
    let (on, packet, view) = match room {
        "ether" => ("Ether", "ether", "Ether"),
        "arp" => ("Arp", "arp", "ArpPacket"),
        "ip" => ("Ipv4", "ip", "Ipv4"),
        "icmp" => ("Icmp", "icmp", "IcmpPacket"),
        "udp" => ("Udp", "udp", "UdpPacket"),
        "tcp" => ("Tcp", "tcp", "TcpPacket"),
        _ => ("Any", "packet", "&mut Packet"),
    };
    format!(
        "//! `{class}`: what it is, in a few words.

use castanet_engine::prelude::*;

/// Passes every packet on unchanged.
///
/// ```click
/// in -> {class} -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
pub struct {class};

impl PerPacket for {class} {{
    type On = on::{on};
    type Local = ();
    type Fate = ();

    fn packet(&self, (): &mut (), {packet}: {view}) {{
        let _ = {packet};
    }}
}}
"
    )
}

fn source_template(class: &str) -> String {
    format!(
        "//! `{class}`: what it is, in a few words.

use castanet_engine::prelude::*;

/// Sends nothing.
///
/// ```click
/// {class} -> out
/// ```
#[derive(Element)]
pub struct {class};

impl Source for {class} {{
    type Local = ();
    type Fate = ();

    fn ask(&self, (): &mut (), _n: usize, _cx: &mut Cx) -> Asked {{
        Asked::Done
    }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_follow_class_names() {
        for (class, file) in [
            ("DecIPTTL", "dec_ip_ttl"),
            ("IPGWOptions", "ip_gw_options"),
            ("SetUDPChecksum", "set_udp_checksum"),
            ("AverageCounter", "average_counter"),
            ("Counter", "counter"),
            ("IPFilter", "ip_filter"),
            ("ARPQuerier", "arp_querier"),
            ("CheckIPHeader2", "check_ip_header2"),
        ] {
            assert_eq!(snake(class), file);
        }
    }

    #[test]
    fn new_elements_are_listed_in_their_place() {
        let room = "//! Room.\n\npub mod a;\npub mod c;\n\nuse x::*;\n\npub static CLASSES: &[Class] = &[\n    per_packet::<a::A>(),\n    store::<c::C>(),\n];\n";
        let text = listed(room, "b", "B", "basic").expect("has CLASSES");
        assert!(text.contains("pub mod a;\npub mod b;\npub mod c;"));
        assert!(text.contains("<a::A>(),\n    per_packet::<b::B>(),\n    store::<c::C>(),"));
        let empty = "//! Room.\n\nuse x::*;\n\npub static CLASSES: &[Class] = &[\n];\n";
        let text = listed(empty, "b", "B", "basic").expect("has CLASSES");
        assert!(text.contains("pub mod b;\nuse x::*;") && text.contains("<b::B>(),\n];"));
    }
}
