//! IPv4 option lists as text, in the form of IP summary dumps:
//! `rr{10.0.0.1}+2;ts{1,2};148=0:0`.

use super::text::{Cursor, print_generic, trim_padding};
use super::{END, NOP, RawOption, RawOptions};
use crate::ipv4::{OPTION_LOOSE_ROUTE, OPTION_RECORD_ROUTE, OPTION_STRICT_ROUTE, OPTION_TIMESTAMP};
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Timestamp flag: timestamps only.
const TS_ONLY: u8 = 0;
/// Timestamp flag: each timestamp with the address of the router that wrote it.
const TS_ADDR: u8 = 1;
/// Timestamp flag: timestamps of routers whose addresses the sender specified.
const TS_PRESPECIFIED: u8 = 3;

/// Appends the text of `list`, with padding options if `padding`: `.` if it is
/// empty, `?` if it is malformed.
pub fn print_ip(list: &[u8], padding: bool, out: &mut String) {
    let start = out.len();
    let mut options = RawOptions::new(list);
    for option in options.by_ref() {
        if option.kind == NOP && !padding {
            continue;
        }
        if out.len() > start {
            out.push(';');
        }
        let valid = match option.kind {
            NOP => {
                out.push_str("nop");
                true
            }
            OPTION_RECORD_ROUTE => print_route("rr", &option, out),
            OPTION_LOOSE_ROUTE => print_route("lsrr", &option, out),
            OPTION_STRICT_ROUTE => print_route("ssrr", &option, out),
            OPTION_TIMESTAMP => print_timestamps(&option, out),
            kind => {
                print_generic(kind, option.data, out);
                true
            }
        };
        if !valid {
            out.truncate(start);
            out.push('?');
            return;
        }
    }
    if options.malformed() {
        out.truncate(start);
        out.push('?');
        return;
    }
    if padding && list.get(options.position()) == Some(&END) {
        out.push_str(if out.len() > start { ";eol" } else { "eol" });
    }
    if out.len() == start {
        out.push('.');
    }
}

fn addr(bytes: &[u8; 4]) -> Ipv4Addr {
    Ipv4Addr::from(*bytes)
}

/// Prints a route: its slots, with `^` before the next one to use, or for a
/// record route the number of free slots. Returns `false` if it is malformed.
fn print_route(name: &str, option: &RawOption<'_>, out: &mut String) -> bool {
    // The pointer counts from the option's type byte, which is 1.
    let Some((&pointer, slots)) = option.data.split_first().filter(|(p, _)| **p >= 4) else {
        return false;
    };
    let (next, records) = (usize::from(pointer) - 4, option.kind == OPTION_RECORD_ROUTE);
    let (whole, tail) = slots.as_chunks::<4>();
    out.push_str(name);
    out.push('{');
    let mut free = None;
    for (i, slot) in whole.iter().enumerate() {
        if i * 4 == next && records {
            free = Some(whole.len() - i);
            break;
        }
        let sep = if i * 4 == next { "^" } else { "," };
        if i > 0 || sep == "^" {
            out.push_str(sep);
        }
        let _ = write!(out, "{}", addr(slot));
    }
    if free.is_none() && tail.is_empty() && next == slots.len() && !records {
        out.push('^');
    }
    out.push('}');
    if let Some(free) = free {
        let _ = write!(out, "+{free}");
    }
    true
}

/// Prints timestamps, with `^` before the next slot to use, the number of free
/// slots and the overflow count. Returns `false` if the option is malformed.
fn print_timestamps(option: &RawOption<'_>, out: &mut String) -> bool {
    let Some((&[pointer, flag], slots)) = option.data.split_first_chunk::<2>() else {
        return false;
    };
    let (overflow, flag) = (flag >> 4, flag & 0xf);
    let Some(next) = usize::from(pointer).checked_sub(5) else { return false };
    match flag {
        TS_ONLY => out.push_str("ts{"),
        TS_ADDR => out.push_str("ts.ip{"),
        TS_PRESPECIFIED => out.push_str("ts.preip{"),
        flag => {
            let _ = write!(out, "ts.{flag}{{");
        }
    }
    let size = if (1..=3).contains(&flag) { 8 } else { 4 };
    let (mut at, mut free) = (0, None);
    for slot in slots.chunks_exact(size) {
        if at == next && flag != TS_PRESPECIFIED {
            free = Some((slots.len() - at) / size);
            break;
        }
        if at == next {
            out.push('^');
        } else if at > 0 {
            out.push(',');
        }
        print_slot(slot, flag == TS_PRESPECIFIED && at >= next, out);
        at += size;
    }
    if free.is_none() && at == slots.len() && at == next {
        out.push('^');
    }
    out.push('}');
    if let Some(free) = free {
        let _ = write!(out, "+{free}");
    }
    if overflow > 0 {
        let _ = write!(out, "++{overflow}");
    }
    true
}

/// Prints `ADDR=TIME`, `TIME`, or for a slot without a timestamp `ADDR`.
fn print_slot(slot: &[u8], unstamped: bool, out: &mut String) {
    let (words, _) = slot.as_chunks::<4>();
    let (router, time) = match words {
        [router, time] => (Some(router), time),
        [time, ..] => (None, time),
        [] => return,
    };
    if let Some(router) = router {
        let _ = write!(out, "{}", addr(router));
        if unstamped {
            return;
        }
        out.push('=');
    }
    let time = u32::from_be_bytes(*time);
    // The top bit marks a time that is not in milliseconds since midnight UT.
    let _ = write!(out, "{}{}", if time >> 31 != 0 { "!" } else { "" }, time & 0x7fff_ffff);
}

/// Parses the text of an option list; `None` if it is invalid, or the list is
/// too long for a header.
pub fn parse_ip(text: &str) -> Option<Vec<u8>> {
    let mut list = Vec::new();
    if text.is_empty() || text == "." {
        return Some(list);
    }
    let mut text = Cursor::new(text);
    loop {
        if text.eat("rr{") {
            route(OPTION_RECORD_ROUTE, &mut text, &mut list)?;
        } else if text.eat("lsrr{") {
            route(OPTION_LOOSE_ROUTE, &mut text, &mut list)?;
        } else if text.eat("ssrr{") {
            route(OPTION_STRICT_ROUTE, &mut text, &mut list)?;
        } else if text.eat("ts") {
            timestamps(&mut text, &mut list)?;
        } else if text.eat("nop") {
            list.push(NOP);
        } else if text.eat("eol") {
            list.push(END);
        } else {
            text.generic_option(&mut list)?;
        }
        if !text.separator()? {
            return trim_padding(list);
        }
    }
}

fn route(kind: u8, text: &mut Cursor<'_>, list: &mut Vec<u8>) -> Option<()> {
    let start = list.len();
    let mut pointer = None;
    list.extend([kind, 0, 0]);
    loop {
        if pointer.is_none() && text.eat("^") {
            pointer = Some(list.len() - start + 1);
        }
        if !text.at_digit() {
            break;
        }
        list.extend(text.addr()?.octets());
        text.eat(",");
    }
    text.eat("}").then_some(())?;
    let end = list.len() - start + 1;
    if text.eat_before_digit("+") {
        list.resize(list.len() + 4 * text.number(9)? as usize, 0);
    }
    list[start + 1] = u8::try_from(list.len() - start).ok()?;
    list[start + 2] = u8::try_from(pointer.unwrap_or(end)).ok()?;
    Some(())
}

fn timestamps(text: &mut Cursor<'_>, list: &mut Vec<u8>) -> Option<()> {
    let start = list.len();
    let mut flag = if text.eat("{") {
        None
    } else if text.eat(".ip{") {
        Some(TS_ADDR)
    } else if text.eat(".preip{") {
        Some(TS_PRESPECIFIED)
    } else {
        let flag = text.eat(".").then(|| text.number(15))??;
        text.eat("{").then_some(Some(flag as u8))?
    };
    let mut pointer = None;
    list.extend([OPTION_TIMESTAMP, 0, 0, 0]);
    loop {
        if pointer.is_none() && text.eat("^") {
            pointer = Some(list.len() - start + 1);
        }
        if !text.at_digit() && text.peek() != Some(b'!') {
            break;
        }
        flag = Some(slot(flag, pointer.is_some(), text, list)?);
        text.eat(",");
    }
    text.eat("}").then_some(())?;
    let flag = flag.unwrap_or(TS_ONLY);
    let end = list.len() - start + 1;
    if text.eat_before_digit("+") {
        let size = if matches!(flag, TS_ADDR | TS_PRESPECIFIED) { 8 } else { 4 };
        list.resize(list.len() + size * text.number(9)? as usize, 0);
    }
    let overflow = if text.eat_before_digit("++") { text.number(15)? as u8 } else { 0 };
    list[start + 1] = u8::try_from(list.len() - start).ok()?;
    list[start + 2] = u8::try_from(pointer.unwrap_or(end)).ok()?;
    list[start + 3] = overflow << 4 | flag;
    Some(())
}

/// Parses one slot, and returns the flag. Without a `flag` the slot decides
/// whether slots have addresses.
fn slot(flag: Option<u8>, next: bool, text: &mut Cursor<'_>, list: &mut Vec<u8>) -> Option<u8> {
    let flag = flag.unwrap_or_else(|| match text.at_addr() {
        true if next => TS_PRESPECIFIED,
        true => TS_ADDR,
        false => TS_ONLY,
    });
    let with_addr = matches!(flag, TS_ADDR | TS_PRESPECIFIED);
    if with_addr {
        list.extend(text.addr()?.octets());
        if !text.eat("=") || text.eat("?") {
            list.extend([0; 4]);
            return next.then_some(TS_PRESPECIFIED);
        }
    }
    let top = if text.eat("!") { 1 << 31 } else { 0 };
    list.extend((text.number(u32::MAX)? | top).to_be_bytes());
    Some(flag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(list: &[u8]) -> String {
        let mut out = String::new();
        print_ip(list, true, &mut out);
        out
    }

    /// Lists whose text has all their information.
    #[test]
    fn prints_and_parses() {
        for (list, expected) in [
            (&[][..], "."),
            (&[1, 1, 0], "nop;nop;eol"),
            (&[148, 4, 0, 0], "148=0:0"),
            (&[7, 7, 4, 0, 0, 0, 0], "rr{}+1"),
            (&[7, 11, 8, 1, 0, 0, 1, 0, 0, 0, 0, 1], "rr{1.0.0.1}+1;nop"),
            (&[7, 7, 8, 1, 0, 0, 1], "rr{1.0.0.1}"),
            (&[131, 11, 8, 1, 0, 0, 1, 1, 0, 0, 2], "lsrr{1.0.0.1^1.0.0.2}"),
            (&[137, 7, 4, 1, 0, 0, 1], "ssrr{^1.0.0.1}"),
            (&[137, 7, 8, 1, 0, 0, 1], "ssrr{1.0.0.1^}"),
            (&[68, 12, 9, 0, 0, 0, 0, 7, 0, 0, 0, 0], "ts{7}+1"),
            (&[68, 8, 9, 0x20, 0x80, 0, 0, 7], "ts{!7^}++2"),
            (&[68, 12, 13, 1, 1, 0, 0, 1, 0, 0, 0, 9], "ts.ip{1.0.0.1=9^}"),
            (
                &[68, 20, 13, 3, 1, 0, 0, 1, 0, 0, 0, 9, 1, 0, 0, 2, 0, 0, 0, 0],
                "ts.preip{1.0.0.1=9^1.0.0.2}",
            ),
        ] {
            assert_eq!(text(list), expected);
            assert_eq!(parse_ip(expected).as_deref(), Some(list), "{expected}");
        }
    }

    #[test]
    fn malformed_lists_and_texts() {
        for bad in [&[7, 2][..], &[7, 3, 3], &[68, 3, 5], &[68, 4, 4, 0], &[9, 9], &[9]] {
            assert_eq!(text(bad), "?", "{bad:?}");
        }
        let mut out = String::new();
        print_ip(&[1, 1, 0], false, &mut out);
        assert_eq!(out, ".");
        assert_eq!(parse_ip("ts{1.0.0.1=5}").map(|l| l[3]), Some(TS_ADDR));
        for bad in [
            "rr{",
            "rr{1.2.3}",
            "rr{1.2.3.4",
            "lsrr{^^}",
            "ts{1.2.3.4}",
            "ts.16{}",
            "ts{",
            "9=",
            "é",
            "nop;",
        ] {
            assert_eq!(parse_ip(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_list_panics(list in proptest::collection::vec(any::<u8>(), 0..41)) {
            parse_ip(&text(&list));
        }

        #[test]
        fn no_timestamps_panic(data in proptest::collection::vec(0u8..20, 0..30)) {
            let list = [&[68, data.len() as u8 + 2][..], &data].concat();
            parse_ip(&text(&list));
        }

        #[test]
        fn no_text_panics(text in "(rr|ts|ts.ip|lsrr)[{][a-z0-9;:=,^.{}+!-]{0,30}") {
            parse_ip(&text);
        }
    }
}
