//! What the texts of IPv4 and TCP option lists share.

use std::net::Ipv4Addr;

/// The longest list that fits a header.
pub(super) const MAX: usize = 40;

/// Reads a text from left to right.
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

    /// Whether a number comes next.
    pub(super) fn at_digit(&self) -> bool {
        self.peek().is_some_and(|b| b.is_ascii_digit())
    }

    /// Whether an address, rather than a number, comes next.
    pub(super) fn at_addr(&self) -> bool {
        let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.rest.get(digits) == Some(&b'.')
    }

    /// Steps over `word`, if it comes next.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let rest = self.rest.strip_prefix(word.as_bytes());
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Steps over `word`, if it and a number come next.
    pub(super) fn eat_before_digit(&mut self, word: &str) -> bool {
        let rest = self.rest.strip_prefix(word.as_bytes());
        let rest = rest.filter(|rest| rest.first().is_some_and(u8::is_ascii_digit));
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads a number as C writes it (`0x` hexadecimal, `0` octal) of at most
    /// `max`.
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

    /// Reads an IPv4 address.
    pub(super) fn addr(&mut self) -> Option<Ipv4Addr> {
        let len = self.rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
        let (addr, rest) = self.rest.split_at(len);
        self.rest = rest;
        std::str::from_utf8(addr).ok()?.parse().ok()
    }

    /// Reads an option without a form of its own: `KIND` or `KIND=BYTE:BYTE…`.
    pub(super) fn other(&mut self, list: &mut Vec<u8>) -> Option<()> {
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

    /// Steps over what divides two options; `None` if something else follows,
    /// false at the end.
    pub(super) fn another(&mut self) -> Option<bool> {
        match self.peek() {
            None => Some(false),
            Some(_) => (self.eat(";") || self.eat(",")).then_some(true),
        }
    }
}

/// The number that `text` is, as C writes it, of at most `max`.
pub(crate) fn c_number(text: &str, max: u32) -> Option<u32> {
    let mut cursor = Cursor::new(text);
    cursor.number(max).filter(|_| cursor.peek().is_none())
}

/// Makes a list fit: gives leading padding up, then fails.
pub(super) fn fit(mut list: Vec<u8>) -> Option<Vec<u8>> {
    let over = list.len().saturating_sub(MAX);
    if !list.get(..over)?.iter().all(|&b| b == super::NOP) {
        return None;
    }
    list.drain(..over);
    Some(list)
}

/// Prints an option without a form of its own.
pub(super) fn other(kind: u8, data: &[u8], out: &mut String) {
    out.push_str(&kind.to_string());
    for (i, byte) in data.iter().enumerate() {
        out.push(if i == 0 { '=' } else { ':' });
        out.push_str(&byte.to_string());
    }
}
