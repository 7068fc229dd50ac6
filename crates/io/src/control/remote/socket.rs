//! The socket by which a router in another process is called, and the packets on it.

use crate::control::protocol::{UNSPECIFIED, message};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socketpair};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The most bytes of a request, which is one packet.
pub const MOST_REQUEST: usize = 64 << 10;
/// The most bytes of an answer.
pub const MOST_ANSWER: usize = 1 << 20;
/// The most bytes of an answer in one packet.
pub(super) const PIECE: usize = 16 << 10;
/// Bytes before those of the request or the answer.
pub(super) const HEAD: usize = 9;

/// A packet: a request, or a piece of an answer.
///
/// ```text
/// 0        8         9
/// | number | is_last | bytes ...
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CallPacket<'a> {
    /// The number of the call, which the calling side chooses; little-endian.
    pub(super) number: u64,
    /// Whether it is the last piece: 1 or 0.
    pub(super) is_last: bool,
    pub(super) bytes: &'a [u8],
}

impl<'a> CallPacket<'a> {
    /// The packet of these bytes; `None` if they are none.
    pub(super) fn parse(packet: &'a [u8]) -> Option<CallPacket<'a>> {
        let (number, rest) = packet.split_first_chunk()?;
        let (last, bytes) = rest.split_first()?;
        let is_last = match last {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(CallPacket { number: u64::from_le_bytes(*number), is_last, bytes })
    }

    fn to_bytes(self) -> Vec<u8> {
        let head = [self.number.to_le_bytes().as_slice(), &[u8::from(self.is_last)]].concat();
        [&head, self.bytes].concat()
    }
}

/// One end of a connection of packets to another process.
pub struct CallSocket(OwnedFd);

impl CallSocket {
    /// Two ends.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn pair() -> io::Result<(CallSocket, CallSocket)> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (near, far) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok((CallSocket(near), CallSocket(far)))
    }

    pub(super) fn send(&self, packet: CallPacket<'_>, flags: SendFlags) -> io::Result<()> {
        send(&self.0, &packet.to_bytes(), flags | SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Receives a packet; returns its number of bytes, 0 at the end of the connection.
    pub(super) fn receive(&self, room: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        let (len, _) = recv(&self.0, room, flags)?;
        Ok(len)
    }

    /// Waits for the next request; returns its number and its bytes, `None` at the end of the connection.
    ///
    /// # Errors
    /// The system's.
    pub fn next_request(&self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let mut room = vec![0; HEAD + MOST_REQUEST];
        loop {
            let len = match self.receive(&mut room, RecvFlags::empty()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                received => received?,
            };
            match CallPacket::parse(&room[..len]) {
                Some(packet) => return Ok(Some((packet.number, packet.bytes.to_vec()))),
                None if len == 0 => return Ok(None),
                None => {}
            }
        }
    }

    /// Sends the answer to the request of a number. An answer that is too long is replaced by the reason.
    ///
    /// # Errors
    /// The calling side has gone.
    pub fn answer(&self, number: u64, answer: &[u8]) -> io::Result<()> {
        let too_long = (answer.len() > MOST_ANSWER).then(|| {
            let text = format!("the answer has {} bytes, of {MOST_ANSWER} allowed", answer.len());
            message(UNSPECIFIED, &text)
        });
        let answer = too_long.as_deref().unwrap_or(answer);
        let mut pieces = answer.chunks(PIECE).peekable();
        while let Some(bytes) = pieces.next() {
            let is_last = pieces.peek().is_none();
            self.send(CallPacket { number, is_last, bytes }, SendFlags::empty())?;
        }
        Ok(())
    }
}

impl From<OwnedFd> for CallSocket {
    fn from(socket: OwnedFd) -> CallSocket {
        CallSocket(socket)
    }
}

impl AsFd for CallSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_are_understood_and_any_bytes_are_a_packet_or_refused(
            number: u64, is_last: bool, bytes: Vec<u8>, noise: Vec<u8>,
        ) {
            let packet = CallPacket { number, is_last, bytes: &bytes };
            let sent = packet.to_bytes();
            prop_assert_eq!(CallPacket::parse(&sent), Some(packet));
            if let Some(packet) = CallPacket::parse(&noise) {
                prop_assert_eq!(packet.to_bytes(), noise);
            }
        }
    }
}
