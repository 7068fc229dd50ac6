//! Tests of packets against a model: a vector of bytes and offsets in it.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Packet, Pool, PoolConfig, anno};
use proptest::prelude::*;
use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The expected state of a packet. A clone copies all bytes.
#[derive(Clone)]
struct Model {
    /// Bytes before the contents, up to the first stripped header.
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

    /// Adds `delta` to all header offsets: the first byte moves in the other direction.
    fn shift_headers(&mut self, delta: isize) {
        for header in [&mut self.mac, &mut self.network, &mut self.transport] {
            *header = header.map(|offset| offset + delta);
        }
    }

    /// Removes the bytes before the contents that belong to no header: a packet
    /// that moves to another frame does not copy them.
    fn trim(&mut self) {
        let headers = [self.mac, self.network, self.transport];
        let lead = headers.into_iter().flatten().min().unwrap_or(0).min(0).unsigned_abs();
        let excess = self.before.len().saturating_sub(lead);
        self.before.drain(..excess);
    }

    /// The bytes from a header to the end.
    fn from(&self, header: Option<isize>) -> Vec<u8> {
        let Some(offset) = header else { return Vec::new() };
        if offset < 0 {
            let start = self.before.len() - offset.unsigned_abs();
            return [&self.before[start..], &self.bytes].concat();
        }
        self.bytes.get(offset as usize..).unwrap_or_default().to_vec()
    }

    /// The byte at offset `at` from the network header.
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
    Readdresses(usize, u8),
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
    /// A view by its number, and a change of the packet during its life.
    View(u8, Change),
}

/// A change of a packet while a view borrows it.
#[derive(Clone, Copy, Debug)]
enum Change {
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
        1 => (n(), prop_oneof![Just(0x45), any::<u8>()]).prop_map(|(n, fill)| Op::Readdresses(n, fill)),
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
        4 => (0..7u8, view_change()).prop_map(|(view, change)| Op::View(view, change)),
    ]
}

fn view_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Nothing),
        Just(Change::ClearNetwork),
        Just(Change::ClearTransport),
        (0..100usize).prop_map(Change::Truncate),
        (0..100usize).prop_map(Change::Pull),
        (-20..80isize).prop_map(Change::Transport),
    ]
}

/// Executes an operation on the contents.
fn execute(packet: &mut Packet, model: &mut Model, op: &Op) {
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
        Op::Readdresses(n, fill) => {
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
        Op::View(view, change) => use_view(packet, model, view, change),
        _ => set_headers(packet, model, op),
    }
    model.trim();
}

/// The address range of `bytes`.
fn addresses(bytes: &[u8]) -> std::ops::Range<usize> {
    let range = bytes.as_ptr_range();
    range.start.addr()..range.end.addr()
}

/// Makes a view, changes the packet, and calls all methods of the view that return bytes. These
/// must be bytes of the packet or of its stripped headers, or the view must panic.
fn use_view(packet: &mut Packet, model: &mut Model, view: u8, change: Change) {
    let before = model.before.len();
    let mut changed = model.clone();
    let op = match change {
        Change::Nothing => None,
        Change::ClearNetwork => Some(Op::ClearNetwork),
        Change::ClearTransport => Some(Op::ClearTransport),
        Change::Truncate(n) => Some(Op::Truncate(n)),
        Change::Pull(n) => Some(Op::Pull(n)),
        Change::Transport(at) => Some(Op::Transport(at.max(-(before as isize)))),
    };
    macro_rules! read_all {
        ($view:ident, [$($more:ident)*]) => {
            packet.$view().map(|mut view| {
                op.iter().for_each(|op| execute(view.packet_mut(), &mut changed, op));
                let ranges = catch_unwind(AssertUnwindSafe(|| {
                    vec![
                        // The first write copies a shared packet.
                        addresses(view.payload_mut()),
                        addresses(view.payload()),
                        addresses(view.bytes()),
                        $(addresses(view.$more()),)*
                    ]
                }));
                (ranges.unwrap_or_default(), addresses(view.packet().bytes()))
            })
        };
    }
    let result = match view {
        0 => read_all!(ether, []),
        1 => read_all!(arp, []),
        2 => read_all!(ipv6, [datagram datagram_mut]),
        3 => read_all!(udp, []),
        4 => read_all!(tcp, [options options_mut]),
        5 => read_all!(icmp, []),
        _ => read_all!(icmp6, []),
    };
    let Some((ranges, whole)) = result else { return };
    let whole = whole.start - changed.before.len()..whole.end;
    for bytes in ranges.iter().filter(|bytes| !bytes.is_empty()) {
        assert!(whole.start <= bytes.start && bytes.end <= whole.end, "{bytes:?} of {whole:?}");
    }
    *model = changed;
}

/// Executes an operation on headers or annotations.
fn set_headers(packet: &mut Packet, model: &mut Model, op: &Op) {
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

/// Executes an operation on annotations.
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
    // This annotation is a flag.
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

/// Executes operations on a growing and shrinking set of packets.
fn run(first: Packet, bytes: &[u8], ops: &[(usize, Op)]) {
    let mut pairs = vec![(first, Model::new(bytes))];
    for (number, op) in ops {
        let index = number % pairs.len();
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
            _ => execute(packet, model, op),
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
