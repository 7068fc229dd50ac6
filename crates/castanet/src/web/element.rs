//! One element, as the page shows it: its class, its handlers and their values.

use super::graph::shortened;
use castanet_element::class::Role;
use castanet_element::error::ArgError;
use castanet_element::manual;
use castanet_runtime::router::Router;
use serde::Serialize;
use std::collections::BTreeMap;

/// Characters of a value that the page gets with all others.
const MOST_OF_EACH: usize = 2000;
/// Characters of a value that the page gets alone.
const MOST_OF_ONE: usize = 1 << 20;

/// An element.
#[derive(Serialize)]
pub(crate) struct ElementPage {
    /// The first sentence of its manual page.
    summary: &'static str,
    handlers: Vec<HandlerDescription>,
    values: Vec<HandlerValue>,
}

/// A handler of an element.
#[derive(Serialize)]
struct HandlerDescription {
    name: &'static str,
    /// The sentence of the manual.
    doc: &'static str,
    is_read: bool,
    is_written: bool,
}

/// The value of a handler, or the reason why there is none.
#[derive(Serialize)]
pub(crate) struct HandlerValue {
    handler: String,
    value: Option<String>,
    /// Whether the value goes on.
    is_cut: bool,
    error: Option<String>,
}

impl ElementPage {
    /// The element of this name.
    ///
    /// # Errors
    /// There is no such element.
    pub(crate) fn of(router: &mut Router, name: &str) -> Result<ElementPage, ArgError> {
        let graph = router.graph();
        let Some(element) = graph.find(name) else {
            return Err(ArgError::new(format!("there is no element '{name}'")));
        };
        let own = graph.elements[element].class;
        let summary = manual::summary(own);
        let live = own.args.iter().filter(|arg| arg.live).map(|arg| arg.name.to_lowercase());
        // A read of a program may run a part of it.
        let reads = if own.role == Role::Control { Vec::new() } else { (own.reads)() };
        let own = reads.into_iter().map(|handler| handler.name.to_owned());
        let shown: Vec<String> = ["config".to_owned()].into_iter().chain(live).chain(own).collect();
        let mut handlers: BTreeMap<&str, HandlerDescription> = BTreeMap::new();
        for (doc, writes) in router.handlers_of(element) {
            if router.is_private(&format!("{name}.{}", doc.name)) {
                continue;
            }
            let (name, doc) = (doc.name, doc.doc);
            let new = HandlerDescription { name, doc, is_read: false, is_written: false };
            let handler = handlers.entry(name).or_insert(new);
            handler.is_read |= !writes;
            handler.is_written |= writes;
        }
        let is_shown =
            |it: &&HandlerDescription| it.is_read && shown.iter().any(|name| name == it.name);
        let wanted = handlers.values().filter(is_shown);
        let wanted: Vec<String> = wanted.map(|it| format!("{name}.{}", it.name)).collect();
        let values = wanted.iter().map(|it| HandlerValue::read(router, it, MOST_OF_EACH)).collect();
        Ok(ElementPage { summary, handlers: handlers.into_values().collect(), values })
    }
}

impl HandlerValue {
    /// Reads a handler for the page, and cuts its value.
    fn read(router: &mut Router, handler: &str, most: usize) -> HandlerValue {
        let path = handler.split_whitespace().next().unwrap_or_default();
        let value = match router.has_handler(path, false) && !router.is_private(path) {
            true => router.read(handler),
            false => Err(ArgError::new(format!("there is no read handler '{path}'"))),
        };
        HandlerValue::new(handler, value, most)
    }

    fn new(handler: &str, value: Result<String, ArgError>, most: usize) -> HandlerValue {
        let (text, error) = match value {
            Ok(text) => (Some(text.trim_end().to_owned()), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let is_cut = text.as_ref().is_some_and(|text| text.chars().nth(most).is_some());
        let value = text.map(|text| shortened(&text, most));
        HandlerValue { handler: handler.to_owned(), value, is_cut, error }
    }
}

/// The values of handlers of elements, each a name and perhaps a parameter. Those of programs, which may do
/// anything when they are read, are for clients that may write.
pub(crate) fn read_values(
    router: &mut Router,
    handlers: &[String],
    may_write: bool,
) -> Vec<HandlerValue> {
    let most = if handlers.len() == 1 { MOST_OF_ONE } else { MOST_OF_EACH };
    let mut read = |handler: &String| match role(router, handler) {
        None => {
            let error = ArgError::new(format!("'{handler}' is no handler of an element"));
            HandlerValue::new(handler, Err(error), most)
        }
        Some(Role::Control) if !may_write => {
            let sentence = "a read of a program may run a part of it: it wants --web-write";
            HandlerValue::new(handler, Err(ArgError::new(sentence)), most)
        }
        Some(_) => HandlerValue::read(router, handler, most),
    };
    handlers.iter().map(&mut read).collect()
}

/// The role of the element that a handler belongs to; `None` for handlers of the router.
pub(crate) fn role(router: &Router, handler: &str) -> Option<Role> {
    let (element, _) = handler.split_once('.')?;
    let graph = router.graph();
    graph.find(element).map(|it| graph.elements[it].class.role)
}
