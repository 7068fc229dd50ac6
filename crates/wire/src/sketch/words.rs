//! Lexer of sketches: splits a text into words and parses their values.

use std::str::FromStr;

/// The words of a sketch, with a cursor.
pub(super) struct Words<'a> {
    words: Vec<&'a str>,
    position: usize,
}

impl<'a> Words<'a> {
    /// Splits `text` at blanks, but not within quotes and brackets.
    pub(super) fn new(text: &'a str) -> Result<Self, String> {
        let mut words = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (word, after) = rest.split_at(end_of_word(rest)?);
            words.push(word);
            rest = after.trim_start();
        }
        Ok(Words { words, position: 0 })
    }

    /// Consumes the next word.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.position += 1;
        Some(word)
    }

    /// The next word, which is not consumed.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.words.get(self.position).copied()
    }

    /// Consumes `word` and returns `true`, if it is next.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let matches = self.peek() == Some(word);
        self.position += usize::from(matches);
        matches
    }

    /// Consumes `word`; an error if another word is next.
    pub(super) fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.next() {
            Some(next) if next == word => Ok(()),
            Some(next) => Err(format!("expected `{word}`, not `{next}`")),
            None => Err(format!("expected `{word}` at the end")),
        }
    }

    /// Parses the value that follows `word`; `what` describes it in the error message.
    pub(super) fn value<T: FromStr>(&mut self, word: &str, what: &str) -> Result<T, String> {
        let next = self.next().ok_or_else(|| format!("`{word}` wants {what}"))?;
        next.parse().map_err(|_| format!("`{word}` wants {what}, not `{next}`"))
    }

    /// Parses the number that follows `word`, at most `max`.
    pub(super) fn number(&mut self, word: &str, max: u32) -> Result<u32, String> {
        let next = self.next().ok_or_else(|| format!("`{word}` wants a number"))?;
        number(next)
            .filter(|&n| n <= max)
            .ok_or_else(|| format!("`{word}` wants a number up to {max}, not `{next}`"))
    }

    /// As [`number`](Self::number), of 16 bits.
    pub(super) fn u16(&mut self, word: &str) -> Result<u16, String> {
        Ok(self.number(word, u16::MAX.into())? as u16)
    }

    /// As [`number`](Self::number), of 8 bits.
    pub(super) fn u8(&mut self, word: &str) -> Result<u8, String> {
        Ok(self.number(word, u8::MAX.into())? as u8)
    }
}

/// Parses a decimal number, or a hexadecimal one after `0x`.
pub(super) fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // `from_str_radix` would accept a sign.
    digits.chars().all(|c| c.is_digit(radix)).then(|| u32::from_str_radix(digits, radix).ok())?
}

/// Parses hexadecimal digits, two per byte.
pub(super) fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|&[a, b]| Some(digit(a)? << 4 | digit(b)?)).collect();
    match bytes {
        Some(bytes) if odd.is_empty() => Ok(bytes),
        _ => Err(format!("`{text}` is not pairs of hexadecimal digits")),
    }
}

/// Length of the word at the start of `text`.
fn end_of_word(text: &str) -> Result<usize, String> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '[' => depth += 1,
            ']' => depth = depth.checked_sub(1).ok_or("`]` without `[`")?,
            c if c.is_whitespace() && depth == 0 => return Ok(at),
            _ => {}
        }
    }
    if quoted {
        return Err("`\"` is not closed".into());
    }
    if depth > 0 { Err("`[` is not closed".into()) } else { Ok(text.len()) }
}

/// The bytes between the quotes of `word`, with escapes resolved.
pub(super) fn unquote(word: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("`{word}` is not a text in quotes");
    let inner = word.strip_prefix('"').and_then(|w| w.strip_suffix('"')).ok_or_else(bad)?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Err(bad()),
            '\\' => bytes.push(match chars.next().ok_or_else(bad)? {
                'n' => b'\n',
                'r' => b'\r',
                't' => b'\t',
                '0' => 0,
                c @ ('"' | '\\') => c as u8,
                c => return Err(format!("unknown escape `\\{c}` in {word}")),
            }),
            c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Ok(bytes)
}

/// `bytes` in quotes, with escapes; `None` if they are not printable ASCII.
pub(super) fn quote(bytes: &[u8]) -> Option<String> {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', byte.into()]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b' '..=b'~' => text.push(byte.into()),
            _ => return None,
        }
    }
    text.push('"');
    Some(text)
}
