//! `click-combine`: several routers as one configuration.

use super::common::{Common, Desk, Failed, Input, Tool, Variables};
use crate::load::Origin;
use castanet_lang::transform::{RouterComponent, combine};
use castanet_lang::{SourceMap, Span};
use clap::{ArgMatches, Parser};

/// Combines several configurations at their network devices.
#[derive(Parser)]
#[command(
    override_usage = "click-combine [OPTION]... [NAME=FILE]... [NAME1.ELEMENT1=NAME2.ELEMENT2]...",
    after_help = "Packets that leave router NAME1 by ELEMENT1, a ToDevice, come to router NAME2 from
ELEMENT2, a FromDevice; their devices' names will do as well. A RouterLink takes
their places. click-uncombine takes the routers apart again."
)]
pub(crate) struct Combine {
    #[command(flatten)]
    common: Common,
    /// The next router will be called NAME
    #[arg(short, long, value_name = "NAME")]
    name: Vec<String>,
    /// Add a link, as the words after the options do
    #[arg(short, long, value_name = "NAME1.ELEMENT1=NAME2.ELEMENT2")]
    link: Vec<String>,
    /// Write the configuration only, not an archive
    #[arg(short, long)]
    config: bool,
    /// Words that have to do with routers, in the order of the command line.
    #[arg(skip)]
    order: Vec<Word>,
}

/// A word that has to do with a router.
#[derive(Clone, Debug)]
enum Word {
    Name(String),
    Router(Origin),
    Plain(String),
}

impl Tool for Combine {
    const NAME: &'static str = "click-combine";

    fn common(&self) -> &Common {
        &self.common
    }

    fn ordered(&mut self, matches: &ArgMatches) {
        let mut all: Vec<(usize, Word)> = Vec::new();
        let mut gather = |id: &str, word: fn(String) -> Word| {
            let values = matches.get_many::<String>(id).into_iter().flatten().cloned();
            all.extend(matches.indices_of(id).into_iter().flatten().zip(values.map(word)));
        };
        gather("name", Word::Name);
        gather("file", |file| Word::Router(Origin::File(file.into())));
        gather("expression", |text| Word::Router(Origin::Expression(text)));
        gather("words", Word::Plain);
        all.sort_by_key(|(at, _)| *at);
        self.order = all.into_iter().map(|(_, word)| word).collect();
    }

    fn run(&self, desk: &Desk) -> Result<(), Failed> {
        self.common.target(desk)?;
        let mut routers = Routers { next: None, parts: Vec::new() };
        let mut links = self.link.clone();
        for word in &self.order {
            match word {
                Word::Name(name) => routers.name(name, desk),
                Word::Router(origin) => routers.read(origin, &self.common, desk)?,
                Word::Plain(word) => match split(word) {
                    Plain::Link => links.push(word.clone()),
                    Plain::Router(name, file) => {
                        if let Some(name) = name {
                            routers.name(name, desk);
                        }
                        routers.read(&Origin::File(file.into()), &self.common, desk)?;
                    }
                },
            }
        }
        let mut sources = SourceMap::new();
        let file = sources.add("<click-combine>", "");
        let span = Span { file, start: 0, end: 0 };
        let combined = combine(&routers.parts, &links, span).map_err(|errors| {
            errors.iter().for_each(|error| _ = desk.fail(error));
            Failed
        })?;
        combined.warnings.iter().for_each(|warning| desk.warn(warning));
        let members = if self.config { &[][..] } else { &combined.members };
        self.common.write_graph(&combined.graph, members, desk)
    }
}

/// Meaning of a word that is no option.
enum Plain<'a> {
    Link,
    Router(Option<&'a str>, &'a str),
}

/// `NAME:FILE`, `NAME=FILE`, `NAME.ELEMENT=NAME.ELEMENT` or `FILE`.
fn split(word: &str) -> Plain<'_> {
    if let Some((name, file)) = word.split_once(':') {
        return Plain::Router(Some(name), file);
    }
    match word.split_once('=') {
        Some((left, _)) if left.contains('.') => Plain::Link,
        Some((name, file)) => Plain::Router(Some(name), file),
        None => Plain::Router(None, word),
    }
}

struct Routers {
    next: Option<String>,
    parts: Vec<RouterComponent>,
}

impl Routers {
    fn name(&mut self, name: &str, desk: &Desk) {
        if let Some(before) = self.next.replace(name.to_owned()) {
            desk.warn(format_args!("router name specified twice ('{before}' and '{name}')"));
        }
    }

    fn read(&mut self, origin: &Origin, common: &Common, desk: &Desk) -> Result<(), Failed> {
        let input = Input::read(origin, Vec::new(), common, desk)?;
        let graph = input.flat(Variables::Expand, desk)?;
        let number = self.parts.len() + 1;
        let name = self.next.take().unwrap_or_else(|| format!("router{number}"));
        self.parts.push(RouterComponent { name, graph, members: input.members().to_vec() });
        Ok(())
    }
}
