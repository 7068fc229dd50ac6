//! Packets against a naive model: a vector of bytes and offsets into it.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Packet, Pool, PoolConfig, anno};
use proptest::prelude::*;
use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a packet should be. Nothing is shared: a clone is a clone.
#[derive(Clone)]
struct Model {
    /// Bytes before the contents, as far as a known header reaches.
    before: Vec<u8>,
    bytes: Vec<u8>,
    mac: Option<isize>,
    network: Option<isize>,
    transport: Option<isize>,
    annotations: [u8; 48],
    timestamp: i64,
}

impl Model {
    fn new(bytes: &[u8]) -> Model {
        Model {
            before: Vec::new(),
            bytes: bytes.to_vec(),
            mac: None,
            network: None,
            transport: None,
            annotations: [0; 48],
            timestamp: 0,
        }
    }

    /// Moves all headers by `by`, as the first byte moves the other way.
    fn shift_headers(&mut self, by: isize) {
        for header in [&mut self.mac, &mut self.network, &mut self.transport] {
            *header = header.map(|offset| offset + by);
        }
    }

    /// Forgets the bytes before the contents that no header covers: a packet
    /// that moves to another frame leaves them behind.
    fn trim(&mut self) {
        let headers = [self.mac, self.network, self.transport];
        let lead = headers.into_iter().flatten().min().unwrap_or(0).min(0).unsigned_abs();
        let excess = self.before.len().saturating_sub(lead);
        self.before.drain(..excess);
    }

    /// The bytes from a header on.
    fn from(&self, header: Option<isize>) -> Vec<u8> {
        let Some(offset) = header else { return Vec::new() };
        if offset < 0 {
            let start = self.before.len() - offset.unsigned_abs();
            return [&self.before[start..], &self.bytes].concat();
        }
        self.bytes.get(offset as usize..).unwrap_or_default().to_vec()
    }

    /// Where byte `at` after the network header lies.
    fn network_byte(&mut self, at: usize) -> &mut u8 {
        let position = self.network.unwrap() + at as isize;
        match usize::try_from(position) {
            Ok(position) => &mut self.bytes[position],
            Err(_) => {
                let start = self.before.len() - position.unsigned_abs();
                &mut self.before[start]
            }
        }
    }

    fn is_ipv4(&self) -> bool {
        let bytes = self.from(self.network);
        bytes.len() >= 20 && bytes[0] >> 4 == 4
    }
}

#[derive(Clone, Debug)]
enum Op {
    Pull(usize),
    Push(usize, u8),
    Put(usize),
    Take(usize),
    Truncate(usize),
    Replace(usize, u8),
    Shift(isize),
    Mac(isize),
    Network(isize, usize),
    Transport(isize),
    ClearMac,
    ClearNetwork,
    ClearTransport,
    Share,
    Copy,
    Drop,
    Write(usize, u8),
    Ttl(u8),
    Payload(usize, u8),
    Anno8(usize, u8),
    Anno32(usize, u32),
    Timestamp(i64),
    Paint(u8),
    Dst([u8; 4]),
    /// A view by its number, and what is done to the packet under it.
    View(u8, Under),
}

/// What is done to a packet while a view has it.
#[derive(Clone, Copy, Debug)]
enum Under {
    Nothing,
    ClearNetwork,
    ClearTransport,
    Truncate(usize),
    Pull(usize),
    Transport(isize),
}

fn op() -> impl Strategy<Value = Op> {
    let n = || prop_oneof![0..64usize, Just(14), Just(20), 0..400usize];
    prop_oneof![
        4 => n().prop_map(Op::Pull),
        4 => (n(), any::<u8>()).prop_map(|(n, fill)| Op::Push(n, fill)),
        1 => n().prop_map(Op::Put),
        1 => n().prop_map(Op::Take),
        1 => n().prop_map(Op::Truncate),
        1 => (n(), prop_oneof![Just(0x45), any::<u8>()]).prop_map(|(n, fill)| Op::Replace(n, fill)),
        1 => (-200..200isize).prop_map(Op::Shift),
        1 => (-20..40isize).prop_map(Op::Mac),
        2 => (-20..40isize, 0..60usize).prop_map(|(at, len)| Op::Network(at, len)),
        2 => Just(Op::Network(14, 20)),
        1 => (-20..80isize).prop_map(Op::Transport),
        1 => Just(Op::ClearMac),
        1 => Just(Op::ClearNetwork),
        1 => Just(Op::ClearTransport),
        3 => Just(Op::Share),
        1 => Just(Op::Copy),
        2 => Just(Op::Drop),
        1 => (0..200usize, any::<u8>()).prop_map(|(at, value)| Op::Write(at, value)),
        3 => any::<u8>().prop_map(Op::Ttl),
        1 => (0..60usize, any::<u8>()).prop_map(|(at, value)| Op::Payload(at, value)),
        1 => (0..48usize, any::<u8>()).prop_map(|(at, value)| Op::Anno8(at, value)),
        1 => (0..45usize, any::<u32>()).prop_map(|(at, value)| Op::Anno32(at, value)),
        1 => any::<i64>().prop_map(Op::Timestamp),
        1 => any::<u8>().prop_map(Op::Paint),
        1 => any::<[u8; 4]>().prop_map(Op::Dst),
        4 => (0..7u8, under()).prop_map(|(view, under)| Op::View(view, under)),
    ]
}

fn under() -> impl Strategy<Value = Under> {
    prop_oneof![
        Just(Under::Nothing),
        Just(Under::ClearNetwork),
        Just(Under::ClearTransport),
        (0..100usize).prop_map(Under::Truncate),
        (0..100usize).prop_map(Under::Pull),
        (-20..80isize).prop_map(Under::Transport),
    ]
}

/// The operations on the contents.
fn change(packet: &mut Packet, model: &mut Model, op: &Op) {
    match *op {
        Op::Pull(n) => {
            let fits = n <= model.bytes.len();
            assert_eq!(packet.pull_front(n), fits);
            if fits {
                model.before.extend(model.bytes.drain(..n));
                model.shift_headers(-(n as isize));
            }
        }
        Op::Push(n, fill) => {
            let new = packet.push_front(n);
            assert_eq!(new.len(), n);
            new.fill(fill);
            model.bytes.splice(0..0, vec![fill; n]);
            model.before.truncate(model.before.len().saturating_sub(n));
            model.shift_headers(n as isize);
        }
        Op::Put(n) => {
            assert_eq!(packet.put_back(n), vec![0; n]);
            model.bytes.extend(vec![0; n]);
        }
        Op::Take(n) => {
            let fits = n <= model.bytes.len();
            assert_eq!(packet.take_back(n), fits);
            model.bytes.truncate(model.bytes.len() - if fits { n } else { 0 });
        }
        Op::Truncate(n) => {
            packet.truncate(n);
            model.bytes.truncate(n);
        }
        Op::Replace(n, fill) => {
            packet.replace_contents(&vec![fill; n]);
            model.before.clear();
            model.bytes = vec![fill; n];
            (model.mac, model.network, model.transport) = (None, None, None);
        }
        Op::Shift(by) => {
            let address = packet.bytes().as_ptr().addr().wrapping_add_signed(by);
            packet.shift_data(by);
            assert_eq!(packet.bytes().as_ptr().addr() % 64, address % 64);
        }
        Op::Write(at, value) => {
            if let Some(byte) = packet.bytes_mut().get_mut(at) {
                *byte = value;
                model.bytes[at] = value;
            }
        }
        Op::View(view, under) => look(packet, model, view, under),
        _ => mark(packet, model, op),
    }
    model.trim();
}

/// Where bytes lie.
fn place(bytes: &[u8]) -> std::ops::Range<usize> {
    let range = bytes.as_ptr_range();
    range.start.addr()..range.end.addr()
}

/// Sees a packet through a view while something is done to it, and asks for all bytes that the
/// view has: they are the packet's, or those of its headers before it, or the view panics.
fn look(packet: &mut Packet, model: &mut Model, view: u8, under: Under) {
    let before = model.before.len();
    let mut changed = model.clone();
    let op = match under {
        Under::Nothing => None,
        Under::ClearNetwork => Some(Op::ClearNetwork),
        Under::ClearTransport => Some(Op::ClearTransport),
        Under::Truncate(n) => Some(Op::Truncate(n)),
        Under::Pull(n) => Some(Op::Pull(n)),
        Under::Transport(at) => Some(Op::Transport(at.max(-(before as isize)))),
    };
    macro_rules! ask {
        ($view:ident, [$($more:ident)*]) => {
            packet.$view().map(|mut view| {
                op.iter().for_each(|op| change(view.packet_mut(), &mut changed, op));
                let asked = catch_unwind(AssertUnwindSafe(|| {
                    vec![
                        // The first writer copies what is shared.
                        place(view.payload_mut()),
                        place(view.payload()),
                        place(view.bytes()),
                        $(place(view.$more()),)*
                    ]
                }));
                (asked.unwrap_or_default(), place(view.packet().bytes()))
            })
        };
    }
    let seen = match view {
        0 => ask!(ether, []),
        1 => ask!(arp, []),
        2 => ask!(ipv6, [datagram datagram_mut]),
        3 => ask!(udp, []),
        4 => ask!(tcp, [options options_mut]),
        5 => ask!(icmp, []),
        _ => ask!(icmp6, []),
    };
    let Some((asked, whole)) = seen else { return };
    let whole = whole.start - changed.before.len()..whole.end;
    for bytes in asked.iter().filter(|bytes| !bytes.is_empty()) {
        assert!(whole.start <= bytes.start && bytes.end <= whole.end, "{bytes:?} of {whole:?}");
    }
    *model = changed;
}

/// The operations on headers and annotations.
fn mark(packet: &mut Packet, model: &mut Model, op: &Op) {
    let within = |at: isize, model: &Model| at.max(-(model.before.len() as isize));
    match *op {
        Op::Mac(at) => {
            model.mac = Some(within(at, model));
            packet.set_mac_header(within(at, model));
        }
        Op::Network(at, len) => {
            let at = within(at, model);
            model.network = Some(at);
            model.transport = Some(at + len as isize);
            packet.set_network_header(at, len);
        }
        Op::Transport(at) => {
            model.transport = Some(within(at, model));
            packet.set_transport_header(within(at, model));
        }
        Op::ClearMac => {
            model.mac = None;
            packet.clear_mac_header();
        }
        Op::ClearNetwork => {
            model.network = None;
            packet.clear_network_header();
        }
        Op::ClearTransport => {
            model.transport = None;
            packet.clear_transport_header();
        }
        Op::Ttl(ttl) => {
            let view = packet.ipv4();
            assert_eq!(view.is_some(), model.is_ipv4());
            if let Some(mut ip) = view {
                ip.set_ttl(ttl);
                *model.network_byte(8) = ttl;
            }
        }
        Op::Payload(at, value) => {
            if let Some(mut ip) = packet.ipv4() {
                let start = ip.header_len().max(20);
                if let Some(byte) = ip.payload_mut().get_mut(at) {
                    *byte = value;
                    *model.network_byte(start + at) = value;
                }
            }
        }
        _ => annotate(packet, model, op),
    }
}

/// The operations on annotations.
fn annotate(packet: &mut Packet, model: &mut Model, op: &Op) {
    match *op {
        Op::Anno8(at, value) => {
            packet.set_anno_u8(at, value);
            model.annotations[at] = value;
        }
        Op::Anno32(at, value) => {
            packet.set_anno_u32(at, value);
            model.annotations[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        Op::Timestamp(value) => {
            packet.set_timestamp(value);
            model.timestamp = value;
        }
        Op::Paint(value) => {
            packet.set_paint(value);
            model.annotations[anno::PAINT] = value;
        }
        Op::Dst(value) => {
            packet.set_dst(Ipv4Addr::from(value));
            model.annotations[..4].copy_from_slice(&value);
        }
        _ => unreachable!("{op:?}"),
    }
    // This one is a flag.
    let fix = &mut model.annotations[anno::FIX_IP_SRC];
    *fix = u8::from(*fix != 0);
}

fn check(packet: &Packet, model: &Model) {
    assert_eq!(packet.bytes(), model.bytes);
    assert_eq!(packet.len(), model.bytes.len());
    assert_eq!(packet.mac_offset(), model.mac);
    assert_eq!(packet.network_offset(), model.network);
    assert_eq!(packet.transport_offset(), model.transport);
    assert_eq!(packet.network_bytes(), model.from(model.network));
    assert_eq!(packet.transport_bytes(), model.from(model.transport));
    assert_eq!(packet.ipv4_header().is_some(), model.is_ipv4());
    assert_eq!(packet.annotations(), model.annotations);
    assert_eq!(packet.paint(), model.annotations[anno::PAINT]);
    assert_eq!(packet.dst().octets(), model.annotations[..4]);
    assert_eq!(packet.timestamp(), model.timestamp);
}

/// Runs operations on a growing and shrinking set of packets.
fn run(first: Packet, bytes: &[u8], ops: &[(usize, Op)]) {
    let mut pairs = vec![(first, Model::new(bytes))];
    for (which, op) in ops {
        let index = which % pairs.len();
        let count = pairs.len();
        let (packet, model) = &mut pairs[index];
        match op {
            Op::Share | Op::Copy => {
                let twin = if matches!(op, Op::Share) { packet.share() } else { packet.copy() };
                let model = model.clone();
                pairs.push((twin, model));
            }
            Op::Drop if count > 1 => drop(pairs.swap_remove(index)),
            Op::Drop => {}
            _ => change(packet, model, op),
        }
        pairs.iter().for_each(|(packet, model)| check(packet, model));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn packets_behave_like_the_model(
        len in 0..300usize,
        heap in any::<bool>(),
        frames in 1..12usize,
        ops in prop::collection::vec((0..8usize, op()), 0..60),
    ) {
        let mut bytes = vec![0x5a; len];
        if let Some(byte) = bytes.get_mut(14) {
            *byte = 0x45;
        }
        let config = PoolConfig { frames, data_capacity: 256, headroom: 64, ..PoolConfig::default() };
        let pool = Pool::new(config).unwrap();
        let packet = if heap { Packet::from_bytes(&bytes) } else { pool.copy_in(&bytes).unwrap() };
        run(packet, &bytes, &ops);
        prop_assert_eq!(pool.in_use(), 0);
    }
}
