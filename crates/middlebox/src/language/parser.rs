//! Rules: matches, then targets.

use super::fault::Fault;
use super::lexer::{Word, words};
use crate::analysis::{Part, impossible};
use crate::field::{Field, Kind, Place, Spec};
use crate::rule::{Chance, Hop, Predicate, Rule, Target};
use crate::value::{self, CONDITIONS, Condition, Value, wants};
use castanet_lang::nearest;
use std::ops::Range;

/// The targets: the word, what follows it, and what it does.
pub const TARGETS: [(&str, &str, &str); 8] = [
    ("mod", "FIELD VALUE", "Sets a field."),
    ("add", "TCP-OPT [VALUE]", "Adds a TCP option where there is none of its kind."),
    ("strip", "[!] TCP-OPT | all", "Removes TCP options; with `!`, all but those named."),
    ("drop", "[PERCENT]", "Drops the packet; alone."),
    ("accept", "", "Lets the packet go on, whatever wants to drop it; alone."),
    ("map", "FIELD VALUE", "Sets a field one way, and restores it the other; stateful."),
    ("shuffle", "FIELD", "Gives each connection a value of its own; stateful."),
    ("lb", "NEXT-HOP…", "Spreads connections over next hops; alone."),
];

/// The words of a line while they are read.
pub(super) struct Reader<'a> {
    words: Vec<Word<'a>>,
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(line: &'a str) -> Reader<'a> {
        let words = words(line);
        let end = words.last().map_or(0, |word| word.range.end);
        Reader { words, at: 0, end }
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

    /// The next word; that `wanted` is missing, if there is none.
    pub(super) fn expect(&mut self, wanted: &str) -> Result<Word<'a>, Fault> {
        self.next().ok_or_else(|| self.missing(wanted))
    }

    fn missing(&self, wanted: &str) -> Fault {
        Fault::new(self.end..self.end, format!("{wanted} is missing"))
    }

    /// What is wrong with words that nobody asked for.
    pub(super) fn finish(&self) -> Result<(), Fault> {
        match self.peek() {
            None => Ok(()),
            Some(word) => {
                let rest = word.range.start..self.end;
                Err(Fault::new(rest, format!("`{}` is one word too many", word.text)))
            }
        }
    }

    /// All that is left, as one stretch.
    pub(super) fn rest(&mut self) -> Option<Range<usize>> {
        let first = self.next()?;
        self.at = self.words.len();
        Some(first.range.start..self.end)
    }
}

/// Reads a rule, without the command that adds it.
pub fn rule(line: &str, stateful: bool) -> Result<Rule, Fault> {
    let mut reader = Reader::new(line);
    read_rule(&mut reader, stateful).map(|read| read.rule)
}

/// A rule, and where its parts are.
pub(super) struct Read {
    pub(super) rule: Rule,
    matches: Vec<Range<usize>>,
    targets: Vec<Range<usize>>,
}

impl Read {
    /// Where a part of the rule is.
    pub(super) fn range(&self, part: Part) -> Range<usize> {
        let range = match part {
            Part::Match(at) => self.matches.get(at),
            Part::Target(at) => self.targets.get(at),
        };
        range.cloned().unwrap_or_default()
    }
}

/// Reads a rule that packets can match, all of whose targets do something.
pub(super) fn read_rule(reader: &mut Reader, stateful: bool) -> Result<Read, Fault> {
    let read = parse_rule(reader, stateful)?;
    match impossible(&read.rule) {
        None => Ok(read),
        Some(remark) => {
            Err(Fault::new(read.range(remark.part), remark.message).maybe_help(remark.help))
        }
    }
}

fn parse_rule(reader: &mut Reader, stateful: bool) -> Result<Read, Fault> {
    let mut matches: Vec<(Predicate, Range<usize>)> = Vec::new();
    while reader.peek().is_some_and(|word| !is_target(word.text)) {
        let start = reader.peek().map_or(0, |word| word.range.start);
        let predicate = predicate(reader, matches.is_empty())?;
        let end = reader.words[reader.at - 1].range.end;
        matches.push((predicate, start..end));
    }
    only_all(&matches)?;
    let mut targets: Vec<(Target, Range<usize>)> = Vec::new();
    while let Some(word) = reader.next() {
        let target = target(reader, &word, stateful)?;
        let end = reader.words[reader.at - 1].range.end;
        targets.push((target, word.range.start..end));
    }
    if matches.is_empty() {
        let at = targets.first().map_or(0..0, |(_, range)| range.clone());
        return Err(Fault::new(at, "the rule says of no packet that it is about it")
            .help("a rule begins with what a packet must be: `all` is about every one"));
    }
    if targets.is_empty() {
        let help = format!("after the matches comes one of {}", target_words());
        return Err(Fault::new(reader.end..reader.end, "a target is missing").help(help));
    }
    together(&targets)?;
    let (rule_matches, matches) = matches.into_iter().unzip();
    let (rule_targets, targets) = targets.into_iter().unzip();
    let rule = Rule { stateful, matches: rule_matches, targets: rule_targets };
    Ok(Read { rule, matches, targets })
}

/// Whether a word behind a field is a condition, or begins the next match or target. A value that
/// reads the same, an interface that is called `drop`, has to stand behind a condition.
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

fn only_all(matches: &[(Predicate, Range<usize>)]) -> Result<(), Fault> {
    let all = matches.iter().find(|(it, _)| it.field.spec().place == Place::Everywhere);
    match all {
        Some((_, range)) if matches.len() > 1 => {
            Err(Fault::new(range.clone(), "`all` stands alone").help("leave it out"))
        }
        _ => Ok(()),
    }
}

/// Whether targets go together.
fn together(targets: &[(Target, Range<usize>)]) -> Result<(), Fault> {
    let single = targets.iter().find(|(target, _)| target.stands_alone());
    if let Some((target, range)) = single.filter(|_| targets.len() > 1) {
        return Err(Fault::new(range.clone(), format!("`{}` stands alone", target.word()))
            .help("make a rule of its own for the other targets"));
    }
    let strips = targets.iter().any(|(target, _)| matches!(target, Target::Strip(_)));
    let keeps = targets.iter().find(|(target, _)| matches!(target, Target::Keep(_)));
    match keeps {
        Some((_, range)) if strips => {
            Err(Fault::new(range.clone(), "`strip` and `strip !` do not mix in one rule")
                .help("name what goes, or name what stays"))
        }
        _ => Ok(()),
    }
}

/// The field of the next word; where targets may stand too, it may be one of those, misspelt.
fn field(reader: &mut Reader, or_target: bool) -> Result<(Field, Word<'static>), Fault> {
    let word = reader.expect("a field")?;
    let unknown = || {
        let names = crate::field::FIELDS.iter().map(|spec| spec.name);
        let targets = TARGETS.iter().map(|(name, _, _)| *name).filter(|_| or_target);
        let near = nearest(word.text, names.chain(targets));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        let no = Fault::new(word.range.clone(), format!("there is no field `{}`", word.text));
        no.maybe_help(help.or_else(|| Some("`help fields` lists them".into())))
    };
    let field = Field::named(word.text).ok_or_else(unknown)?;
    let mut range = word.range.clone();
    let number = reader.peek().filter(|_| field.spec().place == Place::Option(None));
    let Some(kind) = number.and_then(|it| value::number(it.text, 8)) else {
        return Ok((field, Word { text: field.spec().name, range }));
    };
    if kind < 2 {
        let range = reader.peek().map_or(0..0, |it| it.range.clone());
        return Err(Fault::new(range, format!("kind {kind} is padding, no option"))
            .help("kinds are from 2 to 255"));
    }
    range.end = reader.next().map_or(range.end, |it| it.range.end);
    Ok((Field::option(kind as u8), Word { text: field.spec().name, range }))
}

fn predicate(reader: &mut Reader, first: bool) -> Result<Predicate, Fault> {
    let negated = reader.eat("!");
    let (field, name) = field(reader, !first)?;
    let spec = field.spec();
    if negated && spec.place == Place::Everywhere {
        return Err(Fault::new(name.range, "`! all` is about no packet").help("leave the `!` out"));
    }
    let test = test(reader, field, &name)?;
    if test.is_none() && spec.kind == Kind::Interface {
        return Err(Fault::new(name.range, format!("`{field}` wants {}", wants(field))));
    }
    Ok(Predicate { negated, field, test })
}

/// What follows a field: a condition and a value, a value, or nothing.
fn test(
    reader: &mut Reader,
    field: Field,
    name: &Word,
) -> Result<Option<(Condition, Value)>, Fault> {
    let Some(word) = reader.peek().cloned() else { return Ok(None) };
    let sign = CONDITIONS.iter().find(|(sign, _)| *sign == word.text);
    let condition = match sign {
        Some((_, condition)) => {
            reader.next();
            *condition
        }
        None if word.text == "=" => {
            return Err(Fault::new(word.range, "there is no condition `=`").help("write `==`"));
        }
        None if is_keyword(word.text) => return Ok(None),
        // A word that is neither value nor field: which is more likely?
        None if looks_like_field(field.spec(), word.text) => return Ok(None),
        None => Condition::Equal,
    };
    if !condition.is_equality() && !field.spec().has_order() {
        let what = format!("`{field}` has no order: `{condition}` makes no sense");
        return Err(Fault::new(word.range, what).help("it takes `==` and `!=`"));
    }
    if field.spec().place == Place::Option(None) && field.option_kind().is_none() {
        return Err(Fault::new(name.range.clone(), "options of any kind have no value")
            .help("say which kind: `tcp-opt KIND VALUE`"));
    }
    Ok(Some((condition, value(reader, field)?)))
}

/// Whether a word behind a field that could have a value is a field, misspelt.
fn looks_like_field(spec: &Spec, word: &str) -> bool {
    let is_word = word.contains('-') && !value::is_numeric(word);
    match spec.kind {
        Kind::Presence => true,
        Kind::Interface => false,
        _ => is_word && !word.contains([':', '/', '.']),
    }
}

fn value(reader: &mut Reader, field: Field) -> Result<Value, Fault> {
    let wanted = || format!("{}, the value of {field},", wants(field));
    let word = reader.next().ok_or_else(|| reader.missing(&wanted()))?;
    Value::parse(field, word.text).map_err(|wanted| {
        Fault::new(word.range, format!("`{}` is no value of {field}", word.text)).help(wanted)
    })
}

fn target(reader: &mut Reader, word: &Word, stateful: bool) -> Result<Target, Fault> {
    let needs_state = |what: &str| {
        Fault::new(word.range.clone(), format!("`{what}` is for stateful rules"))
            .help("add the rule with `add-stateful`")
    };
    match word.text {
        "mod" => setting(reader, "mod", Field::modifies)
            .map(|(field, value)| Target::Mod { field, value }),
        "map" if !stateful => Err(needs_state("map")),
        "map" => setting(reader, "map", |field| field.spec().maps)
            .map(|(field, value)| Target::Map { field, value }),
        "shuffle" if !stateful => Err(needs_state("shuffle")),
        "shuffle" => taken(reader, "shuffle", |field| field.spec().shuffles).map(Target::Shuffle),
        "add" => added(reader),
        "strip" => stripped(reader),
        "drop" => Ok(Target::Drop(chance(reader)?)),
        "accept" => Ok(Target::Accept),
        "lb" => hops(reader).map(Target::Balance),
        other => {
            let names = TARGETS.iter().map(|(name, _, _)| *name);
            let near = nearest(other, names).map(|near| format!("did you mean `{near}`?"));
            let late = Field::named(other).map(|_| "all matches come before the targets".into());
            let fallback = format!("a target is one of {}", target_words());
            Err(Fault::new(word.range.clone(), format!("`{other}` is no target"))
                .maybe_help(late.or(near).or(Some(fallback))))
        }
    }
}

/// A field that the target takes.
fn taken(reader: &mut Reader, target: &str, takes: impl Fn(Field) -> bool) -> Result<Field, Fault> {
    let (field, name) = field(reader, false)?;
    if takes(field) {
        return Ok(field);
    }
    let names: Vec<String> =
        Field::all().filter(|field| takes(*field)).map(|field| field.to_string()).collect();
    let help = match names.len() {
        0..20 => format!("`{target}` takes {}", names.join(", ")),
        _ => "`help fields` says which fields it takes".into(),
    };
    Err(Fault::new(name.range, format!("`{target}` does not take `{field}`")).help(help))
}

/// A field and its value.
fn setting(
    reader: &mut Reader,
    target: &str,
    takes: impl Fn(Field) -> bool,
) -> Result<(Field, Value), Fault> {
    let field = taken(reader, target, takes)?;
    Ok((field, value(reader, field)?))
}

fn added(reader: &mut Reader) -> Result<Target, Fault> {
    let is_kind = |field: Field| field.option_kind().is_some();
    let option = taken(reader, "add", is_kind)?;
    let has_value = match option.spec().kind {
        Kind::Presence => false,
        Kind::Number => true,
        _ => reader.peek().is_some_and(|word| value::is_numeric(word.text)),
    };
    let value = if has_value { Some(value(reader, option)?) } else { None };
    Ok(Target::Add { option, value })
}

fn stripped(reader: &mut Reader) -> Result<Target, Fault> {
    let is_option = |field: Field| field.spec().is_option();
    if reader.eat("!") {
        let is_kind = |field: Field| field.option_kind().is_some();
        return taken(reader, "strip !", is_kind).map(Target::Keep);
    }
    if reader.eat("all") {
        return Ok(Target::Strip(None));
    }
    let option = taken(reader, "strip", is_option)?;
    Ok(Target::Strip(option.option_kind().map(|_| option)))
}

fn chance(reader: &mut Reader) -> Result<Chance, Fault> {
    let Some(word) = reader.peek().cloned() else { return Ok(Chance::ALWAYS) };
    if is_target(word.text) {
        return Ok(Chance::ALWAYS);
    }
    reader.next();
    Chance::parse(word.text).ok_or_else(|| {
        Fault::new(word.range, format!("`{}` is no percentage", word.text))
            .help("`drop` wants nothing, or a number from 0 to 100, such as 0.1")
    })
}

fn hops(reader: &mut Reader) -> Result<Vec<Hop>, Fault> {
    let mut hops = Vec::new();
    while reader.peek().is_some_and(|word| !is_target(word.text)) || hops.is_empty() {
        let word = reader.expect("a next hop")?;
        let address = word.text.parse().map(Hop::Address).ok();
        let hop = address.or_else(|| word.text.parse().map(Hop::Station).ok());
        hops.push(hop.ok_or_else(|| {
            Fault::new(word.range, format!("`{}` is no next hop", word.text))
                .help("a next hop is an IPv4 or IPv6 address or that of a station")
        })?);
    }
    Ok(hops)
}
