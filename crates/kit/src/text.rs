//! Parsing of numbers, truth values and addresses in Click's syntax.

/// Parses an integer: decimal, `0x` hexadecimal or octal with a leading zero.
pub fn parse_integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => i128::from_str_radix(hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => i128::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    value.ok().map(|value| sign * value)
}

/// Ascending numbers as Click and the kernel write sets: `0,4-7`.
pub fn ranges<'a>(numbers: impl IntoIterator<Item = &'a usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Parses `true` or `false`, in any spelling that Click accepts.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "yes" | "t" | "y" | "True" | "TRUE" => Some(true),
        "false" | "0" | "no" | "f" | "n" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Parses an unsigned number: decimal, `0x` hexadecimal or octal with a leading zero.
pub fn parse_u32(text: &str) -> Option<u32> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    let plain = digits.bytes().all(|c| c.is_ascii_alphanumeric());
    if plain { u32::from_str_radix(digits, radix).ok() } else { None }
}

/// Parses `1.2.3.4` to host byte order.
pub fn parse_ipv4(text: &str) -> Option<u32> {
    match octets(text)? {
        (address, 4) => Some(address),
        _ => None,
    }
}

/// Parses `10.0.0.0/8`, `10/8` or `10.0.0.0/255.0.0.0` to address and mask in host byte order.
///
/// The address keeps its host bits. Masks of either form need not be contiguous.
pub fn parse_ipv4_prefix(text: &str) -> Option<(u32, u32)> {
    let (address, mask) = text.split_once('/')?;
    let (address, given) = octets(address)?;
    let mask = match mask.bytes().all(|c| c.is_ascii_digit()) {
        true => mask_of(mask.parse().ok()?)?,
        false => parse_ipv4(mask)?,
    };
    let known = mask_of(8 * given)?;
    (mask & !known == 0).then_some((address, mask))
}

/// The netmask of a prefix length from 0 to 32.
pub fn mask_of(length: u32) -> Option<u32> {
    match length {
        0 => Some(0),
        1..=32 => Some(u32::MAX << (32 - length)),
        _ => None,
    }
}

/// The prefix length of a netmask, if its ones are contiguous.
pub fn length_of(mask: u32) -> Option<u32> {
    (mask.leading_ones() + mask.trailing_zeros() >= 32).then(|| mask.leading_ones())
}

/// One to four dotted decimal octets, and their number.
fn octets(text: &str) -> Option<(u32, u32)> {
    let (mut address, mut count) = (0, 0);
    for part in text.split('.') {
        let digits = (1..=3).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_digit());
        let octet: u8 = if digits { part.parse().ok()? } else { return None };
        if count == 4 {
            return None;
        }
        address |= u32::from(octet) << (24 - 8 * count);
        count += 1;
    }
    Some((address, count))
}

/// Parses `00:1b:21:3c:9d:f8`, also with dashes.
pub fn parse_ether(text: &str) -> Option<[u8; 6]> {
    let separator = if text.contains(':') { ':' } else { '-' };
    let mut bytes = [0; 6];
    let mut count = 0;
    for part in text.split(separator) {
        let hex = (1..=2).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_hexdigit());
        if !hex || count == 6 {
            return None;
        }
        bytes[count] = u8::from_str_radix(part, 16).ok()?;
        count += 1;
    }
    (count == 6).then_some(bytes)
}

/// An address in host byte order, for printing in dotted decimal.
pub(crate) fn dotted(address: u32) -> std::net::Ipv4Addr {
    std::net::Ipv4Addr::from(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(parse_u32("80"), Some(80));
        assert_eq!(parse_u32("0x1fff"), Some(0x1fff));
        assert_eq!(parse_u32("010"), Some(8));
        assert_eq!(parse_u32("0"), Some(0));
        for bad in ["", "0x", "-1", "+1", "1_0", "08", "4294967296", "a"] {
            assert_eq!(parse_u32(bad), None, "{bad}");
        }
    }

    #[test]
    fn addresses() {
        assert_eq!(parse_ipv4("10.0.0.1"), Some(0x0a00_0001));
        assert_eq!(parse_ipv4("10.0.1"), None);
        assert_eq!(parse_ipv4("10.0.0.256"), None);
        assert_eq!(parse_ipv4("1.2.3.4.5"), None);
        assert_eq!(parse_ipv4_prefix("18.26.4.9/16"), Some((0x121a_0409, 0xffff_0000)));
        assert_eq!(parse_ipv4_prefix("18.26/16"), Some((0x121a_0000, 0xffff_0000)));
        assert_eq!(parse_ipv4_prefix("18.26/24"), None);
        assert_eq!(parse_ipv4_prefix("0/0"), Some((0, 0)));
        assert_eq!(parse_ipv4_prefix("1.0.0.0/255.0.0.0"), Some((0x0100_0000, 0xff00_0000)));
        assert_eq!(parse_ipv4_prefix("1.0.0.0/33"), None);
        assert_eq!(length_of(0xffff_ff00), Some(24));
        assert_eq!(length_of(0), Some(0));
        assert_eq!(length_of(0xff00_ff00), None);
        assert_eq!(parse_ether("0:1b:21:3c:9d:f8"), Some([0, 0x1b, 0x21, 0x3c, 0x9d, 0xf8]));
        assert_eq!(parse_ether("0:1b:21:3c:9d"), None);
    }
}
