//! Parsing and formatting of numbers and times in scripts.

use crate::text::parse_integer;

/// An integer of 64 bits.
pub(super) fn integer(text: &str) -> Option<i64> {
    parse_integer(text).and_then(|n| i64::try_from(n).ok())
}

/// An unsigned number of up to 64 bits.
pub(super) fn natural(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => integer(digits).map_or_else(|| digits.parse().ok(), |n| n.try_into().ok()),
    }
}

/// A real number.
pub(super) fn real(text: &str) -> Option<f64> {
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    integer(text).map(|n| n as f64).or_else(|| text.parse().ok().filter(|_| numeric))
}

/// A time such as `1.5`, `1.5s` or `20ms`, in nanoseconds.
pub(super) fn parse_nanoseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit: f64 = match text[end..].trim() {
        "" | "s" | "sec" => 1e9,
        "ms" | "msec" => 1e6,
        "us" | "usec" => 1e3,
        "ns" | "nsec" => 1.0,
        "m" | "min" => 60e9,
        "h" | "hr" => 3600e9,
        "d" | "day" => 86_400e9,
        _ => return None,
    };
    text[..end].parse::<f64>().ok().map(|n| (n * unit).round() as i64)
}

/// Formats a real number with at most twelve digits, as C's `%.12g`.
pub(super) fn format_real(x: f64) -> String {
    const DIGITS: i32 = 12;
    if x == 0.0 {
        return "0".into();
    }
    if !x.is_finite() {
        return if x.is_nan() { "nan".into() } else { format!("{x}") };
    }
    let scientific = format!("{x:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        return trim(&format!("{x:.*}", (DIGITS - 1 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}
