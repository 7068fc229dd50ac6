//! `IP6NDAdvertiser`: answers neighbour solicitations for configured IPv6 addresses.

use crate::arp::reply_annotations::reset_annotations;
use castanet_element::prelude::*;
use castanet_element::wire::icmp6::{self, LinkAddress, Neighbor};
use castanet_element::wire::nd;
use castanet_kit::lpm::Table;

/// Answers neighbour solicitations for the configured IPv6 addresses and prefixes.
///
/// Each argument lists IPv6 addresses or prefixes and the one Ethernet address
/// to answer with. The longest prefix that contains the target decides. Invalid
/// solicitations (RFC 4861, 7.1.1), solicitations for other addresses and all
/// other packets leave by output 1, or are dropped if it is not connected.
/// Advertisements have the router flag set and keep the VLAN annotation of the
/// solicitation. The answer to a solicitation without a source address, from a
/// host that has no address yet, goes to the all-nodes group.
///
/// ```click
/// in -> a :: IP6NDAdvertiser(1::1 2::/16 0:0:0:0:0:1, 2::9 0:0:0:0:0:9) -> out;  a[1] -> rest
/// > in   eth 0:0:0:0:0:5 > 33:33:ff:0:0:1 1::5 > ff02::1:ff00:1 icmp6 type 135 hop 255 data 000100000000000000000000000000010101000000000005 ; paint 3
/// > in   eth 0:0:0:0:0:5 > 33:33:ff:0:0:9 :: > ff02::1:ff00:9 icmp6 type 135 hop 255 len 64 data 00020000000000000000000000000009
/// > in   eth 0:0:0:0:0:5 > 33:33:ff:0:0:1 1::5 > ff02::1:ff00:1 icmp6 type 135 hop 64 data 000100000000000000000000000000010101000000000005
/// < out  eth 0:0:0:0:0:1 > 0:0:0:0:0:5 1::1 > 1::5 icmp6 type 136 rest 0xc0000000 hop 255 data 000100000000000000000000000000010201000000000001 ; paint 0
/// < out  eth 0:0:0:0:0:9 > 33:33:0:0:0:1 2::9 > ff02::1 icmp6 type 136 rest 0x80000000 hop 255 data 000200000000000000000000000000090201000000000009
/// < rest eth 0:0:0:0:0:5 > 33:33:ff:0:0:1 1::5 > ff02::1:ff00:1 icmp6 type 135 hop 64 data 000100000000000000000000000000010101000000000005
/// ```
/// ```click
/// in -> a :: IP6NDAdvertiser(1::1 0:0:0:0:0:1) -> out
/// > in eth 0:0:0:0:0:5 > 33:33:ff:0:0:3 1::5 > ff02::1:ff00:3 icmp6 type 135 hop 255 data 000100000000000000000000000000030101000000000005
/// = a.drops.unanswered 1
/// ```
#[derive(Element)]
#[element(room = "ip6", args = IP6NDAdvertiserArgs, gives = "ether", headers = Gives(FirstHeader::Ethernet, MarkedHeader::Unknown))]
pub struct IP6NDAdvertiser {
    targets: Table<MacAddr, u128>,
    two_outputs: bool,
}

#[derive(Args)]
pub struct IP6NDAdvertiserArgs {
    /// IPv6 addresses and prefixes, and the Ethernet address to answer with.
    #[arg(rest)]
    entries: Vec<AdvertiserEntry>,
}

/// Prefixes that the element answers for with one Ethernet address.
pub struct AdvertiserEntry {
    prefixes: Vec<Net6>,
    mac: MacAddr,
}

impl FromArg for AdvertiserEntry {
    const SYNTAX: &'static str = "IP6/MASK… ETH";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let (mut prefixes, mut eth) = (Vec::new(), None);
        for word in text.split_whitespace() {
            if let Ok(net) = Net6::from_arg(word, names) {
                prefixes.push(net);
            } else if let Ok(mac) = MacAddr::from_arg(word, names) {
                if eth.replace(mac).is_some() {
                    return Err(ArgError::new("more than one ETH")
                        .click("argument has more than one Ethernet address"));
                }
            } else {
                let error = ArgError::new(format!("`{word}` is neither a prefix nor a station"));
                return Err(error.click("argument should be `IP6/MASK ETHADDR'"));
            }
        }
        let named = || text.split_whitespace().find_map(|w| MacAddr::from_arg(w, names).ok());
        match eth.or_else(named) {
            Some(mac) if !prefixes.is_empty() => Ok(AdvertiserEntry { prefixes, mac }),
            Some(_) => {
                Err(ArgError::new("missing IP6/MASK")
                    .click("argument had no IP6 address and masks"))
            }
            None => Err(ArgError::new("missing ETH")),
        }
    }
}

impl Build for IP6NDAdvertiser {
    type Args = IP6NDAdvertiserArgs;
    fn build(args: IP6NDAdvertiserArgs, setup: &Setup) -> Result<Self, ArgError> {
        let prefixes = args.entries.iter().flat_map(|entry| {
            let net = |net: &Net6| (net.address.to_bits(), net.length, entry.mac);
            entry.prefixes.iter().map(net)
        });
        Ok(IP6NDAdvertiser { targets: Table::build(prefixes), two_outputs: setup.outputs > 1 })
    }
}

#[derive(Fate)]
pub enum IP6NDAdvertiserExit {
    /// Neighbour advertisements.
    Advertisement,
    /// All other packets.
    #[optional]
    Other,
    /// All other packets, if output 1 is not connected.
    #[drop]
    Unanswered,
}

impl PerPacket for IP6NDAdvertiser {
    type On = on::Any;
    type Local = ();
    type Fate = IP6NDAdvertiserExit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> IP6NDAdvertiserExit {
        let Some(frame) = self.advertisement_for(packet.bytes()) else {
            return if self.two_outputs {
                IP6NDAdvertiserExit::Other
            } else {
                IP6NDAdvertiserExit::Unanswered
            };
        };
        packet.replace_contents(&frame);
        reset_annotations(packet, nd::HEADER_LEN);
        IP6NDAdvertiserExit::Advertisement
    }
}

impl IP6NDAdvertiser {
    /// The advertisement for a frame that is a valid solicitation for a configured address.
    fn advertisement_for(&self, frame: &[u8]) -> Option<[u8; nd::FRAME_LEN]> {
        let message = nd::parse(frame, icmp6::NEIGHBOR_SOLICITATION)?;
        let source = message.link_address(icmp6::SOURCE_LINK_ADDRESS).ok()?;
        let target = message.message.target();
        let mac = *self.targets.lookup(target.to_bits())?;
        let option = LinkAddress::new(icmp6::TARGET_LINK_ADDRESS, mac);
        let advertise = |dst_mac, dst_ip, flags| {
            let message = Neighbor::new(icmp6::NEIGHBOR_ADVERTISEMENT, flags, target);
            nd::frame((mac, dst_mac), (target, dst_ip), message, option)
        };
        if message.ip.src().is_unspecified() {
            // Duplicate address detection by another host (RFC 4861, 7.2.4).
            let is_probe = message.ip.dst() == icmp6::solicited_node(target) && source.is_none();
            let group = icmp6::ALL_NODES;
            let group_mac = MacAddr::from_ipv6_group(group);
            return is_probe.then(|| advertise(group_mac, group, Neighbor::ROUTER));
        }
        let flags = Neighbor::ROUTER | Neighbor::SOLICITED;
        Some(advertise(message.ether.src(), message.ip.src(), flags))
    }
}
