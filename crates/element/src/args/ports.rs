//! Ports of TCP and UDP as arguments, by number or by name.

use super::{AddressKind, ArgError, FromArg, Names};
use castanet_kit::classify::known_port;
use std::fmt;

/// A port of UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpPort(pub u16);

/// A port of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpPort(pub u16);

/// A TCP port at which a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenPort {
    /// The number; any free port if it is 0.
    pub port: u16,
    /// Whether the first free port from there on will do.
    pub or_next: bool,
}

/// The port of a number or of a name: a declared one, a well-known one, or a service of the machine.
fn port(text: &str, kind: AddressKind, names: &Names) -> Result<u16, ArgError> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return u16::from_arg(text, names);
    }
    let named = || names.resolve(text, kind)?.parse().ok();
    named().or_else(|| known_port(text)).ok_or_else(|| {
        ArgError::new(format!("`{text}` is no port, and PortInfo declares none of that name"))
            .click("parse error")
    })
}

impl FromArg for UdpPort {
    const SYNTAX: &'static str = "a port: a number from 0 to 65535, or a name";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        port(text, AddressKind::UdpPort, names).map(UdpPort)
    }
}

impl FromArg for TcpPort {
    const SYNTAX: &'static str = UdpPort::SYNTAX;
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        port(text, AddressKind::TcpPort, names).map(TcpPort)
    }
}

impl FromArg for ListenPort {
    const SYNTAX: &'static str = "a number, or the name of a service; 0 is any free port, and `7777+` the \
                                  first free one from 7777 on";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let first = text.strip_suffix('+').and_then(|number| u16::from_arg(number, names).ok());
        match first.filter(|&port| port > 0) {
            Some(port) => Ok(ListenPort { port, or_next: true }),
            None => Ok(ListenPort { port: TcpPort::from_arg(text, names)?.0, or_next: false }),
        }
    }
}

impl fmt::Display for ListenPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.port, if self.or_next { "+" } else { "" })
    }
}

impl fmt::Display for UdpPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TcpPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{TCP_PORT, UDP_PORT};

    #[test]
    fn ports_have_numbers_and_names_by_protocol() {
        let declared = [("al", format!("{UDP_PORT}4000")), ("all", format!("{TCP_PORT}5000"))];
        let declared = declared.map(|(name, port)| (name.to_owned(), port));
        let names = Names::new(&declared, None);
        for (text, udp, tcp) in [
            ("80", Some(80), Some(80)),
            ("al", Some(4000), None),
            ("all", None, Some(5000)),
            ("domain", Some(53), Some(53)),
            ("65536", None, None),
            ("no-such-service", None, None),
        ] {
            assert_eq!(UdpPort::from_arg(text, &names).ok().map(|it| it.0), udp, "{text}");
            assert_eq!(TcpPort::from_arg(text, &names).ok().map(|it| it.0), tcp, "{text}");
        }
    }
}
