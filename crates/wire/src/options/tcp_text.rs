//! TCP option lists as text, in the form of IP summary dumps:
//! `mss1460;sackok;ts1:0;wscale7`.

use super::text::{Cursor, print_generic, trim_padding};
use super::{END, NOP, RawOption, RawOptions};
use crate::tcp::{
    OPTION_MSS, OPTION_SACK, OPTION_SACK_PERMITTED, OPTION_TIMESTAMPS, OPTION_WINDOW_SCALE,
    sack_blocks,
};
use std::fmt::Write;

/// The options that are printed or parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOptionFilter {
    /// All, including padding.
    All,
    /// All except padding (`tcp_opt`).
    NoPadding,
    /// All except padding and timestamps (`tcp_ntopt`).
    NoTimestamps,
    /// Selective acknowledgments only (`tcp_sack`).
    Sack,
}

impl TcpOptionFilter {
    fn includes(self, kind: u8) -> bool {
        match (self, kind) {
            (TcpOptionFilter::All, _) => true,
            (_, END | NOP) => false,
            (TcpOptionFilter::NoPadding, _) => true,
            (TcpOptionFilter::NoTimestamps, kind) => kind != OPTION_TIMESTAMPS,
            (TcpOptionFilter::Sack, kind) => matches!(kind, OPTION_SACK | OPTION_SACK_PERMITTED),
        }
    }
}

/// Appends the text of the options of `list` that `filter` includes: `.` if there
/// are none, `?` if the list is malformed.
pub fn print_tcp(list: &[u8], filter: TcpOptionFilter, out: &mut String) {
    let start = out.len();
    let mut options = RawOptions::new(list);
    for option in options.by_ref() {
        let before = out.len();
        if before > start {
            out.push(';');
        }
        let sep = out.len();
        if print_one(&option, filter, out).is_none() {
            out.truncate(start);
            out.push('?');
            return;
        }
        if out.len() == sep {
            out.truncate(before);
        }
    }
    if options.malformed() {
        out.truncate(start);
        out.push('?');
        return;
    }
    if list.get(options.position()) == Some(&END) && filter.includes(END) {
        out.push_str(if out.len() > start { ";eol" } else { "eol" });
    }
    if out.len() == start {
        out.push('.');
    }
}

/// Appends the text of one option, if `filter` includes it; `None` if its length
/// is invalid for its type.
fn print_one(option: &RawOption<'_>, filter: TcpOptionFilter, out: &mut String) -> Option<()> {
    if !filter.includes(option.kind) {
        return Some(());
    }
    let word = |bytes: &[u8]| bytes.iter().fold(0u32, |n, b| n << 8 | u32::from(*b));
    let wrote = match (option.kind, option.data) {
        (NOP, _) => write!(out, "nop"),
        (OPTION_MSS, [_, _]) => write!(out, "mss{}", word(option.data)),
        (OPTION_WINDOW_SCALE, [shift]) => write!(out, "wscale{shift}"),
        (OPTION_SACK_PERMITTED, []) => write!(out, "sackok"),
        (OPTION_SACK, data) if data.len() % 8 == 0 => {
            for (i, (from, to)) in sack_blocks(data).enumerate() {
                write!(out, "{}sack{from}-{to}", if i == 0 { "" } else { ";" }).ok()?;
            }
            Ok(())
        }
        (OPTION_TIMESTAMPS, data) if data.len() == 8 => {
            write!(out, "ts{}:{}", word(&data[..4]), word(&data[4..]))
        }
        (
            OPTION_MSS
            | OPTION_WINDOW_SCALE
            | OPTION_SACK_PERMITTED
            | OPTION_SACK
            | OPTION_TIMESTAMPS,
            _,
        ) => return None,
        (kind, data) => {
            print_generic(kind, data, out);
            Ok(())
        }
    };
    wrote.ok()
}

/// Parses the text of an option list; `None` if it is invalid, has an option that
/// `filter` excludes, or the list is too long for a header.
pub fn parse_tcp(text: &str, filter: TcpOptionFilter) -> Option<Vec<u8>> {
    let mut list = Vec::new();
    if text.is_empty() || text == "." {
        return Some(list);
    }
    let mut text = Cursor::new(text);
    loop {
        parse_one(&mut text, filter, &mut list)?;
        if !text.separator()? {
            return trim_padding(list);
        }
    }
}

fn parse_one(text: &mut Cursor<'_>, filter: TcpOptionFilter, list: &mut Vec<u8>) -> Option<()> {
    // Padding is accepted with all filters except SACK.
    let accepts = |kind| match kind {
        END | NOP => filter != TcpOptionFilter::Sack,
        kind => filter.includes(kind),
    };
    let start = list.len();
    if text.eat("mss") {
        let size = text.number(0xffff)? as u16;
        list.extend([OPTION_MSS, 4]);
        list.extend(size.to_be_bytes());
    } else if text.eat("wscale") {
        list.extend([OPTION_WINDOW_SCALE, 3, text.number(255)? as u8]);
    } else if text.eat("sackok") {
        list.extend([OPTION_SACK_PERMITTED, 2]);
    } else if text.eat("sack") {
        sack(text, list)?;
    } else if text.eat("ts") {
        let value = text.number(u32::MAX)?;
        let echo = text.eat(":").then(|| text.number(u32::MAX))??;
        if list.is_empty() {
            // TCP stacks align the numbers in this way.
            list.extend([NOP, NOP]);
        }
        list.extend([OPTION_TIMESTAMPS, 10]);
        list.extend(value.to_be_bytes());
        list.extend(echo.to_be_bytes());
        return accepts(OPTION_TIMESTAMPS).then_some(());
    } else if text.eat("nop") {
        list.push(NOP);
    } else if text.eat("eol") {
        list.push(END);
    } else {
        text.generic_option(list)?;
        return accepts(u8::MAX).then_some(());
    }
    accepts(list[start]).then_some(())
}

/// Parses the blocks of one SACK option: `A-B`, then any number of `,sackA-B`. A
/// semicolon ends the option.
fn sack(text: &mut Cursor<'_>, list: &mut Vec<u8>) -> Option<()> {
    let start = list.len();
    list.extend([OPTION_SACK, 0]);
    loop {
        let from = text.number(u32::MAX)?;
        // Versions of the format before 1.2 have a colon.
        let to = (text.eat("-") || text.eat(":")).then(|| text.number(u32::MAX))??;
        list.extend(from.to_be_bytes());
        list.extend(to.to_be_bytes());
        if !text.eat_before_digit(",sack") {
            break;
        }
    }
    list[start + 1] = u8::try_from(list.len() - start).ok()?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(list: &[u8], filter: TcpOptionFilter) -> String {
        let mut out = String::new();
        print_tcp(list, filter, &mut out);
        out
    }

    const SYN: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 3, 3, 7];

    #[test]
    fn prints_a_syn_of_linux() {
        assert_eq!(text(&SYN, TcpOptionFilter::NoPadding), "mss1460;sackok;ts9:8;wscale7");
        assert_eq!(text(&SYN, TcpOptionFilter::All), "mss1460;sackok;ts9:8;nop;wscale7");
        assert_eq!(text(&SYN, TcpOptionFilter::NoTimestamps), "mss1460;sackok;wscale7");
        assert_eq!(text(&SYN, TcpOptionFilter::Sack), "sackok");
        assert_eq!(
            parse_tcp("mss1460,sackok,ts9:8;nop;wscale7", TcpOptionFilter::All),
            Some(SYN.into())
        );
    }

    #[test]
    fn malformed_lists_and_texts() {
        assert_eq!(text(&[], TcpOptionFilter::All), ".");
        assert_eq!(text(&[1, 1, 0, 7], TcpOptionFilter::NoPadding), ".");
        assert_eq!(text(&[1, 0, 7], TcpOptionFilter::All), "nop;eol");
        assert_eq!(text(&[1, 2, 3, 0], TcpOptionFilter::All), "?");
        assert_eq!(text(&[1, 9], TcpOptionFilter::All), "?");
        assert_eq!(text(&[99, 4, 1, 2, 98, 2], TcpOptionFilter::All), "99=1:2;98");
        assert_eq!(parse_tcp("ts1:2", TcpOptionFilter::All).map(|l| l.len()), Some(12));
        assert_eq!(parse_tcp(".", TcpOptionFilter::All), Some(vec![]));
        for bad in [
            "mss",
            "mss65536",
            "wscale256",
            "sack1",
            "sack1-",
            "ts1",
            "x",
            "nop;",
            "nop nop",
            "99=",
            "99=256",
        ] {
            assert_eq!(parse_tcp(bad, TcpOptionFilter::All), None, "{bad}");
        }
        assert_eq!(parse_tcp("mss1", TcpOptionFilter::Sack), None);
        assert_eq!(parse_tcp("ts1:2", TcpOptionFilter::NoTimestamps), None);
    }

    #[test]
    fn a_comma_joins_sack_blocks_and_a_semicolon_separates_options() {
        let list = parse_tcp("sack3-5;sack7-9", TcpOptionFilter::All).expect("is a list");
        assert_eq!((list.len(), list[1], list[11]), (20, 10, 10));
        let list =
            parse_tcp("nop;nop;sack1-2,sack3-4;nop", TcpOptionFilter::All).expect("is a list");
        assert_eq!((list.len(), list[3]), (2 + 18 + 1, 18));
        assert_eq!(text(&list, TcpOptionFilter::All), "nop;nop;sack1-2;sack3-4;nop");
        assert_eq!(parse_tcp("sack1:2,sack3:4", TcpOptionFilter::Sack).map(|l| l.len()), Some(18));
    }

    #[test]
    fn long_lists_lose_padding_first() {
        let long = ["nop"; 41].join(";");
        assert_eq!(parse_tcp(&long, TcpOptionFilter::All), Some(vec![1; 40]));
        let long = format!("mss1;{long}");
        assert_eq!(parse_tcp(&long, TcpOptionFilter::All), None);
    }

    proptest! {
        #[test]
        fn printed_lists_do_not_panic_the_parser(list in proptest::collection::vec(any::<u8>(), 0..41)) {
            for filter in [TcpOptionFilter::All, TcpOptionFilter::NoPadding, TcpOptionFilter::NoTimestamps, TcpOptionFilter::Sack] {
                parse_tcp(&text(&list, filter), filter);
            }
        }

        #[test]
        fn no_text_panics(text in "[a-z0-9;:=,^.{}+!-]{0,30}") {
            parse_tcp(&text, TcpOptionFilter::All);
        }
    }
}
