//! The language of `Classifier`: `OFFSET/VALUE[%MASK]` clauses, all of which must match.

use super::error::RuleError;
use super::pattern::{Base, Expr, Pattern, Test, Word};

/// The largest byte offset of a clause; no packet is that long.
const LIMIT: usize = u16::MAX as usize - 8;

impl Pattern {
    /// Parses a `Classifier` pattern such as `12/0806 20/0001`, `!6/ffff%f?f?` or `-`.
    pub fn bytes(text: &str) -> Result<Pattern, RuleError> {
        Pattern::bytes_behind(0, text)
    }

    /// The same for a packet behind so many other bytes, from which offsets of words count.
    pub(crate) fn bytes_behind(first: usize, text: &str) -> Result<Pattern, RuleError> {
        if text.trim() == "-" {
            return Ok(Pattern::all());
        }
        let mut pattern = Pattern::empty();
        let mut all = None;
        let mut at = Cursor { text: text.as_bytes(), pos: 0 };
        loop {
            at.blanks();
            if at.peek().is_none() {
                break;
            }
            let negated = at.eat(b'!');
            at.blanks();
            let clause = clause(&mut at, first, &mut pattern)?;
            let clause = pattern.not(clause, negated);
            all = Some(pattern.and(all, clause));
        }
        Ok(if all.is_some() { pattern } else { Pattern::all() })
    }
}

struct Cursor<'a> {
    text: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.pos += usize::from(found);
        found
    }

    fn take(&mut self, accept: fn(u8) -> bool) -> &'a [u8] {
        let from = self.pos;
        while self.peek().is_some_and(accept) {
            self.pos += 1;
        }
        &self.text[from..self.pos]
    }

    fn blanks(&mut self) {
        self.take(|c| c.is_ascii_whitespace());
    }

    fn nibbles(&mut self) -> &'a [u8] {
        self.take(|c| c.is_ascii_hexdigit() || c == b'?')
    }
}

/// Parses one `OFFSET/VALUE[%MASK]`.
fn clause(at: &mut Cursor<'_>, first: usize, pattern: &mut Pattern) -> Result<u32, RuleError> {
    let start = at.pos;
    let offset = offset(at)?;
    if !at.eat(b'/') {
        return Err(RuleError::new(at.pos, "expected '/'")
            .help("a clause is OFFSET/VALUE, such as 12/0800"));
    }
    let value_at = at.pos;
    let value = at.nibbles();
    let masked = at.eat(b'%');
    let mask_at = at.pos;
    let mask = if masked { at.nibbles() } else { &[] };
    if value.len() < 2 {
        return Err(RuleError::new(value_at, "value has less than 2 hex digits"));
    }
    if !value.len().is_multiple_of(2) {
        return Err(RuleError::new(value_at, "value has odd number of hex digits"));
    }
    if masked && mask.len() != value.len() {
        let which = if mask.len() > value.len() { "many" } else { "few" };
        return Err(RuleError::new(mask_at, format!("mask has too {which} hex digits"))
            .help(format!("the value has {}", value.len())));
    }
    if let Some(c) = at.peek().filter(|c| !c.is_ascii_whitespace()) {
        return Err(RuleError::new(at.pos, format!("expected a digit, got '{}'", c as char))
            .help("clauses are separated by blanks"));
    }
    if offset + value.len() / 2 > LIMIT {
        return Err(RuleError::new(start, format!("offset {offset} is beyond any packet")));
    }
    Ok(words(pattern, first + offset, value, masked.then_some(mask)))
}

fn offset(at: &mut Cursor<'_>) -> Result<usize, RuleError> {
    let start = at.pos;
    let digits = at.take(|c| c.is_ascii_digit());
    if digits.is_empty() {
        return Err(RuleError::new(start, "expected a digit")
            .help("a clause is OFFSET/VALUE, such as 12/0800"));
    }
    let number = digits
        .iter()
        .try_fold(0usize, |n, d| Some(n * 10 + usize::from(d - b'0')).filter(|&n| n <= LIMIT));
    number.ok_or_else(|| RuleError::new(start, "offset is beyond any packet"))
}

/// Value and mask of one hexadecimal digit; `?` matches any digit.
fn nibble(c: u8) -> (u32, u32) {
    (c as char).to_digit(16).map_or((0, 0), |v| (v, 0xF))
}

/// The clause as a conjunction of tests, one for each aligned word.
fn words(pattern: &mut Pattern, offset: usize, value: &[u8], mask: Option<&[u8]>) -> u32 {
    let mut all = None;
    let mut word = (0, 0);
    for i in 0..value.len() {
        let (v, mut m) = nibble(value[i]);
        if let Some(mask) = mask {
            let (mv, mm) = nibble(mask[i]);
            m &= mv & mm;
        }
        let byte = offset + i / 2;
        let shift = 28 - 4 * (2 * (byte % 4) + i % 2);
        word = (word.0 | (v & m) << shift, word.1 | m << shift);
        if i + 1 == value.len() || (i % 2 == 1 && byte % 4 == 3) {
            let test = Test::equal(Base::Packet, (byte & !3) as u16, word.1, word.0);
            let id = pattern.test(test, false);
            all = Some(pattern.and(all, id));
            word = (0, 0);
        }
    }
    all.unwrap_or_else(|| pattern.push(Expr::Const(true, Word::FIRST)))
}
