//! The words of a flow rule, read one after another.

use std::fmt::Display;
use std::str::FromStr;

/// The words of a rule that have not been read yet.
pub(super) struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Words<'a> {
        Words { words: text.split_ascii_whitespace().collect(), at: 0 }
    }

    /// The words behind those that have been read.
    pub(super) fn rest(&self) -> &[&'a str] {
        &self.words[self.at..]
    }

    /// Reads the next word if it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let is_next = self.rest().first() == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads the next word; the error names what is missing.
    pub(super) fn next(&mut self, what: &str) -> Result<&'a str, String> {
        let word = self.rest().first().copied();
        self.at += 1;
        word.ok_or_else(|| {
            self.at = self.words.len();
            format!("the rule ends where {what} is expected")
        })
    }

    /// Reads this word.
    pub(super) fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.next(&format!("`{word}`"))? {
            next if next == word => Ok(()),
            next => Err(format!("`{next}` stands where `{word}` is expected")),
        }
    }

    /// Skips the next word if it is a number.
    pub(super) fn number_if_any(&mut self) {
        self.at += usize::from(self.rest().first().is_some_and(|it| it.parse::<u32>().is_ok()));
    }

    /// Reads a number of this many bits, decimal or with `0x` hexadecimal.
    pub(super) fn number(&mut self, what: &str, bits: usize) -> Result<u128, String> {
        let word = self.next(&format!("{what}: a number"))?;
        let number = match word.strip_prefix("0x").or(word.strip_prefix("0X")) {
            Some(digits) => u128::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        let most = u128::MAX >> (128 - bits);
        // The standard library takes a sign, too.
        number
            .filter(|number| *number <= most && !word.contains('+'))
            .ok_or_else(|| format!("{what}: `{word}` is not a number from 0 to {most}"))
    }

    /// Reads an argument's name and its number.
    pub(super) fn argument(&mut self, of: &str, name: &str, bits: usize) -> Result<u128, String> {
        self.expect(name).map_err(|error| format!("{of}: {error}"))?;
        self.number(&format!("{of} {name}"), bits)
    }

    /// Reads an Ethernet address.
    pub(super) fn mac(&mut self, what: &str) -> Result<u128, String> {
        let word = self.next(&format!("{what}: an Ethernet address"))?;
        let digits = |part: &str| match part.len() {
            1 | 2 if !part.contains('+') => u8::from_str_radix(part, 16).ok(),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = word.split(':').map(digits).collect();
        let bytes = bytes.filter(|bytes| bytes.len() == 6);
        let bytes = bytes.ok_or_else(|| {
            format!("{what}: `{word}` is not an Ethernet address such as 02:00:00:00:00:01")
        })?;
        Ok(bytes.into_iter().fold(0, |all, byte| all << 8 | u128::from(byte)))
    }

    /// Reads an address of another kind.
    pub(super) fn address<T: FromStr>(&mut self, what: &str, kind: &str) -> Result<T, String> {
        let word = self.next(&format!("{what}: {kind}"))?;
        word.parse().map_err(|_| format!("{what}: `{word}` is not {kind}"))
    }
}

/// Reads values up to `end`.
pub(super) fn list<T>(
    words: &mut Words<'_>,
    mut value: impl FnMut(&mut Words<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut values = Vec::new();
    while !words.take("end") {
        values.push(value(words)?);
    }
    Ok(values)
}

/// The error of a word that is none of those known.
pub(super) fn named<Name: Display>(
    what: &str,
    word: &str,
    known: impl IntoIterator<Item = Name>,
) -> String {
    let known: Vec<_> = known.into_iter().map(|name| name.to_string()).collect();
    format!("`{word}` is no {what}; known are {}", known.join(", "))
}
