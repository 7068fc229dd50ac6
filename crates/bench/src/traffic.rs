//! The packets and routes that benchmarks use.

use castanet_element::args::{FromArg, Names};
use castanet_element::error::ArgError;
pub(crate) use castanet_io::traffic::FRAME;
use castanet_io::traffic::frame_between;
use castanet_wire::{MacAddr, sketch};
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

/// Frames between random hosts.
pub(crate) type Frames = Box<[[u8; FRAME]]>;

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// UDP over IPv4 without a UDP checksum.
    Plain,
    /// UDP over IPv4.
    Udp,
    /// TCP over IPv4.
    Tcp,
    /// UDP over IPv6.
    Udp6,
    /// Requests for an address by ARP.
    Arp,
}

impl Traffic {
    /// All kinds.
    const ALL: [Traffic; 5] =
        [Traffic::Plain, Traffic::Udp, Traffic::Tcp, Traffic::Udp6, Traffic::Arp];

    /// Its name in a configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Traffic::Plain => "plain",
            Traffic::Udp => "udp",
            Traffic::Tcp => "tcp",
            Traffic::Udp6 => "udp6",
            Traffic::Arp => "arp",
        }
    }
}

impl FromArg for Traffic {
    const SYNTAX: &'static str = "plain, udp, tcp, udp6 or arp";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let named = Traffic::ALL.into_iter().find(|traffic| traffic.name() == text);
        named.ok_or_else(|| ArgError::new(format!("`{text}` is not {}", Self::SYNTAX)))
    }
}

/// Makes frames of a kind, of so many flows.
pub(crate) fn frames(traffic: Traffic, flows: usize) -> Frames {
    frames_of(traffic, flows, 0)
}

/// The same, between other hosts for each `set`.
pub(crate) fn frames_of(traffic: Traffic, flows: usize, set: u64) -> Frames {
    let mut numbers = Rng(0x1234_5678_9abc_def1 ^ set.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (0..flows).map(|_| one(traffic, &mut numbers)).collect()
}

/// The next frame.
fn one(traffic: Traffic, numbers: &mut Rng) -> [u8; FRAME] {
    // 1.x.x.x to 223.x.x.x without 10 and 127: unicast, routable.
    let mut address = || loop {
        let a = Ipv4Addr::from(numbers.next() as u32);
        if !matches!(a.octets()[0], 0 | 10 | 127 | 224..) {
            return a;
        }
    };
    let (src, dst) = (address(), address());
    let in6 = |a: Ipv4Addr| Ipv4Addr::to_ipv6_mapped(&a).segments();
    let in6 = |a| format!("2001:db8:{:x}:{:x}::1", in6(a)[6], in6(a)[7]);
    let ends = "eth 2:0:0:0:0:2 > 2:0:0:0:0:1";
    let text = match traffic {
        Traffic::Plain => {
            let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
            return frame_between((mac(2), src), (mac(1), dst));
        }
        Traffic::Udp => format!("{ends} {src}:53 > {dst}:53 udp len 50"),
        Traffic::Tcp => format!("{ends} {src}:1024 > {dst}:80 tcp ack 1 len 50"),
        Traffic::Udp6 => format!("{ends} {}:53 > {}:53 udp pad 2", in6(src), in6(dst)),
        Traffic::Arp => {
            let who = format!("arp who-has {dst} tell {src} 2:0:0:0:0:2");
            format!("eth 2:0:0:0:0:2 > ff:ff:ff:ff:ff:ff {who} pad 22")
        }
    };
    let mut frame = [0; FRAME];
    // A sketch that cannot be built leaves zeros; a test keeps these right.
    if let Ok(built) = sketch::build(&text) {
        let length = built.bytes.len().min(FRAME);
        frame[..length].copy_from_slice(&built.bytes[..length]);
    }
    frame
}

/// `count` prefixes (address, length) spread over the unicast space, of which a /8 covers each address.
/// `ways` next hops; which one depends on the top bits, so that traffic is
/// spread evenly.
pub(crate) fn routes(ways: u32, count: u32) -> Vec<(u32, u32, u32)> {
    let mut numbers = Rng(0xfeed_beef_cafe_f00d);
    let way = |address: u32| (address >> 24) % ways;
    let mut routes: Vec<(u32, u32, u32)> =
        (0..256).map(|top: u32| (top << 24, 8, way(top << 24))).collect();
    for _ in 256..count {
        let length = 9 + (numbers.next() % 16) as u32;
        let address = numbers.next() as u32 & (u32::MAX << (32 - length));
        routes.push((address, length, way(address)));
    }
    routes.sort_unstable();
    routes.dedup_by_key(|r| (r.0, r.1));
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_of_their_kind() {
        for (text, print) in [
            ("plain", ":53 udp ttl 64 len 50 nocheck"),
            ("udp", ":53 udp ttl 64 len 50"),
            ("tcp", ":80 tcp "),
            ("udp6", ":53 udp"),
            ("arp", " arp who-has "),
        ] {
            let traffic = Traffic::from_arg(text, &Names::default()).expect(text);
            let frames = frames(traffic, FLOWS);
            let sketch = |frame| sketch::print(frame, sketch::Layer::Ethernet);
            assert!(frames.iter().all(|it| sketch(it).contains(print)), "{}", sketch(&frames[0]));
            assert_eq!(sketch(&frames[0]).contains("nocheck"), traffic == Traffic::Plain);
            assert_ne!(frames[0], frames[1]);
        }
        assert!(Traffic::from_arg("ipx", &Names::default()).is_err());
    }
}
