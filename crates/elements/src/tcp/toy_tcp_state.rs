//! State of `ToyTCP`: its connection.

use castanet_element::prelude::*;
use castanet_element::wire::Tcp;
use castanet_element::wire::tcp::flag;

/// Windows of most segments, and of every fourth one.
const WINDOWS: [u16; 2] = [60 * 1024, 30 * 1024];

/// The connection, and counts of segments.
#[derive(Default, Local)]
pub struct ToyTCPState {
    pub(super) port: u16,
    pub(super) first_seq: u32,
    /// The next number of the other side, once the connection is open.
    pub(super) ack: Option<u32>,
    pub(super) was_reset: bool,
    pub(super) since_growth: u32,
    since_small_window: u32,
    pub(super) good: u32,
    pub(super) bad: u32,
    pub(super) sent: u32,
}

impl ToyTCPState {
    /// Begins a connection that is not open yet.
    pub(super) fn restart(&mut self, now: Time) {
        let (seconds, nanos) = (now.nanos() / 1_000_000_000, now.nanos() % 1_000_000_000);
        self.port = 1024 + (nanos / 1000 % 60_000) as u16;
        self.first_seq = seconds as u32 & 0x0fff_ffff;
        (self.ack, self.was_reset) = (None, false);
        (self.since_growth, self.since_small_window) = (0, 0);
    }

    /// Makes the next segment to a port; its bytes, and how many of them there are.
    pub(super) fn segment(&mut self, dst_port: u16) -> ([u8; Tcp::LEN + 1], usize) {
        let mut tcp = Tcp::default();
        tcp.set_src_port(self.port);
        tcp.set_dst_port(dst_port);
        let (seq, flags) = match self.ack {
            None => (self.first_seq, flag::SYN),
            Some(_) => (self.first_seq.wrapping_add(2 + (self.sent & 0xfff)), flag::ACK),
        };
        tcp.set_seq(seq);
        tcp.set_ack(self.ack.unwrap_or(0));
        tcp.set_flags(flags);
        let is_small = self.since_small_window == 3;
        self.since_small_window = if is_small { 0 } else { self.since_small_window + 1 };
        tcp.set_window(WINDOWS[usize::from(is_small)]);
        self.sent = self.sent.wrapping_add(1);
        let mut bytes = [0; Tcp::LEN + 1];
        bytes[..Tcp::LEN].copy_from_slice(tcp.bytes());
        (bytes, Tcp::LEN + usize::from(self.ack.is_some()))
    }
}
