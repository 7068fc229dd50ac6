//! Splits and quotes configuration strings by Click's rules for arguments, words and comments.

/// One argument of a configuration string, without comments and surrounding space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgText {
    /// The argument.
    pub text: String,
    /// Its offset in the configuration string, in bytes.
    pub offset: usize,
}

/// A range of bytes that one text has copied from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedRange {
    /// Offset in the new text.
    pub(crate) to: usize,
    /// Offset in the old text.
    pub(crate) from: usize,
    /// Length in bytes.
    pub(crate) len: usize,
}

/// Separates a configuration string at its commas.
///
/// As in Click, a comma inside quotes, `\<…>` or a comment does not separate arguments, but a comma
/// inside parentheses does; an empty last argument does not count.
pub fn split(config: &str) -> Vec<ArgText> {
    let mut args = Vec::new();
    let mut at = 0;
    while at < config.len() {
        let (text, copied, end) = strip(config, at, true);
        if !text.is_empty() || end < config.len() {
            let offset = copied.first().map_or(end, |first| first.from);
            args.push(ArgText { text, offset });
        }
        at = end + 1;
    }
    args
}

/// Joins arguments with commas; the opposite of [`split`] as long as they are quoted where needed.
pub fn join<S: AsRef<str>>(args: impl IntoIterator<Item = S>) -> String {
    let mut out = String::new();
    for (i, arg) in args.into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(arg.as_ref());
    }
    out
}

/// Returns a configuration string with one comma and space between arguments and without comments,
/// as Click's `flatconfig` handler prints it.
pub fn normalize(config: &str) -> String {
    join(split(config).iter().map(|arg| &arg.text))
}

/// Removes comments and surrounding space; a comment between words becomes one space.
pub fn uncomment(text: &str) -> String {
    strip(text, 0, false).0
}

/// Removes comments and surrounding space from `start` on, up to the next comma if `commas`
/// separate. Returns the new text, the ranges that it has copied, and the offset of its end.
pub(crate) fn strip(text: &str, start: usize, commas: bool) -> (String, Vec<CopiedRange>, usize) {
    let bytes = text.as_bytes();
    let mut at = skip_space(text, start);
    let (mut left, mut right) = (at, at);
    let mut out = String::new();
    let mut copied = Vec::new();
    let mut copy = |out: &mut String, left: usize, right: usize| {
        copied.push(CopiedRange { to: out.len(), from: left, len: right - left });
        out.push_str(&text[left..right]);
    };
    let mut interrupted = false;
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() || bytes[at] == 0x0b {
            at += 1;
        } else if comment_at(text, at) {
            at = skip_comment(text, at);
            interrupted = true;
        } else if bytes[at] == b',' && commas {
            break;
        } else {
            if interrupted {
                copy(&mut out, left, right);
                out.push(' ');
                left = at;
                interrupted = false;
            }
            at = skip_item(text, at);
            right = at;
        }
    }
    if right > left {
        copy(&mut out, left, right);
    }
    (out, copied, at)
}

/// Returns the words of an argument, still quoted. Space and comments outside quotes separate them.
pub fn split_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        let (word, after) = shift_word(rest);
        if word.is_empty() {
            return words;
        }
        words.push(word);
        rest = after;
    }
}

/// Returns the first word of a text, still quoted, and the text after it.
pub fn shift_word(text: &str) -> (&str, &str) {
    let start = skip_space(text, 0);
    let mut end = start;
    while end < text.len() && !comment_at(text, end) && !is_space(text.as_bytes()[end]) {
        end = skip_item(text, end);
    }
    (&text[start..end], &text[skip_space(text, end)..])
}

/// Removes one level of quotes. An escape may spell bytes that are not UTF-8; these become U+FFFD
/// (see [`unquote_bytes`]).
pub fn unquote(text: &str) -> String {
    match String::from_utf8(unquote_bytes(text)) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// Removes one level of quotes: `'…'` verbatim, `"…"` with backslash escapes, and `\<68 65>`
/// inside double quotes or outside all quotes.
pub fn unquote_bytes(text: &str) -> Vec<u8> {
    let text = uncomment(text);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut quote = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' if quote.is_none() => quote = Some(byte),
            b'"' | b'\'' if quote == Some(byte) => quote = None,
            b'\\'
                if at + 1 < bytes.len()
                    && (quote == Some(b'"') || (quote.is_none() && bytes[at + 1] == b'<')) =>
            {
                at = unescape(&text, at, &mut out);
                continue;
            }
            _ => out.push(byte),
        }
        at += 1;
    }
    out
}

/// Puts a text in double quotes, so that [`unquote`] gives it back.
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// Puts bytes in double quotes, so that [`unquote_bytes`] gives them back.
pub fn quote_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' | b'$' => out.extend(['\\', char::from(byte)]),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            0..32 | 127.. => out.push_str(&format!("\\{byte:03o}")),
            _ => out.push(char::from(byte)),
        }
    }
    out.push('"');
    out
}

/// Puts a text in double quotes if it is not one word without them.
pub fn quote_if_needed(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !"\"'\\$,(){};".contains(c);
    if text.is_empty() || !text.chars().all(plain) || text.contains("//") || text.contains("/*") {
        quote(text)
    } else {
        text.to_string()
    }
}

pub(crate) fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn comment_at(text: &str, at: usize) -> bool {
    matches!(text.as_bytes().get(at..at + 2), Some(b"//" | b"/*"))
}

/// Returns the offset after the comment that begins at `at`; a line comment includes its line end.
pub(crate) fn skip_comment(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    if bytes[at + 1] == b'*' {
        return text[at + 2..].find("*/").map_or(text.len(), |end| at + 2 + end + 2);
    }
    match text[at..].find(['\n', '\r']) {
        None => text.len(),
        Some(end) if text[at + end..].starts_with("\r\n") => at + end + 2,
        Some(end) => at + end + 1,
    }
}

/// Returns the offset after space and comments.
pub(crate) fn skip_space(text: &str, mut at: usize) -> usize {
    while at < text.len() {
        if is_space(text.as_bytes()[at]) {
            at += 1;
        } else if comment_at(text, at) {
            at = skip_comment(text, at);
        } else {
            break;
        }
    }
    at
}

/// Returns the offset after one quoted string, one `\<…>` or one character.
pub(crate) fn skip_item(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    match bytes[at] {
        b'\'' => text[at + 1..].find('\'').map_or(text.len(), |end| at + end + 2),
        b'"' => skip_double_quote(text, at),
        b'\\' if bytes.get(at + 1) == Some(&b'<') => skip_hex(text, at),
        first => at + utf8_len(first),
    }
}

fn skip_double_quote(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' if bytes.get(at + 1) == Some(&b'<') => at = skip_hex(text, at),
            b'\\' => at += 1 + bytes.get(at + 1).map_or(0, |&next| utf8_len(next)),
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the offset after the `\<…>` that begins at `at`; it may contain comments.
pub(crate) fn skip_hex(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = at + 2;
    while at < bytes.len() {
        if bytes[at] == b'>' {
            return at + 1;
        }
        at = if comment_at(text, at) { skip_comment(text, at) } else { at + 1 };
    }
    text.len()
}

pub(crate) fn utf8_len(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

/// Appends the bytes that the escape at `at` spells, and returns the offset of its end.
fn unescape(text: &str, at: usize, out: &mut Vec<u8>) -> usize {
    let bytes = text.as_bytes();
    let next = bytes[at + 1];
    let simple = match next {
        b'\r' => return at + 2 + usize::from(bytes.get(at + 2) == Some(&b'\n')),
        b'\n' => return at + 2,
        b'<' => return unhex(text, at, out),
        b'0'..=b'7' => {
            let digits = &bytes[at + 1..(at + 4).min(bytes.len())];
            let count = digits.iter().take_while(|d| (b'0'..=b'7').contains(d)).count();
            let value = digits[..count].iter().fold(0u32, |v, d| v * 8 + u32::from(d - b'0'));
            out.push(value as u8);
            return at + 1 + count;
        }
        b'x' => {
            let digits = &bytes[at + 2..];
            let count = digits.iter().take_while(|d| d.is_ascii_hexdigit()).count();
            // A byte holds the last two digits only, as in Click.
            let value = digits[..count].iter().fold(0u8, |v, &d| v.wrapping_shl(4) | nibble(d));
            out.push(value);
            return at + 2 + count;
        }
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        _ => {
            let len = utf8_len(next);
            out.extend(&bytes[at + 1..at + 1 + len]);
            return at + 1 + len;
        }
    };
    out.push(simple);
    at + 2
}

fn unhex(text: &str, at: usize, out: &mut Vec<u8>) -> usize {
    let bytes = text.as_bytes();
    let end = skip_hex(text, at);
    let mut half = None;
    let mut at = at + 2;
    while at < end {
        if comment_at(text, at) {
            at = skip_comment(text, at);
            continue;
        }
        if bytes[at].is_ascii_hexdigit() {
            let digit = nibble(bytes[at]);
            match half.take() {
                None => half = Some(digit),
                Some(high) => out.push(high << 4 | digit),
            }
        }
        at += 1;
    }
    end
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
