//! FTP's commands that announce an address for data (RFC 959, 4.1.2; RFC 2428, 2).

use castanet_wire::checksum::Delta;
use castanet_wire::{Ipv4Header, Tcp};
use std::net::Ipv4Addr;
use std::ops::Range;

/// A `PORT` or `EPRT` command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortCommand {
    /// The address on which the client listens.
    pub address: Ipv4Addr,
    /// The port on which it listens.
    pub port: u16,
    /// The range of the argument in the segment's data.
    pub argument: Range<usize>,
    extended: bool,
}

impl PortCommand {
    /// The argument for another address and port.
    pub fn argument_for(&self, address: Ipv4Addr, port: u16) -> String {
        if self.extended {
            return format!("|1|{address}|{port}|");
        }
        let [a, b, c, d] = address.octets();
        let [high, low] = port.to_be_bytes();
        format!("{a},{b},{c},{d},{high},{low}")
    }
}

/// Parses the command at the start of a segment; `None` if it is another command or incomplete.
pub fn parse_port_command(data: &[u8]) -> Option<PortCommand> {
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
    Some(PortCommand { address, port, argument: start..start + length, extended })
}

/// Returns a TCP packet with `range` of its data replaced by `text`. The checksums are updated, and
/// are correct if they were before. `None` if the packet is no TCP packet or would be too long.
pub fn replace_data(datagram: &[u8], range: Range<usize>, text: &[u8]) -> Option<Vec<u8>> {
    let (ip, rest) = Ipv4Header::from_prefix(datagram)?;
    let (options, segment) = ip.split_options(rest)?;
    let (tcp, rest) = Tcp::from_prefix(segment)?;
    let (tcp_options, data) = tcp.split_options(rest)?;
    let mut new = data.to_vec();
    new.splice(data.get(range.clone()).map(|_| range)?, text.iter().copied());
    let (old_len, new_len) = (segment.len(), segment.len() + new.len() - data.len());
    let total = u16::try_from(ip.header_len() + new_len).ok()?;
    let (mut new_ip, mut new_tcp) = (*ip, *tcp);
    new_ip.rewrite_total_len(total);
    // Headers are multiples of 16 bits: the data starts at an even offset of the sum.
    let delta =
        Delta::new().sum(ip.pseudo(old_len).slice(data), new_ip.pseudo(new_len).slice(&new));
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
    let is_ipv4 = ["", "1"].into_iter().all(|it| parts.next() == Some(it));
    let address = parts.next()?.parse().ok().filter(|_| is_ipv4)?;
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
        let found = parse_port_command(b"PORT 1,0,0,2,3,9\r\n").expect("a command");
        assert_eq!((found.address, found.port), (Ipv4Addr::new(1, 0, 0, 2), 777));
        assert_eq!(found.argument, 5..16);
        assert_eq!(found.argument_for([1, 0, 0, 1].into(), 9000), "1,0,0,1,35,40");
        let found =
            parse_port_command(b"eprt   |1|132.235.1.2|6275|\r\nNOOP\r\n").expect("a command");
        assert_eq!((found.address.to_string().as_str(), found.port), ("132.235.1.2", 6275));
        assert_eq!(found.argument, 7..27);
        assert_eq!(found.argument_for([1, 0, 0, 1].into(), 9000), "|1|1.0.0.1|9000|");
    }

    #[test]
    fn replacing_updates_lengths_and_checksums() {
        let packet = |text: &str| {
            let sketch = format!("1.0.0.1:5 > 2.0.0.2:21 tcp ack 7 tcpopt nop;nop \"{text}\"");
            castanet_wire::sketch::build(&sketch).expect("is one").bytes
        };
        for (old, new) in
            [("PORT 1,2", "PORT 11,222"), ("PORT 11,222", "PORT 3"), ("PORT 1", "PORT ")]
        {
            let replaced = replace_data(&packet(old), 5..old.len(), &new.as_bytes()[5..]);
            assert_eq!(replaced.as_deref(), Some(&packet(new)[..]), "{old} {new}");
        }
        assert_eq!(replace_data(&packet("PORT"), 3..9, b"x"), None);
        assert_eq!(replace_data(&packet("PORT"), 0..4, &[b'x'; 65_536]), None);
        assert_eq!(replace_data(&packet("PORT")[..43], 0..0, b"x"), None);
    }

    #[test]
    fn other_or_incomplete_commands_are_none() {
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
            assert_eq!(parse_port_command(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_port_command(b"PORT \xff,2,3,4,5,6\r\n"), None);
    }
}
