//! State that several elements share, under the name of the one that owns it.

use crate::args::ArgError;
use crate::common::Common;
use crate::element::Setup;
use crate::graph::{Graph, in_scope};
use castanet_lang::args;
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// One state that the engine keeps for several elements, and lends to one of
/// them at a time: for the length of a burst, not of a packet.
pub struct Link<T>(Arc<Mutex<T>>);

impl<T> Link<T> {
    /// Lends the state for one call. A panic in an element poisons nothing:
    /// what it left behind is used as it is.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A state of its own, until it is linked to that of others.
impl<T: Default> Default for Link<T> {
    fn default() -> Self {
        Link(Arc::default())
    }
}

impl<T> Clone for Link<T> {
    fn clone(&self) -> Self {
        Link(self.0.clone())
    }
}

impl<T> fmt::Debug for Link<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

/// What the elements of one router share, while it is built.
#[derive(Default)]
pub(crate) struct Board {
    states: RefCell<States>,
    /// Of the configuration before, which goes on where its owner's name stays.
    before: States,
}

/// By the owner's name.
type States = BTreeMap<String, Arc<dyn Any + Send + Sync>>;

impl Board {
    /// For a configuration that replaces the one of this board.
    pub(crate) fn successor(&self) -> Board {
        Board { states: RefCell::default(), before: self.states.borrow().clone() }
    }

    /// Once that has happened.
    pub(crate) fn forget_before(&mut self) {
        self.before.clear();
    }

    /// Whether nothing is shared.
    pub(crate) fn is_empty(&self) -> bool {
        self.states.borrow().is_empty()
    }

    /// The state `S` (a [`Link`] or a [`Common`]) of element `owner`; both it and those linked to
    /// it may be the first to ask. `None` if it is of another type.
    fn link<S: Default + Clone + Send + Sync + 'static>(&self, owner: &str) -> Option<S> {
        let mut states = self.states.borrow_mut();
        let state = states.entry(owner.to_owned()).or_insert_with(|| {
            let before = self.before.get(owner).filter(|state| state.is::<S>());
            before.cloned().unwrap_or_else(|| Arc::new(S::default()))
        });
        state.downcast_ref::<S>().cloned()
    }
}

/// The other elements of the graph, while an element is built.
#[derive(Clone, Copy)]
pub(crate) struct Others<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) board: &'a Board,
}

/// Another element, as it stands in the configuration.
pub struct Other<'a> {
    /// Its full name.
    pub name: &'a str,
    /// Its class, by the name that this has here.
    pub class: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How many of its inputs are connected.
    pub inputs: usize,
    /// How many of its outputs are connected.
    pub outputs: usize,
}

impl Setup<'_> {
    /// The state that this element shares with those that name it.
    pub fn own<T: Default + Send + 'static>(&self) -> Link<T> {
        self.shared(self.name)
    }

    /// The state of all who say this word: an element's full name, or one that
    /// no element can have, with a space in it.
    pub fn shared<T: Default + Send + 'static>(&self, word: &str) -> Link<T> {
        self.others.and_then(|others| others.board.link(word)).unwrap_or_default()
    }

    /// The same of a state that workers mostly read.
    pub fn common<T: Default + Send + Sync + 'static>(&self, word: &str) -> Common<T> {
        self.others.and_then(|others| others.board.link(word)).unwrap_or_default()
    }

    /// The element that this one calls `name`; as `seen_from` another, if that
    /// is given by its full name.
    pub fn element(&self, name: &str, seen_from: Option<&str>) -> Option<Other<'_>> {
        let others = self.others?;
        let full = in_scope(others.graph, seen_from.unwrap_or(self.name), name)?;
        let it = &others.graph.elements[others.graph.find(&full)?];
        let arguments = args::split(&it.config).into_iter().map(|arg| arg.text).collect();
        let (class, outputs) = (it.class.spec.class, it.outputs.len());
        Some(Other { name: &it.name, class, arguments, inputs: it.inputs.len(), outputs })
    }

    /// The file that another element names: its first argument, or FILENAME.
    pub fn file_of(&self, name: &str) -> Result<Option<String>, ArgError> {
        let found = self.others.and_then(|others| {
            let element = others.graph.find(&in_scope(others.graph, self.name, name)?)?;
            Some(&others.graph.elements[element].config)
        });
        let none = || ArgError::new(format!("there is no element `{name}`"));
        let config = found.ok_or_else(|| none().click(format!("no element named '{name}'")))?;
        let all = args::split(config);
        let named = |arg: &&args::ArgText| arg.text.trim_start().starts_with("FILENAME ");
        let file = all.iter().find(named).or(all.first()).map(|arg| arg.text.trim());
        let file = file.map(|text| text.strip_prefix("FILENAME ").unwrap_or(text).trim());
        Ok(file.filter(|text| !text.is_empty()).map(args::unquote))
    }

    /// The state of another element, which must be of class `class`.
    pub fn linked<T: Default + Send + 'static>(
        &self,
        name: &str,
        class: &str,
    ) -> Result<Link<T>, ArgError> {
        let found = self.others.and_then(|others| {
            let full = in_scope(others.graph, self.name, name)?;
            let element = others.graph.find(&full)?;
            let is = others.graph.elements[element].class.spec.class == class;
            is.then(|| others.board.link(&full)).flatten()
        });
        found.ok_or_else(|| {
            ArgError::new(format!("`{name}` is no {class} of this configuration"))
                .click(format!("element is not a {class}"))
        })
    }
}
