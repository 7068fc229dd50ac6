//! Parser and printer functions for the texts of both IPv4 and TCP option lists.

use std::net::Ipv4Addr;

/// Maximum length of an option list in bytes.
pub(super) const MAX_LEN: usize = 40;

/// A cursor in a text, which parses it from left to right.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Cursor { rest: text.as_bytes() }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Whether a number is next.
    pub(super) fn at_digit(&self) -> bool {
        self.peek().is_some_and(|b| b.is_ascii_digit())
    }

    /// Whether an address, rather than a number, is next.
    pub(super) fn at_addr(&self) -> bool {
        let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.rest.get(digits) == Some(&b'.')
    }

    /// Consumes `word`, if it is next.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let rest = self.rest.strip_prefix(word.as_bytes());
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Consumes `word`, if it is next and a number follows it.
    pub(super) fn eat_before_digit(&mut self, word: &str) -> bool {
        let rest = self.rest.strip_prefix(word.as_bytes());
        let rest = rest.filter(|rest| rest.first().is_some_and(u8::is_ascii_digit));
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Parses a number in C syntax (`0x` hexadecimal, `0` octal) of at most `max`.
    pub(super) fn number(&mut self, max: u32) -> Option<u32> {
        let (digits, radix) = match self.rest {
            [b'0', b'x' | b'X', rest @ ..] => (rest, 16),
            [b'0', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => (rest, 8),
            rest => (rest, 10),
        };
        let len = digits.iter().take_while(|b| char::from(**b).is_digit(radix)).count();
        let (number, rest) = digits.split_at(len);
        self.rest = rest;
        let number = std::str::from_utf8(number).ok()?;
        u32::from_str_radix(number, radix).ok().filter(|&n| n <= max)
    }

    /// Parses an IPv4 address.
    pub(super) fn addr(&mut self) -> Option<Ipv4Addr> {
        let len = self.rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
        let (addr, rest) = self.rest.split_at(len);
        self.rest = rest;
        std::str::from_utf8(addr).ok()?.parse().ok()
    }

    /// Parses an option in the generic form: `KIND` or `KIND=BYTE:BYTE…`.
    pub(super) fn generic_option(&mut self, list: &mut Vec<u8>) -> Option<()> {
        list.push(self.number(255)? as u8);
        if self.eat("=") {
            let at = list.len();
            list.extend([0, self.number(255)? as u8]);
            while self.eat(":") {
                list.push(self.number(255)? as u8);
            }
            list[at] = u8::try_from(list.len() - at + 1).ok()?;
        }
        Some(())
    }

    /// Consumes the separator of two options. Returns `false` at the end of the
    /// text, `None` if another character is next.
    pub(super) fn separator(&mut self) -> Option<bool> {
        match self.peek() {
            None => Some(false),
            Some(_) => (self.eat(";") || self.eat(",")).then_some(true),
        }
    }
}

/// Parses `text` as a number in C syntax of at most `max`.
pub(crate) fn c_number(text: &str, max: u32) -> Option<u32> {
    let mut cursor = Cursor::new(text);
    cursor.number(max).filter(|_| cursor.peek().is_none())
}

/// Shortens a list that is too long for a header by its leading padding; `None` if
/// that is not enough.
pub(super) fn trim_padding(mut list: Vec<u8>) -> Option<Vec<u8>> {
    let over = list.len().saturating_sub(MAX_LEN);
    if !list.get(..over)?.iter().all(|&b| b == super::NOP) {
        return None;
    }
    list.drain(..over);
    Some(list)
}

/// Prints an option in the generic form: `KIND` or `KIND=BYTE:BYTE…`.
pub(super) fn print_generic(kind: u8, data: &[u8], out: &mut String) {
    out.push_str(&kind.to_string());
    for (i, byte) in data.iter().enumerate() {
        out.push(if i == 0 { '=' } else { ':' });
        out.push_str(&byte.to_string());
    }
}
