//! FTP's commands that say where data is to be sent (RFC 959, 4.1.2; RFC 2428, 2).

use castanet_wire::checksum::Delta;
use castanet_wire::{Ipv4Header, Tcp};
use std::net::Ipv4Addr;
use std::ops::Range;

/// Such a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Where the client listens.
    pub address: Ipv4Addr,
    /// On which port.
    pub port: u16,
    /// Where that is said.
    pub argument: Range<usize>,
    extended: bool,
}

impl Command {
    /// The argument for another address and port.
    pub fn with(&self, address: Ipv4Addr, port: u16) -> String {
        if self.extended {
            return format!("|1|{address}|{port}|");
        }
        let [a, b, c, d] = address.octets();
        let [high, low] = port.to_be_bytes();
        format!("{a},{b},{c},{d},{high},{low}")
    }
}

/// The command that a segment begins with, if it is one that says where data is to be sent, and
/// whole.
pub fn command(data: &[u8]) -> Option<Command> {
    let (word, rest) = data.split_at_checked(4)?;
    let extended = word.eq_ignore_ascii_case(b"EPRT");
    if !extended && !word.eq_ignore_ascii_case(b"PORT") {
        return None;
    }
    let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
    let argument = rest.get(spaces..).filter(|_| spaces > 0)?;
    let length = argument.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
    let text = std::str::from_utf8(&argument[..length]).ok()?;
    let (address, port) = if extended { extended_port(text)? } else { plain_port(text)? };
    let start = word.len() + spaces;
    Some(Command { address, port, argument: start..start + length, extended })
}

/// A TCP packet with other text in a place of its data, and checksums that are as right as they
/// were; `None` if it is none, or would be too long.
pub fn replace(datagram: &[u8], place: Range<usize>, text: &[u8]) -> Option<Vec<u8>> {
    let (ip, rest) = Ipv4Header::from_prefix(datagram)?;
    let (options, segment) = ip.split_options(rest)?;
    let (tcp, rest) = Tcp::from_prefix(segment)?;
    let (tcp_options, data) = tcp.split_options(rest)?;
    let mut new = data.to_vec();
    new.splice(data.get(place.clone()).map(|_| place)?, text.iter().copied());
    let (was, is) = (segment.len(), segment.len() + new.len() - data.len());
    let total = u16::try_from(ip.header_len() + is).ok()?;
    let (mut new_ip, mut new_tcp) = (*ip, *tcp);
    new_ip.rewrite_total_len(total);
    // Headers are whole words: so is what comes before the data.
    let delta = Delta::new().sum(ip.pseudo(was).slice(data), new_ip.pseudo(is).slice(&new));
    new_tcp.adjust_checksum(delta);
    Some([&new_ip.0, options, &new_tcp.0, tcp_options, &new].concat())
}

fn plain_port(text: &str) -> Option<(Ipv4Addr, u16)> {
    let mut numbers = text.split(',').map(decimal::<u8>);
    let mut next = || numbers.next().flatten();
    let address = [next()?, next()?, next()?, next()?];
    let port = [next()?, next()?];
    numbers.next().is_none().then(|| (address.into(), u16::from_be_bytes(port)))
}

fn extended_port(text: &str) -> Option<(Ipv4Addr, u16)> {
    let delimiter = text.chars().next()?;
    let mut parts = text.split(delimiter);
    let wanted = ["", "1"].into_iter().all(|it| parts.next() == Some(it));
    let address = parts.next()?.parse().ok().filter(|_| wanted)?;
    let port = decimal(parts.next()?)?;
    (parts.next() == Some("") && parts.next().is_none()).then_some((address, port))
}

fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.starts_with(|c: char| c.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_and_written() {
        let found = command(b"PORT 1,0,0,2,3,9\r\n").expect("a command");
        assert_eq!((found.address, found.port), (Ipv4Addr::new(1, 0, 0, 2), 777));
        assert_eq!(found.argument, 5..16);
        assert_eq!(found.with([1, 0, 0, 1].into(), 9000), "1,0,0,1,35,40");
        let found = command(b"eprt   |1|132.235.1.2|6275|\r\nNOOP\r\n").expect("a command");
        assert_eq!((found.address.to_string().as_str(), found.port), ("132.235.1.2", 6275));
        assert_eq!(found.argument, 7..27);
        assert_eq!(found.with([1, 0, 0, 1].into(), 9000), "|1|1.0.0.1|9000|");
    }

    #[test]
    fn replacing_mends_lengths_and_checksums() {
        let packet = |text: &str| {
            let sketch = format!("1.0.0.1:5 > 2.0.0.2:21 tcp ack 7 tcpopt nop;nop \"{text}\"");
            castanet_wire::sketch::build(&sketch).expect("is one").bytes
        };
        for (old, new) in
            [("PORT 1,2", "PORT 11,222"), ("PORT 11,222", "PORT 3"), ("PORT 1", "PORT ")]
        {
            let replaced = replace(&packet(old), 5..old.len(), &new.as_bytes()[5..]);
            assert_eq!(replaced.as_deref(), Some(&packet(new)[..]), "{old} {new}");
        }
        assert_eq!(replace(&packet("PORT"), 3..9, b"x"), None);
        assert_eq!(replace(&packet("PORT"), 0..4, &[b'x'; 65_536]), None);
        assert_eq!(replace(&packet("PORT")[..43], 0..0, b"x"), None);
    }

    #[test]
    fn what_is_no_whole_command_is_none() {
        for text in [
            "",
            "PORT",
            "PORT ",
            "PORT 1,2,3,4,5,6",
            "PORT 1,2,3,4,5\r\n",
            "PORT1,2,3,4,5,6\r\n",
            "PORT 1,2,3,4,5,256\r\n",
            "PORT 1,2,3,4,5,6,7\r\n",
            "PORT 1,,3,4,5,6\r\n",
            "PASV\r\n",
            "PORT +1,2,3,4,5,6\r\n",
            "EPRT |2|::1|5|\r\n",
            "EPRT |1|1.2.3.4|5\r\n",
            "EPRT |1|1.2.3|5|\r\n",
            "EPRT \r\n",
            "EPRT |1|1.2.3.4|65536|\r\n",
            "PORT \u{e9},2,3,4,5,6\r\n",
        ] {
            assert_eq!(command(text.as_bytes()), None, "{text}");
        }
        assert_eq!(command(b"PORT \xff,2,3,4,5,6\r\n"), None);
    }
}
