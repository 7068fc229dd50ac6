//! `IP6NDAdvertiser`: who answers for which IPv6 addresses.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_engine::wire::icmp6::{self, LinkAddress, Neighbor};
use castanet_engine::wire::{Ethernet, nd};
use castanet_kit::lpm::Table;

/// Turns neighbour solicitations for the addresses given into the advertisements to them.
///
/// Each argument lists IPv6 addresses or prefixes and the one Ethernet address
/// to answer with. The longest prefix decides. Solicitations that cannot be
/// believed (RFC 4861, 7.1.1), those for other addresses and all other packets
/// leave by output 1 or, where that is not connected, are dropped.
/// Advertisements call their sender a router and keep the VLAN of the
/// solicitation. A host that has no address yet is answered at the group of
/// all nodes.
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
#[element(room = "ip6", args = Entries, gives = "ether")]
pub struct IP6NDAdvertiser {
    owners: Table<MacAddr, u128>,
    two_outputs: bool,
}

#[derive(Args)]
pub struct Entries {
    /// Addresses and prefixes, and the Ethernet address that has them.
    #[arg(rest)]
    entries: Vec<Entry>,
}

/// Prefixes that one station answers for.
pub struct Entry {
    prefixes: Vec<Net6>,
    owner: MacAddr,
}

impl FromArg for Entry {
    const SYNTAX: &'static str = "IP6/MASK… ETH";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let (mut prefixes, mut owner) = (Vec::new(), None);
        for word in text.split_whitespace() {
            if let Ok(net) = Net6::from_arg(word, names) {
                prefixes.push(net);
            } else if let Ok(mac) = MacAddr::from_arg(word, names) {
                if owner.replace(mac).is_some() {
                    return Err(ArgError::new("more than one ETH")
                        .click("argument has more than one Ethernet address"));
                }
            } else {
                let error = ArgError::new(format!("`{word}` is neither a prefix nor a station"));
                return Err(error.click("argument should be `IP6/MASK ETHADDR'"));
            }
        }
        let named = || text.split_whitespace().find_map(|w| MacAddr::from_arg(w, names).ok());
        match owner.or_else(named) {
            Some(owner) if !prefixes.is_empty() => Ok(Entry { prefixes, owner }),
            Some(_) => {
                Err(ArgError::new("missing IP6/MASK")
                    .click("argument had no IP6 address and masks"))
            }
            None => Err(ArgError::new("missing ETH")),
        }
    }
}

impl Build for IP6NDAdvertiser {
    type Args = Entries;
    fn build(args: Entries, setup: &Setup) -> Result<Self, ArgError> {
        let prefixes = args.entries.iter().flat_map(|entry| {
            let net = |net: &Net6| (net.address.to_bits(), net.length, entry.owner);
            entry.prefixes.iter().map(net)
        });
        Ok(IP6NDAdvertiser { owners: Table::build(prefixes), two_outputs: setup.outputs > 1 })
    }
}

#[derive(Fate)]
pub enum Answer {
    /// Advertisements.
    Advertisement,
    /// All other packets.
    #[optional]
    Other,
    /// All other packets, where nobody takes them.
    #[drop]
    Unanswered,
}

impl PerPacket for IP6NDAdvertiser {
    type On = on::Any;
    type Local = ();
    type Fate = Answer;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> Answer {
        let Some(frame) = self.answer(packet.bytes()) else {
            return if self.two_outputs { Answer::Other } else { Answer::Unanswered };
        };
        packet.replace_contents(&frame);
        // A new packet, but for its device and VLAN.
        let vlan = packet.anno_u16(anno::VLAN_TCI);
        packet.set_annotations([0; anno::SIZE]);
        if vlan != 0 {
            packet.set_anno_u16(anno::VLAN_TCI, vlan);
        }
        if packet.timestamp() != 0 {
            packet.set_timestamp(0);
        }
        packet.set_packet_type(PacketType::Host);
        packet.set_mac_header(0);
        packet.set_network_header(Ethernet::LEN as isize, nd::HEADER_LEN);
        Answer::Advertisement
    }
}

impl IP6NDAdvertiser {
    /// The advertisement that a frame asks for, if it is a solicitation for an address of ours.
    fn answer(&self, frame: &[u8]) -> Option<[u8; nd::FRAME_LEN]> {
        let heard = nd::parse(frame, icmp6::NEIGHBOR_SOLICITATION)?;
        let source = heard.link_address(icmp6::SOURCE_LINK_ADDRESS).ok()?;
        let target = heard.message.target();
        let owner = *self.owners.lookup(target.to_bits())?;
        let option = LinkAddress::new(icmp6::TARGET_LINK_ADDRESS, owner);
        let advertise = |mac, ip, flags| {
            let message = Neighbor::new(icmp6::NEIGHBOR_ADVERTISEMENT, flags, target);
            nd::frame((owner, mac), (target, ip), message, option)
        };
        if heard.ip.src().is_unspecified() {
            // Somebody looks whether the address is free (RFC 4861, 7.2.4).
            let asks = heard.ip.dst() == icmp6::solicited_node(target) && source.is_none();
            let group = icmp6::ALL_NODES;
            let mac = MacAddr::from_ipv6_group(group);
            return asks.then(|| advertise(mac, group, Neighbor::ROUTER));
        }
        let flags = Neighbor::ROUTER | Neighbor::SOLICITED;
        Some(advertise(heard.ether.src(), heard.ip.src(), flags))
    }
}
