//! `PortInfo`: names TCP and UDP ports.

use castanet_element::args::{TCP_PORT, UDP_PORT};
use castanet_element::prelude::*;

/// Gives names to TCP and UDP ports, for use in patterns and as ports in arguments.
///
/// An argument reads as a line of /etc/services: a name, a port, and further names of it. With `/tcp`
/// or `/udp` behind the port, names are those of one protocol, else of both. A `#` begins a comment.
/// Names hold in the compound of the `PortInfo` and in those inside, where inner names come before
/// outer ones; other names are those of well-known services and of the machine's /etc/services.
///
/// ```click
/// PortInfo(game 5555, chat 6666/udp talk # two names, # nothing,)
/// in -> c :: IPClassifier(dst port game, dst udp port talk) -> a;  c[1] -> b
/// in2 -> UDPIPEncap(1.0.0.1, chat, 2.0.0.2, domain) -> out
/// > in 1.0.0.1:1 > 2.0.0.2:6666 udp
/// > in 1.0.0.1:1 > 2.0.0.2:5555 udp
/// < a  1.0.0.1:1 > 2.0.0.2:5555 udp
/// < b  1.0.0.1:1 > 2.0.0.2:6666 udp
/// > in2 hex 41
/// < out 1.0.0.1:6666 > 2.0.0.2:53 udp ttl 250 "A"
/// ```
#[derive(Element)]
#[element(room = "info")]
pub struct PortInfo {
    /// A name, its port, and further names.
    #[arg(rest)]
    ports: Vec<Words>,
}

impl Info for PortInfo {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in &self.ports {
            let line = argument.text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, aliases @ ..] = words.as_slice() else { continue };
            let wrong = |message: String| {
                ArgError::new(message)
                    .click("expected 'NAME PORT/PROTO'")
                    .help("a name, its port and further names, as in `game 5555/udp play`")
            };
            let Some((port, aliases)) = aliases.split_first() else {
                return Err(wrong(format!("`{name}` has no port")));
            };
            let (number, protocol) = port.split_once('/').unwrap_or((port, ""));
            let number = u16::from_arg(number, &Names::default());
            let number = number.map_err(|_| wrong(format!("`{port}` is no port of TCP or UDP")))?;
            let kinds = match protocol {
                "" => &[TCP_PORT, UDP_PORT][..],
                "tcp" => &[TCP_PORT],
                "udp" => &[UDP_PORT],
                // Names of other protocols are those of no argument.
                _ => &[],
            };
            for name in [name].into_iter().chain(aliases) {
                let declare =
                    |kind| facts.names.declare((*name).to_owned(), format!("{kind}{number}"));
                kinds.iter().for_each(declare);
            }
        }
        Ok(())
    }
}
