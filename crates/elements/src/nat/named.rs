//! What rewriters name in their arguments: patterns, mappers, and each other.

use castanet_engine::args::AddressKind;
use castanet_engine::prelude::*;
use castanet_kit::classify;
use castanet_kit::nat::{
    HashRing, Mapper, NamedElement, Pattern, PatternOutputs, RoundRobinCursor, Table,
    parse_pattern_outputs,
};

/// What can be named where an element is built.
pub(crate) struct Around<'a>(pub(crate) &'a Setup<'a>);

impl castanet_kit::nat::NameResolver for Around<'_> {
    fn names(&self) -> &dyn classify::Names {
        self.0.names
    }

    fn pattern(&self, name: &str) -> Option<Pattern> {
        // All who name it take turns.
        let turn =
            self.0.shared::<RoundRobinCursor>(&format!("pattern {name}")).with(|turn| turn.clone());
        Some(declared(name, self.0.names)?.with_cursor(turn))
    }

    fn mapper(&self, name: &str) -> Option<NamedElement> {
        let it = self.0.element(name, None)?;
        let mapper = match it.class {
            "RoundRobinIPMapper" => round_robin(&it.arguments, self),
            "SourceIPHashMapper" => source_hash(&it.arguments, self),
            _ => return Some(NamedElement::Other),
        };
        // What is wrong with it, it says itself; but not what names mean.
        let mapper = mapper.unwrap_or(Mapper::RoundRobin(Vec::new(), RoundRobinCursor::default()));
        let turn = |what: &str| {
            let word = format!("{} {what}", it.name);
            self.0.shared::<RoundRobinCursor>(&word).with(|turn| turn.clone())
        };
        let mapper = match mapper {
            Mapper::RoundRobin(ways, _) => Mapper::RoundRobin(ways, turn("turn")),
            by_source => by_source,
        };
        Some(NamedElement::Mapper(mapper, format!("{} :: {}", it.name, it.class)))
    }
}

/// What can be named in a handler's text, where no element is.
pub(crate) struct Later<'a>(pub(crate) &'a Names);

impl castanet_kit::nat::NameResolver for Later<'_> {
    fn names(&self) -> &dyn classify::Names {
        self.0
    }

    fn pattern(&self, name: &str) -> Option<Pattern> {
        declared(name, self.0)
    }

    fn mapper(&self, _: &str) -> Option<NamedElement> {
        None
    }
}

/// The pattern that an `IPRewriterPatterns` gave this name.
fn declared(name: &str, names: &Names) -> Option<Pattern> {
    let text = names.resolve(name, AddressKind::Pattern)?;
    Pattern::parse(&text.split_whitespace().collect::<Vec<_>>(), names).ok()
}

/// Any name at all, for those who want to know whether all else is right before names are known.
pub(crate) struct Anything;

impl classify::Names for Anything {
    fn address(&self, name: &str) -> Option<u32> {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        is_name.then_some(Ipv4Addr::LOCALHOST.to_bits())
    }
}

impl castanet_kit::nat::NameResolver for Anything {
    fn names(&self) -> &dyn classify::Names {
        self
    }

    fn pattern(&self, _: &str) -> Option<Pattern> {
        Pattern::parse(&["-", "-"], self).ok()
    }

    fn mapper(&self, _: &str) -> Option<NamedElement> {
        None
    }
}

fn ways(
    arguments: &[String],
    named: &dyn castanet_kit::nat::NameResolver,
) -> Result<Vec<PatternOutputs>, ArgError> {
    let one = |text: &String| {
        let words: Vec<&str> = text.split_whitespace().collect();
        parse_pattern_outputs(&words, named).map_err(ArgError::new)
    };
    arguments.iter().map(one).collect()
}

/// The mapper of a `RoundRobinIPMapper` with these arguments.
pub(crate) fn round_robin(
    arguments: &[String],
    named: &dyn castanet_kit::nat::NameResolver,
) -> Result<Mapper, ArgError> {
    if arguments.is_empty() {
        return Err(ArgError::new("no patterns given"));
    }
    Ok(Mapper::RoundRobin(ways(arguments, named)?, RoundRobinCursor::default()))
}

/// The mapper of a `SourceIPHashMapper` with these arguments.
pub(crate) fn source_hash(
    arguments: &[String],
    named: &dyn castanet_kit::nat::NameResolver,
) -> Result<Mapper, ArgError> {
    let [ring, servers @ ..] = arguments else { return Err(ArgError::new("no hash seed given")) };
    if servers.is_empty() {
        return Err(ArgError::new("no patterns given"));
    }
    let words: Vec<&str> = ring.split_whitespace().collect();
    let [nodes, seed] = words[..] else {
        return Err(ArgError::new("requires 2 config params: numnodes seed"));
    };
    let none = Names::default();
    let nodes = usize::from_arg(nodes, &none).ok();
    let nodes = nodes.filter(|nodes| (1..=MOST_NODES).contains(nodes));
    let nodes = nodes.ok_or_else(|| {
        ArgError::new(format!("number of nodes must be an integer from 1 to {MOST_NODES}"))
            .click("number of nodes must be an integer")
    })?;
    let seed = i32::from_arg(seed, &none);
    let seed = seed.map_err(|_| ArgError::new("hash seed must be an integer"))?;
    let (mut numbers, mut patterns) = (Vec::new(), Vec::new());
    for server in servers {
        let (pattern, number) = server.trim().rsplit_once(char::is_whitespace).unwrap_or_default();
        let number = number.parse::<u16>().ok();
        numbers.push(u32::from(number.ok_or_else(|| {
            ArgError::new("bad server ID in pattern spec")
                .help("a number from 0 to 65535, at the end")
        })?));
        patterns.push(pattern.to_owned());
    }
    let ring = HashRing::new(&numbers, nodes, seed as u32);
    Ok(Mapper::SourceHash(ways(&patterns, named)?, ring))
}

/// More places of a server make nothing more even.
const MOST_NODES: usize = 65_536;

/// The classes whose elements have mappings.
const REWRITERS: [&str; 6] = [
    "IPRewriter",
    "TCPRewriter",
    "UDPRewriter",
    "IPAddrRewriter",
    "IPAddrPairRewriter",
    "ICMPPingRewriter",
];

/// Another rewriter, as those see it who name it.
#[derive(Debug)]
pub(crate) struct Rewriter {
    /// Where its mappings are.
    pub(crate) table: Common<Table>,
    /// Its name there.
    pub(crate) member: String,
    /// Its class.
    pub(crate) class: &'static str,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

/// The name by which a rewriter is a member of its table: one of another class is another.
pub(crate) fn member(name: &str, class: &str) -> String {
    format!("{name} {class}")
}

/// The rewriter of that name, if it is one.
pub(crate) fn rewriter(setup: &Setup, name: &str) -> Option<Rewriter> {
    let it = setup.element(name, None).filter(|it| REWRITERS.contains(&it.class))?;
    let (_, head) = head(setup, it.name, &it.arguments)?;
    Some(Rewriter {
        table: setup.common(&head),
        member: member(it.name, it.class),
        class: it.class,
        inputs: it.inputs,
        outputs: it.outputs,
    })
}

/// Whose mappings count with a rewriter's: the name of who has the capacity, and that; `None` if
/// it is neither a number nor a rewriter.
pub(crate) fn head(
    setup: &Setup,
    name: &str,
    arguments: &[String],
) -> Option<(Option<u32>, String)> {
    // Who names whom who names him never comes to an end.
    const LONGEST: usize = 100;
    let (mut name, mut arguments) = (name.to_owned(), arguments.to_vec());
    for _ in 0..LONGEST {
        let capacity = arguments.iter().find_map(|argument| {
            let (word, value) = argument.trim().split_once(char::is_whitespace)?;
            matches!(word, "CAPACITY" | "MAPPING_CAPACITY").then(|| value.trim().to_owned())
        });
        let Some(capacity) = capacity else { return Some((None, name)) };
        if let Some(number) = number(&capacity) {
            return Some((Some(number), name));
        }
        let other = setup.element(&capacity, Some(&name));
        let other = other.filter(|it| REWRITERS.contains(&it.class))?;
        (name, arguments) = (other.name.to_owned(), other.arguments);
    }
    None
}

/// A capacity.
pub(crate) fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&number| number <= castanet_kit::nat::MAX_CAPACITY)
}
