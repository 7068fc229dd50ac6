//! Names that stand for addresses in arguments.

use std::collections::HashMap;

/// What kind of address a name is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKind {
    /// `1.0.0.1`.
    Ip,
    /// `1.0.0.0/8`.
    Net,
    /// `00:01:02:03:04:05`.
    Mac,
}

/// Asks the machine for an interface's address.
pub(crate) type Resolver =
    std::sync::Arc<dyn Fn(&str, AddressKind) -> Option<String> + Send + Sync>;

/// Addresses by name, as `AddressInfo` and the machine's interfaces give them.
#[derive(Default)]
pub struct Names {
    declared: HashMap<String, Vec<String>>,
    system: Option<Resolver>,
}

impl Names {
    /// Names from `AddressInfo` declarations.
    pub fn new(declared: &[(String, String)], system: Option<Resolver>) -> Names {
        let mut names = Names { declared: HashMap::new(), system };
        for (name, address) in declared {
            names.declared.entry(name.clone()).or_default().push(address.clone());
        }
        names
    }

    /// What `name` stands for. A suffix (`:ip`, `:ipnet`, `:eth`) picks one of
    /// several addresses, as in Click.
    pub fn resolve(&self, name: &str, kind: AddressKind) -> Option<String> {
        let (base, suffix) = name.split_once(':').unwrap_or((name, ""));
        let fits = match suffix {
            "" => true,
            "ip" => kind == AddressKind::Ip,
            "ipnet" | "ip_prefix" => kind == AddressKind::Net,
            "eth" | "ether" | "ethernet" => kind == AddressKind::Mac,
            _ => false,
        };
        if !fits || base.is_empty() {
            return None;
        }
        self.declared(base, kind).or_else(|| self.system.as_ref()?(base, kind))
    }

    fn declared(&self, name: &str, kind: AddressKind) -> Option<String> {
        let addresses = self.declared.get(name)?;
        let bare = |a: &String| a.split('/').next().unwrap_or_default().to_owned();
        let is_mac = |a: &&String| a.contains(':') || a.matches('-').count() == 5;
        match kind {
            AddressKind::Mac => addresses.iter().find(is_mac).cloned(),
            AddressKind::Net => addresses.iter().find(|a| a.contains('/')).cloned(),
            AddressKind::Ip => addresses.iter().find(|a| !is_mac(a)).map(bare),
        }
    }

    /// The same names, to travel to a worker.
    pub fn snapshot(&self) -> Names {
        Names { declared: self.declared.clone(), system: self.system.clone() }
    }

    /// Every declared name, for suggestions.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.declared.keys().map(String::as_str)
    }
}
