//! `click-combine`: several routers as one configuration.

use super::common::{CommonOptions, Failure, Input, Tool, ToolContext, Variables};
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
    common: CommonOptions,
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
    order: Vec<RouterWord>,
}

/// A word that has to do with a router.
#[derive(Clone, Debug)]
enum RouterWord {
    Name(String),
    Router(Origin),
    Plain(String),
}

impl Tool for Combine {
    const NAME: &'static str = "click-combine";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn ordered(&mut self, matches: &ArgMatches) {
        let mut all: Vec<(usize, RouterWord)> = Vec::new();
        let mut gather = |id: &str, word: fn(String) -> RouterWord| {
            let values = matches.get_many::<String>(id).into_iter().flatten().cloned();
            all.extend(matches.indices_of(id).into_iter().flatten().zip(values.map(word)));
        };
        gather("name", RouterWord::Name);
        gather("file", |file| RouterWord::Router(Origin::File(file.into())));
        gather("expression", |text| RouterWord::Router(Origin::Expression(text)));
        gather("words", RouterWord::Plain);
        all.sort_by_key(|(at, _)| *at);
        self.order = all.into_iter().map(|(_, word)| word).collect();
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        self.common.target(context)?;
        let mut routers = Routers { next: None, parts: Vec::new() };
        let mut links = self.link.clone();
        for word in &self.order {
            match word {
                RouterWord::Name(name) => routers.name(name, context),
                RouterWord::Router(origin) => routers.read(origin, &self.common, context)?,
                RouterWord::Plain(word) => match split(word) {
                    PlainWord::Link => links.push(word.clone()),
                    PlainWord::Router(name, file) => {
                        if let Some(name) = name {
                            routers.name(name, context);
                        }
                        routers.read(&Origin::File(file.into()), &self.common, context)?;
                    }
                },
            }
        }
        let mut sources = SourceMap::new();
        let file = sources.add("<click-combine>", "");
        let span = Span { file, start: 0, end: 0 };
        let combined = combine(&routers.parts, &links, span).map_err(|errors| {
            errors.iter().for_each(|error| _ = context.fail(error));
            Failure
        })?;
        combined.warnings.iter().for_each(|warning| context.warn(warning));
        let members = if self.config { &[][..] } else { &combined.members };
        self.common.write_graph(&combined.graph, members, context)
    }
}

/// Meaning of a word that is no option.
enum PlainWord<'a> {
    Link,
    Router(Option<&'a str>, &'a str),
}

/// `NAME:FILE`, `NAME=FILE`, `NAME.ELEMENT=NAME.ELEMENT` or `FILE`.
fn split(word: &str) -> PlainWord<'_> {
    if let Some((name, file)) = word.split_once(':') {
        return PlainWord::Router(Some(name), file);
    }
    match word.split_once('=') {
        Some((left, _)) if left.contains('.') => PlainWord::Link,
        Some((name, file)) => PlainWord::Router(Some(name), file),
        None => PlainWord::Router(None, word),
    }
}

struct Routers {
    next: Option<String>,
    parts: Vec<RouterComponent>,
}

impl Routers {
    fn name(&mut self, name: &str, context: &ToolContext) {
        if let Some(before) = self.next.replace(name.to_owned()) {
            context.warn(format_args!("router name specified twice ('{before}' and '{name}')"));
        }
    }

    fn read(
        &mut self,
        origin: &Origin,
        common: &CommonOptions,
        context: &ToolContext,
    ) -> Result<(), Failure> {
        let input = Input::read(origin, Vec::new(), common, context)?;
        let graph = input.flat(Variables::Expand, context)?;
        let number = self.parts.len() + 1;
        let name = self.next.take().unwrap_or_else(|| format!("router{number}"));
        self.parts.push(RouterComponent { name, graph, members: input.members().to_vec() });
        Ok(())
    }
}
