//! The configuration of a middlebox that routes: neighbour discovery, forwarding, and ICMP errors.

use std::fmt::Write;
use std::net::IpAddr;
use std::str::FromStr;

/// An address of the router's own, with the prefix of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterfaceAddress {
    address: IpAddr,
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
    own: [InterfaceAddress; 2],
    /// The gateway's address, and the index of the interface behind which it is.
    gateway: Option<(IpAddr, usize)>,
}

/// The routers of both families.
pub(super) struct Routes {
    families: [Option<FamilyRoutes>; 2],
}

const NAMES: [&str; 2] = ["IPv4", "IPv6"];

impl Routes {
    /// By the addresses on either side, and gateways; says what does not fit.
    pub(super) fn new(
        sides: [&[InterfaceAddress]; 2],
        gateways: &[IpAddr],
    ) -> Result<Routes, String> {
        let mut families = [None, None];
        for (family, is_ip4) in [(0, true), (1, false)] {
            let own = sides.map(|side| {
                let mut own = side.iter().filter(|own| own.address.is_ipv4() == is_ip4);
                (own.next().copied(), own.next().is_some())
            });
            let name = NAMES[family];
            if own.iter().any(|(_, more)| *more) {
                return Err(format!("there is more than one address of {name} on a side"));
            }
            let mut gateways = gateways.iter().filter(|gateway| gateway.is_ipv4() == is_ip4);
            let gateway = gateways.next();
            let own = match own {
                [(None, _), (None, _)] if gateway.is_none() => continue,
                [(Some(near), _), (Some(far), _)] => [near, far],
                _ => return Err(format!("{name} has an address on one side only")),
            };
            let side = |gateway: &IpAddr| match own.iter().position(|own| own.has(*gateway)) {
                Some(side) => Ok((*gateway, side)),
                None => Err(format!("the gateway {gateway} is on neither network")),
            };
            let gateway = gateway.map(side).transpose()?;
            families[family] = Some(FamilyRoutes { own, gateway });
        }
        Ok(Routes { families })
    }

    /// The configuration between `from_in`, `from_out`, `to_in` and `to_out`, around `rules`;
    /// of interfaces with these Ethernet addresses.
    pub(super) fn text(&self, ethers: [&str; 2], mtu: usize) -> String {
        let mut text = String::new();
        for (n, (ether, side)) in ethers.into_iter().zip(["in", "out"]).enumerate() {
            let _ = write!(
                text,
                "
from_{side} -> HostEtherFilter({ether}) -> frames{n} :: Classifier(12/0806 20/0001,
    12/0806 20/0002, 12/0800, 12/86dd 20/3a 54/87, 12/86dd 20/3a 54/88, 12/86dd, -);
frames{n}[6] -> Discard;
"
            );
        }
        text += "rules[0], rules[1] -> kinds :: Classifier(0/40%f0, -);\n";
        match &self.families[0] {
            Some(family) => family.ip4(&mut text, ethers, mtu),
            None => {
                text += "kinds[0] -> none4 :: Discard;\n";
                for n in 0..2 {
                    let _ = writeln!(text, "frames{n}[0], frames{n}[1], frames{n}[2] -> none4;");
                }
            }
        }
        match &self.families[1] {
            Some(family) => family.ip6(&mut text, ethers, mtu),
            None => {
                text += "kinds[1] -> none6 :: Discard;\n";
                for n in 0..2 {
                    let _ = writeln!(text, "frames{n}[3], frames{n}[4], frames{n}[5] -> none6;");
                }
            }
        }
        text
    }
}

impl FamilyRoutes {
    /// Routes, as tables of both families have them: to the sides, to the router itself, and
    /// elsewhere.
    fn routes(&self) -> String {
        let whole = if self.own[0].address.is_ipv4() { 32 } else { 128 };
        let all = if whole == 32 { "0.0.0.0/0" } else { "::/0" };
        let mut routes = Vec::new();
        for (side, own) in self.own.iter().enumerate() {
            let InterfaceAddress { address, length } = own;
            routes.push(format!("{address}/{whole} 2"));
            // A router alone on its network is not its own neighbour.
            if *length < whole {
                routes.push(format!("{address}/{length} {side}"));
            }
        }
        routes.push(match self.gateway {
            Some((gateway, side)) => format!("{all} {gateway} {side}"),
            None => format!("{all} 3"),
        });
        routes.join(", ")
    }

    fn ip4(&self, text: &mut String, ethers: [&str; 2], mtu: usize) {
        for (n, (ether, side)) in ethers.into_iter().zip(["in", "out"]).enumerate() {
            let own = self.own[n].address;
            // Errors are about packets that have passed the rules: so they pass them too, the
            // other way, and what rules have changed in what they quote is restored.
            let _ = write!(
                text,
                "
frames{n}[0] -> ARPResponder({own} {ether}) -> to_{side};
frames{n}[1] -> [1] arp{n} :: ARPQuerier({own}, {ether});
frames{n}[2] -> Paint({n}) -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> [{n}] rules;
leave{n} :: DropBroadcasts -> options{n} :: IPGWOptions({own}) -> FixIPSrc({own})
    -> ttl{n} :: DecIPTTL -> fragments{n} :: IPFragmenter({mtu}) -> arp{n} -> to_{side};
options{n}[1] -> ICMPError({own}, parameterproblem) -> [{n}] rules;
ttl{n}[1] -> ICMPError({own}, timeexceeded) -> [{n}] rules;
fragments{n}[1] -> ICMPError({own}, unreachable, needfrag, PMTU {mtu}) -> [{n}] rules;
"
            );
        }
        let [near, far] = self.own.map(|own| own.address);
        let _ = write!(
            text,
            "
kinds[0] -> routes :: RadixIPLookup({});
routes[0] -> leave0;
routes[1] -> leave1;
routes[2] -> local :: IPClassifier(icmp type echo and ip unfrag, icmp, udp or tcp, -);
local[0] -> ICMPPingResponder -> routes;
local[1] -> Discard;
local[2] -> ICMPError({near}, unreachable, port) -> routes;
local[3] -> ICMPError({near}, unreachable, protocol) -> routes;
",
            self.routes()
        );
        if self.gateway.is_none() {
            let _ = write!(
                text,
                "routes[3] -> nowhere :: PaintSwitch;
nowhere[0] -> ICMPError({near}, unreachable, net) -> [1] rules;
nowhere[1] -> ICMPError({far}, unreachable, net) -> [0] rules;
"
            );
        }
    }

    fn ip6(&self, text: &mut String, ethers: [&str; 2], mtu: usize) {
        let [near, far] = self.own.map(|own| own.address);
        for (n, (ether, side)) in ethers.into_iter().zip(["in", "out"]).enumerate() {
            let own = self.own[n].address;
            let _ = write!(
                text,
                "
frames{n}[3] -> IP6NDAdvertiser({own} {ether}) -> to_{side};
frames{n}[4] -> [1] nd{n} :: IP6NDSolicitor({own}, {ether});
frames{n}[5] -> Paint({n}) -> Strip(14) -> CheckIP6Header -> GetIP6Address(24) -> [{n}] rules;
depart{n} :: DecIP6HLIM -> size{n} :: IP6Fragmenter({mtu}) -> nd{n} -> to_{side};
"
            );
            // From our address on the network that the packet came from (RFC 4443, 2.2).
            for (from, kind) in [("depart", 3), ("size", 2)] {
                let _ = write!(
                    text,
                    "{from}{n}[1] -> back{kind}{n} :: PaintSwitch;
back{kind}{n}[0] -> ICMP6Error({near}, {kind}, 0, PMTU {mtu}) -> [{n}] rules;
back{kind}{n}[1] -> ICMP6Error({far}, {kind}, 0, PMTU {mtu}) -> [{n}] rules;
"
                );
            }
        }
        let _ = write!(
            text,
            "
kinds[1] -> routes6 :: LookupIP6Route(ff00::/8 2, fe80::/10 2, ::/127 2, {});
routes6[0] -> depart0;
routes6[1] -> depart1;
routes6[2] -> local6 :: Classifier(6/3a 40/80, -);
local6[0] -> IP6Mirror -> StoreData(40, \\<81>) -> SetTransportChecksumIP6
    -> GetIP6Address(24) -> routes6;
local6[1] -> Discard;
",
            self.routes()
        );
        if self.gateway.is_none() {
            let _ = write!(
                text,
                "routes6[3] -> nowhere6 :: PaintSwitch;
nowhere6[0] -> ICMP6Error({near}, 1, 0) -> [1] rules;
nowhere6[1] -> ICMP6Error({far}, 1, 0) -> [0] rules;
"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> InterfaceAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn wrong(sides: [&[InterfaceAddress]; 2], gateways: &[&str]) -> String {
        let gateways: Vec<IpAddr> = gateways.iter().filter_map(|it| it.parse().ok()).collect();
        Routes::new(sides, &gateways).err().unwrap_or_default()
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
        assert_eq!(wrong([&[a], &[b]], &["10.0.2.9"]), "");
        assert_eq!(wrong([&[a], &[]], &[]), "IPv4 has an address on one side only");
        assert_eq!(wrong([&[a, c], &[b]], &[]), "IPv6 has an address on one side only");
        assert_eq!(wrong([&[a, b], &[b]], &[]), "there is more than one address of IPv4 on a side");
        assert_eq!(wrong([&[a], &[b]], &["9.9.9.9"]), "the gateway 9.9.9.9 is on neither network");
    }
}
