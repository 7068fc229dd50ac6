//! One element, as the page shows it: its class, its handlers and their values.

use super::graph::shortened;
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
    name: String,
    class: String,
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
        let it = &graph.elements[element];
        let (class, own) = (it.source.class.clone(), it.class);
        let summary = manual::summary(own);
        let live = own.args.iter().filter(|arg| arg.live).map(|arg| arg.name.to_lowercase());
        let own = (own.reads)().into_iter().map(|handler| handler.name.to_owned());
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
        let handlers = handlers.into_values().collect();
        Ok(ElementPage { name: name.to_owned(), class, summary, handlers, values })
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
        let (value, error) = match value {
            Ok(text) => (Some(shortened(text.trim_end(), most)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        HandlerValue { handler: handler.to_owned(), value, error }
    }
}

/// The values of handlers, each a name and perhaps a parameter.
pub(crate) fn read_values(router: &mut Router, handlers: &[String]) -> Vec<HandlerValue> {
    let most = if handlers.len() == 1 { MOST_OF_ONE } else { MOST_OF_EACH };
    handlers.iter().map(|handler| HandlerValue::read(router, handler, most)).collect()
}
