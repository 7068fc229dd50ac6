//! Words of a line as a shell divides it.

/// The words of a line, and the quotation mark that is open at its end, if one is. Blanks separate
/// words, but not inside of quotation marks; there are no escapes.
pub fn shell_words(line: &str) -> (Vec<String>, Option<char>) {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (words, quote)
}
