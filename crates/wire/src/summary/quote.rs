//! Words and quotes in the syntax of Click's configuration language.

/// Splits `text` into words at blanks, but not within double quotes.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut quoted, mut escaped) = (false, false);
        let end = rest.find(|c: char| {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                _ => return !quoted && c.is_ascii_whitespace(),
            }
            false
        });
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_start();
        Some(word)
    })
}

/// Appends `bytes` in double quotes.
pub(super) fn quote(bytes: &[u8], out: &mut String) {
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' | b'$' => out.extend(['\\', byte.into()]),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            b' '..=b'~' => out.push(byte.into()),
            _ => {
                let digit = |shift: u8| char::from(b'0' + (byte >> shift & 7));
                out.extend(['\\', digit(6), digit(3), digit(0)]);
            }
        }
    }
    out.push('"');
}

/// The bytes of `word`, without quotes and with escapes resolved.
pub(super) fn unquote(word: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    let mut quote = None;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' | b'\'' if quote.is_none() => quote = Some(byte),
            _ if quote == Some(byte) => quote = None,
            b'\\' if quote == Some(b'"') && !rest.is_empty() => rest = escape(rest, &mut bytes),
            // Outside of quotes the only escape is `\<`, for bytes in hexadecimal.
            b'\\' if quote.is_none() && rest.starts_with(b"<") => rest = escape(rest, &mut bytes),
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// Resolves the escape whose backslash is before `text`; returns the text behind it.
fn escape<'t>(text: &'t [u8], bytes: &mut Vec<u8>) -> &'t [u8] {
    let Some((&kind, rest)) = text.split_first() else { return text };
    let digits = |text: &[u8], radix: u32, max: usize| {
        let part = &text[..text.len().min(max)];
        part.iter().take_while(|b| char::from(**b).is_digit(radix)).count()
    };
    let value = |text: &[u8], radix: u32| {
        text.iter().fold(0u32, |n, b| {
            n.wrapping_mul(radix).wrapping_add(char::from(*b).to_digit(radix).unwrap_or(0))
        })
    };
    match kind {
        b'a' => bytes.push(7),
        b'b' => bytes.push(8),
        b't' => bytes.push(b'\t'),
        b'n' => bytes.push(b'\n'),
        b'v' => bytes.push(11),
        b'f' => bytes.push(12),
        b'r' => bytes.push(b'\r'),
        b'0'..=b'7' => {
            let len = digits(text, 8, 3);
            bytes.push(value(&text[..len], 8) as u8);
            return &text[len..];
        }
        b'x' => {
            let len = digits(rest, 16, usize::MAX);
            bytes.push(value(&rest[..len], 16) as u8);
            return &rest[len..];
        }
        b'<' => return hex(rest, bytes),
        // A continued line.
        b'\n' => {}
        other => bytes.push(other),
    }
    rest
}

/// Parses hexadecimal digits up to `>`, two per byte; ignores other characters.
fn hex<'t>(text: &'t [u8], bytes: &mut Vec<u8>) -> &'t [u8] {
    let end = text.iter().position(|&b| b == b'>').unwrap_or(text.len());
    let mut digits = text[..end].iter().filter_map(|&b| char::from(b).to_digit(16));
    while let Some(high) = digits.next() {
        let low = digits.next();
        bytes.push(low.map_or(high, |low| high << 4 | low) as u8);
    }
    text.get(end + 1..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes() {
        for (text, expected) in [
            ("\"a b\"", &b"a b"[..]),
            ("\"\\t\\n\\r\\\\\\\"\\$\\a\\q\"", b"\t\n\r\\\"$\x07q"),
            ("\"\\0\\001\\3777\\x41\"", b"\0\x01\xff7A"),
            ("\"\\<41 42 4>z\"", b"AB\x04z"),
            ("\\<4142>x", b"ABx"),
            ("'a\\n'", b"a\\n"),
            ("plain\\n", b"plain\\n"),
            ("\"open\\", b"open\\"),
        ] {
            assert_eq!(unquote(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_not_split_within_quotes() {
        let line = " a  \"b \\\" c\" d\"e f\"\t- ";
        assert_eq!(words(line).collect::<Vec<_>>(), ["a", "\"b \\\" c\"", "d\"e f\"", "-"]);
        assert_eq!(words("\"open word").collect::<Vec<_>>(), ["\"open word"]);
    }

    proptest! {
        #[test]
        fn unquote_reverses_quote(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            let mut text = String::new();
            quote(&bytes, &mut text);
            prop_assert_eq!(words(&text).collect::<Vec<_>>(), [text.as_str()]);
            prop_assert_eq!(unquote(&text), bytes);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,30}") {
            words(&text).for_each(|word| { unquote(word); });
        }
    }
}
