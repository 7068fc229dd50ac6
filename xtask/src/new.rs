//! `cargo xtask new ip/SetIPTTL`: a new element's file, already compiling.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "crates/elements/src";

/// Writes the element's file and lists it in its room.
pub fn element(place: &str) -> Result<(), String> {
    let (room, class) = place.split_once('/').ok_or("wants ROOM/Class, e.g. ip/SetIPTTL")?;
    let rooms: Vec<_> = castanet_elements::ROOMS.iter().map(|(room, _)| *room).collect();
    if !rooms.contains(&room) {
        let rooms = rooms.join(", ");
        return Err(format!("no room `{room}`, only {rooms} (CONTRIBUTING.md, \"Which room\")"));
    }
    let folder = Path::new(FOLDER).join(room);
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
    format(&list)?;
    let test = "cargo test -p castanet-elements --test manual";
    println!("wrote {}; now say what it does, then `{test}`", path.display());
    Ok(())
}

/// Formats a file and the modules that it names.
fn format(path: &Path) -> Result<(), String> {
    let done = Command::new("rustfmt").args(["--edition", "2024"]).arg(path).status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("rustfmt: {status}")),
        Err(e) => Err(format!("cannot run rustfmt: {e}")),
    }
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
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

/// The room's list with the new element in its alphabetical place, to be
/// formatted.
fn listed(text: &str, module: &str, class: &str, room: &str) -> Option<String> {
    let trait_word = match room {
        "source" | "queue" | "shape" | "schedule" => "source",
        "info" => "info",
        _ => "per_packet",
    };
    let (before, rest) = text.split_once("CLASSES: &[Class] =")?;
    let (entries, after) = rest.split_once("&[")?.1.split_once("];")?;
    let entries = entries.split(',').map(|entry| entry.trim().to_owned());
    let mut entries: Vec<String> = entries.filter(|entry| !entry.is_empty()).collect();
    insert(&mut entries, format!("{trait_word}::<{module}::{class}>()"));
    let list = entries.iter().fold(String::new(), |list, entry| list + "    " + entry + ",\n");
    let before = with_module(before, module)?;
    Some(format!("{before}CLASSES: &[Class] = &[\n{list}];{after}"))
}

/// The room's text with `pub mod` of the new element in its place among the
/// others, or before the imports.
fn with_module(text: &str, module: &str) -> Option<String> {
    let new = format!("pub mod {module};");
    let mut lines: Vec<&str> = text.split('\n').collect();
    let modules = || (0..lines.len()).filter(|&n| lines[n].starts_with("pub mod "));
    let place = modules().find(|&n| *lines[n] > *new).or(modules().next_back().map(|n| n + 1));
    match place {
        Some(place) => {
            // Attributes of the next module stay with it.
            let attributes = lines[..place].iter().rev().take_while(|l| l.starts_with("#["));
            lines.insert(place - attributes.count(), &new);
        }
        None => {
            let imports = lines.iter().position(|line| line.starts_with("use "))?;
            lines.splice(imports..imports, [new.as_str(), ""]);
        }
    }
    Some(lines.join("\n"))
}

/// Puts `new` before the first entry whose text is greater, or last.
fn insert(entries: &mut Vec<String>, new: String) {
    let key = |entry: &str| entry.rsplit("::<").next().unwrap_or(entry).to_owned();
    let greater = entries.iter().position(|entry| key(entry) > key(&new));
    entries.insert(greater.unwrap_or(entries.len()), new);
}

fn template(room: &str, class: &str) -> String {
    match room {
        "source" => return source_template(class),
        "queue" | "shape" | "schedule" => return pull_template(room, class),
        "info" => return info_template(class),
        _ => {}
    }
    let (on, packet, view) = match room {
        "ether" | "vlan" => ("Ether", "ether", "Ether"),
        "arp" => ("Arp", "arp", "ArpPacket"),
        "ip" | "nat" => ("Ipv4", "ip", "Ipv4"),
        "ip6" => ("Ipv6", "ip", "Ipv6"),
        "icmp" => ("Icmp", "icmp", "IcmpPacket"),
        "udp" => ("Udp", "udp", "UdpPacket"),
        "tcp" => ("Tcp", "tcp", "TcpPacket"),
        _ => ("Any", "packet", "&mut Packet"),
    };
    let shown = match room {
        "arp" => "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1",
        "ip6" => "1::1 > 2::2 udp",
        "icmp" => "1.0.0.1 > 2.0.0.2 icmp echo",
        "tcp" => "1.0.0.1:99 > 2.0.0.2:80 tcp",
        _ => "1.0.0.1 > 2.0.0.2 udp",
    };
    format!(
        "//! `{class}`: its task in a few words.

use castanet_element::prelude::*;

/// Passes every packet on unchanged.
///
/// ```click
/// in -> {class} -> out
/// > in  {shown}
/// < out {shown}
/// ```
#[derive(Element)]
#[element(room = \"{room}\")]
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
        "//! `{class}`: its task in a few words.

use castanet_element::prelude::*;

/// Sends nothing.
///
/// ```click
/// {class} -> out
/// ```
#[derive(Element)]
#[element(room = \"source\")]
pub struct {class};

impl Source for {class} {{
    type Local = ();
    type Fate = ();

    fn ask(&self, (): &mut (), _n: usize, _cx: &mut Cx) -> NextRun {{
        NextRun::Done
    }}
}}
"
    )
}

fn pull_template(room: &str, class: &str) -> String {
    format!(
        "//! `{class}`: its task in a few words.

use castanet_element::prelude::*;

/// Pulls packets as they come and pushes them on.
///
/// ```click
/// in -> Queue -> {class} -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = \"{room}\", ports = \"1/1\", processing = \"l/h\")]
pub struct {class};

impl Source for {class} {{
    type Local = ();
    type Fate = ();

    fn ask(&self, (): &mut (), n: usize, cx: &mut Cx) -> NextRun {{
        let batch = cx.pull(0, n);
        if batch.is_empty() {{
            return NextRun::Empty;
        }}
        cx.emit_batch((), batch);
        NextRun::Again
    }}
}}
"
    )
}

fn info_template(class: &str) -> String {
    format!(
        "//! `{class}`: its task in a few words.

use castanet_element::prelude::*;

/// Declares nothing.
///
/// ```click
/// {class}
/// in -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = \"info\")]
pub struct {class};

impl Info for {class} {{
    fn declare(&self, _facts: &mut Facts) -> Result<(), ArgError> {{
        Ok(())
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
        let room = "//! Room.\n\npub mod a;\nmod aid;\npub mod c;\n\nuse x::*;\n\npub static CLASSES: &[Class] = &[\n    per_packet::<a::A>(),\n    store::<c::C>(),\n];\n";
        let text = listed(room, "b", "B", "util").expect("has CLASSES");
        assert!(
            text.contains("pub mod a;\nmod aid;\npub mod b;\npub mod c;\n\nuse x::*;"),
            "{text}"
        );
        let entries = "<a::A>(),\n    per_packet::<b::B>(),\n    store::<c::C>(),\n];\n";
        assert!(text.ends_with(entries), "{text}");
        let attribute = "pub mod a;\n#[allow(x)]\npub mod c;\n";
        let room = room.replace("pub mod a;\nmod aid;\npub mod c;\n", attribute);
        let text = listed(&room, "b", "B", "util").expect("has CLASSES");
        assert!(text.contains("pub mod a;\npub mod b;\n#[allow(x)]\npub mod c;\n"), "{text}");
        // The short forms of rustfmt.
        let one = "//! Room.\n\npub mod c;\n\nuse x::*;\n\npub static CLASSES: &[Class] =\n    &[store::<c::C>()];\n";
        let text = listed(one, "b", "B", "util").expect("has CLASSES");
        assert!(text.contains("\n\npub mod b;\npub mod c;\n\nuse x::*;"), "{text}");
        assert!(
            text.ends_with("[\n    per_packet::<b::B>(),\n    store::<c::C>(),\n];\n"),
            "{text}"
        );
        let empty = "//! Room.\n\nuse x::*;\n\npub static CLASSES: &[Class] = &[];\n";
        let text = listed(empty, "b", "B", "util").expect("has CLASSES");
        assert!(text.contains("\n\npub mod b;\n\nuse x::*;"), "{text}");
        assert!(text.ends_with("&[\n    per_packet::<b::B>(),\n];\n"), "{text}");
    }
}
