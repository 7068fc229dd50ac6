//! Lexer: divides a line into words with their ranges.

use std::ops::Range;

/// A word of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) range: Range<usize>,
}

/// Returns the offset of the comment, or of the end of the line.
fn end_of(line: &str) -> usize {
    if !line.contains('#') {
        return line.len();
    }
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && before.is_whitespace() {
            return at;
        }
        before = c;
    }
    line.len()
}

/// The comment at the end of a line, without its `#` and the blanks around it.
pub(crate) fn comment_of(line: &str) -> &str {
    line[end_of(line)..].trim_start_matches('#').trim()
}

/// The words of a line; what stands behind a `#` is a comment.
pub(super) fn words(line: &str) -> Vec<Word<'_>> {
    const MOST_RULES_HAVE_FEWER: usize = 16;
    let line = &line[..end_of(line)];
    let mut words = Vec::with_capacity(MOST_RULES_HAVE_FEWER);
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        let length = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            c if is_sign(c) => sign(&line[at..]),
            _ => length(&line[at..]),
        };
        words.push(Word { text: &line[at..at + length], range: at..at + length });
        at += length;
    }
    words
}

/// The length of the word that a text begins with.
fn length(text: &str) -> usize {
    // Nearly all are ASCII.
    let plain = |byte: &u8| byte.is_ascii_graphic() && !is_sign((*byte).into());
    let first = text.bytes().take_while(|byte| plain(byte)).count();
    let rest = &text[first..];
    first + rest.find(|c: char| c.is_whitespace() || is_sign(c)).unwrap_or(rest.len())
}

fn is_sign(c: char) -> bool {
    matches!(c, '!' | '=' | '<' | '>')
}

/// The length of the sign that a text begins with.
fn sign(text: &str) -> usize {
    if text[1..].starts_with('=') { 2 } else { 1 }
}
