//! The configuration of a middlebox that routes: neighbour discovery, forwarding, and ICMP errors.

use std::fmt::Write;
use std::net::IpAddr;
use std::str::FromStr;

/// An address of the router's own, with the prefix of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterfaceAddress {
    pub(super) address: IpAddr,
    length: u8,
}

impl FromStr for InterfaceAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<InterfaceAddress, String> {
        let wrong = || "it takes an address and the length of its prefix, 10.0.1.1/24".to_owned();
        let (address, length) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.parse().ok().filter(|length| *length <= most).ok_or_else(wrong)?;
        Ok(InterfaceAddress { address, length })
    }
}

/// An interface, with its addresses if it routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedInterface {
    pub(super) name: String,
    pub(super) addresses: Vec<InterfaceAddress>,
}

impl FromStr for NamedInterface {
    type Err = String;

    /// Parses `NAME` or `NAME=ADDRESS/LENGTH,…`.
    fn from_str(text: &str) -> Result<NamedInterface, String> {
        let (name, addresses) = text.split_once('=').unwrap_or((text, ""));
        if name.is_empty() {
            return Err("it takes a name, or a name and addresses, lan=10.0.1.1/24".into());
        }
        let addresses = addresses.split(',').filter(|_| text.contains('='));
        let addresses = addresses.map(str::parse).collect::<Result<_, String>>()?;
        Ok(NamedInterface { name: name.into(), addresses })
    }
}

impl InterfaceAddress {
    /// Whether an address is of the same network.
    fn has(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differ = own.to_bits() ^ other.to_bits();
                differ.checked_shr(32 - u32::from(self.length)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differ = own.to_bits() ^ other.to_bits();
                differ.checked_shr(128 - u32::from(self.length)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// A router's networks and gateway, of one address family.
struct FamilyRoutes {
    /// The addresses of the interfaces.
    own: Vec<InterfaceAddress>,
    /// The gateway's address, and the index of the interface behind which it is.
    gateway: Option<(IpAddr, usize)>,
}

/// The routers of both families.
pub(super) struct Routes {
    families: [Option<FamilyRoutes>; 2],
}

const NAMES: [&str; 2] = ["IPv4", "IPv6"];

impl Routes {
    /// By the addresses of each interface, and gateways; says what does not fit.
    pub(super) fn new(
        interfaces: &[NamedInterface],
        gateways: &[IpAddr],
    ) -> Result<Routes, String> {
        let mut families = [None, None];
        for (family, is_ip4) in [(0, true), (1, false)] {
            let (name, mut own) = (NAMES[family], Vec::new());
            let mut without = None;
            for interface in interfaces {
                let addresses = interface.addresses.iter();
                let mut all = addresses.filter(|it| it.address.is_ipv4() == is_ip4);
                match (all.next(), all.next()) {
                    (Some(only), None) => own.push(*only),
                    (None, _) => without = Some(&interface.name),
                    (Some(_), Some(_)) => {
                        let name = &interface.name;
                        return Err(format!(
                            "{name} has more than one address of {}",
                            NAMES[family]
                        ));
                    }
                }
            }
            let mut gateways = gateways.iter().filter(|gateway| gateway.is_ipv4() == is_ip4);
            let gateway = gateways.next();
            match without {
                Some(_) if own.is_empty() && gateway.is_none() => continue,
                Some(interface) => return Err(format!("{interface} has no address of {name}")),
                None => {}
            }
            let side = |gateway: &IpAddr| match own.iter().position(|own| own.has(*gateway)) {
                Some(side) => Ok((*gateway, side)),
                None => Err(format!("the gateway {gateway} is on no network of an interface")),
            };
            let gateway = gateway.map(side).transpose()?;
            families[family] = Some(FamilyRoutes { own, gateway });
        }
        Ok(Routes { families })
    }

    /// The configuration between `from_SIDE` and `to_SIDE` of all sides, around `rules`; of interfaces with
    /// these Ethernet addresses.
    pub(super) fn text(&self, ethers: &[String], mtu: usize) -> String {
        let (mut text, count) = (String::new(), ethers.len());
        for (n, ether) in ethers.iter().enumerate() {
            let _ = write!(
                text,
                "
from_{} -> HostEtherFilter({ether}) -> frames{n} :: Classifier(12/0806 20/0001,
    12/0806 20/0002, 12/0800, 12/86dd 20/3a 54/87, 12/86dd 20/3a 54/88, 12/86dd, -);
frames{n}[6] -> Discard;
",
                side(n, count)
            );
        }
        let outputs: Vec<String> =
            (0..PathNumbers { count }.len()).map(|path| format!("rules[{path}]")).collect();
        let _ = writeln!(text, "{} -> kinds :: Classifier(0/40%f0, -);", outputs.join(", "));
        match &self.families[0] {
            Some(family) => family.ip4(&mut text, ethers, mtu),
            None => {
                text += "kinds[0] -> none4 :: Discard;\n";
                for n in 0..count {
                    let _ = writeln!(text, "frames{n}[0], frames{n}[1], frames{n}[2] -> none4;");
                }
            }
        }
        match &self.families[1] {
            Some(family) => family.ip6(&mut text, ethers, mtu),
            None => {
                text += "kinds[1] -> none6 :: Discard;\n";
                for n in 0..count {
                    let _ = writeln!(text, "frames{n}[3], frames{n}[4], frames{n}[5] -> none6;");
                }
            }
        }
        text
    }
}

/// The paths of packets through a router: its rules have an input for each. A packet that comes in by one of two
/// interfaces leaves by the other. With more, there is a path from each interface to each, and to the router
/// itself.
#[derive(Clone, Copy)]
struct PathNumbers {
    /// Number of interfaces.
    count: usize,
}

/// The end of the names of an interface's elements.
pub(super) fn side(n: usize, count: usize) -> String {
    match (n, count) {
        (0, 2) => "in".into(),
        (1, 2) => "out".into(),
        _ => n.to_string(),
    }
}

/// The name of the router itself, as the interface that packets for it leave by.
pub(super) const ROUTER: &str = "router";

impl PathNumbers {
    /// Number of paths.
    fn len(self) -> usize {
        if self.count > 2 { self.count * (self.count + 1) } else { self.count }
    }

    /// The path from an interface to another one, or, with one more than their number, to the router.
    fn number(self, from: usize, to: usize) -> usize {
        from * (self.count + 1) + to
    }

    /// Where packets go that come in by an interface: to the rules, or to what finds their path.
    fn input(self, from: usize, finder: &str) -> String {
        if self.count > 2 { format!("{finder}{from}") } else { format!("[{from}] rules") }
    }

    /// The elements that find the paths of packets, by their destinations.
    fn finders(self, finder: &str, class: &str, routes: &str, address: &str) -> String {
        let mut text = String::new();
        for from in 0..if self.count > 2 { self.count } else { 0 } {
            let _ = writeln!(text, "{finder}{from} :: {class}({routes});");
            for to in 0..=self.count {
                let path = self.number(from, to);
                // The rules are to see the destination, not the gateway.
                let _ = writeln!(text, "{finder}{from}[{to}] -> {address} -> [{path}] rules;");
            }
        }
        text
    }
}

impl FamilyRoutes {
    fn paths(&self) -> PathNumbers {
        PathNumbers { count: self.own.len() }
    }

    /// Routes, as tables of both families have them: to the networks, to the router itself, and
    /// elsewhere, which is `nowhere` without a gateway.
    fn routes(&self, nowhere: usize) -> String {
        let whole = if self.own[0].address.is_ipv4() { 32 } else { 128 };
        let all = if whole == 32 { "0.0.0.0/0" } else { "::/0" };
        let (mut routes, router) = (Vec::new(), self.own.len());
        for (side, own) in self.own.iter().enumerate() {
            let InterfaceAddress { address, length } = own;
            routes.push(format!("{address}/{whole} {router}"));
            // A router alone on its network is not its own neighbour.
            if *length < whole {
                routes.push(format!("{address}/{length} {side}"));
            }
        }
        routes.push(match self.gateway {
            Some((gateway, side)) => format!("{all} {gateway} {side}"),
            None => format!("{all} {nowhere}"),
        });
        routes.join(", ")
    }

    /// The interface by which errors about packets without a route come to the rules: as if from the other
    /// of two.
    fn back(&self, from: usize) -> usize {
        if self.own.len() > 2 { from } else { 1 - from }
    }

    fn ip4(&self, text: &mut String, ethers: &[String], mtu: usize) {
        let (count, paths) = (self.own.len(), self.paths());
        *text += &paths.finders("path", "RadixIPLookup", &self.routes(count), "GetIPAddress(16)");
        for (n, ether) in ethers.iter().enumerate() {
            let (own, rules) = (self.own[n].address, paths.input(n, "path"));
            let side = side(n, count);
            // Errors are about packets that have passed the rules: so they pass them too, the
            // other path, and what rules have changed in what they quote is restored.
            let _ = write!(
                text,
                "
frames{n}[0] -> ARPResponder({own} {ether}) -> to_{side};
frames{n}[1] -> [1] arp{n} :: ARPQuerier({own}, {ether});
frames{n}[2] -> Paint({n}) -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> {rules};
leave{n} :: DropBroadcasts -> options{n} :: IPGWOptions({own}) -> FixIPSrc({own})
    -> ttl{n} :: DecIPTTL -> fragments{n} :: IPFragmenter({mtu}) -> arp{n} -> to_{side};
options{n}[1] -> ICMPError({own}, parameterproblem) -> {rules};
ttl{n}[1] -> ICMPError({own}, timeexceeded) -> {rules};
fragments{n}[1] -> ICMPError({own}, unreachable, needfrag, PMTU {mtu}) -> {rules};
"
            );
        }
        let near = self.own[0].address;
        let _ =
            writeln!(text, "\nkinds[0] -> routes :: RadixIPLookup({});", self.routes(count + 1));
        for n in 0..count {
            let _ = writeln!(text, "routes[{n}] -> leave{n};");
        }
        let _ = write!(
            text,
            "routes[{count}] -> local :: IPClassifier(icmp type echo and ip unfrag, icmp, udp or tcp, -);
local[0] -> ICMPPingResponder -> routes;
local[1] -> Discard;
local[2] -> ICMPError({near}, unreachable, port) -> routes;
local[3] -> ICMPError({near}, unreachable, protocol) -> routes;
"
        );
        if self.gateway.is_none() {
            let _ = writeln!(text, "routes[{}] -> nowhere :: PaintSwitch;", count + 1);
            for (n, own) in self.own.iter().enumerate() {
                let (own, rules) = (own.address, paths.input(self.back(n), "path"));
                let _ = writeln!(
                    text,
                    "nowhere[{n}] -> ICMPError({own}, unreachable, net) -> {rules};"
                );
            }
        }
    }

    fn ip6(&self, text: &mut String, ethers: &[String], mtu: usize) {
        let (count, paths) = (self.own.len(), self.paths());
        let local = format!("ff00::/8 {count}, fe80::/10 {count}, ::/127 {count}");
        let routes = |nowhere| format!("{local}, {}", self.routes(nowhere));
        *text += &paths.finders("path6_", "LookupIP6Route", &routes(count), "GetIP6Address(24)");
        for (n, ether) in ethers.iter().enumerate() {
            let (own, rules) = (self.own[n].address, paths.input(n, "path6_"));
            let side = side(n, count);
            let _ = write!(
                text,
                "
frames{n}[3] -> IP6NDAdvertiser({own} {ether}) -> to_{side};
frames{n}[4] -> [1] nd{n} :: IP6NDSolicitor({own}, {ether});
frames{n}[5] -> Paint({n}) -> Strip(14) -> CheckIP6Header -> GetIP6Address(24) -> {rules};
depart{n} :: DecIP6HLIM -> size{n} :: IP6Fragmenter({mtu}) -> nd{n} -> to_{side};
"
            );
            // From our address on the network that the packet came from (RFC 4443, 2.2).
            for (from, kind) in [("depart", 3), ("size", 2)] {
                let _ = writeln!(text, "{from}{n}[1] -> back{kind}{n} :: PaintSwitch;");
                for (at, own) in self.own.iter().enumerate() {
                    let own = own.address;
                    let _ = writeln!(
                        text,
                        "back{kind}{n}[{at}] -> ICMP6Error({own}, {kind}, 0, PMTU {mtu}) -> {rules};"
                    );
                }
            }
        }
        let _ = writeln!(text, "\nkinds[1] -> routes6 :: LookupIP6Route({});", routes(count + 1));
        for n in 0..count {
            let _ = writeln!(text, "routes6[{n}] -> depart{n};");
        }
        let _ = write!(
            text,
            "routes6[{count}] -> local6 :: Classifier(6/3a 40/80, -);
local6[0] -> IP6Mirror -> StoreData(40, \\<81>) -> SetTransportChecksumIP6
    -> GetIP6Address(24) -> routes6;
local6[1] -> Discard;
"
        );
        if self.gateway.is_none() {
            let _ = writeln!(text, "routes6[{}] -> nowhere6 :: PaintSwitch;", count + 1);
            for (n, own) in self.own.iter().enumerate() {
                let (own, rules) = (own.address, paths.input(self.back(n), "path6_"));
                let _ = writeln!(text, "nowhere6[{n}] -> ICMP6Error({own}, 1, 0) -> {rules};");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> InterfaceAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn wrong(sides: &[&[InterfaceAddress]], gateways: &[&str]) -> String {
        let gateways: Vec<IpAddr> = gateways.iter().filter_map(|it| it.parse().ok()).collect();
        let named = sides.iter().zip(["lan", "wan", "dmz"]);
        let interface = |(addresses, name): (&&[_], &str)| NamedInterface {
            name: name.into(),
            addresses: addresses.to_vec(),
        };
        let interfaces: Vec<NamedInterface> = named.map(interface).collect();
        Routes::new(&interfaces, &gateways).err().unwrap_or_default()
    }

    #[test]
    fn networks_know_their_addresses() {
        let in_it = |net: &str, other: &str| other.parse().is_ok_and(|other| own(net).has(other));
        assert!(in_it("10.0.1.1/24", "10.0.1.255") && !in_it("10.0.1.1/24", "10.0.2.1"));
        assert!(in_it("10.0.1.1/0", "1.2.3.4") && !in_it("10.0.1.1/32", "10.0.1.2"));
        assert!(in_it("1::1/64", "1::ffff") && !in_it("1::1/64", "2::1"));
        assert!(in_it("1::1/0", "2::") && !in_it("1::1/64", "10.0.1.1"));
        for text in ["10.0.1.1", "10.0.1.1/33", "x/24", "1::/129", "10.0.1.1/x"] {
            assert!(text.parse::<InterfaceAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn conflicting_addresses_are_errors() {
        let (a, b, c) = (own("10.0.1.1/24"), own("10.0.2.1/24"), own("1::1/64"));
        assert_eq!(wrong(&[&[a], &[b]], &["10.0.2.9"]), "");
        assert_eq!(wrong(&[&[a], &[]], &[]), "wan has no address of IPv4");
        assert_eq!(wrong(&[&[a, c], &[b]], &[]), "wan has no address of IPv6");
        assert_eq!(wrong(&[&[a], &[b], &[c]], &[]), "dmz has no address of IPv4");
        assert_eq!(wrong(&[&[a, b], &[b]], &[]), "lan has more than one address of IPv4");
        let nowhere = "the gateway 9.9.9.9 is on no network of an interface";
        assert_eq!(wrong(&[&[a], &[b]], &["9.9.9.9"]), nowhere);
    }
}
