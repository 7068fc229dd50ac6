//! A traced packet as text for people.

use crate::commands::ctl::format::printable;
use crate::observe::packet::PacketRecord;
use crate::observe::trace::{StepKind, StepRecord, StepResult};
use crate::terminal::{bold, coloured};
use anstyle::AnsiColor;
use castanet_wire::Timestamp;
use std::collections::HashMap;

/// Indentation of packets below elements.
const INDENT: &str = "      ";

/// A packet with all its steps.
pub(super) fn packet(steps: &[StepRecord], colours: bool) -> String {
    let mut text = PacketText { out: String::new(), colours, kept: HashMap::new() };
    steps.iter().for_each(|step| text.step(step));
    text.out + "\n"
}

/// The text of one packet so far.
struct PacketText {
    out: String,
    colours: bool,
    /// By element that has kept the packet: since when.
    kept: HashMap<String, i64>,
}

impl PacketText {
    fn step(&mut self, step: &StepRecord) {
        let title = format!("{} :: {}", printable(&step.element), printable(&step.class));
        let title = bold(&title, self.colours);
        match &step.kind {
            StepKind::Entered { output, packet } => {
                let time = Timestamp(step.time).rfc3339_micros();
                let (number, worker) = (step.number, step.worker);
                self.out += &format!("packet {number}  {time}  worker {worker}\n");
                self.out += &format!("  {title} [{output}]\n");
                self.packet(packet);
            }
            StepKind::Visited { input, before, nanoseconds, results } => {
                self.visit(step, &title, *input, before, *nanoseconds, results);
            }
            StepKind::Left { .. } => {
                let since = self.kept.remove(&step.element);
                let after = since.map(|since| (step.time - since).max(0)).filter(|it| *it > 0);
                let after = after.map(|after| format!(" after {}", short_time(after as f64)));
                self.out += &format!("  {title}: lets it go{}\n", after.unwrap_or_default());
            }
            StepKind::Dropped { reason, meaning } => {
                self.out += &format!("  {title}: {}\n", self.drop(reason, meaning));
            }
            StepKind::Finished => {}
        }
    }

    fn visit(
        &mut self,
        step: &StepRecord,
        title: &str,
        input: usize,
        before: &PacketRecord,
        nanoseconds: u64,
        results: &[StepResult],
    ) {
        let ports: Vec<String> = results
            .iter()
            .filter_map(|result| match result {
                StepResult::Sent { output, .. } => Some(format!("[{output}]")),
                _ => None,
            })
            .collect();
        let arrow = if ports.is_empty() { "" } else { " -> " };
        self.out += &format!("  [{input}] {title}{arrow}{}  {nanoseconds} ns\n", ports.join(" "));
        for result in results {
            match result {
                StepResult::Sent { packet, .. } => self.change(before, packet),
                StepResult::Dropped { reason, meaning } => {
                    self.out += &format!("{INDENT}{}\n", self.drop(reason, meaning));
                }
                StepResult::Consumed => self.out += &format!("{INDENT}ends here\n"),
                StepResult::Kept => {
                    self.kept.insert(step.element.clone(), step.time);
                    self.out += &format!("{INDENT}kept\n");
                }
            }
        }
    }

    fn drop(&self, reason: &str, meaning: &str) -> String {
        let dropped = coloured(&format!("dropped: {reason}"), AnsiColor::Red, self.colours);
        if meaning.is_empty() { dropped } else { format!("{dropped}. {}", printable(meaning)) }
    }

    fn packet(&mut self, packet: &PacketRecord) {
        let text = printable(&packet.text);
        self.out += &format!("{INDENT}{text}   ({} bytes)\n", packet.length);
    }

    /// The packet as it left, if it has changed, with marks at the words that are new.
    fn change(&mut self, before: &PacketRecord, after: &PacketRecord) {
        if before.text != after.text {
            let (old, new) = (printable(&before.text), printable(&after.text));
            let is_new = new_words(&old, &new);
            let words = new.split(' ').zip(&is_new);
            let marked = |(word, is_new): (&str, &bool)| {
                coloured(word, AnsiColor::Yellow, *is_new && self.colours)
            };
            let line: Vec<String> = words.map(marked).collect();
            let length = match before.length == after.length {
                true => String::new(),
                false => format!("   ({} bytes)", after.length),
            };
            self.out += &format!("{INDENT}{}{length}\n", line.join(" "));
            if !self.colours && is_new.contains(&true) && is_new.contains(&false) {
                self.out += &format!("{INDENT}{}\n", carets(&new, &is_new));
            }
        } else if let Some(range) = changed_bytes(&before.bytes, &after.bytes) {
            self.out += &format!("{INDENT}changed: {range}\n");
        }
        let changes = annotation_changes(before, after);
        if !changes.is_empty() {
            self.out += &format!("{INDENT}annotations: {}\n", changes.join(", "));
        }
    }
}

/// A time in nanoseconds, in the unit that fits.
fn short_time(nanoseconds: f64) -> String {
    match nanoseconds {
        it if it < 1e3 => format!("{it} ns"),
        it if it < 1e6 => format!("{:.1} us", it / 1e3),
        it if it < 1e9 => format!("{:.1} ms", it / 1e6),
        it => format!("{:.1} s", it / 1e9),
    }
}

/// By word of `new`: whether it is none of the words that both texts have in the same order.
fn new_words(old: &str, new: &str) -> Vec<bool> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split(' ').collect(), new.split(' ').collect());
    // Length of the longest common part from each pair of words on.
    let mut common = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            common[a][b] = match old[a] == new[b] {
                true => common[a + 1][b + 1] + 1,
                false => common[a + 1][b].max(common[a][b + 1]),
            };
        }
    }
    let (mut a, mut is_new) = (0, Vec::new());
    for b in 0..new.len() {
        while a < old.len() && old[a] != new[b] && common[a + 1][b] == common[a][b] {
            a += 1;
        }
        let is_common = a < old.len() && old[a] == new[b];
        a += usize::from(is_common);
        is_new.push(!is_common);
    }
    is_new
}

/// A line with marks below the words that are new.
fn carets(text: &str, is_new: &[bool]) -> String {
    let marks = text.split(' ').zip(is_new).map(|(word, is_new)| {
        let mark = if *is_new { "^" } else { " " };
        mark.repeat(word.chars().count())
    });
    marks.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// The range of bytes, given as hexadecimal digits, that differ.
fn changed_bytes(before: &str, after: &str) -> Option<String> {
    let pairs = before.as_bytes().chunks(2).zip(after.as_bytes().chunks(2));
    let changed: Vec<usize> =
        (0..).zip(pairs).filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
    let (first, last) = (changed.first()?, changed.last()?);
    Some(match first == last {
        true => format!("byte {first}"),
        false => format!("bytes {first} to {last}"),
    })
}

fn annotation_changes(before: &PacketRecord, after: &PacketRecord) -> Vec<String> {
    let mut changes = Vec::new();
    let mut compare = |name: &str, old: String, new: String| {
        if old != new {
            changes.push(format!("{name} {old} -> {new}"));
        }
    };
    compare("paint", before.paint.to_string(), after.paint.to_string());
    compare("destination", before.dst.to_string(), after.dst.to_string());
    compare("device", before.device.to_string(), after.device.to_string());
    compare("packet type", before.packet_type.to_string(), after.packet_type.to_string());
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::packet::FirstHeader;

    fn record(text: &str, length: usize) -> PacketRecord {
        PacketRecord {
            length,
            text: text.into(),
            layer: FirstHeader::Ip,
            bytes: String::new(),
            paint: 0,
            dst: [0, 0, 0, 0].into(),
            device: 0,
            packet_type: 0,
            network: None,
        }
    }

    fn step(element: &str, time: i64, kind: StepKind) -> StepRecord {
        let (element, class) = (element.to_owned(), "Class".to_owned());
        StepRecord { number: 1, time, worker: 0, element, class, kind }
    }

    #[test]
    fn the_way_of_a_packet_is_readable() {
        let (first, second) =
            (record("a > b ttl 64 len 46", 46), record("a > b ttl 63 len 46", 46));
        let painted = PacketRecord { paint: 3, ..second.clone() };
        let sent = |packet: &PacketRecord| StepResult::Sent { output: 0, packet: packet.clone() };
        let visit = |before: &PacketRecord, results| StepKind::Visited {
            input: 0,
            before: before.clone(),
            nanoseconds: 40,
            results,
        };
        let (reason, meaning) = ("full".to_owned(), "It is full.".to_owned());
        let steps = [
            step("in", 0, StepKind::Entered { output: 0, packet: first.clone() }),
            step("ttl", 0, visit(&first, vec![sent(&second)])),
            step("p", 0, visit(&second, vec![sent(&painted)])),
            step("q", 0, visit(&painted, vec![StepResult::Kept])),
            step("q", 2_000_000_000, StepKind::Left { packet: painted.clone() }),
            step(
                "r",
                2_000_000_000,
                visit(&painted, vec![StepResult::Dropped { reason, meaning }]),
            ),
            step("r", 2_000_000_000, StepKind::Finished),
        ];
        let expected = "\
packet 1  1970-01-01T00:00:00.000000Z  worker 0
  in :: Class [0]
      a > b ttl 64 len 46   (46 bytes)
  [0] ttl :: Class -> [0]  40 ns
      a > b ttl 63 len 46
                ^^
  [0] p :: Class -> [0]  40 ns
      annotations: paint 0 -> 3
  [0] q :: Class  40 ns
      kept
  q :: Class: lets it go after 2.0 s
  [0] r :: Class  40 ns
      dropped: full. It is full.

";
        assert_eq!(packet(&steps, false), expected);
        assert!(packet(&steps, true).contains("\u{1b}[33m63\u{1b}[0m"));
    }

    #[test]
    fn new_words_are_found_between_old_ones() {
        let marks = |old: &str, new: &str| carets(new, &new_words(old, new));
        assert_eq!(marks("a b c", "a x c"), "  ^");
        assert_eq!(marks("a b c", "x a b c y"), "^       ^");
        assert_eq!(marks("a b c d", "a d"), "");
        assert_eq!(marks("", "ab c"), "^^ ^");
        assert_eq!(marks("a b a", "a a b"), "    ^");
    }

    #[test]
    fn changed_bytes_are_a_range() {
        assert_eq!(changed_bytes("000102", "000102"), None);
        assert_eq!(changed_bytes("000102", "00ff02").as_deref(), Some("byte 1"));
        assert_eq!(changed_bytes("00010203", "ff01ff03").as_deref(), Some("bytes 0 to 2"));
    }
}
