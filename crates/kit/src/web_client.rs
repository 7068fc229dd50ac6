//! A TCP client that asks a server for one page: the least of TCP that a server needs to answer.
//!
//! There is no clock and there are no packets: callers pass segments and send those that they get.

use castanet_wire::Tcp;
use castanet_wire::tcp::{flag, precedes};

/// A connection of the client, from its SYN on.
#[derive(Clone, Debug)]
pub struct WebConnection {
    first_seq: u32,
    /// The first of the client's bytes that is not acknowledged.
    unacknowledged: u32,
    /// The client's next sequence number, not counting its FIN.
    next_seq: u32,
    /// The server's next sequence number, once it has answered.
    ack: Option<u32>,
    has_sent_fin: bool,
    has_received_fin: bool,
    is_owing: bool,
    request: Vec<u8>,
}

/// A segment to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientSegment<'a> {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// The request, or nothing.
    pub data: &'a [u8],
}

/// Progress of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionProgress {
    /// It goes on.
    Open,
    /// Both sides have closed it; the client's last segment is due.
    Complete,
    /// The server has refused or ended it.
    Reset,
}

impl WebConnection {
    /// A connection that begins with this sequence number and sends this request, which is not empty.
    pub fn new(first_seq: u32, request: Vec<u8>) -> WebConnection {
        WebConnection {
            first_seq,
            unacknowledged: first_seq,
            next_seq: first_seq,
            ack: None,
            has_sent_fin: false,
            has_received_fin: false,
            is_owing: false,
            request,
        }
    }

    /// Whether the server has answered the SYN.
    pub fn is_connected(&self) -> bool {
        self.ack.is_some()
    }

    /// Takes a segment of the server with `data_len` bytes of data.
    pub fn receive(&mut self, tcp: &Tcp, data_len: u32) -> ConnectionProgress {
        if tcp.is_rst() {
            return ConnectionProgress::Reset;
        }
        let start = self.first_seq.wrapping_add(1);
        let end = tcp.seq().wrapping_add(data_len);
        match self.ack {
            None if tcp.is_ack() && tcp.ack() == start => {
                (self.next_seq, self.unacknowledged) = (start, start);
                self.ack = Some(tcp.seq().wrapping_add(1));
                self.is_owing = true;
            }
            None => return ConnectionProgress::Open,
            Some(ack) if data_len > 0 => {
                self.is_owing = true;
                if precedes(ack, end) {
                    self.ack = Some(end);
                }
            }
            Some(_) => {}
        }
        if tcp.is_ack() && precedes(self.unacknowledged, tcp.ack()) {
            self.unacknowledged = tcp.ack();
        }
        if tcp.is_fin() && !self.has_received_fin && self.ack == Some(end) {
            self.has_received_fin = true;
            self.ack = Some(end.wrapping_add(1));
            self.is_owing = true;
        }
        match self.has_received_fin {
            true => ConnectionProgress::Complete,
            false => ConnectionProgress::Open,
        }
    }

    /// The segment that is due: the SYN, the request with FIN until it is acknowledged, or an
    /// acknowledgment. `None` if the server is to send the next one.
    pub fn next_segment(&mut self) -> Option<ClientSegment<'_>> {
        let Some(ack) = self.ack else {
            return Some(ClientSegment { seq: self.next_seq, ack: 0, flags: flag::SYN, data: &[] });
        };
        let start = self.first_seq.wrapping_add(1);
        let acknowledged = self.unacknowledged.wrapping_sub(start) as usize;
        if acknowledged < self.request.len() {
            self.next_seq = start.wrapping_add(self.request.len() as u32);
            (self.has_sent_fin, self.is_owing) = (true, false);
            let flags = flag::ACK | flag::PSH | flag::FIN;
            return Some(ClientSegment { seq: start, ack, flags, data: &self.request });
        }
        if !std::mem::take(&mut self.is_owing) {
            return None;
        }
        let seq = self.next_seq.wrapping_add(u32::from(self.has_sent_fin));
        Some(ClientSegment { seq, ack, flags: flag::ACK, data: &[] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(seq: u32, ack: u32, flags: u8) -> Tcp {
        let mut tcp = Tcp::default();
        tcp.set_seq(seq);
        tcp.set_ack(ack);
        tcp.set_flags(flags);
        tcp
    }

    #[test]
    fn a_page_is_fetched() {
        let mut client = WebConnection::new(u32::MAX - 1, b"GET /".to_vec());
        let syn = client.next_segment().unwrap();
        assert_eq!((syn.seq, syn.flags), (u32::MAX - 1, flag::SYN));
        // A segment that answers nothing of this connection.
        assert_eq!(client.receive(&segment(7, 3, flag::ACK), 0), ConnectionProgress::Open);
        assert!(!client.is_connected());
        let answer = segment(70, u32::MAX, flag::SYN | flag::ACK);
        assert_eq!(client.receive(&answer, 0), ConnectionProgress::Open);
        for _ in 0..2 {
            // Until it is acknowledged, it is due.
            let request = client.next_segment().unwrap();
            assert_eq!((request.seq, request.ack, request.data), (u32::MAX, 71, &b"GET /"[..]));
            assert_eq!(request.flags, flag::ACK | flag::PSH | flag::FIN);
        }
        assert_eq!(client.receive(&segment(71, 5, flag::ACK), 0), ConnectionProgress::Open);
        assert_eq!(client.next_segment(), None);
        assert_eq!(client.receive(&segment(71, 5, flag::ACK), 9), ConnectionProgress::Open);
        assert_eq!(client.next_segment().map(|it| (it.seq, it.ack)), Some((5, 80)));
        let last = segment(80, 5, flag::ACK | flag::FIN);
        assert_eq!(client.receive(&last, 3), ConnectionProgress::Complete);
        let last = client.next_segment().unwrap();
        assert_eq!((last.seq, last.ack, last.flags), (5, 84, flag::ACK));
    }

    #[test]
    fn a_server_refuses() {
        let mut client = WebConnection::new(9, b"GET /".to_vec());
        let refusal = segment(0, 10, flag::RST | flag::ACK);
        assert_eq!(client.receive(&refusal, 0), ConnectionProgress::Reset);
    }
}
