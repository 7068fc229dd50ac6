//! Commands: lines that change or query the rule set.

use super::lexer::Word;
use super::parse_error::ParseError;
use super::parser::{Cursor, ParsedRule, parse_checked_rule};
use crate::analysis::RulePart;
use crate::named_sets::{SetChange, SetElement};
use crate::rule::Rule;
use crate::rule_set::NonIpPolicy;
use crate::value;
use crate::value_set::check_name;
use castanet_kit::conntrack::Tuple;
use castanet_lang::nearest;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Adds a rule behind the others.
    Add(Rule),
    /// Puts a rule in another's place.
    Replace(RuleSelector, Rule),
    /// Removes a rule.
    Delete(RuleSelector),
    /// Moves a rule to a position.
    Move(RuleSelector, usize),
    /// Removes all rules and forgets all connections.
    Flush,
    /// Shows the rules and what they have counted.
    List(ListFormat),
    /// Shows the tables that rules are found by.
    ShowTables {
        /// With all keys.
        verbose: bool,
    },
    /// Shows connections.
    ShowConnections {
        /// With all that is kept of them.
        verbose: bool,
    },
    /// Shows connections with all that is kept of them, as JSON.
    ListConnections,
    /// Removes a connection.
    DeleteConnection(Tuple),
    /// Shows the named sets.
    ShowSets {
        /// With their values.
        verbose: bool,
    },
    /// Shows the timeouts.
    ShowTimeouts,
    /// Changes the set of a name.
    ChangeSet(String, SetChange),
    /// Puts the values of a file in place of those of a set: its name and the file.
    LoadSet(String, String),
    /// Attaches the rules to interfaces.
    Enable(Vec<String>),
    /// Detaches the rules from interfaces.
    Disable(Vec<String>),
    /// Writes the rules to a file.
    Save(String),
    /// Puts the rules of a file in place of all, or does nothing.
    Load(String),
    /// Begins counting anew.
    ResetCounters,
    /// Sets a timeout of idle connections.
    SetTimeout(Timeout, u32),
    /// Sets the policy for packets that are neither IPv4 nor IPv6.
    SetNonIpPolicy(NonIpPolicy),
    /// Tests a packet.
    Test(TestPacket),
}

/// Format of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ListFormat {
    /// A table.
    #[default]
    Text,
    /// JSON.
    Json,
}

/// The packet of a `test` command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestPacket {
    /// The interface that it comes in by; the first, if none is named.
    pub input: Option<String>,
    /// The interface that it would leave by, where there is more than one way.
    pub output: Option<String>,
    /// The packet, as the tracer writes it.
    pub packet: String,
}

impl TestPacket {
    /// Reads what stands behind `test`: `[in IF] [out IF] PACKET`, the packet in quotes or not.
    pub fn parse(text: &str) -> Option<TestPacket> {
        let text = text.trim();
        let word = |text: &'_ str| {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            (text[..end].to_owned(), text[end..].trim_start().to_owned())
        };
        let named = |side: &str, text: &str| match word(text) {
            (first, rest) if first == side => {
                let (name, packet) = word(&rest);
                (Some(name), packet)
            }
            _ => (None, text.to_owned()),
        };
        let (input, rest) = named("in", text);
        let (output, packet) = named("out", &rest);
        let inner = packet.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let packet = inner.map_or(packet.clone(), str::to_owned);
        (!packet.trim().is_empty()).then_some(TestPacket { input, output, packet })
    }
}

/// Selects a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleSelector {
    /// The one at a position, from 1.
    Position(usize),
    /// The one with an identifier, which stays with it.
    Id(u64),
}

/// Connections that a timeout applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timeout {
    /// UDP and every protocol but TCP.
    Udp,
    /// Established TCP.
    TcpEstablished,
    /// TCP that is not yet, or no longer, established.
    TcpTransient,
}

/// The timeouts by name.
pub(crate) const TIMEOUTS: [(&str, Timeout); 3] = [
    ("udp", Timeout::Udp),
    ("tcp-established", Timeout::TcpEstablished),
    ("tcp-transient", Timeout::TcpTransient),
];

/// Every command: how it is written, and what it does.
pub const COMMANDS: &[(&str, &str)] = &[
    ("add MATCH… TARGET…", "Adds a rule; so does `add-stateless`, or nothing before the rule."),
    ("add-stateful MATCH… TARGET…", "Adds a rule for whole connections, both directions."),
    ("replace N|idN [stateful] MATCH… TARGET…", "Puts a rule in another's place."),
    ("delete N|idN", "Removes the rule at that position, or with that identifier."),
    ("move N|idN M", "Moves a rule to position M."),
    ("flush", "Removes all rules, and forgets all connections."),
    ("list [--json]", "Shows the rules and what they have counted."),
    ("show tables [verbose]", "Shows how rules are found."),
    ("show connections [verbose|--json]", "Shows connections."),
    (
        "delete connection PROTO ADDRESS[:PORT] > ADDRESS[:PORT]",
        "Removes a connection, by its ends as `show connections` has them.",
    ),
    ("show sets [verbose]", "Shows the named sets, and their values."),
    ("show timeouts", "Shows how long idle connections stay."),
    (
        "set add|remove|replace NAME VALUE…",
        "Changes a named set, which matches name as `@NAME`; `add` makes it if there is none.",
    ),
    ("set load NAME FILE", "Puts the values of a file in place of those of a set."),
    ("set delete NAME", "Deletes a set that no rule uses."),
    ("enable IF…", "Attaches the rules to interfaces."),
    ("disable IF…", "Detaches the rules from interfaces."),
    ("save FILE", "Writes the rules to a file."),
    ("load FILE", "Puts the rules of a file in place of all, or does nothing."),
    ("reset counters", "Begins counting anew."),
    ("timeout udp|tcp-established|tcp-transient SECONDS", "Says how long idle connections stay."),
    (
        "other accept|arp|drop",
        "Says what becomes of packets that are neither IPv4 nor IPv6; `arp`: only ARP goes on.",
    ),
    (
        "test [in IF] [out IF] PACKET",
        "Says what would become of a packet, by which rules and connection, and changes nothing.",
    ),
];

/// Parses a line; `None` for an empty line or a comment.
pub fn command(line: &str) -> Result<Option<Command>, ParseError> {
    let mut cursor = Cursor::new(line);
    let Some(first) = cursor.peek().cloned() else { return Ok(None) };
    if let Some((selector, read)) = parse_rule_line(&mut cursor, &first)? {
        return Ok(Some(match selector {
            None => Command::Add(read.rule),
            Some(selector) => Command::Replace(selector, read.rule),
        }));
    }
    let command = match first.text {
        "delete" if cursor.eat("connection") => Command::DeleteConnection(tuple(&mut cursor)?),
        "delete" => Command::Delete(selector(&mut cursor)?),
        "move" => {
            let from = selector(&mut cursor)?;
            Command::Move(from, position(&cursor.expect("a position")?)?)
        }
        "flush" => Command::Flush,
        "list" => {
            Command::List(if cursor.eat("--json") { ListFormat::Json } else { ListFormat::Text })
        }
        "show" => parse_show(&mut cursor)?,
        "enable" => Command::Enable(interfaces(&mut cursor)?),
        "disable" => Command::Disable(interfaces(&mut cursor)?),
        "save" => Command::Save(file_name(&mut cursor, line)?),
        "load" => Command::Load(file_name(&mut cursor, line)?),
        "reset" => {
            one_of(&mut cursor, &["counters"])?;
            Command::ResetCounters
        }
        "timeout" => timeout(&mut cursor)?,
        "set" => set(&mut cursor, line)?,
        "other" => {
            let word = one_of(&mut cursor, &NonIpPolicy::ALL.map(|(name, _)| name))?;
            let other = NonIpPolicy::ALL.iter().find(|(name, _)| *name == word);
            Command::SetNonIpPolicy(other.map_or(NonIpPolicy::default(), |it| it.1))
        }
        "test" => {
            let rest = line.trim_start().strip_prefix("test").unwrap_or_default();
            return match TestPacket::parse(rest) {
                Some(test) => Ok(Some(Command::Test(test))),
                None => Err(ParseError::new(line.len()..line.len(), "a packet is missing")
                    .help("such as `test in eth0 1.0.0.1:1000 > 2.0.0.2:80 tcp syn`")),
            };
        }
        _ => return Err(unknown(&first)),
    };
    cursor.finish()?;
    Ok(Some(command))
}

/// Returns the range of a part of the rule in a line.
pub fn place(line: &str, part: RulePart) -> Range<usize> {
    let mut cursor = Cursor::new(line);
    let first = cursor.peek().cloned();
    let read = first.and_then(|first| parse_rule_line(&mut cursor, &first).ok().flatten());
    read.map_or(0..line.len(), |(_, read)| read.range(part))
}

/// Parses the rule of a line with this first word, and the selector of the rule that it replaces;
/// `None` for other commands.
fn parse_rule_line(
    cursor: &mut Cursor,
    first: &Word,
) -> Result<Option<(Option<RuleSelector>, ParsedRule)>, ParseError> {
    let is_field = crate::field::Field::named(first.text).is_some();
    if is_field || first.text == "!" {
        return Ok(Some((None, parse_checked_rule(cursor, false)?)));
    }
    cursor.next();
    Ok(match first.text {
        "add" | "add-stateless" => Some((None, parse_checked_rule(cursor, false)?)),
        "add-stateful" => Some((None, parse_checked_rule(cursor, true)?)),
        "replace" => {
            let selector = selector(cursor)?;
            let stateful = cursor.eat("stateful");
            Some((Some(selector), parse_checked_rule(cursor, stateful)?))
        }
        _ => None,
    })
}

fn unknown(word: &Word) -> ParseError {
    let names = COMMANDS.iter().filter_map(|(form, _)| form.split(' ').next());
    let fields = crate::field::FIELDS.iter().map(|spec| spec.name);
    let near = nearest(word.text, names.chain(fields));
    let near = near.map(|near| format!("did you mean `{near}`?"));
    let what = format!("`{}` is neither a command nor a field", word.text);
    ParseError::new(word.range.clone(), what)
        .maybe_help(near.or_else(|| Some("`help` lists the commands".into())))
}

fn selector(cursor: &mut Cursor) -> Result<RuleSelector, ParseError> {
    let word = cursor.expect("the number of a rule")?;
    let id = word.text.strip_prefix("id").and_then(|id| value::number(id, 64));
    match id {
        Some(id) => Ok(RuleSelector::Id(id)),
        None => position(&word).map(RuleSelector::Position),
    }
}

fn position(word: &Word) -> Result<usize, ParseError> {
    let number = value::number(word.text, 32).filter(|&n| n > 0);
    number.map(|n| n as usize).ok_or_else(|| {
        ParseError::new(word.range.clone(), format!("`{}` is no rule", word.text))
            .help("a rule is its position, from 1, or its identifier, such as id7")
    })
}

/// The next word, which must be one of these.
fn one_of<'a>(cursor: &mut Cursor, words: &[&'a str]) -> Result<&'a str, ParseError> {
    let wanted = words.join(" or ");
    let word = cursor.expect(&wanted)?;
    words.iter().find(|it| **it == word.text).copied().ok_or_else(|| {
        ParseError::new(word.range, format!("expected {wanted}, not `{}`", word.text))
    })
}

fn parse_show(cursor: &mut Cursor) -> Result<Command, ParseError> {
    let what = one_of(cursor, &["tables", "connections", "sets", "timeouts"])?;
    let verbose = what != "timeouts" && cursor.eat("verbose");
    Ok(match what {
        "connections" if !verbose && cursor.eat("--json") => Command::ListConnections,
        "tables" => Command::ShowTables { verbose },
        "sets" => Command::ShowSets { verbose },
        "timeouts" => Command::ShowTimeouts,
        _ => Command::ShowConnections { verbose },
    })
}

/// Parses the protocol and the ends of a connection.
fn tuple(cursor: &mut Cursor) -> Result<Tuple, ParseError> {
    let word = cursor.expect("a protocol")?;
    let word = if word.text == "proto" { cursor.expect("a number")? } else { word };
    let number = || value::number(word.text, 8).map(|it| it as u8);
    let proto = value::protocol(word.text).or_else(number);
    let proto = proto.ok_or_else(|| {
        ParseError::new(word.range, format!("`{}` is no protocol", word.text))
            .help("such as `delete connection tcp 10.0.0.1:1000 > 2.0.0.2:80`")
    })?;
    let src = end(cursor)?;
    one_of(cursor, &[">"])?;
    let dst = end(cursor)?;
    if src.0.is_ipv4() != dst.0.is_ipv4() {
        let words = cursor.words_so_far();
        return Err(ParseError::new(words, "the two ends are of two address families"));
    }
    Ok(Tuple { src, dst, proto })
}

/// Parses an address with or without a port.
fn end(cursor: &mut Cursor) -> Result<(IpAddr, u16), ParseError> {
    let word = cursor.expect("an address")?;
    let with_port = word.text.parse::<SocketAddr>().map(|it| (it.ip(), it.port()));
    with_port.or_else(|_| word.text.parse().map(|address| (address, 0))).map_err(|_| {
        ParseError::new(word.range, format!("`{}` is no address", word.text))
            .help("an end is an address and a port, such as 10.0.0.1:80 or [2001:db8::1]:80")
    })
}

/// Parses a change of a named set.
fn set(cursor: &mut Cursor, line: &str) -> Result<Command, ParseError> {
    let what = one_of(cursor, &["add", "remove", "replace", "load", "delete"])?;
    let word = cursor.expect("the name of a set")?;
    let name = word.text.strip_prefix('@').unwrap_or(word.text).to_owned();
    check_name(&name).map_err(|wanted| {
        ParseError::new(word.range, format!("`{}` is no name of a set", word.text)).help(wanted)
    })?;
    Ok(match what {
        "load" => Command::LoadSet(name, file_name(cursor, line)?),
        "delete" => Command::ChangeSet(name, SetChange::Delete),
        "remove" => Command::ChangeSet(name, SetChange::Remove(elements(cursor)?)),
        "replace" => Command::ChangeSet(name, SetChange::Replace(elements(cursor)?)),
        _ => Command::ChangeSet(name, SetChange::Add(elements(cursor)?)),
    })
}

/// Parses all remaining words as values of a set, with blanks or commas between them.
fn elements(cursor: &mut Cursor) -> Result<Vec<SetElement>, ParseError> {
    let mut elements = Vec::new();
    while let Some(word) = cursor.next() {
        for part in word.text.split(',').filter(|part| !part.is_empty()) {
            elements.push(SetElement::parse(part).map_err(|wanted| {
                ParseError::new(word.range.clone(), format!("`{part}` is no value of a set"))
                    .help(wanted)
            })?);
        }
    }
    Ok(elements)
}

fn interfaces(cursor: &mut Cursor) -> Result<Vec<String>, ParseError> {
    let mut names = vec![cursor.expect("an interface")?.text.to_owned()];
    while let Some(word) = cursor.next() {
        names.push(word.text.to_owned());
    }
    Ok(names)
}

fn file_name(cursor: &mut Cursor, line: &str) -> Result<String, ParseError> {
    let missing = cursor.peek().is_none();
    match cursor.rest() {
        Some(range) if !missing => Ok(line[range].to_owned()),
        _ => Err(cursor.expect("a file").err().unwrap_or_else(|| ParseError::new(0..0, "no file"))),
    }
}

fn timeout(cursor: &mut Cursor) -> Result<Command, ParseError> {
    let kind = one_of(cursor, &TIMEOUTS.map(|(name, _)| name))?;
    let kind = TIMEOUTS.iter().find(|(name, _)| *name == kind).map_or(Timeout::Udp, |it| it.1);
    let word = cursor.expect("a number of seconds")?;
    let seconds = value::number(word.text, 32).filter(|&n| n > 0);
    match seconds {
        Some(seconds) => Ok(Command::SetTimeout(kind, seconds as u32)),
        None => Err(ParseError::new(word.range, format!("`{}` is no time", word.text))
            .help("a timeout is a number of seconds, at least 1")),
    }
}
