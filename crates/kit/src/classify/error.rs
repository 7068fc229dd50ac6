//! Errors in the text of rules: position, message and suggestion.

use std::fmt;

/// An error in the text of a rule, or a warning about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The byte offset in the rule's text at which the problem starts.
    pub offset: usize,
    /// The problem, in Click's words where Click has them.
    pub message: String,
    /// A correct form.
    pub help: Option<String>,
}

impl RuleError {
    /// An error at a byte offset in the rule's text.
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        RuleError { offset, message: message.into(), help: None }
    }

    /// The same error with a correct form.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RuleError {}

/// The candidate nearest to `word`, if it is near enough to be a typing error.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = word.len().div_ceil(3).min(3);
    candidates
        .filter(|c| c.len().abs_diff(word.len()) <= limit)
        .map(|c| (distance(word.as_bytes(), c.as_bytes()), c))
        .filter(|&(d, _)| d <= limit)
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// The optimal string alignment distance: edits and swapped neighbours both cost one.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let same = a[i - 1].eq_ignore_ascii_case(&b[j - 1]);
            row[j] = (last[j - 1] + usize::from(!same)).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typing_errors_are_recognised_and_other_words_are_not() {
        let words = ["host", "port", "proto"];
        assert_eq!(nearest("hsot", words.into_iter()), Some("host"));
        assert_eq!(nearest("prot", words.into_iter()), Some("port"));
        assert_eq!(nearest("banana", words.into_iter()), None);
    }
}
