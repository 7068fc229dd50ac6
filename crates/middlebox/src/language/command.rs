//! Commands: a line that changes the rules, or asks about them.

use super::fault::Fault;
use super::lexer::Word;
use super::parser::{Read, Reader, read_rule};
use crate::analysis::Part;
use crate::rule::Rule;
use crate::rules::Other;
use crate::value;
use castanet_lang::nearest;
use std::ops::Range;

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Adds a rule behind the others.
    Add(Rule),
    /// Puts a rule in another's place.
    Replace(Which, Rule),
    /// Removes a rule.
    Delete(Which),
    /// Moves a rule to a position.
    Move(Which, usize),
    /// Removes all rules and forgets all connections.
    Flush,
    /// Shows the rules and what they have counted.
    List(Form),
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
    /// Says how long connections are kept that are idle.
    SetTimeout(Timeout, u32),
    /// Says what becomes of packets that are neither IPv4 nor IPv6.
    SetOther(Other),
    /// Says what would become of a packet, and why.
    Test(Sketch),
}

/// In which form a list is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// A table.
    #[default]
    Text,
    /// JSON.
    Json,
}

/// A packet that is tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sketch {
    /// The interface that it comes in by; the first, if none is named.
    pub input: Option<String>,
    /// The packet, as the tracer writes it.
    pub packet: String,
}

impl Sketch {
    /// Reads what stands behind `test`: `[in IF] PACKET`, the packet in quotes or not.
    pub fn parse(text: &str) -> Option<Sketch> {
        let text = text.trim();
        let word = |text: &'_ str| {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            (text[..end].to_owned(), text[end..].trim_start().to_owned())
        };
        let (input, packet) = match word(text) {
            (first, rest) if first == "in" => {
                let (name, packet) = word(&rest);
                (Some(name), packet)
            }
            _ => (None, text.to_owned()),
        };
        let inner = packet.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let packet = inner.map_or(packet.clone(), str::to_owned);
        (!packet.trim().is_empty()).then_some(Sketch { input, packet })
    }
}

/// Which rule is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// The one at a position, from 1.
    Position(usize),
    /// The one with an identifier, which stays with it.
    Id(u64),
}

/// What connections a timeout is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timeout {
    /// UDP and all that is not TCP.
    Udp,
    /// TCP, both sides having agreed.
    TcpEstablished,
    /// TCP, beginning or ending.
    TcpTransient,
}

/// The timeouts by name.
const TIMEOUTS: [(&str, Timeout); 3] = [
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
    ("show connections [verbose]", "Shows connections."),
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
        "test [in IF] PACKET",
        "Says what would become of a packet, by which rules and connection, and changes nothing.",
    ),
];

/// Reads a line; nothing, if there is only a comment.
pub fn command(line: &str) -> Result<Option<Command>, Fault> {
    let mut reader = Reader::new(line);
    let Some(first) = reader.peek().cloned() else { return Ok(None) };
    if let Some((which, read)) = ruled(&mut reader, &first)? {
        return Ok(Some(match which {
            None => Command::Add(read.rule),
            Some(which) => Command::Replace(which, read.rule),
        }));
    }
    let command = match first.text {
        "delete" => Command::Delete(which(&mut reader)?),
        "move" => {
            let from = which(&mut reader)?;
            Command::Move(from, position(&reader.expect("a position")?)?)
        }
        "flush" => Command::Flush,
        "list" => Command::List(if reader.eat("--json") { Form::Json } else { Form::Text }),
        "show" => shown(&mut reader)?,
        "enable" => Command::Enable(interfaces(&mut reader)?),
        "disable" => Command::Disable(interfaces(&mut reader)?),
        "save" => Command::Save(file(&mut reader, line)?),
        "load" => Command::Load(file(&mut reader, line)?),
        "reset" => {
            one_of(&mut reader, &["counters"])?;
            Command::ResetCounters
        }
        "timeout" => timeout(&mut reader)?,
        "other" => {
            let word = one_of(&mut reader, &Other::ALL.map(|(name, _)| name))?;
            let other = Other::ALL.iter().find(|(name, _)| *name == word);
            Command::SetOther(other.map_or(Other::default(), |it| it.1))
        }
        "test" => {
            let rest = line.trim_start().strip_prefix("test").unwrap_or_default();
            return match Sketch::parse(rest) {
                Some(sketch) => Ok(Some(Command::Test(sketch))),
                None => Err(Fault::new(line.len()..line.len(), "a packet is missing")
                    .help("such as `test in eth0 1.0.0.1:1000 > 2.0.0.2:80 tcp syn`")),
            };
        }
        _ => return Err(unknown(&first)),
    };
    reader.finish()?;
    Ok(Some(command))
}

/// Where a part of the rule is that a line adds or puts in another's place.
pub fn place(line: &str, part: Part) -> Range<usize> {
    let mut reader = Reader::new(line);
    let first = reader.peek().cloned();
    let read = first.and_then(|first| ruled(&mut reader, &first).ok().flatten());
    read.map_or(0..line.len(), |(_, read)| read.range(part))
}

/// The rule of a line whose first word is this, and the one in whose place it comes; nothing, if
/// there is none.
fn ruled(reader: &mut Reader, first: &Word) -> Result<Option<(Option<Which>, Read)>, Fault> {
    let is_field = crate::field::Field::named(first.text).is_some();
    if is_field || first.text == "!" {
        return Ok(Some((None, read_rule(reader, false)?)));
    }
    reader.next();
    Ok(match first.text {
        "add" | "add-stateless" => Some((None, read_rule(reader, false)?)),
        "add-stateful" => Some((None, read_rule(reader, true)?)),
        "replace" => {
            let which = which(reader)?;
            let stateful = reader.eat("stateful");
            Some((Some(which), read_rule(reader, stateful)?))
        }
        _ => None,
    })
}

fn unknown(word: &Word) -> Fault {
    let names = COMMANDS.iter().filter_map(|(form, _)| form.split(' ').next());
    let fields = crate::field::FIELDS.iter().map(|spec| spec.name);
    let near = nearest(word.text, names.chain(fields));
    let near = near.map(|near| format!("did you mean `{near}`?"));
    let what = format!("`{}` is neither a command nor a field", word.text);
    Fault::new(word.range.clone(), what)
        .maybe_help(near.or_else(|| Some("`help` lists the commands".into())))
}

fn which(reader: &mut Reader) -> Result<Which, Fault> {
    let word = reader.expect("the number of a rule")?;
    let id = word.text.strip_prefix("id").and_then(|id| value::number(id, 64));
    match id {
        Some(id) => Ok(Which::Id(id)),
        None => position(&word).map(Which::Position),
    }
}

fn position(word: &Word) -> Result<usize, Fault> {
    let number = value::number(word.text, 32).filter(|&n| n > 0);
    number.map(|n| n as usize).ok_or_else(|| {
        Fault::new(word.range.clone(), format!("`{}` is no rule", word.text))
            .help("a rule is its position, from 1, or its identifier, such as id7")
    })
}

/// The next word, which must be one of these.
fn one_of<'a>(reader: &mut Reader, words: &[&'a str]) -> Result<&'a str, Fault> {
    let wanted = words.join(" or ");
    let word = reader.expect(&wanted)?;
    words
        .iter()
        .find(|it| **it == word.text)
        .copied()
        .ok_or_else(|| Fault::new(word.range, format!("expected {wanted}, not `{}`", word.text)))
}

fn shown(reader: &mut Reader) -> Result<Command, Fault> {
    let what = one_of(reader, &["tables", "connections"])?;
    let verbose = reader.eat("verbose");
    Ok(match what {
        "tables" => Command::ShowTables { verbose },
        _ => Command::ShowConnections { verbose },
    })
}

fn interfaces(reader: &mut Reader) -> Result<Vec<String>, Fault> {
    let mut names = vec![reader.expect("an interface")?.text.to_owned()];
    while let Some(word) = reader.next() {
        names.push(word.text.to_owned());
    }
    Ok(names)
}

fn file(reader: &mut Reader, line: &str) -> Result<String, Fault> {
    let missing = reader.peek().is_none();
    match reader.rest() {
        Some(range) if !missing => Ok(line[range].to_owned()),
        _ => Err(reader.expect("a file").err().unwrap_or_else(|| Fault::new(0..0, "no file"))),
    }
}

fn timeout(reader: &mut Reader) -> Result<Command, Fault> {
    let kind = one_of(reader, &TIMEOUTS.map(|(name, _)| name))?;
    let kind = TIMEOUTS.iter().find(|(name, _)| *name == kind).map_or(Timeout::Udp, |it| it.1);
    let word = reader.expect("a number of seconds")?;
    let seconds = value::number(word.text, 32).filter(|&n| n > 0);
    match seconds {
        Some(seconds) => Ok(Command::SetTimeout(kind, seconds as u32)),
        None => Err(Fault::new(word.range, format!("`{}` is no time", word.text))
            .help("a timeout is a number of seconds, at least 1")),
    }
}
