//! Quantities with units: bandwidths, times and sizes, in exact decimal arithmetic.

/// A parsed quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The value in the parser's unit, rounded half up.
    pub value: u64,
    /// Whether the text has a unit; Click warns about bandwidths without one.
    pub has_unit: bool,
}

/// A unit's name, and its value as `factor` times ten to the `power`.
type Unit = (&'static str, u64, i32);

/// A bit is an eighth of a byte.
const BANDWIDTHS: &[Unit] = &[
    ("baud", 125, -3),
    ("bps", 125, -3),
    ("b/s", 125, -3),
    ("bit/s", 125, -3),
    ("Bps", 1, 0),
    ("B/s", 1, 0),
];
const THOUSANDS: &[(char, i32)] = &[('k', 3), ('K', 3), ('M', 6), ('G', 9), ('T', 12)];

const TIMES: &[Unit] = &[
    ("s", 1, 0),
    ("sec", 1, 0),
    ("m", 6, 1),
    ("min", 6, 1),
    ("h", 36, 2),
    ("hr", 36, 2),
    ("d", 864, 2),
    ("day", 864, 2),
];
const FRACTIONS: &[(char, i32)] = &[('m', -3), ('u', -6), ('n', -9)];

const SIZES: &[Unit] = &[
    ("B", 1, 0),
    ("KiB", 1 << 10, 0),
    ("MiB", 1 << 20, 0),
    ("GiB", 1 << 30, 0),
    ("TiB", 1 << 40, 0),
    ("Ki", 1 << 10, 0),
    ("Mi", 1 << 20, 0),
    ("Gi", 1 << 30, 0),
    ("Ti", 1 << 40, 0),
    ("kB", 1, 3),
    ("KB", 1, 3),
    ("MB", 1, 6),
    ("GB", 1, 9),
    ("TB", 1, 12),
    ("k", 1 << 10, 0),
    ("K", 1 << 10, 0),
    ("M", 1 << 20, 0),
    ("G", 1 << 30, 0),
    ("T", 1 << 40, 0),
];

/// Parses a bandwidth such as `1Gbps`, `10 MB/s`, `56kbaud` or `1500`, to bytes per second.
pub fn parse_bandwidth(text: &str) -> Option<Quantity> {
    parse_quantity(text, BANDWIDTHS, THOUSANDS, 0)
}

/// Parses a time such as `1.5s`, `100ms`, `2 min`, `1h` or `0.25`, to nanoseconds; a bare number
/// counts seconds.
pub fn parse_duration(text: &str) -> Option<Quantity> {
    parse_quantity(text, TIMES, FRACTIONS, 9)
}

/// Parses a size such as `64K`, `1.5MiB` (of 1024) or `10MB` (of 1000), to bytes.
pub fn parse_size(text: &str) -> Option<Quantity> {
    parse_quantity(text, SIZES, &[], 0)
}

/// Parses a decimal number and a unit to a multiple of ten to the minus `scale`.
fn parse_quantity(
    text: &str,
    units: &[Unit],
    prefixes: &[(char, i32)],
    scale: i32,
) -> Option<Quantity> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let (mut factor, mut power) = (1, 0);
    if !unit.is_empty() {
        let plain = |unit: &str| units.iter().find(|u| u.0 == unit).copied();
        let prefixed = || {
            let &(prefix, exponent) = prefixes.iter().find(|p| unit.starts_with(p.0))?;
            let (name, factor, power) = plain(&unit[prefix.len_utf8()..])?;
            Some((name, factor, power + exponent))
        };
        (_, factor, power) = plain(unit).or_else(prefixed)?;
    }
    let value = decimal(number, factor, power + scale)?;
    Some(Quantity { value, has_unit: !unit.is_empty() })
}

/// `number` times `factor` times ten to the `power`, rounded half up.
fn decimal(number: &str, factor: u64, power: i32) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    // Digits after the twentieth of a fraction do not affect a rounded 64-bit value.
    let fraction = &fraction[..fraction.len().min(20)];
    let digits = whole.bytes().chain(fraction.bytes());
    let mantissa = digits
        .map(|d| u128::from(d - b'0'))
        .try_fold(0u128, |n, d| n.checked_mul(10)?.checked_add(d))?;
    let product = mantissa.checked_mul(u128::from(factor))?;
    let power = power - fraction.len() as i32;
    let ten = 10u128.checked_pow(power.unsigned_abs())?;
    let value = match power {
        0.. => product.checked_mul(ten)?,
        _ => product.checked_add(ten / 2)? / ten,
    };
    value.try_into().ok()
}

/// A number with `bits` fraction bits as the shortest decimal that distinguishes it from its
/// neighbours, as Click prints averages.
///
/// The method is that of TeX, part 103: each digit narrows the error, and the last one is rounded.
pub fn fixed_point(value: u64, bits: u32) -> String {
    let one = 1u64 << bits;
    let mut text = (value >> bits).to_string();
    let mut rest = value & (one - 1);
    if rest == 0 {
        return text;
    }
    text.push('.');
    rest = 10 * rest + 5;
    let mut error = 10;
    loop {
        if error > one {
            rest = (rest + one / 2).saturating_sub(error / 2);
        }
        text.push(char::from(b'0' + (rest >> bits) as u8));
        rest = 10 * (rest & (one - 1));
        error *= 10;
        if rest <= error {
            return text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(quantity: Option<Quantity>) -> Option<u64> {
        quantity.map(|q| q.value)
    }

    #[test]
    fn bandwidths_count_bytes() {
        for (text, bytes) in [
            ("1Gbps", 125_000_000),
            ("10MB/s", 10_000_000),
            ("10 MBps", 10_000_000),
            ("56kbaud", 7000),
            ("9.6Kb/s", 1200),
            ("1500", 1500),
            ("3bps", 0),
            ("4bps", 1),
            ("100Gbps", 12_500_000_000),
            (".5kBps", 500),
        ] {
            assert_eq!(value(parse_bandwidth(text)), Some(bytes), "{text}");
        }
        assert!(!parse_bandwidth("1500").unwrap().has_unit);
        for bad in ["", "k", "kBps", "1xbps", "1.2.3Bps", "-1Bps", "99999999999999999999Gbps", "."]
        {
            assert_eq!(parse_bandwidth(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_and_sizes() {
        for (text, ns) in [
            ("1.5s", 1_500_000_000),
            ("100ms", 100_000_000),
            ("100 msec", 100_000_000),
            ("7us", 7000),
            ("3ns", 3),
            ("1m", 60_000_000_000),
            ("2 min", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1day", 86_400_000_000_000),
            ("0.25", 250_000_000),
            ("0.0000000005", 1),
            ("1.000000001", 1_000_000_001),
        ] {
            assert_eq!(value(parse_duration(text)), Some(ns), "{text}");
        }
        for (text, bytes) in
            [("64K", 65536), ("1.5MiB", 1_572_864), ("10MB", 10_000_000), ("7", 7), ("7B", 7)]
        {
            assert_eq!(value(parse_size(text)), Some(bytes), "{text}");
        }
        assert_eq!(parse_size("1Q"), None);
    }

    #[test]
    fn fixed_point_is_shortest_and_right() {
        assert_eq!(fixed_point(1024, 10), "1");
        assert_eq!(fixed_point(1536, 10), "1.5");
        assert_eq!(fixed_point(102, 10), "0.1");
        for bits in [4u32, 10] {
            let one = 1 << bits;
            for value in 0..4 * one {
                let text = fixed_point(value, bits);
                let back = text.parse::<f64>().unwrap() * one as f64;
                assert_eq!(back.round() as u64, value, "{text}");
            }
        }
    }
}
