//! The lexer of the IP languages: words with their offsets.

/// A word of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) offset: usize,
}

/// Splits `text` into words. `:` belongs to words (Ethernet addresses), so the colon of `?:` needs
/// blanks around it.
pub(crate) fn tokenize(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let mut pos = 0;
    while pos < bytes.len() {
        if bytes[pos].is_ascii_whitespace() {
            pos += 1;
            continue;
        }
        let next = bytes.get(pos + 1).copied();
        let length = match bytes[pos] {
            c @ (b'&' | b'|') => 1 + usize::from(next == Some(c)),
            b'<' | b'>' | b'!' | b'=' => 1 + usize::from(next == Some(b'=')),
            b'(' | b')' | b'[' | b']' | b',' | b';' | b'?' => 1,
            _ => plain(&text[pos..]),
        };
        words.push(Token { text: &text[pos..pos + length], offset: pos });
        pos += length;
    }
    words
}

/// The length of the plain word at the start of `text`, at least one character.
fn plain(text: &str) -> usize {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-./@_:".contains(c)));
    match end {
        Some(0) => text.chars().next().map_or(1, char::len_utf8),
        Some(end) => end,
        None => text.len(),
    }
}
