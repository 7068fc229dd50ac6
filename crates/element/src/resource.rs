//! Resources outside of the process that elements need: capabilities, files, sockets, interfaces.

use crate::args::{Args, Names};

/// A resource that an element needs, named without opening it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Resource {
    /// Its kind.
    pub kind: ResourceKind,
    /// The capability, the path, the address or the interface.
    pub name: String,
    /// The reason why the element needs it, as the end of a sentence about the element.
    pub reason: String,
}

/// Kinds of resources.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ResourceKind {
    /// A capability of Linux, such as `CAP_NET_RAW`.
    Capability,
    /// A network interface.
    Interface,
    /// An address to which a socket is bound or connected.
    Socket,
    /// A file that is read.
    ReadFile,
    /// A file that is written.
    WriteFile,
}

/// Names the resources that an element of these arguments needs; none if they are wrong.
pub type FindResources = fn(&str, &Names) -> Vec<Resource>;

impl Resource {
    /// A resource of this kind.
    pub fn new(kind: ResourceKind, name: impl Into<String>, reason: impl Into<String>) -> Resource {
        Resource { kind, name: name.into(), reason: reason.into() }
    }

    /// A capability.
    pub fn capability(name: &str, reason: impl Into<String>) -> Resource {
        Resource::new(ResourceKind::Capability, name, reason)
    }

    /// A file to read, unless it is `-`, which is standard input.
    pub fn input(path: Option<&str>, reason: &str) -> Vec<Resource> {
        Resource::file(ResourceKind::ReadFile, path, reason)
    }

    /// A file to write, unless it is `-`, which is standard output.
    pub fn output(path: Option<&str>, reason: &str) -> Vec<Resource> {
        Resource::file(ResourceKind::WriteFile, path, reason)
    }

    fn file(kind: ResourceKind, path: Option<&str>, reason: &str) -> Vec<Resource> {
        let path = path.filter(|path| !path.is_empty() && *path != "-");
        path.map(|path| Resource::new(kind, path, reason)).into_iter().collect()
    }

    /// A port of the machine, and the capability that ports below 1024 need.
    pub fn port(protocol: &str, address: &str, port: u16, reason: &str) -> Vec<Resource> {
        let name = format!("{protocol} {address}:{port}");
        let mut all = vec![Resource::new(ResourceKind::Socket, name, reason)];
        if (1..1024).contains(&port) {
            let why = format!("binds {protocol} port {port}, which is below 1024");
            all.push(Resource::capability("CAP_NET_BIND_SERVICE", why));
        }
        all
    }
}

/// The resources that `find` names for parsed arguments; none if they are wrong.
pub fn from_args<A: Args>(
    config: &str,
    names: &Names,
    find: impl FnOnce(&A) -> Vec<Resource>,
) -> Vec<Resource> {
    A::parse(config, names).map_or_else(|_| Vec::new(), |args| find(&args))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_streams_are_no_files_and_low_ports_take_a_capability() {
        assert!(Resource::input(Some("-"), "reads it").is_empty());
        assert!(Resource::output(None, "writes it").is_empty());
        assert_eq!(Resource::output(Some("a"), "writes it")[0].kind, ResourceKind::WriteFile);
        let capabilities = |port| {
            let all = Resource::port("TCP", "0.0.0.0", port, "listens");
            all.iter().filter(|it| it.kind == ResourceKind::Capability).count()
        };
        assert_eq!([0, 80, 1023, 1024].map(capabilities), [0, 1, 1, 0]);
    }
}
