//! The parser of the IP languages, without recursion.
//!
//! ```text
//! expr    = or_expr [ "?" expr ":" expr ]
//! or_expr = term { ("or" | "||") term }
//! term    = factor { ["and" | "&&"] factor }
//! factor  = ("not" | "!") factor | "(" expr ")" | "true" | "false" | primitive
//! ```

use super::error::{RuleError, nearest};
use super::lexer::{Token, tokenize};
use super::lookup::{WordRole, known_words, lookup_word};
use super::names::{Names, NoNames};
use super::pattern::{Expr, Id, Pattern, Word};
use super::primitive::*;
use crate::text::{parse_ether, parse_ipv4, parse_ipv4_prefix, parse_u32};

impl Pattern {
    /// Parses an `IPClassifier` pattern such as `src net 10.0.0.0/8 and tcp dst port 80 or 443`.
    pub fn ip(text: &str) -> Result<Pattern, RuleError> {
        Pattern::ip_with(text, &NoNames)
    }

    /// Like [`Pattern::ip`], with names beyond the built-in ones.
    pub fn ip_with(text: &str, names: &dyn Names) -> Result<Pattern, RuleError> {
        let words = tokenize(text);
        match words.as_slice() {
            [] => Err(RuleError::new(0, "empty pattern").help("'-' matches every packet")),
            words => parse(words, text.len(), names),
        }
    }
}

/// Parses the words of a pattern; `end` is the offset of the end of its text.
pub(crate) fn parse(
    words: &[Token<'_>],
    end: usize,
    names: &dyn Names,
) -> Result<Pattern, RuleError> {
    match words {
        [] | [Token { text: "-" | "any" | "all", .. }] => return Ok(Pattern::all()),
        [Token { text: "none", .. }] => return Ok(Pattern::none()),
        _ => {}
    }
    let mut parser = Parser {
        words,
        end,
        names,
        pos: 0,
        pattern: Pattern::empty(),
        previous: Primitive::at(0),
        levels: vec![Level::new(Opener::Top)],
    };
    parser.expression()?;
    Ok(parser.pattern)
}

/// The token that opened a level of the expression.
#[derive(Clone, Copy, PartialEq)]
enum Opener {
    Top,
    /// `(`, at this offset; `negated` after an odd number of `not`s.
    Paren {
        negated: bool,
        offset: usize,
    },
    /// `?`, at this offset.
    Branch {
        offset: usize,
    },
}

/// An expression that is being parsed.
struct Level {
    opener: Opener,
    term: Option<Id>,
    or: Option<Id>,
    /// Conditions and their yes branches, of the ternaries that the last operand will complete.
    choices: Vec<(Id, Id)>,
    /// The condition whose yes branch is being parsed.
    condition: Option<Id>,
}

impl Level {
    fn new(opener: Opener) -> Self {
        Level { opener, term: None, or: None, choices: Vec::new(), condition: None }
    }
}

struct Parser<'a> {
    words: &'a [Token<'a>],
    end: usize,
    names: &'a dyn Names,
    pos: usize,
    pattern: Pattern,
    previous: Primitive,
    levels: Vec<Level>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.pos).map(|w| w.text)
    }

    fn offset(&self) -> usize {
        self.words.get(self.pos).map_or(self.end, |w| w.offset)
    }

    fn eat(&mut self, options: &[&str]) -> bool {
        let found = self.peek().is_some_and(|w| options.contains(&w));
        self.pos += usize::from(found);
        found
    }

    fn level(&mut self) -> &mut Level {
        // `finish` alone pops the top level, and nothing is parsed after it.
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, RuleError> {
        Err(RuleError::new(self.offset(), message))
    }

    fn expression(&mut self) -> Result<(), RuleError> {
        loop {
            self.factor()?;
            while !self.eat(&["and", "&&"]) {
                match self.peek() {
                    Some("or" | "||") => {
                        self.pos += 1;
                        self.fold_or();
                        break;
                    }
                    Some("?") => {
                        let offset = self.offset();
                        self.pos += 1;
                        let condition = self.fold_or();
                        let level = self.level();
                        level.condition = condition;
                        level.or = None;
                        self.levels.push(Level::new(Opener::Branch { offset }));
                        break;
                    }
                    Some(":") => {
                        self.close_branch()?;
                        break;
                    }
                    Some(")") => self.close_paren()?,
                    None => return self.finish(),
                    Some(_) => break,
                }
            }
        }
    }

    /// Parses one factor, or opening parentheses and the first factor in them.
    fn factor(&mut self) -> Result<(), RuleError> {
        loop {
            let mut negated = false;
            let mut not = None;
            while let Some(word @ ("not" | "!")) = self.peek() {
                not = Some(word);
                negated = !negated;
                self.pos += 1;
            }
            if self.peek() != Some("(") {
                return self.leaf(negated, not);
            }
            let offset = self.offset();
            self.pos += 1;
            self.levels.push(Level::new(Opener::Paren { negated, offset }));
        }
    }

    fn leaf(&mut self, negated: bool, not: Option<&str>) -> Result<(), RuleError> {
        let id = match self.peek() {
            None | Some(")" | "||" | "or" | "?" | ":" | "and" | "&&") => {
                let message = match (not, self.pos.checked_sub(1).map(|p| self.words[p].text)) {
                    (Some(not), _) => format!("missing expression after '{not}'"),
                    (None, Some("(")) => "missing expression after '('".into(),
                    _ => "missing expression".into(),
                };
                return self.error(message);
            }
            Some(word @ ("true" | "false")) => {
                self.pos += 1;
                self.pattern.push(Expr::Const((word == "true") != negated, Word::FIRST))
            }
            Some(_) => self.primitive(negated)?,
        };
        self.attach(id);
        Ok(())
    }

    fn attach(&mut self, id: Id) {
        let term = self.level().term;
        let term = self.pattern.and(term, id);
        self.level().term = Some(term);
    }

    fn fold_or(&mut self) -> Option<Id> {
        let level = self.level();
        if let Some(term) = level.term.take() {
            let or = level.or;
            let or = self.pattern.or(or, term);
            self.level().or = Some(or);
        }
        self.level().or
    }

    /// The value of the whole level: the last operand with the ternaries before it.
    fn fold(&mut self) -> Option<Id> {
        let last = self.fold_or();
        let choices = std::mem::take(&mut self.level().choices);
        let push = |id: Id, &(c, a): &(Id, Id)| self.pattern.push(Expr::Cond(c, a, id));
        last.map(|last| choices.iter().rev().fold(last, push))
    }

    fn close_branch(&mut self) -> Result<(), RuleError> {
        if !matches!(self.level().opener, Opener::Branch { .. }) {
            return self.error("':' without '?'");
        }
        self.pos += 1;
        let value = self.fold();
        self.levels.pop();
        let level = self.level();
        if let (Some(condition), Some(value)) = (level.condition.take(), value) {
            level.choices.push((condition, value));
        }
        Ok(())
    }

    fn close_paren(&mut self) -> Result<(), RuleError> {
        match self.level().opener {
            Opener::Top => self.error("garbage after expression at ')'"),
            Opener::Branch { offset } => Err(missing_colon(offset)),
            Opener::Paren { negated, .. } => {
                self.pos += 1;
                let value = self.fold();
                self.levels.pop();
                if let Some(value) = value {
                    let value = self.pattern.not(value, negated);
                    self.attach(value);
                }
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<(), RuleError> {
        match self.level().opener {
            Opener::Paren { offset, .. } => {
                Err(RuleError::new(offset, "missing ')'").help("this '(' is not closed"))
            }
            Opener::Branch { offset } => Err(missing_colon(offset)),
            Opener::Top => {
                self.fold();
                Ok(())
            }
        }
    }

    fn primitive(&mut self, mut negated: bool) -> Result<Id, RuleError> {
        let first = self.pos;
        let mut prim = Primitive::at(self.offset());
        self.qualifiers(&mut prim, &mut negated)?;
        if self.pos != first {
            self.previous = Primitive::at(prim.offset);
        }
        if self.pos > first && prim.kind.is_none() && self.peek() == Some("[") {
            self.brackets(&mut prim)?;
        }
        self.mask(&mut prim)?;
        self.relation(&mut prim);
        self.data(&mut prim)?;
        if self.pos == first {
            return Err(self.unknown(self.words[first]));
        }
        let id = prim.finish(&self.previous, &mut self.pattern)?;
        self.previous = prim;
        Ok(self.pattern.not(id, negated))
    }

    /// Parses `src`, `dst`, `ip`, protocols and fields, in any order.
    fn qualifiers(&mut self, prim: &mut Primitive, negated: &mut bool) -> Result<(), RuleError> {
        while let Some(word) = self.peek() {
            match word {
                "src" | "dst" | "dest" => {
                    if prim.direction.is_some() {
                        return self.error("'src' or 'dst' specified twice");
                    }
                    prim.direction = Some(self.direction(word));
                }
                "ip" | "ether" => {
                    if prim.header.is_some() {
                        return Ok(());
                    }
                    let header = if word == "ip" { Header::Ip } else { Header::Ether };
                    prim.header = Some(header);
                }
                "not" | "!" => *negated = !*negated,
                _ => match lookup_word(word, None, None, self.names) {
                    WordRole::Type(kind) => self.set_kind(prim, kind)?,
                    WordRole::Data(Data::Proto(number)) => self.set_protocol(prim, number)?,
                    _ => return Ok(()),
                },
            }
            self.pos += 1;
        }
        Ok(())
    }

    /// Parses `src` alone or `src or dst`, without consuming the last word.
    fn direction(&mut self, word: &str) -> Direction {
        if word != "src" {
            return Direction::Dst;
        }
        let text = |i: usize| self.words.get(self.pos + i).map_or("", |w| w.text);
        let direction = match (text(1), text(2)) {
            ("and" | "&&", "dst" | "dest") => Direction::Both,
            ("or" | "||", "dst" | "dest") => Direction::Either,
            _ => return Direction::Src,
        };
        self.pos += 2;
        direction
    }

    fn set_kind(&self, prim: &mut Primitive, kind: Kind) -> Result<(), RuleError> {
        if prim.kind.is_some() {
            return self.error("type specified twice");
        }
        prim.kind = Some(kind);
        match kind {
            Kind::Field(Field { protocol: Some(number), .. }) => self.set_protocol(prim, number),
            _ => Ok(()),
        }
    }

    fn set_protocol(&self, prim: &mut Primitive, number: u32) -> Result<(), RuleError> {
        if prim.protocol.is_some_and(|p| p != number) {
            return self.error("transport protocol specified twice");
        }
        prim.protocol = Some(number);
        Ok(())
    }

    /// Parses `[POS]`, `[POS:LEN]` or `[FIRST,LAST]`.
    fn brackets(&mut self, prim: &mut Primitive) -> Result<(), RuleError> {
        let open = self.offset();
        self.pos += 1;
        let mut inside = String::new();
        loop {
            match self.peek() {
                Some("]") => break,
                Some(word) => inside.push_str(word),
                None => return Err(RuleError::new(open, "missing ']'")),
            }
            self.pos += 1;
        }
        self.pos += 1;
        let Some((first, length)) = field_range(&inside) else {
            return Err(RuleError::new(
                open,
                "syntax error after '[', expected '[POS]' or '[POS:LEN]'",
            ));
        };
        if !(1..=4).contains(&length) {
            return Err(RuleError::new(
                open,
                "LEN in '[POS:LEN]' out of range, should be between 1 and 4",
            ));
        }
        if first > 0xFFF0 || first / 4 != (first + length - 1) / 4 {
            return Err(RuleError::new(
                open,
                format!("field [{first}:{length}] does not fit in a single word"),
            ));
        }
        let name = if prim.protocol.is_some() { "transp[...]" } else { "ip[...]" };
        let field = Field { protocol: prim.protocol, bit: first * 8, bits: length * 8, name };
        prim.kind = Some(Kind::Field(field));
        Ok(())
    }

    /// Parses `& MASK`.
    fn mask(&mut self, prim: &mut Primitive) -> Result<(), RuleError> {
        if self.peek() != Some("&") {
            return Ok(());
        }
        self.pos += 1;
        let word = self.peek().unwrap_or("");
        let mask = if let Some(mask) = parse_u32(word) {
            Mask::Int(mask)
        } else if let Some(mask) = self.address(word).filter(|_| !ether(prim)) {
            Mask::Address(mask)
        } else if let Some(mask) = self.ether(word).filter(|_| prim.header != Some(Header::Ip)) {
            Mask::Ether(mask)
        } else {
            return Err(RuleError::new(self.offset(), "mask missing after '&'")
                .help("use '&&' or 'and' to join two conditions"));
        };
        if matches!(mask, Mask::Int(0) | Mask::Address(0)) {
            return self.error("zero mask");
        }
        self.pos += 1;
        prim.mask = Some(mask);
        Ok(())
    }

    fn relation(&mut self, prim: &mut Primitive) {
        let (relation, negated) = match self.peek() {
            Some("=" | "==") => (Relation::Equal, false),
            Some("!=") => (Relation::Equal, true),
            Some(">") => (Relation::Greater, false),
            Some("<=") => (Relation::Greater, true),
            Some("<") => (Relation::Less, false),
            Some(">=") => (Relation::Less, true),
            _ => return,
        };
        self.pos += 1;
        prim.relation = relation;
        prim.negated = negated;
    }

    /// Parses the value that is compared with, if the next word is one.
    fn data(&mut self, prim: &mut Primitive) -> Result<(), RuleError> {
        let after_operator = self.pos > 0
            && matches!(self.words[self.pos - 1].text, "=" | "==" | "!=" | "<" | ">" | "<=" | ">=");
        let word = self.words.get(self.pos).copied();
        if let Some(word) = word {
            match lookup_word(word.text, prim.kind, prim.protocol, self.names) {
                WordRole::Misplaced(message) => return self.error(message),
                WordRole::Data(data) => prim.data = data,
                WordRole::Type(_) | WordRole::Unknown => prim.data = self.value(word.text, prim),
            }
        }
        if prim.data != Data::None {
            self.pos += 1;
            return self.net_mask(prim);
        }
        match word {
            _ if !after_operator => Ok(()),
            Some(word) => self.error(format!("dangling operator near '{}'", word.text)),
            None => self.error("dangling operator at the end"),
        }
    }

    /// A number or an address.
    fn value(&self, word: &str, prim: &Primitive) -> Data {
        if let Some(number) = parse_u32(word) {
            return Data::Int(number);
        }
        // After an Ethernet address, a name with an Ethernet address stands for that.
        let carried = matches!(self.previous.data, Data::Ether(_)) && self.ether(word).is_some();
        if !ether(prim) && !carried {
            if let Some((address, mask)) =
                parse_ipv4_prefix(word).or_else(|| self.names.prefix(word))
                && (word.contains('/')
                    || prim.kind == Some(Kind::Net)
                    || self.address(word).is_none())
            {
                return Data::Net(address, mask);
            }
            if let Some(address) = self.address(word) {
                return Data::Host(address);
            }
        }
        match self.ether(word) {
            Some(address) if prim.header != Some(Header::Ip) => Data::Ether(address),
            _ => Data::None,
        }
    }

    /// Parses `mask MASK` after an address.
    fn net_mask(&mut self, prim: &mut Primitive) -> Result<(), RuleError> {
        let (Data::Host(address), Some("mask")) = (prim.data, self.peek()) else {
            return Ok(());
        };
        self.pos += 1;
        let Some(mask) = self.peek().and_then(|word| self.address(word)) else {
            return self.error("netmask missing after 'mask'");
        };
        self.pos += 1;
        prim.data = Data::Net(address, mask);
        Ok(())
    }

    fn address(&self, word: &str) -> Option<u32> {
        parse_ipv4(word).or_else(|| self.names.address(word))
    }

    fn ether(&self, word: &str) -> Option<[u8; 6]> {
        parse_ether(word).or_else(|| self.names.ether(word))
    }

    fn unknown(&self, word: Token<'_>) -> RuleError {
        let error = RuleError::new(word.offset, format!("empty term near '{}'", word.text));
        match nearest(word.text, known_words()) {
            Some(near) => error.help(format!("did you mean '{near}'?")),
            None => error,
        }
    }
}

fn missing_colon(offset: usize) -> RuleError {
    RuleError::new(offset, "missing ':' in ternary expression")
        .help("the ':' needs a blank on either side")
}

fn ether(prim: &Primitive) -> bool {
    prim.header == Some(Header::Ether)
}

/// First byte and length of a bracketed field.
fn field_range(inside: &str) -> Option<(u32, u32)> {
    if let Some((first, length)) = inside.split_once(':') {
        return Some((parse_u32(first)?, parse_u32(length)?));
    }
    if let Some((first, last)) = inside.split_once(',') {
        let (first, last) = (parse_u32(first)?, parse_u32(last)?);
        return Some((first, last.checked_sub(first)?.saturating_add(1)));
    }
    Some((parse_u32(inside)?, 1))
}
