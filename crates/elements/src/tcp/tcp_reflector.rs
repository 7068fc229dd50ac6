//! `TCPReflector`: answers TCP segments as a server without state.

use crate::ip::transport::write_tcp_headers;
use castanet_element::prelude::*;
use castanet_element::wire::tcp::flag;
use castanet_element::wire::{Ipv4Header, Tcp};

/// Answers TCP segments as a server that accepts all connections and keeps no state.
///
/// Packets begin with an IPv4 header. A SYN gets a SYN with ACK; data and FIN get
/// an ACK, with the packet's data unless STRIP_PAYLOAD is true; FIN also gets a
/// FIN. With DATA, an answer to data has DATA instead, and a FIN. The answer is
/// the same packet, sent back with TTL 250 and window 61440, and the destination
/// annotation set.
///
/// ```click
/// in -> r :: TCPReflector(RAND_SEQ false) -> out
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 7 tcpopt mss1460
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp seq 8 ack 1000008 psh "GET"
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp seq 11 ack 1000008 fin "!"
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp seq 11 ack 1000008
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 7 ack 9
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp rst seq 7
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  hex 41 00 00 28 00 00 00 00 40 06 00 00 01 00 00 01 02 00 00 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
/// < out 2.0.0.2:80 > 1.0.0.1:5 tcp syn seq 1000007 ack 8 tcpopt mss1460 win 61440 ttl 250 ; dst 1.0.0.1
/// < out 2.0.0.2:80 > 1.0.0.1:5 tcp seq 1000008 ack 11 win 61440 ttl 250 "GET"
/// < out 2.0.0.2:80 > 1.0.0.1:5 tcp fin seq 1000008 ack 13 win 61440 ttl 250 "!"
/// ~ Unknown ignored
/// ~ Packet too small for TCP
/// ~ Packet too small for IP
/// = r.drops.unknown 1
/// = r.drops.unanswerable 2
/// = r.drops.no_tcp 1
/// = r.drops.no_ip 1
/// ```
/// ```click
/// in -> TCPReflector(DATA "200 OK") -> out;  in2 -> TCPReflector(STRIP_PAYLOAD true) -> out2
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp seq 8 ack 9 ipopt 0x01010100 "GET /index"
/// > in2  1.0.0.1:5 > 2.0.0.2:80 tcp seq 8 ack 9 "GET /index"
/// < out  2.0.0.2:80 > 1.0.0.1:5 tcp fin seq 9 ack 18 win 61440 ttl 250 ipopt 0x01010100 "200 OK"
/// < out2 2.0.0.2:80 > 1.0.0.1:5 tcp seq 9 ack 18 win 61440 ttl 250
/// ```
#[derive(Element)]
#[element(room = "tcp", args = TCPReflectorArgs)]
pub struct TCPReflector {
    data: Vec<u8>,
    strip_payload: bool,
    rand_seq: bool,
}

#[derive(Args)]
pub struct TCPReflectorArgs {
    /// Payload of answers to data; empty to send the data back.
    #[arg(keyword, default = Data(Vec::new()))]
    data: Data,
    /// Whether answers have no payload, unless there is DATA.
    #[arg(keyword, default = false)]
    strip_payload: bool,
    /// Whether the first sequence number is random, not one million more than the client's.
    #[arg(keyword, default = true)]
    rand_seq: bool,
}

impl Build for TCPReflector {
    type Args = TCPReflectorArgs;
    fn build(args: TCPReflectorArgs, _: &Setup) -> Result<Self, ArgError> {
        let TCPReflectorArgs { data: Data(data), strip_payload, rand_seq } = args;
        if data.len() > MAX_DATA {
            return Err(ArgError::new(format!("at most {MAX_DATA} bytes")).at("DATA"));
        }
        Ok(TCPReflector { data, strip_payload, rand_seq })
    }
}

/// The most bytes of DATA, so that an answer with all options is no longer than 65535 bytes.
const MAX_DATA: usize = 65_415;
/// Time to live of answers.
const TTL: u8 = 250;
/// Window of answers.
const WINDOW: u16 = 60 * 1024;

#[derive(Fate)]
pub enum TCPReflectorExit {
    /// Answers.
    Answer,
    /// Packets shorter than an IPv4 header and a TCP header.
    #[drop]
    NoTcp,
    /// Packets whose IPv4 header is shorter than 20 bytes or longer than the packet.
    #[drop]
    NoIp,
    /// Segments with RST, or with SYN and another flag.
    #[drop]
    Unanswerable,
    /// Segments without data, SYN and FIN, such as the acknowledgments of answers.
    #[drop]
    Unknown,
}

/// The exit of a segment that gets no answer.
type Reflection = Result<(), TCPReflectorExit>;

impl PerBatch for TCPReflector {
    type On = on::Any;
    type Local = ();
    type Fate = TCPReflectorExit;

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        for mut packet in batch {
            let result = self
                .reflect(&mut packet, || cx.random_numbers().in_range(0, u32::MAX).swap_bytes());
            let exit = result.err().unwrap_or(TCPReflectorExit::Answer);
            match exit {
                TCPReflectorExit::NoTcp => cx.chatter("Packet too small for TCP"),
                TCPReflectorExit::NoIp => cx.chatter("Packet too small for IP"),
                TCPReflectorExit::Unknown => cx.chatter("Unknown ignored"),
                TCPReflectorExit::Answer | TCPReflectorExit::Unanswerable => {}
            }
            cx.emit(exit, packet);
        }
    }
}

impl TCPReflector {
    /// Turns a segment into its answer.
    fn reflect(&self, packet: &mut Packet, random: impl FnOnce() -> u32) -> Reflection {
        let len = packet.len();
        let header = Ipv4Header::from_prefix(packet.bytes()).map(|(ip, _)| *ip);
        let has_room = |_: &Ipv4Header| len >= Ipv4Header::LEN + Tcp::LEN;
        let mut ip = header.filter(has_room).ok_or(TCPReflectorExit::NoTcp)?;
        let tcp_offset = ip.header_len();
        if tcp_offset < Ipv4Header::LEN || tcp_offset > len {
            return Err(TCPReflectorExit::NoIp);
        }
        let tcp = Tcp::from_prefix(&packet.bytes()[tcp_offset..]).map(|(tcp, _)| *tcp);
        let mut tcp = tcp.ok_or(TCPReflectorExit::NoTcp)?;
        let data_offset = tcp_offset + tcp.header_len();
        let data_len = len.saturating_sub(data_offset);
        self.answer(&mut tcp, data_len as u32, random)?;
        if data_len > 0 && (self.strip_payload || !self.data.is_empty()) {
            packet.cut(data_offset);
            packet.put_back(self.data.len()).copy_from_slice(&self.data);
        }
        let (src, dst) = (ip.dst(), ip.src());
        ip.set_src(src);
        ip.set_dst(dst);
        ip.set_ttl(TTL);
        write_tcp_headers(packet, ip, tcp);
        packet.set_dst(dst);
        Ok(())
    }

    /// Turns the TCP header of a segment with `data_len` bytes of data into that of its answer.
    fn answer(&self, tcp: &mut Tcp, data_len: u32, random: impl FnOnce() -> u32) -> Reflection {
        let (seq, flags) = (tcp.seq(), tcp.flags() & !flag::PSH);
        let fin = flags & flag::FIN;
        tcp.mirror();
        if flags == flag::SYN {
            tcp.set_seq(if self.rand_seq { random() } else { seq.wrapping_add(1_000_000) });
            tcp.set_ack(seq.wrapping_add(1));
            tcp.set_flags(flag::SYN | flag::ACK);
        } else if flags & (flag::SYN | flag::RST) != 0 {
            return Err(TCPReflectorExit::Unanswerable);
        } else if data_len > 0 || fin != 0 {
            tcp.set_ack(seq.wrapping_add(data_len).wrapping_add(u32::from(fin != 0)));
            tcp.set_flags(flag::ACK | fin);
        } else {
            return Err(TCPReflectorExit::Unknown);
        }
        if data_len > 0 && !self.data.is_empty() {
            tcp.set_flags(tcp.flags() | flag::FIN);
        }
        tcp.set_window(WINDOW);
        Ok(())
    }
}
