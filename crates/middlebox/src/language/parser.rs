//! Parser of rules: matches, then targets.

use super::lexer::{Word, comment_of, words};
use super::parse_error::ParseError;
use crate::analysis::{RulePart, rule_error};
use crate::field::{Field, FieldLocation, FieldSpec, Kind};
use crate::rule::{Chance, Hop, Predicate, Rejection, Rule, RuleComment, Target};
use crate::value::{self, CONDITIONS, Condition, Value, wants};
use crate::value_set::check_name;
use castanet_lang::nearest;
use std::ops::Range;

/// The targets: word, arguments, and a sentence for the help.
pub const TARGETS: [(&str, &str, &str); 11] = [
    ("mod", "FIELD VALUE", "Sets a field."),
    ("add", "TCP-OPT [VALUE]", "Adds a TCP option where there is none of its kind."),
    ("strip", "[!] TCP-OPT | all", "Removes TCP options; with `!`, all but those named."),
    ("drop", "[PERCENT]", "Drops the packet; alone."),
    (
        "reject",
        "[port|admin|host|net]",
        "Drops the packet and answers it: a reset to TCP, port unreachable to others, or what is named; alone.",
    ),
    ("accept", "", "Lets the packet go on, whatever wants to drop it; alone."),
    ("map", "FIELD VALUE", "Sets a field one way, and restores it the other; stateful."),
    ("shuffle", "FIELD", "Gives each connection a value of its own; stateful."),
    ("lb", "NEXT-HOP…", "Spreads connections over next hops; alone."),
    (
        "log",
        "[NAME]",
        "Writes a line about the packet to the log; beside any other target, or alone.",
    ),
    ("jump", "CHAIN", "Sends the packet to the rules with the match `chain CHAIN`; alone."),
];

/// Cursor over the words of a line.
pub(super) struct Cursor<'a> {
    words: Vec<Word<'a>>,
    at: usize,
    end: usize,
    /// The comment behind the words.
    comment: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str) -> Cursor<'a> {
        let words = words(line);
        let end = words.last().map_or(0, |word| word.range.end);
        Cursor { words, at: 0, end, comment: comment_of(line) }
    }

    pub(super) fn peek(&self) -> Option<&Word<'a>> {
        self.words.get(self.at)
    }

    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        let word = self.peek().cloned();
        self.at += usize::from(word.is_some());
        word
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|word| word.text == text);
        self.at += usize::from(found);
        found
    }

    /// Takes the next word. If there is none, the error says that `wanted` is missing.
    pub(super) fn expect(&mut self, wanted: &str) -> Result<Word<'a>, ParseError> {
        self.next().ok_or_else(|| self.missing(wanted))
    }

    fn missing(&self, wanted: &str) -> ParseError {
        ParseError::new(self.end..self.end, format!("{wanted} is missing"))
    }

    /// Returns the range of the words that were taken.
    pub(super) fn words_so_far(&self) -> Range<usize> {
        let taken = &self.words[..self.at];
        let ends = taken.first().zip(taken.last());
        ends.map_or(0..0, |(first, last)| first.range.start..last.range.end)
    }

    /// Returns an error if words are left over.
    pub(super) fn finish(&self) -> Result<(), ParseError> {
        match self.peek() {
            None => Ok(()),
            Some(word) => {
                let rest = word.range.start..self.end;
                Err(ParseError::new(rest, format!("`{}` is one word too many", word.text)))
            }
        }
    }

    /// Takes all remaining words, as one range of the line.
    pub(super) fn rest(&mut self) -> Option<Range<usize>> {
        let first = self.next()?;
        self.at = self.words.len();
        Some(first.range.start..self.end)
    }
}

/// Parses a rule without its command.
pub fn rule(line: &str, stateful: bool) -> Result<Rule, ParseError> {
    let mut cursor = Cursor::new(line);
    parse_checked_rule(&mut cursor, stateful).map(|parsed| parsed.rule)
}

/// A rule, with the ranges of its parts in the line.
pub(super) struct ParsedRule {
    pub(super) rule: Rule,
    matches: Vec<Range<usize>>,
    targets: Vec<Range<usize>>,
}

impl ParsedRule {
    /// Returns the range of a part of the rule.
    pub(super) fn range(&self, part: RulePart) -> Range<usize> {
        let range = match part {
            RulePart::Match(at) => self.matches.get(at),
            RulePart::Target(at) => self.targets.get(at),
        };
        range.cloned().unwrap_or_default()
    }
}

/// Parses a rule and refuses one without any effect.
pub(super) fn parse_checked_rule(
    cursor: &mut Cursor,
    stateful: bool,
) -> Result<ParsedRule, ParseError> {
    let parsed = parse_rule(cursor, stateful)?;
    match rule_error(&parsed.rule) {
        None => Ok(parsed),
        Some(remark) => {
            Err(ParseError::new(parsed.range(remark.part), remark.message).maybe_help(remark.help))
        }
    }
}

fn parse_rule(cursor: &mut Cursor, stateful: bool) -> Result<ParsedRule, ParseError> {
    let mut matches: Vec<(Predicate, Range<usize>)> = Vec::new();
    while cursor.peek().is_some_and(|word| !is_target(word.text)) {
        let start = cursor.peek().map_or(0, |word| word.range.start);
        let predicate = predicate(cursor, matches.is_empty())?;
        let end = cursor.words[cursor.at - 1].range.end;
        matches.push((predicate, start..end));
    }
    check_all_alone(&matches)?;
    let mut targets: Vec<(Target, Range<usize>)> = Vec::new();
    while let Some(word) = cursor.next() {
        let target = target(cursor, &word, stateful)?;
        let end = cursor.words[cursor.at - 1].range.end;
        targets.push((target, word.range.start..end));
    }
    if matches.is_empty() {
        let at = targets.first().map_or(0..0, |(_, range)| range.clone());
        return Err(ParseError::new(at, "the rule says of no packet that it is about it")
            .help("a rule begins with what a packet must be: `all` is about every one"));
    }
    if targets.is_empty() {
        let help = format!("after the matches comes one of {}", target_words());
        return Err(ParseError::new(cursor.end..cursor.end, "a target is missing").help(help));
    }
    check_combination(&targets)?;
    check_limits(&matches, &targets, stateful)?;
    let (rule_matches, matches) = matches.into_iter().unzip();
    let (rule_targets, targets) = targets.into_iter().unzip();
    let comment = RuleComment::new("", cursor.comment);
    let rule = Rule { stateful, matches: rule_matches, targets: rule_targets, comment };
    Ok(ParsedRule { rule, matches, targets })
}

/// Whether a word after a field is a condition, or begins the next match or target. A value that
/// reads like a keyword, such as an interface named `drop`, must follow a condition.
pub(crate) fn is_keyword(word: &str) -> bool {
    CONDITIONS.iter().any(|(sign, _)| *sign == word)
        || matches!(word, "=" | "!")
        || is_target(word)
        || Field::named(word).is_some()
}

fn is_target(word: &str) -> bool {
    TARGETS.iter().any(|(name, _, _)| *name == word)
}

fn target_words() -> String {
    TARGETS.map(|(name, _, _)| name).join(", ")
}

fn check_all_alone(matches: &[(Predicate, Range<usize>)]) -> Result<(), ParseError> {
    let all = matches.iter().find(|(it, _)| it.field.spec().location == FieldLocation::Everywhere);
    match all {
        Some((_, range)) if matches.len() > 1 => {
            Err(ParseError::new(range.clone(), "`all` stands alone").help("leave it out"))
        }
        _ => Ok(()),
    }
}

/// Refuses targets that exclude each other.
fn check_combination(targets: &[(Target, Range<usize>)]) -> Result<(), ParseError> {
    let others = targets.iter().filter(|(target, _)| !matches!(target, Target::Log(_))).count();
    let single = targets.iter().find(|(target, _)| target.is_exclusive());
    if let Some((target, range)) = single.filter(|_| others > 1) {
        return Err(ParseError::new(range.clone(), format!("`{}` stands alone", target.word()))
            .help("make a rule of its own for the other targets; only `log` goes with it"));
    }
    let strips = targets.iter().any(|(target, _)| matches!(target, Target::Strip(_)));
    let keeps = targets.iter().find(|(target, _)| matches!(target, Target::Keep(_)));
    match keeps {
        Some((_, range)) if strips => {
            Err(ParseError::new(range.clone(), "`strip` and `strip !` do not mix in one rule")
                .help("name what goes, or name what stays"))
        }
        _ => Ok(()),
    }
}

/// Refuses limits that have no meaning, and jumps of rules that are about connections.
fn check_limits(
    matches: &[(Predicate, Range<usize>)],
    targets: &[(Target, Range<usize>)],
    stateful: bool,
) -> Result<(), ParseError> {
    let jump = targets.iter().find(|(target, _)| matches!(target, Target::Jump(_)));
    if let Some((_, range)) = jump.filter(|_| stateful) {
        return Err(ParseError::new(range.clone(), "`jump` is for rules that are not stateful")
            .help("the rules of the chain may be stateful"));
    }
    let limits = matches.iter().filter(|(predicate, _)| predicate.field.spec().is_limit());
    for (Predicate { negated, field, test }, range) in limits {
        let wrong = |what: String, help: &str| {
            Err(ParseError::new(range.clone(), what).help(help.to_owned()))
        };
        let condition = test.as_ref().map(|(condition, _)| *condition);
        let is_count = matches!(field.spec().location, FieldLocation::ConnectionCount(_));
        match condition {
            _ if jump.is_some() => {
                return wrong(
                    format!("`{field}` does not go with `jump`"),
                    "put the limit into the rules of the chain",
                );
            }
            _ if is_count && !stateful => {
                return wrong(
                    format!("`{field}` is for stateful rules: it counts their connections"),
                    "add the rule with `add-stateful`, and another one that drops the rest",
                );
            }
            Some(Condition::AtMost | Condition::Less) if is_count && !negated => {}
            Some(Condition::AtMost | Condition::More) if !is_count && !negated => {}
            _ if is_count => {
                return wrong(
                    format!("`{field}` takes `<=` and `<`: the connections that there may be"),
                    "what is beyond does not match, and is for other rules to drop",
                );
            }
            _ => {
                return wrong(
                    format!("`{field}` takes `<=` and `>`"),
                    "`<=` matches packets within the rate, `>` those beyond it",
                );
            }
        }
    }
    Ok(())
}

/// Parses the next word as a field. With `or_target`, the suggestion for an unknown field may be a
/// target.
fn field(cursor: &mut Cursor, or_target: bool) -> Result<(Field, Word<'static>), ParseError> {
    let word = cursor.expect("a field")?;
    let unknown = || {
        let names = crate::field::FIELDS.iter().map(|spec| spec.name);
        let targets = TARGETS.iter().map(|(name, _, _)| *name).filter(|_| or_target);
        let near = nearest(word.text, names.chain(targets));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        let no = ParseError::new(word.range.clone(), format!("there is no field `{}`", word.text));
        no.maybe_help(help.or_else(|| Some("`help fields` lists them".into())))
    };
    let field = Field::named(word.text).ok_or_else(unknown)?;
    let mut range = word.range.clone();
    let number = cursor.peek().filter(|_| field.spec().location == FieldLocation::Option(None));
    let Some(kind) = number.and_then(|it| value::number(it.text, 8)) else {
        return Ok((field, Word { text: field.spec().name, range }));
    };
    if kind < 2 {
        let range = cursor.peek().map_or(0..0, |it| it.range.clone());
        return Err(ParseError::new(range, format!("kind {kind} is padding, no option"))
            .help("kinds are from 2 to 255"));
    }
    range.end = cursor.next().map_or(range.end, |it| it.range.end);
    Ok((Field::option(kind as u8), Word { text: field.spec().name, range }))
}

fn predicate(cursor: &mut Cursor, first: bool) -> Result<Predicate, ParseError> {
    let negated = cursor.eat("!");
    let (field, name) = field(cursor, !first)?;
    let spec = field.spec();
    if negated && spec.location == FieldLocation::Everywhere {
        return Err(
            ParseError::new(name.range, "`! all` is about no packet").help("leave the `!` out")
        );
    }
    let test = test(cursor, field, &name)?;
    if test.is_none() && spec.needs_value() {
        return Err(ParseError::new(name.range, format!("`{field}` wants {}", wants(field))));
    }
    let is_chain = spec.kind == Kind::Chain;
    let is_equal = matches!(test, Some((Condition::Equal, _)));
    if is_chain && (negated || !is_equal) {
        return Err(ParseError::new(name.range, "a rule is of a chain, or says nothing of it")
            .help("`chain NAME` stands without `!` and `!=`"));
    }
    Ok(Predicate { negated, field, test })
}

/// Parses the condition and the value after a field; `None` if there is neither.
fn test(
    cursor: &mut Cursor,
    field: Field,
    name: &Word,
) -> Result<Option<(Condition, Value)>, ParseError> {
    let Some(word) = cursor.peek().cloned() else { return Ok(None) };
    let sign = CONDITIONS.iter().find(|(sign, _)| *sign == word.text);
    let condition = match sign {
        Some((_, condition)) => {
            cursor.next();
            *condition
        }
        None if word.text == "=" => {
            return Err(ParseError::new(word.range, "there is no condition `=`").help("write `==`"));
        }
        None if is_keyword(word.text) => return Ok(None),
        // A misspelt field begins the next match; all other words are taken for a value.
        None if looks_like_field(field.spec(), word.text) => return Ok(None),
        None => Condition::Equal,
    };
    if !condition.is_equality() && !field.spec().has_order() {
        let what = format!("`{field}` has no order: `{condition}` makes no sense");
        return Err(ParseError::new(word.range, what).help("it takes `==` and `!=`"));
    }
    if field.spec().location == FieldLocation::Option(None) && field.option_kind().is_none() {
        return Err(ParseError::new(name.range.clone(), "options of any kind have no value")
            .help("say which kind: `tcp-opt KIND VALUE`"));
    }
    let value = value(cursor, field, Value::parse_of_match)?;
    if value.set().is_some() && !condition.is_equality() {
        let what = format!("a set has no order: `{condition}` makes no sense");
        return Err(ParseError::new(word.range, what).help("it takes `==` and `!=`"));
    }
    Ok(Some((condition, value)))
}

/// Whether an unknown word after a field is more likely a misspelt field than a value.
fn looks_like_field(spec: &FieldSpec, word: &str) -> bool {
    let is_word = word.contains('-') && !value::is_numeric(word) && !word.starts_with('@');
    match spec.kind {
        Kind::Presence => true,
        Kind::Interface | Kind::Chain => false,
        _ => is_word && !word.contains([':', '/', '.', ',']),
    }
}

/// Parses the next word as a value of a field.
fn value(
    cursor: &mut Cursor,
    field: Field,
    parse: impl Fn(Field, &str) -> Result<Value, String>,
) -> Result<Value, ParseError> {
    let wanted = || format!("{}, the value of {field},", wants(field));
    let word = cursor.next().ok_or_else(|| cursor.missing(&wanted()))?;
    parse(field, word.text).map_err(|wanted| {
        ParseError::new(word.range, format!("`{}` is no value of {field}", word.text)).help(wanted)
    })
}

fn target(cursor: &mut Cursor, word: &Word, stateful: bool) -> Result<Target, ParseError> {
    let needs_state = |what: &str| {
        ParseError::new(word.range.clone(), format!("`{what}` is for stateful rules"))
            .help("add the rule with `add-stateful`")
    };
    match word.text {
        "mod" => field_and_value(cursor, "mod", Field::modifies)
            .map(|(field, value)| Target::Mod { field, value }),
        "map" if !stateful => Err(needs_state("map")),
        "map" => field_and_value(cursor, "map", |field| field.spec().maps)
            .map(|(field, value)| Target::Map { field, value }),
        "shuffle" if !stateful => Err(needs_state("shuffle")),
        "shuffle" => {
            accepted_field(cursor, "shuffle", |field| field.spec().shuffles).map(Target::Shuffle)
        }
        "add" => add_target(cursor),
        "strip" => strip_target(cursor),
        "drop" => Ok(Target::Drop(chance(cursor)?)),
        "reject" => Ok(Target::Reject(rejection(cursor)?)),
        "accept" => Ok(Target::Accept),
        "lb" => hops(cursor).map(Target::Balance),
        "log" => {
            let has_name = cursor.peek().is_some_and(|word| !is_target(word.text));
            Ok(Target::Log(if has_name { Some(name(cursor, "a line of the log")?) } else { None }))
        }
        "jump" => name(cursor, "a chain").map(Target::Jump),
        other => {
            let names = TARGETS.iter().map(|(name, _, _)| *name);
            let near = nearest(other, names).map(|near| format!("did you mean `{near}`?"));
            let late = Field::named(other).map(|_| "all matches come before the targets".into());
            let fallback = format!("a target is one of {}", target_words());
            Err(ParseError::new(word.range.clone(), format!("`{other}` is no target"))
                .maybe_help(late.or(near).or(Some(fallback))))
        }
    }
}

/// Parses the name of a chain or of lines of the log.
fn name(cursor: &mut Cursor, of: &str) -> Result<Box<str>, ParseError> {
    let word = cursor.expect(&format!("the name of {of}"))?;
    match check_name(word.text) {
        Ok(()) => Ok(word.text.into()),
        Err(_) => {
            let message = format!("`{}` is no name of {of}", word.text);
            Err(ParseError::new(word.range, message)
                .help("a name has letters, digits, `-`, `_` and `.`"))
        }
    }
}

/// Parses a field that the target accepts.
fn accepted_field(
    cursor: &mut Cursor,
    target: &str,
    takes: impl Fn(Field) -> bool,
) -> Result<Field, ParseError> {
    let (field, name) = field(cursor, false)?;
    if takes(field) {
        return Ok(field);
    }
    let names: Vec<String> =
        Field::all().filter(|field| takes(*field)).map(|field| field.to_string()).collect();
    let help = match names.len() {
        0..20 => format!("`{target}` takes {}", names.join(", ")),
        _ => "`help fields` says which fields it takes".into(),
    };
    Err(ParseError::new(name.range, format!("`{target}` does not take `{field}`")).help(help))
}

/// Parses a field that the target accepts, and a value of it.
fn field_and_value(
    cursor: &mut Cursor,
    target: &str,
    takes: impl Fn(Field) -> bool,
) -> Result<(Field, Value), ParseError> {
    let field = accepted_field(cursor, target, takes)?;
    Ok((field, value(cursor, field, Value::parse)?))
}

fn add_target(cursor: &mut Cursor) -> Result<Target, ParseError> {
    let is_kind = |field: Field| field.option_kind().is_some();
    let option = accepted_field(cursor, "add", is_kind)?;
    let has_value = match option.spec().kind {
        Kind::Presence => false,
        Kind::Number => true,
        _ => cursor.peek().is_some_and(|word| value::is_numeric(word.text)),
    };
    let value = if has_value { Some(value(cursor, option, Value::parse)?) } else { None };
    Ok(Target::Add { option, value })
}

fn strip_target(cursor: &mut Cursor) -> Result<Target, ParseError> {
    let is_option = |field: Field| field.spec().is_option();
    if cursor.eat("!") {
        let is_kind = |field: Field| field.option_kind().is_some();
        return accepted_field(cursor, "strip !", is_kind).map(Target::Keep);
    }
    if cursor.eat("all") {
        return Ok(Target::Strip(None));
    }
    let option = accepted_field(cursor, "strip", is_option)?;
    Ok(Target::Strip(option.option_kind().map(|_| option)))
}

fn chance(cursor: &mut Cursor) -> Result<Chance, ParseError> {
    let Some(word) = cursor.peek().cloned() else { return Ok(Chance::ALWAYS) };
    if is_target(word.text) {
        return Ok(Chance::ALWAYS);
    }
    cursor.next();
    Chance::parse(word.text).ok_or_else(|| {
        ParseError::new(word.range, format!("`{}` is no percentage", word.text))
            .help("`drop` wants nothing, or a number from 0 to 100, such as 0.1")
    })
}

fn rejection(cursor: &mut Cursor) -> Result<Rejection, ParseError> {
    let Some(word) = cursor.peek().filter(|word| !is_target(word.text)).cloned() else {
        return Ok(Rejection::default());
    };
    cursor.next();
    let named = Rejection::NAMED.iter().find(|(name, _)| *name == word.text);
    named.map(|(_, it)| *it).ok_or_else(|| {
        ParseError::new(word.range, format!("`{}` is no answer", word.text))
            .help("`reject` wants nothing, or one of port, admin, host, net")
    })
}

fn hops(cursor: &mut Cursor) -> Result<Vec<Hop>, ParseError> {
    let mut hops = Vec::new();
    while cursor.peek().is_some_and(|word| !is_target(word.text)) || hops.is_empty() {
        let word = cursor.expect("a next hop")?;
        let address = word.text.parse().map(Hop::Address).ok();
        let hop = address.or_else(|| word.text.parse().map(Hop::Station).ok());
        hops.push(hop.ok_or_else(|| {
            ParseError::new(word.range, format!("`{}` is no next hop", word.text))
                .help("a next hop is an IPv4 or IPv6 address or that of a station")
        })?);
    }
    Ok(hops)
}
