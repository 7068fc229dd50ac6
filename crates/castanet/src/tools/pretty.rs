//! `click-pretty`: a configuration as a web page, or as a graph for other programs.

mod fill;
mod graphs;
mod tags;

use super::common::{CommonOptions, Failure, Input, Tool, ToolContext};
use crate::load::{io_error_text, open};
use castanet_lang::print::HtmlLinks;
use castanet_lang::{Diagnostics, Outline, Processing};
use castanet_runtime::router::ErrorStyle;
use clap::Parser;
use fill::TemplateFiller;
use std::collections::HashMap;

/// The page that is made unless another is given.
const PAGE: &str = include_str!("pretty/page.html");
/// Template of a graph's nodes.
const NODE: &str = "<~if test=\"<~anonymous>\" then=\"<~type>\" else=\"<~name> :: <~type>\">";

/// Makes a web page of a configuration: its text with what names mean, an index and a table of its
/// elements; or a graph.
#[derive(Parser)]
#[command(
    after_help = "A template is HTML with tags such as <~config>, <~elements entry='<~name> :: <~type>'
sep=', '>, <~inputs>, <~outputs>, <~if test='...' then='...' else='...'>; --write-template
shows the one that is built in."
)]
pub(crate) struct Pretty {
    #[command(flatten)]
    common: CommonOptions,
    /// Fill in the template in FILE instead of the one that is built in
    #[arg(short, long, value_name = "FILE")]
    template: Option<String>,
    /// Fill in this template
    #[arg(short = 'T', long, value_name = "TEXT", conflicts_with = "template")]
    template_text: Option<String>,
    /// Let the tag <~NAME> stand for TEXT
    #[arg(short, long, value_name = "NAME=TEXT")]
    define: Vec<String>,
    /// Documentation of classes is at URL, in which %s stands for the class
    #[arg(short = 'u', long, value_name = "URL")]
    class_docs: Option<String>,
    /// Documentation of the classes of a package: makes no difference, Castanet has none
    #[arg(long, value_name = "PACKAGE=URL")]
    package_docs: Vec<String>,
    /// The configuration is for Linux' kernel: makes no difference
    #[arg(short, long, short_alias = 'k', alias = "kernel")]
    linuxmodule: bool,
    /// The configuration is for FreeBSD's kernel: makes no difference
    #[arg(short, long)]
    bsdmodule: bool,
    /// The configuration is for the user level: makes no difference
    #[arg(long)]
    userlevel: bool,
    /// Write the template as it is
    #[arg(long, group = "action")]
    write_template: bool,
    /// Write a graph for Graphviz
    #[arg(long, group = "action")]
    dot: bool,
    /// Write a graph in GML
    #[arg(long, group = "action")]
    gml: bool,
    /// Write a graph in GraphML
    #[arg(long, group = "action")]
    graphml: bool,
}

/// A configuration as a template sees it.
struct TemplateSource<'a> {
    links: HtmlLinks<'a>,
    /// The text with its marks.
    text: String,
    processing: &'a [Processing],
    /// Tags that the user has defined.
    defined: HashMap<String, String>,
}

impl Tool for Pretty {
    const NAME: &'static str = "click-pretty";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        self.common.target(context)?;
        let template = self.template(context)?;
        if self.write_template {
            return self.common.write(template.as_bytes(), context);
        }
        if let Some(odd) = self.package_docs.iter().find(|text| !text.contains('=')) {
            return Err(context.usage(format_args!("'--package-docs {odd}' has no equals sign")));
        }
        let (vars, words) = self.common.sort(context)?;
        let origin = self.common.origin(&words, context)?;
        let mut loaded = open(&origin, self.common.clickpath.as_deref());
        let Some(tree) = loaded.tree.take() else {
            loaded.report(ErrorStyle::Click);
            return Err(Failure);
        };
        if loaded.sources.text(tree.file).is_empty() && loaded.found.has_errors() {
            // Of an archive that is broken there is no text to show it in.
            return context.report(loaded.found, &loaded.sources);
        }
        // A page shows errors where they are, as far as the text could be understood.
        let mut found: Diagnostics = loaded.found;
        let input = Input::new(loaded.sources, tree, origin.name(), vars);
        let (outline, more) = input.outline();
        found.append(more);
        let processing = outline.processing(&|class| input.code(class));
        let docs = |class: &str| self.docs(class, &input);
        let links = HtmlLinks { outline: &outline, docs: &docs };
        let subject = TemplateSource {
            text: castanet_lang::print::html(&input.tree, &found, &links),
            processing: processing.last().map_or(&[], Vec::as_slice),
            links,
            defined: self.defined(),
        };
        let text = self.fill(&template, &subject, &outline);
        self.common.write(text.as_bytes(), context)
    }
}

impl Pretty {
    fn template(&self, context: &ToolContext) -> Result<String, Failure> {
        match (&self.template, &self.template_text) {
            (Some(file), _) => std::fs::read_to_string(file)
                .map_err(|e| context.fail(format_args!("{file}: {}", io_error_text(&e)))),
            (None, Some(text)) => Ok(text.clone()),
            (None, None) if self.dot || self.gml || self.graphml => Ok(NODE.to_owned()),
            (None, None) => Ok(PAGE.to_owned()),
        }
    }

    fn fill(&self, template: &str, subject: &TemplateSource, outline: &Outline) -> String {
        let Some(file) = outline.file() else { return String::new() };
        let label = |element: usize| TemplateFiller::new(subject).entry(template, element);
        match (self.dot, self.gml, self.graphml) {
            (true, ..) => graphs::dot(&file.graph, &label),
            (_, true, _) => graphs::gml(&file.graph, &label),
            (.., true) => graphs::graphml(&file.graph, subject.processing, &label),
            _ => TemplateFiller::new(subject).page(template),
        }
    }

    fn defined(&self) -> HashMap<String, String> {
        let pair = |text: &String| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (name.to_ascii_lowercase(), value.to_owned())
        };
        self.define.iter().map(pair).collect()
    }

    /// Where the documentation of a class of Castanet's is, if the user has said so.
    fn docs(&self, class: &str, input: &Input) -> Option<String> {
        let url = self.class_docs.as_ref()?;
        input.library.get(class).map(|_| url.replacen("%s", class, 1))
    }
}
