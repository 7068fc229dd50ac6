//! A router's path over random packets, its elements as passes and one by one:
//! the same packets at every exit, and the same counts everywhere.
#![allow(clippy::unwrap_used)] // a test

use castanet_element::class::Library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::cores::Cores;
use castanet_runtime::graph::explain;
use castanet_runtime::router::{ErrorStyle, Options, Router, TeardownReport, plan};
use castanet_wire::{Ethernet, Ipv4Header, Ipv6Header, MacAddr, ether_type};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

/// xorshift: the same numbers every run.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// The faults of frames.
#[derive(Clone, Copy, PartialEq)]
enum Faults {
    /// Any.
    Any,
    /// Those by which packets leave before the routing table, and hops that are used up: all packets of a burst that come to
    /// its branches are then alike.
    Hops,
}

/// A path, from `from` to its exits.
struct Case {
    name: &'static str,
    frame: fn(&mut Rng, Faults) -> Vec<u8>,
    exits: &'static [&'static str],
    elements: &'static str,
    /// The text of `castanet explain` about its chains.
    chains: &'static str,
}

const IP4: Case = Case {
    name: "ip4",
    frame: frame4,
    exits: &["out", "same", "options", "ttl", "large", "bad", "arp", "other", "here"],
    elements: "from -> types :: Classifier(12/0806, 12/0800, -);
         types[0] -> arp; types[2] -> other;
         types[1] -> paint :: Paint(2) -> strip :: Strip(14) -> check :: CheckIPHeader(BADSRC 10.255.255.255)
            -> dst :: GetIPAddress(16) -> routes :: StaticIPLookup(10.0.0.0/16 0, 10.1.0.0/16 1, 10.2.0.0/16 1);
         check[1] -> bad; routes[0] -> here;
         routes[1] -> b :: DropBroadcasts -> p :: PaintTee(2) -> o :: IPGWOptions(10.0.0.1)
            -> fix :: FixIPSrc(10.0.0.1) -> t :: DecIPTTL -> f :: IPFragmenter(300)
            -> encap :: EtherEncap(0x0800, 2:0:0:0:1:2, 2:0:0:0:1:1) -> out;
         p[1] -> same; o[1] -> options; t[1] -> ttl; f[1] -> large;",
    chains: "  types[1] -> paint -> strip -> check -> dst -> routes
    routes[1] -> b -> p -> o -> fix -> t -> f -> encap
",
};

/// The same, whose errors come back into the routing table.
const ERRORS: Case = Case {
    name: "errors",
    exits: &["out", "same", "options", "large", "bad", "arp", "other", "here"],
    elements: "from -> types :: Classifier(12/0806, 12/0800, -);
         types[0] -> arp; types[2] -> other;
         types[1] -> paint :: Paint(2) -> strip :: Strip(14) -> check :: CheckIPHeader(BADSRC 10.255.255.255)
            -> dst :: GetIPAddress(16) -> routes :: StaticIPLookup(10.0.0.0/16 0, 10.1.0.0/16 1, 10.2.0.0/16 1);
         check[1] -> bad; routes[0] -> here;
         routes[1] -> b :: DropBroadcasts -> p :: PaintTee(2) -> o :: IPGWOptions(10.0.0.1)
            -> fix :: FixIPSrc(10.0.0.1) -> t :: DecIPTTL -> f :: IPFragmenter(300)
            -> encap :: EtherEncap(0x0800, 2:0:0:0:1:2, 2:0:0:0:1:1) -> out;
         p[1] -> same; o[1] -> options; t[1] -> ICMPError(10.0.0.1, timeexceeded) -> routes; f[1] -> large;",
    ..IP4
};

/// With branches behind the routing table.
const IP6: Case = Case {
    name: "ip6",
    frame: frame6,
    exits: &["out", "there", "hops1", "hops2", "large1", "large2", "bad", "arp", "other", "here"],
    elements: "from -> types :: Classifier(12/0806, 12/86dd, -);
         types[0] -> arp; types[2] -> other;
         types[1] -> paint :: Paint(2) -> strip :: Strip(14) -> check :: CheckIP6Header(2001:db8:ff::1)
            -> dst :: GetIP6Address(24)
            -> routes :: LookupIP6Route(2001:db8::/48 0, 2001:db8:1::/48 1, 2001:db8:2::/48 fe80::1 2);
         check[1] -> bad; routes[0] -> here;
         routes[1] -> h1 :: DecIP6HLIM -> f1 :: IP6Fragmenter(300)
            -> e1 :: EtherEncap(0x86dd, 2:0:0:0:1:2, 2:0:0:0:1:1) -> out;
         routes[2] -> h2 :: DecIP6HLIM -> f2 :: IP6Fragmenter(300)
            -> e2 :: EtherEncap(0x86dd, 2:0:0:0:2:2, 2:0:0:0:2:1) -> there;
         h1[1] -> hops1; h2[1] -> hops2; f1[1] -> large1; f2[1] -> large2;",
    chains: "  types[1] -> paint -> strip -> check -> dst -> routes
    routes[1] -> h1 -> f1 -> e1
    routes[2] -> h2 -> f2 -> e2
",
};

/// The path of another device: bursts of packets that no element but the one for the TTL has to look at.
const PLAIN_IP4: Case = Case {
    name: "plain-ip4",
    frame: frame4,
    exits: &[
        "out", "there", "options1", "options2", "ttl1", "ttl2", "large1", "large2", "bad", "arp", "other", "here",
    ],
    elements: "from -> types :: Classifier(12/0806, 12/0800, -);
         types[0] -> arp; types[2] -> other;
         types[1] -> paint :: Paint(1) -> strip :: Strip(14) -> check :: CheckIPHeader(BADSRC 10.255.255.255)
            -> dst :: GetIPAddress(16) -> routes :: StaticIPLookup(10.0.0.0/16 0, 10.1.0.0/16 1, 10.2.0.0/16 2);
         check[1] -> bad; routes[0] -> here;
         routes[1] -> b :: DropBroadcasts -> p :: PaintTee(2) -> o :: IPGWOptions(10.0.0.1)
            -> fix :: FixIPSrc(10.0.0.1) -> t :: DecIPTTL -> f :: IPFragmenter(300)
            -> encap :: EtherEncap(0x0800, 2:0:0:0:1:2, 2:0:0:0:1:1) -> out;
         routes[2] -> b2 :: DropBroadcasts -> p2 :: PaintTee(3) -> o2 :: IPGWOptions(10.0.0.1)
            -> fix2 :: FixIPSrc(10.0.0.1) -> t2 :: DecIPTTL -> f2 :: IPFragmenter(300)
            -> encap2 :: EtherEncap(0x0800, 2:0:0:0:2:2, 2:0:0:0:2:1) -> there;
         p[1] -> out; o[1] -> options1; t[1] -> ttl1; f[1] -> large1;
         p2[1] -> there; o2[1] -> options2; t2[1] -> ttl2; f2[1] -> large2;",
    chains: "  types[1] -> paint -> strip -> check -> dst -> routes
    routes[1] -> b -> p -> o -> fix -> t -> f -> encap
    routes[2] -> b2 -> p2 -> o2 -> fix2 -> t2 -> f2 -> encap2
",
};

/// A frame: mostly sound, with any of the faults and fates that a router knows.
fn frame4(numbers: &mut Rng, faults: Faults) -> Vec<u8> {
    let is_long = numbers.below(8) == 0 && faults == Faults::Any;
    let payload = if is_long { 700 } else { numbers.below(80) as usize };
    let dst = Ipv4Addr::new(10, numbers.below(4) as u8, 0, 2);
    let src = if numbers.below(16) == 0 { 255 } else { 9 };
    let options: &[u8] = match numbers.below(10) {
        0 if faults == Faults::Any => &[7, 7, 4, 0, 0, 0, 0, 0],
        1 if faults == Faults::Any => &[7, 200, 4, 0],
        _ => &[],
    };
    let header_len = Ipv4Header::LEN + options.len();
    let src = Ipv4Addr::new(10, src, src, src);
    let mut ip = Ipv4Header::new(17, src, dst, (header_len + payload) as u16);
    ip.set_header_len(header_len);
    ip.set_ttl([64, 64, 64, 2, 1, 0][numbers.below(6) as usize]);
    ip.set_fragment_word([0, 0, Ipv4Header::DONT_FRAGMENT][numbers.below(3) as usize]);
    ip.update_checksum(options);
    let header = [ip.bytes().as_slice(), options].concat();
    damaged(ether_type::IPV4, &header, payload, numbers, faults)
}

/// The same of IPv6.
fn frame6(numbers: &mut Rng, faults: Faults) -> Vec<u8> {
    let is_long = numbers.below(8) == 0 && faults == Faults::Any;
    let payload = if is_long { 700 } else { numbers.below(80) as usize };
    let address = |net: u64| Ipv6Addr::new(0x2001, 0xdb8, net as u16, 0, 0, 0, 0, 1);
    let src = if numbers.below(16) == 0 { 0xff } else { 9 };
    let mut ip = Ipv6Header::new(17, address(src), address(numbers.below(4)), payload as u16);
    ip.set_hop_limit([64, 64, 64, 2, 1, 0][numbers.below(6) as usize]);
    damaged(ether_type::IPV6, ip.bytes(), payload, numbers, faults)
}

/// A frame with this header and so many bytes behind it, of which some are not sound.
fn damaged(kind: u16, header: &[u8], payload: usize, numbers: &mut Rng, faults: Faults) -> Vec<u8> {
    let kind = if numbers.below(10) == 0 { ether_type::ARP } else { kind };
    let ether = Ethernet::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), kind);
    let mut bytes = [ether.bytes().as_slice(), header].concat();
    bytes.resize(bytes.len() + payload, 7);
    match numbers.below(12) {
        _ if faults == Faults::Hops => {}
        0 => bytes.truncate(numbers.below(60) as usize),
        1 => {
            let at = numbers.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << numbers.below(8);
        }
        _ => {}
    }
    bytes
}

/// A pcap file with these frames, a microsecond apart.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_ne_bytes());
    }
    for (n, frame) in frames.iter().enumerate() {
        for word in [1000, n as u32, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_ne_bytes());
        }
        file.extend(frame);
    }
    file
}

/// Runs the path over the capture in `folder`; gives what every element counted
/// and what came out at every exit.
fn run(folder: &Path, case: &Case, fuse: bool, timed: bool) -> Vec<(String, Vec<u8>)> {
    let (place, Case { exits, elements, .. }) = (folder.display(), case);
    let dump = |exit: &&str| format!("{exit} :: ToDump({place}/{exit}.pcap);\n");
    let ends: String = exits.iter().map(dump).collect();
    let text = format!("{ends} from :: FromDump({place}/in.pcap, STOP true); {elements}");
    let mut library = Library::default();
    castanet_io::elements::CLASSES.iter().for_each(|class| library.add(class));
    let elements = castanet_elements::ROOMS.iter().flat_map(|(_, classes)| classes.iter());
    elements.for_each(|class| library.add(class));
    library.fuse(castanet_elements::FUSIONS);
    let (flat, mut found, sources) = library.flatten("test", &text);
    let planned = plan(&flat, &library, &Cores::here(1, &[]), ErrorStyle::Castanet, &mut found);
    let rows = explain::passes(&planned.graph, &planned.fused);
    assert_eq!(rows, case.chains);
    let mut options = Options::new(Arc::new(SilentConsole));
    (options.simulated, options.fuse) = (true, fuse);
    let router = Router::build(&flat, &library, &options, &mut found);
    let mut router = router.unwrap_or_else(|| panic!("{}", found.render_rich(&sources, false)));
    router.count_cycles(timed);
    router.run(None);
    if timed {
        let costs = router.costs();
        let idle = costs.iter().filter(|cost| cost.transfers.calls == 0).count();
        assert_eq!(idle, 1, "all but the source: {costs:?}");
    }
    router.end();
    let elements = router.graph().elements.len();
    let mut counts = String::new();
    for it in 0..elements {
        let counters = router.counters(it);
        counts += &format!("{} {counters:?}\n", router.graph().elements[it].name);
    }
    let counts = ("counts".to_owned(), counts.into_bytes());
    assert_eq!(router.dismantle(), TeardownReport { leaked_frames: 0, panics: 0, lost_workers: 0 });
    let read = |exit: &str| std::fs::read(folder.join(format!("{exit}.pcap"))).unwrap();
    let out = exits.iter().map(|exit| ((*exit).to_owned(), read(exit)));
    std::iter::once(counts).chain(out).collect()
}

fn compare(case: &Case) {
    let name = format!("castanet-fused-{}-{}", case.name, std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let mut numbers = Rng(0x1234_5678_9abc_def1);
    // Hundreds of packets of one kind, then of the other.
    let faults = |n: usize| match n / 300 % 2 {
        0 => Faults::Any,
        _ => Faults::Hops,
    };
    let frames: Vec<_> = (0..8000).map(|n| (case.frame)(&mut numbers, faults(n))).collect();
    std::fs::write(folder.join("in.pcap"), capture(&frames)).unwrap();
    let (fused, apart) = (run(&folder, case, true, false), run(&folder, case, false, false));
    let timed = run(&folder, case, true, true);
    std::fs::remove_dir_all(&folder).unwrap();
    let pairs = fused.iter().zip(&apart).chain(fused.iter().zip(&timed));
    for ((exit, one), (_, other)) in pairs {
        assert!(one.len() > 1000, "nothing to compare at {exit}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match exit.as_str() {
            "counts" => assert_eq!(text(one), text(other)),
            _ => assert!(one == other, "{exit}: {} and {} bytes", one.len(), other.len()),
        }
    }
}

#[test]
fn fused_passes_act_as_their_elements() {
    compare(&IP4);
}

#[test]
fn fused_passes_act_as_their_elements_where_errors_come_back() {
    compare(&ERRORS);
}

#[test]
fn fused_passes_of_an_ip6_router_act_as_their_elements() {
    compare(&IP6);
}

#[test]
fn fused_passes_act_as_their_elements_on_bursts_that_most_of_them_pass() {
    compare(&PLAIN_IP4);
}
