//! Names of addresses in a running program.

use super::trace::Places;
use crate::steps::output;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::ops::Range;

/// The function that the program calls before each burst.
const MARK: &str = "mark_burst";

/// The symbols of a program, and where it lies in memory.
pub(super) struct Symbols {
    program: String,
    /// Symbols by address in the file: start, end, name.
    symbols: Vec<(u64, u64, String)>,
}

/// Mappings of a process.
#[derive(Default)]
pub(super) struct Mappings(Vec<(Range<u64>, String)>);

impl Symbols {
    /// Reads the symbols of a program.
    pub(super) fn read(program: &str) -> Result<Symbols, String> {
        let (text, _) = output("nm", &["--numeric-sort", "--print-size", "--demangle", program])?;
        let symbol = |line: &str| {
            let mut words = line.splitn(4, ' ');
            let mut number = || u64::from_str_radix(words.next()?, 16).ok();
            let (start, size) = (number()?, number()?);
            Some((start, start + size, words.nth(1)?.to_owned()))
        };
        Ok(Symbols { program: program.into(), symbols: text.lines().filter_map(symbol).collect() })
    }

    /// Where the program lies in a process.
    pub(super) fn places(&self, mappings: &Mappings) -> Result<Places, String> {
        let program = mappings.of(&self.program)?;
        let is_mark = |name: &str| name.rsplit("::").any(|part| part == MARK);
        let mark = self.symbols.iter().find(|(_, _, name)| is_mark(name));
        let (mark, ..) = mark.ok_or_else(|| format!("{} has no {MARK}", self.program))?;
        Ok(Places { mark: program.start + mark, program })
    }

    /// The functions of instructions, as `function (file:line)`.
    pub(super) fn functions(
        &self,
        mappings: &Mappings,
        codes: &BTreeSet<u64>,
    ) -> Result<HashMap<u64, String>, String> {
        if codes.is_empty() {
            return Ok(HashMap::new());
        }
        let base = mappings.of(&self.program)?.start;
        let addresses: Vec<String> =
            codes.iter().map(|code| format!("{:#x}", code.wrapping_sub(base))).collect();
        let mut words = vec!["-a", "-f", "-i", "-C", "-e", &self.program];
        words.extend(addresses.iter().map(String::as_str));
        let (text, _) = output("addr2line", &words)?;
        let places = text.split("0x").skip(1).map(innermost);
        Ok(codes.iter().copied().zip(places).collect())
    }

    /// A name for the data at an address.
    pub(super) fn data(&self, mappings: &Mappings, address: u64) -> String {
        let Some((range, name)) = mappings.0.iter().find(|(range, _)| range.contains(&address))
        else {
            return "unknown memory".into();
        };
        if let Ok(program) = mappings.of(&self.program)
            && program.contains(&address)
        {
            let offset = address - program.start;
            // A symbol that begins in the line counts, too.
            let here =
                |(start, end, _): &&(u64, u64, String)| *start < offset + 64 && offset < *end;
            let symbol = self.symbols.iter().find(here);
            return symbol.map_or("static data".into(), |(_, _, name)| name.clone());
        }
        match name.as_str() {
            "" => format!("memory of {} KiB", (range.end - range.start) >> 10),
            name => name.rsplit('/').next().unwrap_or_default().into(),
        }
    }
}

/// The innermost function of the house in what addr2line prints for one address: pairs of lines,
/// function and place, from the innermost outwards.
fn innermost(text: &str) -> String {
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let frames = lines.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let house = |(_, place): &(&str, &str)| place.contains("/crates/");
    let found = frames.clone().find(house).or_else(|| frames.clone().next_back());
    let Some((function, place)) = found else { return "?".into() };
    let place = place.split_once("/crates/").map_or("library", |(_, place)| place);
    let place = place.split(" (disc").next().unwrap_or_default();
    format!("{} ({place})", short(function))
}

/// The last two parts of a path, without type parameters.
fn short(function: &str) -> String {
    let mut depth = 0;
    let mut plain = String::new();
    for letter in function.chars() {
        match letter {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            letter if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    let parts: Vec<&str> = plain.split("::").filter(|part| !part.is_empty()).collect();
    parts[parts.len().saturating_sub(2)..].join("::")
}

impl Mappings {
    /// The mappings of a process.
    pub(super) fn of_process(id: u32) -> Result<Mappings, String> {
        let path = format!("/proc/{id}/maps");
        let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        Ok(Mappings(text.lines().filter_map(mapping).collect()))
    }

    /// From the first to the last byte of a file.
    fn of(&self, file: &str) -> Result<Range<u64>, String> {
        let file = fs::canonicalize(file).map_err(|e| format!("{file}: {e}"))?;
        let mine = self.0.iter().filter(|(_, name)| *name == file.to_string_lossy());
        let whole = mine.map(|(range, _)| range.clone()).reduce(|a, b| a.start..b.end);
        whole.ok_or_else(|| format!("{} is not in memory", file.display()))
    }
}

/// A line of the list: `55e0-55f0 r-xp 00001000 08:01 1234   /usr/bin/program`.
fn mapping(line: &str) -> Option<(Range<u64>, String)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let name = words.nth(4).unwrap_or_default();
    Some((number(start)?..number(end)?, name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_house_come_first() {
        let text = "\
0000000001234\ncore::sync::atomic::AtomicU64::load\n/rustc/abc/atomic.rs:9\n\
castanet_packet::pool::cache::FrameCache<T>::take\n/w/crates/packet/src/pool/cache.rs:7\n\
main\n/w/crates/castanet/src/main.rs:1\n";
        assert_eq!(innermost(text), "FrameCache::take (packet/src/pool/cache.rs:7)");
        assert_eq!(innermost("00012\nmemcpy\n??:0\n"), "memcpy (library)");
    }

    #[test]
    fn mappings_have_ranges_and_names() {
        let line = "00108000-0010a000 r-xp 00000000 08:01 77      /usr/bin/ls";
        assert_eq!(mapping(line), Some((0x108000..0x10a000, "/usr/bin/ls".into())));
        assert_eq!(mapping("1000-2000 rw-p 00000000 00:00 0"), Some((0x1000..0x2000, "".into())));
    }
}
