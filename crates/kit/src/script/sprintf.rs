//! C's `sprintf`, without floating point.

use super::number::{integer, natural};
use castanet_lang::args::{split_words, unquote};

/// The words of a text, still quoted.
pub(super) fn words(text: &str) -> Vec<&str> {
    split_words(text)
}

/// A conversion specification: the part between `%` and the conversion character.
#[derive(Default)]
struct Spec {
    left: bool,
    zero: bool,
    plus: bool,
    blank: bool,
    alternate: bool,
    /// The value has 16 bits (`%hd`).
    short: bool,
    width: usize,
    precision: Option<usize>,
}

/// The largest width and precision.
const MAX_WIDTH: usize = 4096;

/// Formats the other values with the first one as the format.
pub(super) fn sprintf(list: &[&str]) -> Result<String, String> {
    let bad = || String::from("syntax error");
    let (format, values) = list.split_first().ok_or_else(bad)?;
    let format = unquote(format);
    let (mut values, mut rest, mut out) = (values.iter().copied(), format.as_str(), String::new());
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let (mut spec, after) = parse_spec(&rest[at + 1..], &mut values).ok_or_else(bad)?;
        let sized = after.trim_start_matches(['h', 'l', 'L', 'q']);
        spec.short = after[..after.len() - sized.len()].ends_with('h');
        let after = sized;
        let conversion = after.chars().next().ok_or_else(bad)?;
        if conversion == '%' {
            out.push('%');
        } else {
            let value = values.next().ok_or_else(bad)?;
            out.push_str(&convert(conversion, value, &spec).ok_or_else(bad)?);
        }
        rest = &after[conversion.len_utf8()..];
    }
    out.push_str(rest);
    if values.next().is_some() { Err(bad()) } else { Ok(out) }
}

fn parse_spec<'a, 'v>(
    text: &'a str,
    values: &mut impl Iterator<Item = &'v str>,
) -> Option<(Spec, &'a str)> {
    let mut spec = Spec::default();
    let flags = text.len() - text.trim_start_matches(['0', '#', '-', ' ', '+']).len();
    for flag in text[..flags].chars() {
        match flag {
            '0' => spec.zero = true,
            '#' => spec.alternate = true,
            '-' => spec.left = true,
            ' ' => spec.blank = true,
            _ => spec.plus = true,
        }
    }
    let (width, rest) = parse_number(&text[flags..], values)?;
    spec.left |= width < 0;
    spec.width = width.unsigned_abs() as usize;
    let Some(rest) = rest.strip_prefix('.') else {
        return (spec.width <= MAX_WIDTH).then_some((spec, rest));
    };
    // A point without a number has no effect.
    if !rest.starts_with(|c: char| c == '*' || c.is_ascii_digit()) {
        return (spec.width <= MAX_WIDTH).then_some((spec, rest));
    }
    let (precision, rest) = parse_number(rest, values)?;
    spec.precision = Some(usize::try_from(precision).ok()?);
    (spec.width.max(precision as usize) <= MAX_WIDTH).then_some((spec, rest))
}

/// Parses a number in the format, or `*` for the next value; 0 if there is none.
fn parse_number<'a, 'v>(
    text: &'a str,
    values: &mut impl Iterator<Item = &'v str>,
) -> Option<(i64, &'a str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((integer(values.next()?)?, rest));
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((if digits.is_empty() { 0 } else { digits.parse().ok()? }, rest))
}

fn convert(conversion: char, value: &str, spec: &Spec) -> Option<String> {
    if conversion == 's' {
        let text: String =
            unquote(value).chars().take(spec.precision.unwrap_or(usize::MAX)).collect();
        return Some(pad(&text, "", spec, false));
    }
    let (sign, digits) = match conversion {
        'd' | 'i' => {
            let n = integer(value)?;
            let n = if spec.short { i64::from(n as i16) } else { n };
            let sign = match n {
                ..0 => "-",
                _ if spec.plus => "+",
                _ if spec.blank => " ",
                _ => "",
            };
            (sign, n.unsigned_abs().to_string())
        }
        'u' | 'x' | 'X' | 'o' => {
            let n = natural(value)?;
            let n = if spec.short { u64::from(n as u16) } else { n };
            let other = spec.alternate && n != 0;
            match conversion {
                'u' => ("", n.to_string()),
                'x' => (if other { "0x" } else { "" }, format!("{n:x}")),
                'X' => (if other { "0X" } else { "" }, format!("{n:X}")),
                _ => (if other { "0" } else { "" }, format!("{n:o}")),
            }
        }
        _ => return None,
    };
    let digits = format!("{digits:0>width$}", width = spec.precision.unwrap_or(1));
    Some(pad(&digits, sign, spec, spec.zero && spec.precision.is_none()))
}

fn pad(text: &str, sign: &str, spec: &Spec, zeros: bool) -> String {
    let room = spec.width.saturating_sub(text.chars().count() + sign.len());
    match (spec.left, zeros) {
        (true, _) => format!("{sign}{text}{}", " ".repeat(room)),
        (false, true) => format!("{sign}{}{text}", "0".repeat(room)),
        (false, false) => format!("{}{sign}{text}", " ".repeat(room)),
    }
}
