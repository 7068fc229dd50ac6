//! Facts about an element's position in the graph, for its constructor.

use crate::args::Names;
use crate::device::QueueShare;
use crate::error::ArgError;
use crate::shared::{RwShared, Shared, SharedState};
use crate::time::Time;
use castanet_lang::args;

/// Facts about an element's position in the graph, for its constructor.
pub struct Setup<'a> {
    /// The element's name in the flat configuration.
    pub name: &'a str,
    /// Connected inputs.
    pub inputs: usize,
    /// Connected outputs.
    pub outputs: usize,
    /// By worker: whether its packets can reach the element.
    pub workers: &'a [bool],
    /// Whether no more than one worker uses the element's state, which is its home.
    pub single_worker: bool,
    /// For a device: the queues of each worker.
    pub queue_shares: &'a [QueueShare],
    /// For a device: how many of its queues all elements together receive from and send to, from queue 0
    /// on.
    pub device_queues: (usize, usize),
    /// For an element that watches stores ([`crate::class::Class::with_watch`]):
    /// their names.
    pub stores: &'a [&'a str],
    /// For an element that works with another one ([`crate::class::Class::with_partner`]): its full name,
    /// if there is one.
    pub partner: Option<&'a str>,
    /// Whether packets may leave the element with checksums that the sending device computes: all elements
    /// behind it pass such packets on or send them.
    pub may_leave_checksums: bool,
    /// Modulus and remainder of the addresses of packets at the first input, where `AlignmentInfo`
    /// declares them.
    pub alignment: Option<(u32, u32)>,
    /// Whether tasks and packets have Click's order: what FastClick keeps for each thread is then kept
    /// for each worker.
    pub as_click: bool,
    /// Addresses by name, as `AddressInfo` and the machine declare them for this element.
    pub names: &'a Names,
    /// Adds a warning about arguments that can be used and are perhaps wrong.
    pub warn: &'a dyn Fn(String),
    /// When the router was built.
    pub started: Time,
    /// The other elements and their shared state; `None` where there are none yet.
    pub peers: Option<Peers<'a>>,
}

/// The configuration whose elements are built; implemented by the runtime.
pub trait Configuration {
    /// The element that `name` means where element `scope` stands: in its own compound first, then in
    /// those around it.
    fn find(&self, scope: &str, name: &str) -> Option<PeerElement<'_>>;
}

/// The other elements of the configuration, and the state that they share.
#[derive(Clone, Copy)]
pub struct Peers<'a> {
    /// The configuration.
    pub configuration: &'a dyn Configuration,
    /// State that elements share.
    pub state: &'a SharedState,
}

/// Another element of the configuration.
pub struct PeerElement<'a> {
    /// Its full name.
    pub name: &'a str,
    /// The name of its class; never an alias.
    pub class: &'static str,
    /// Its arguments, as they are written between the parentheses.
    pub config: &'a str,
    /// The same, one by one.
    pub arguments: Vec<String>,
    /// How many of its inputs are connected.
    pub inputs: usize,
    /// How many of its outputs are connected.
    pub outputs: usize,
}

impl Setup<'_> {
    /// The state that this element shares with elements that name it.
    pub fn own_shared<T: Default + Send + 'static>(&self) -> Shared<T> {
        self.shared(self.name)
    }

    /// The state of all elements that use this key: an element's full name, or a key with a space in it,
    /// which no element has for a name.
    pub fn shared<T: Default + Send + 'static>(&self, key: &str) -> Shared<T> {
        self.peers.and_then(|peers| peers.state.shared(key)).unwrap_or_default()
    }

    /// As [`Setup::shared`], for a key with a space in it that is made of a name: the state is that of all
    /// elements for which the same names hold.
    pub fn shared_in_scope<T: Default + Send + 'static>(&self, key: &str) -> Shared<T> {
        match self.names.scope() {
            Some(scope) => self.shared(&format!("{scope} {key}")),
            None => self.shared(key),
        }
    }

    /// As [`Setup::shared`], for state that workers mostly read.
    pub fn rw_shared<T: Default + Send + Sync + 'static>(&self, key: &str) -> RwShared<T> {
        self.peers.and_then(|peers| peers.state.shared(key)).unwrap_or_default()
    }

    /// The state of the element with which this one works, of the class that
    /// [`with_partner`](crate::class::Class::with_partner) names; `None` if there is none.
    pub fn shared_of_partner<T: Default + Send + 'static>(&self) -> Option<Shared<T>> {
        self.peers?.state.shared(self.partner?)
    }

    /// The element that `name` means where this element stands, or where `seen_from`, a full name,
    /// stands.
    pub fn element(&self, name: &str, seen_from: Option<&str>) -> Option<PeerElement<'_>> {
        self.peers?.configuration.find(seen_from.unwrap_or(self.name), name)
    }

    /// The file that another element names: its first argument, or FILENAME.
    ///
    /// # Errors
    /// There is no such element.
    pub fn file_of(&self, name: &str) -> Result<Option<String>, ArgError> {
        let found = self.element(name, None);
        let none = || ArgError::new(format!("there is no element `{name}`"));
        let found = found.ok_or_else(|| none().click(format!("no element named '{name}'")))?;
        let all = args::split(found.config);
        let named = |arg: &&args::ArgText| arg.text.trim_start().starts_with("FILENAME ");
        let file = all.iter().find(named).or(all.first()).map(|arg| arg.text.trim());
        let file = file.map(|text| text.strip_prefix("FILENAME ").unwrap_or(text).trim());
        Ok(file.filter(|text| !text.is_empty()).map(args::unquote))
    }

    /// The state of another element, which must be of class `class`.
    ///
    /// # Errors
    /// There is no such element, or it is of another class.
    pub fn shared_of<T: Default + Send + 'static>(
        &self,
        name: &str,
        class: &str,
    ) -> Result<Shared<T>, ArgError> {
        let found = self.element(name, None).filter(|it| it.class == class);
        let state = found.and_then(|it| self.peers?.state.shared(it.name));
        state.ok_or_else(|| {
            ArgError::new(format!("`{name}` is no {class} of this configuration"))
                .click(format!("element is not a {class}"))
        })
    }
}
