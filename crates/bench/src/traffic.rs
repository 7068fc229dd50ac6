//! The packets and routes that benchmarks use.

pub(crate) use castanet_io::traffic::FRAME;
use castanet_io::traffic::frame_between;
use castanet_wire::MacAddr;
use std::net::Ipv4Addr;

/// Number of different packets in the traffic.
pub(crate) const FLOWS: usize = 256;
/// Number of routes in the table beside the default.
pub(crate) const ROUTES: u32 = 512;

/// A pseudo-random generator with a fixed seed (xorshift64*).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Frames of UDP over IPv4 between random hosts.
pub(crate) type Frames = Box<[[u8; FRAME]; FLOWS]>;

/// Makes them.
pub(crate) fn frames() -> Frames {
    let mut numbers = Rng(0x1234_5678_9abc_def1);
    let mut frames = Box::new([[0; FRAME]; FLOWS]);
    frames.iter_mut().for_each(|frame| *frame = one(&mut numbers));
    frames
}

/// The next frame.
fn one(numbers: &mut Rng) -> [u8; FRAME] {
    // 1.x.x.x to 223.x.x.x without 10 and 127: unicast, routable.
    let mut address = || loop {
        let a = Ipv4Addr::from(numbers.next() as u32);
        if !matches!(a.octets()[0], 0 | 10 | 127 | 224..) {
            return a;
        }
    };
    let (src, dst) = (address(), address());
    let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
    frame_between((mac(2), src), (mac(1), dst))
}

/// Prefixes (address, length) spread over the unicast space, and one default.
/// `ways` next hops; which one depends on the top bits, so that traffic is
/// spread evenly.
pub(crate) fn routes(ways: u32) -> Vec<(u32, u32, u32)> {
    let mut numbers = Rng(0xfeed_beef_cafe_f00d);
    let way = |address: u32| (address >> 24) % ways;
    let mut routes: Vec<(u32, u32, u32)> =
        (0..256).map(|top: u32| (top << 24, 8, way(top << 24))).collect();
    for _ in 256..ROUTES {
        let length = 9 + (numbers.next() % 16) as u32;
        let address = numbers.next() as u32 & (u32::MAX << (32 - length));
        routes.push((address, length, way(address)));
    }
    routes.sort_unstable();
    routes.dedup_by_key(|r| (r.0, r.1));
    routes
}
