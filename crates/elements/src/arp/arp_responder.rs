//! `ARPResponder`: who answers for which addresses.

use super::entry::{Entry, host_or_net};
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Arp, Ethernet, arp, ether_type};
use castanet_kit::prefixes::PrefixList;

/// Turns ARP requests for the addresses given into the replies to them.
///
/// Each argument lists IPv4 addresses or prefixes and the one Ethernet address
/// to answer with; a name can stand for both. The most specific prefix
/// decides. Everything that is not answered leaves by output 1. Replies keep
/// the device and VLAN of their request and no other annotation.
///
/// ```click
/// in -> r :: ARPResponder(1.0.0.1 2.0.0.0/8 0:0:0:0:0:1, 2.0.0.9 0:0:0:0:0:9) -> out;  r[1] -> rest
/// > in   eth 0:0:0:0:0:5 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.1 tell 1.0.0.5 0:0:0:0:0:5 pad 18 ; paint 3
/// > in   eth 0:0:0:0:0:5 > ff:ff:ff:ff:ff:ff arp who-has 2.0.0.9 tell 1.0.0.5 0:0:0:0:0:5
/// > in   eth 0:0:0:0:0:5 > ff:ff:ff:ff:ff:ff arp who-has 3.0.0.1 tell 1.0.0.5 0:0:0:0:0:5
/// > in   1.0.0.5 > 1.0.0.1 udp
/// < out  eth 0:0:0:0:0:1 > 0:0:0:0:0:5 arp reply 1.0.0.1 is-at 0:0:0:0:0:1 to 1.0.0.5 0:0:0:0:0:5 ; paint 0
/// < out  eth 0:0:0:0:0:9 > 0:0:0:0:0:5 arp reply 2.0.0.9 is-at 0:0:0:0:0:9 to 1.0.0.5 0:0:0:0:0:5
/// < rest eth 0:0:0:0:0:5 > ff:ff:ff:ff:ff:ff arp who-has 3.0.0.1 tell 1.0.0.5 0:0:0:0:0:5
/// < rest 1.0.0.5 > 1.0.0.1 udp
/// = r.table 1.0.0.1/32 00-00-00-00-00-01\n2.0.0.9/32 00-00-00-00-00-09\n2.0.0.0/8 00-00-00-00-00-01
/// ! r.add 3.0.0.0/24 0:0:0:0:0:3
/// ! r.remove 2.0.0.9
/// = r.lookup(3.0.0.1) 00-00-00-00-00-03
/// = r.lookup(2.0.0.9) 00-00-00-00-00-01
/// = r.lookup(4.0.0.1)
/// ```
#[derive(Clone, Element)]
#[element(room = "arp", args = Entries, gives = "ether", methods)]
pub struct ARPResponder {
    owners: PrefixList<MacAddr>,
}

#[derive(Args)]
pub struct Entries {
    /// Addresses and prefixes, and the Ethernet address that has them.
    #[arg(rest)]
    entries: Vec<Entry>,
}

impl ARPResponder {
    fn with(mut self, entry: Entry) -> Self {
        for net in entry.prefixes {
            self.owners.insert(net.address.to_bits(), net.mask.to_bits(), entry.owner);
        }
        self
    }
}

impl Build for ARPResponder {
    type Args = Entries;
    fn build(args: Entries, setup: &Setup) -> Result<Self, ArgError> {
        let mut owners = PrefixList::default();
        for Entry { prefixes, owner } in args.entries {
            for net in prefixes {
                if owners.insert(net.address.to_bits(), net.mask.to_bits(), owner).is_some() {
                    let (address, length) =
                        (net.address & net.mask, net.mask.to_bits().count_ones());
                    (setup.warn)(format!("multiple entries for {address}/{length}"));
                }
            }
        }
        Ok(ARPResponder { owners })
    }
}

#[handlers]
impl ARPResponder {
    /// Prefixes and who has them, the more specific before those that contain them.
    #[read]
    fn table(&self) -> String {
        self.owners.listing()
    }

    /// The Ethernet address that is answered for an IPv4 address, if any.
    #[read]
    fn lookup(&self, ask: &Ask) -> String {
        let address = ask.param.trim().parse().map(Ipv4Addr::to_bits);
        let owner = address.ok().and_then(|address| self.owners.get(address));
        owner.map_or_else(String::new, MacAddr::to_string)
    }

    /// Adds an entry, `IP/MASK… ETH`.
    #[write]
    fn add(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(self.clone().with(Entry::from_arg(text, names)?))
    }

    /// Removes a prefix.
    #[write]
    fn remove(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let mut rest = self.clone();
        let net = host_or_net(text.trim(), names).map_err(|e| e.click("expected IP/MASK"))?;
        match rest.owners.remove(net.address.to_bits(), net.mask.to_bits()) {
            Some(_) => Ok(rest),
            None => Err(ArgError::new(format!("{} not found", text.trim()))),
        }
    }
}

#[derive(Fate)]
pub enum Answer {
    /// Replies.
    Reply,
    /// All other packets.
    #[optional]
    Unanswered,
}

impl PerPacket for ARPResponder {
    type On = on::Any;
    type Local = ();
    type Fate = Answer;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Answer {
        let Some((owner, reply)) = self.answer(packet) else { return Answer::Unanswered };
        packet.truncate(Ethernet::LEN + Arp::LEN);
        if let Some((ether, rest)) = Ethernet::from_prefix_mut(packet.bytes_mut()) {
            *ether = Ethernet::new(reply.target_mac(), owner, ether_type::ARP);
            rest.copy_from_slice(reply.bytes());
        }
        forget_the_request(packet);
        Answer::Reply
    }
}

impl ARPResponder {
    /// Who has the address that a packet asks for, and how to say so.
    fn answer(&self, packet: &Packet) -> Option<(MacAddr, Arp)> {
        let (ether, rest) = Ethernet::from_prefix(packet.bytes())?;
        let (message, _) = Arp::from_prefix(rest)?;
        let asks = ether.ether_type() == ether_type::ARP
            && message.is_ethernet_ipv4()
            && message.operation() == arp::REQUEST;
        let owner = *self.owners.get(message.target_ip().to_bits()).filter(|_| asks)?;
        Some((owner, message.reply(owner)))
    }
}

/// A reply is a new packet, but for its device and VLAN.
fn forget_the_request(packet: &mut Packet) {
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
    packet.set_network_header(Ethernet::LEN as isize, Arp::LEN);
}
