//! Name resolution in rewriters' arguments: patterns, mappers, and other rewriters.

use super::worker_tables::WorkerTables;
use castanet_element::args::AddressKind;
use castanet_element::prelude::*;
use castanet_kit::classify;
use castanet_kit::nat::{
    HashRing, Mapper, NamedElement, Pattern, PatternOutputs, RoundRobinCursor,
    parse_pattern_outputs,
};

/// Resolves names while an element is built: all elements of the configuration are known.
pub(crate) struct SetupResolver<'a>(pub(crate) &'a Setup<'a>);

impl castanet_kit::nat::NameResolver for SetupResolver<'_> {
    fn names(&self) -> &dyn classify::Names {
        self.0.names
    }

    fn pattern(&self, name: &str) -> Option<Pattern> {
        // All rewriters that name the pattern share its position in the range.
        let cursor = self.0.shared_in_scope::<RoundRobinCursor>(&format!("pattern {name}"));
        let cursor = cursor.with(|cursor| cursor.clone());
        Some(declared_pattern(name, self.0.names)?.with_cursor(cursor))
    }

    fn mapper(&self, name: &str) -> Option<NamedElement> {
        let it = self.0.element(name, None)?;
        let mapper = match it.class {
            "RoundRobinIPMapper" => round_robin(&it.arguments, self),
            "SourceIPHashMapper" => source_hash(&it.arguments, self),
            "ThreadIPMapper" => by_worker(&it.arguments, self),
            _ => return Some(NamedElement::Other),
        };
        // The mapper reports its own syntax errors; names in it are resolved only here.
        let mapper = mapper.unwrap_or(Mapper::RoundRobin(Vec::new(), RoundRobinCursor::default()));
        let cursor = || {
            let key = format!("{} turn", it.name);
            self.0.shared::<RoundRobinCursor>(&key).with(|cursor| cursor.clone())
        };
        let mapper = match mapper {
            Mapper::RoundRobin(patterns, _) => Mapper::RoundRobin(patterns, cursor()),
            other => other,
        };
        Some(NamedElement::Mapper(mapper, format!("{} :: {}", it.name, it.class)))
    }
}

/// Resolves names in a handler's text, where other elements are not accessible.
pub(crate) struct NamesResolver<'a>(pub(crate) &'a Names);

impl castanet_kit::nat::NameResolver for NamesResolver<'_> {
    fn names(&self) -> &dyn classify::Names {
        self.0
    }

    fn pattern(&self, name: &str) -> Option<Pattern> {
        declared_pattern(name, self.0)
    }

    fn mapper(&self, _: &str) -> Option<NamedElement> {
        None
    }
}

/// The pattern that an `IPRewriterPatterns` declares by this name.
fn declared_pattern(name: &str, names: &Names) -> Option<Pattern> {
    let text = names.resolve(name, AddressKind::Pattern)?;
    Pattern::parse(&text.split_whitespace().collect::<Vec<_>>(), names).ok()
}

/// Accepts any name, to check the syntax of arguments before names are known.
pub(crate) struct PlaceholderResolver;

impl classify::Names for PlaceholderResolver {
    fn address(&self, name: &str) -> Option<u32> {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        is_name.then_some(Ipv4Addr::LOCALHOST.to_bits())
    }
}

impl castanet_kit::nat::NameResolver for PlaceholderResolver {
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

/// Parses patterns with their outputs, one of each argument.
fn parse_patterns(
    arguments: &[String],
    names: &dyn castanet_kit::nat::NameResolver,
) -> Result<Vec<PatternOutputs>, ArgError> {
    let one = |text: &String| {
        let words: Vec<&str> = text.split_whitespace().collect();
        parse_pattern_outputs(&words, names).map_err(ArgError::new)
    };
    arguments.iter().map(one).collect()
}

/// The mapper of a `RoundRobinIPMapper` with these arguments.
pub(crate) fn round_robin(
    arguments: &[String],
    names: &dyn castanet_kit::nat::NameResolver,
) -> Result<Mapper, ArgError> {
    if arguments.is_empty() {
        return Err(ArgError::new("no patterns given"));
    }
    Ok(Mapper::RoundRobin(parse_patterns(arguments, names)?, RoundRobinCursor::default()))
}

/// The mapper of a `ThreadIPMapper` with these arguments.
pub(crate) fn by_worker(
    arguments: &[String],
    names: &dyn castanet_kit::nat::NameResolver,
) -> Result<Mapper, ArgError> {
    if arguments.is_empty() {
        return Err(ArgError::new("no patterns given"));
    }
    Ok(Mapper::Worker(parse_patterns(arguments, names)?))
}

/// The mapper of a `SourceIPHashMapper` with these arguments.
pub(crate) fn source_hash(
    arguments: &[String],
    names: &dyn castanet_kit::nat::NameResolver,
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
    let nodes = nodes.filter(|nodes| (1..=MAX_NODES).contains(nodes));
    let nodes = nodes.ok_or_else(|| {
        ArgError::new(format!("number of nodes must be an integer from 1 to {MAX_NODES}"))
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
    Ok(Mapper::SourceHash(parse_patterns(&patterns, names)?, ring))
}

/// The most points of a server on the ring; more points do not balance the load better.
const MAX_NODES: usize = 65_536;

/// The classes whose elements have mappings.
const REWRITERS: [&str; 6] = [
    "IPRewriter",
    "TCPRewriter",
    "UDPRewriter",
    "IPAddrRewriter",
    "IPAddrPairRewriter",
    "ICMPPingRewriter",
];

/// Another rewriter that an argument names.
#[derive(Debug)]
pub(crate) struct RewriterRef {
    /// The tables with its mappings.
    pub(crate) tables: WorkerTables,
    /// Its name as a member of the table.
    pub(crate) member: String,
    /// Its class.
    pub(crate) class: &'static str,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

/// The name of a rewriter as a member of its table. The class is part of it: an element of
/// another class that takes the name in a later configuration is another member.
pub(crate) fn member_name(name: &str, class: &str) -> String {
    format!("{name} {class}")
}

/// The rewriter of that name, if it is one.
pub(crate) fn rewriter(setup: &Setup, name: &str) -> Option<RewriterRef> {
    let it = setup.element(name, None).filter(|it| REWRITERS.contains(&it.class))?;
    let (_, owner) = capacity_owner(setup, it.name, &it.arguments)?;
    Some(RewriterRef {
        tables: WorkerTables::new(setup, &owner),
        member: member_name(it.name, it.class),
        class: it.class,
        inputs: it.inputs,
        outputs: it.outputs,
    })
}

/// The capacity that limits a rewriter's mappings, if an argument sets it, and the name of the
/// rewriter that owns it; `None` if a CAPACITY is neither a number nor the name of a rewriter.
pub(crate) fn capacity_owner(
    setup: &Setup,
    name: &str,
    arguments: &[String],
) -> Option<(Option<u32>, String)> {
    // Rewriters that name each other in a cycle must not loop forever.
    const MAX_CHAIN: usize = 100;
    let (mut name, mut arguments) = (name.to_owned(), arguments.to_vec());
    for _ in 0..MAX_CHAIN {
        let capacity = arguments.iter().find_map(|argument| {
            let (word, value) = argument.trim().split_once(char::is_whitespace)?;
            matches!(word, "CAPACITY" | "MAPPING_CAPACITY").then(|| value.trim().to_owned())
        });
        let Some(capacity) = capacity else { return Some((None, name)) };
        if let Some(number) = parse_capacity(&capacity) {
            return Some((Some(number), name));
        }
        let other = setup.element(&capacity, Some(&name));
        let other = other.filter(|it| REWRITERS.contains(&it.class))?;
        (name, arguments) = (other.name.to_owned(), other.arguments);
    }
    None
}

/// Parses a capacity, a number of mappings.
pub(crate) fn parse_capacity(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&number| number <= castanet_kit::nat::MAX_CAPACITY)
}
