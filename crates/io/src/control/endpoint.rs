//! Addresses at which sockets for other programs listen, as arguments write them.

use castanet_element::args::{FromArg, ListenPort, Names};
use castanet_element::error::ArgError;
use castanet_element::resource::{Resource, ResourceKind};
use std::fmt;
use std::os::fd::RawFd;
use std::path::PathBuf;

/// The address at which a server listens, or the connection that it serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Endpoint {
    /// A TCP port, any free one if it is 0, or with `or_next` the first free one from there on. With
    /// `local`, only this machine can connect.
    Tcp { port: u16, or_next: bool, local: bool },
    /// A socket in the file system.
    Unix(PathBuf),
    /// A socket in the file system to which only the process's user can connect, and the members of
    /// a group.
    Restricted { path: PathBuf, group: Option<u32> },
    /// A connection that the process inherited: its descriptor.
    Socket(RawFd),
}

/// The size of the path in `struct sockaddr_un`, in bytes, its final zero included.
pub(crate) const MAX_PATH: usize = 108;

impl Endpoint {
    /// The resources that a server there needs.
    pub(crate) fn resources(&self, reason: &str) -> Vec<Resource> {
        match self {
            Endpoint::Tcp { port, local, .. } => {
                let address = if *local { "127.0.0.1" } else { "0.0.0.0" };
                Resource::port("TCP", address, *port, reason)
            }
            Endpoint::Unix(path) | Endpoint::Restricted { path, .. } => {
                let name = format!("UNIX {}", path.display());
                vec![Resource::new(ResourceKind::Socket, name, reason)]
            }
            Endpoint::Socket(_) => Vec::new(),
        }
    }

    /// Parses TYPE and the one argument that is given of those for its place.
    pub(crate) fn parse_one_of(
        kind: &str,
        places: &[&Option<String>],
        local: bool,
        allow_descriptor: bool,
        names: &Names,
    ) -> Result<Endpoint, ArgError> {
        let mut given = places.iter().filter_map(|place| place.as_deref());
        let place = given.next();
        match given.next() {
            None => Endpoint::parse(kind, place, local, allow_descriptor, names),
            Some(_) => Err(ArgError::new("too many arguments")),
        }
    }

    /// Parses TYPE and the argument after it. `local` restricts a TCP port to this machine;
    /// `allow_descriptor` permits TYPE SOCKET.
    pub(crate) fn parse(
        kind: &str,
        place: Option<&str>,
        local: bool,
        allow_descriptor: bool,
        names: &Names,
    ) -> Result<Endpoint, ArgError> {
        let needed =
            |name| place.ok_or_else(|| ArgError::new("required argument missing").at(name));
        match kind.to_ascii_uppercase().as_str() {
            "TCP" => tcp(needed("PORT")?, local, names),
            "UNIX" => {
                let file = needed("FILENAME")?;
                if file.len() >= MAX_PATH {
                    let most = MAX_PATH - 1;
                    return Err(ArgError::new("filename too long")
                        .help(format!("a socket's may have {most} bytes")));
                }
                Ok(Endpoint::Unix(PathBuf::from(file)))
            }
            "SOCKET" if allow_descriptor => {
                let number = needed("FD")?.parse().ok().filter(|&fd: &RawFd| fd >= 0);
                let wrong = || ArgError::new("invalid number").at("FD").help("a descriptor's");
                number.map(Endpoint::Socket).ok_or_else(wrong)
            }
            _ => {
                let known = if allow_descriptor { "TCP, UNIX or SOCKET" } else { "TCP or UNIX" };
                Err(ArgError::new(format!("unknown socket type '{kind}'"))
                    .help(format!("TYPE is {known}")))
            }
        }
    }
}

impl Endpoint {
    /// The hint for an address that is in use.
    pub(crate) fn address_in_use_hint(&self) -> String {
        match self {
            Endpoint::Tcp { port, or_next: false, .. } => {
                format!("another program listens there; `{port}+` is the next free port")
            }
            Endpoint::Tcp { port, .. } => {
                format!("other programs listen there and at the ports after {port}")
            }
            Endpoint::Unix(path) | Endpoint::Restricted { path, .. }
                if crate::socket::is_socket(path) =>
            {
                "another program listens there".to_owned()
            }
            Endpoint::Unix(_) | Endpoint::Restricted { .. } => {
                "a file that is no socket has this name; remove it, or name another".to_owned()
            }
            Endpoint::Socket(_) => "another element has this descriptor".to_owned(),
        }
    }
}

fn tcp(text: &str, local: bool, names: &Names) -> Result<Endpoint, ArgError> {
    let wrong = |_| ArgError::new("PORT requires TCP port").help(ListenPort::SYNTAX);
    let ListenPort { port, or_next } = ListenPort::from_arg(text, names).map_err(wrong)?;
    Ok(Endpoint::Tcp { port, or_next, local })
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { port, .. } => write!(f, "TCP port {port}"),
            Endpoint::Unix(path) | Endpoint::Restricted { path, .. } => {
                write!(f, "{}", path.display())
            }
            Endpoint::Socket(fd) => write!(f, "descriptor {fd}"),
        }
    }
}
