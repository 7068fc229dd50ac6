//! `ARPResponder`: answers ARP requests for configured addresses.

use super::reply_annotations::reset_annotations;
use super::responder_entry::{ResponderEntry, host_or_net};
use castanet_element::prelude::*;
use castanet_element::wire::{Arp, Ethernet, arp, ether_type};
use castanet_kit::prefixes::PrefixList;

/// Answers ARP requests for the configured IPv4 addresses and prefixes.
///
/// Each argument lists IPv4 addresses or prefixes and the one Ethernet address
/// to answer with; a name from `AddressInfo` can stand for both. The most
/// specific prefix that contains the requested address decides. All other
/// packets leave by output 1 unchanged. A reply keeps the device and the VLAN
/// annotation of its request and no other annotation.
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
/// ! r.table 5.0.0.0/8 00-00-00-00-00-07
/// = r.table 5.0.0.0/8 00-00-00-00-00-07
/// ```
#[derive(Clone, Element)]
#[element(room = "arp", args = ARPResponderArgs, gives = "ether", methods, headers = Gives(FirstHeader::Ethernet, MarkedHeader::Unknown))]
pub struct ARPResponder {
    entries: PrefixList<MacAddr>,
}

#[derive(Args)]
pub struct ARPResponderArgs {
    /// IPv4 addresses and prefixes, and the Ethernet address to answer with.
    #[arg(rest)]
    entries: Vec<ResponderEntry>,
}

impl ARPResponder {
    fn with(mut self, entry: ResponderEntry) -> Self {
        for net in entry.prefixes {
            self.entries.insert(net.address.to_bits(), net.mask.to_bits(), entry.mac);
        }
        self
    }
}

impl Build for ARPResponder {
    type Args = ARPResponderArgs;
    fn build(args: ARPResponderArgs, setup: &Setup) -> Result<Self, ArgError> {
        let mut entries = PrefixList::default();
        for ResponderEntry { prefixes, mac } in args.entries {
            for net in prefixes {
                if entries.insert(net.address.to_bits(), net.mask.to_bits(), mac).is_some() {
                    let (address, length) =
                        (net.address & net.mask, net.mask.to_bits().count_ones());
                    (setup.warn)(format!("multiple entries for {address}/{length}"));
                }
            }
        }
        Ok(ARPResponder { entries })
    }
}

#[handlers]
impl ARPResponder {
    /// Prefixes and their Ethernet addresses, the more specific before those that contain them.
    #[read]
    fn table(&self) -> String {
        self.entries.listing()
    }

    /// Puts entries in place of all, or does nothing: a line each, as the handler shows them.
    #[write(table)]
    fn set_table(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.try_fold(ARPResponder { entries: Default::default() }, |new, line| {
            Ok(new.with(ResponderEntry::from_arg(line, names)?))
        })
    }

    /// Ethernet address that the element answers for an IPv4 address; empty if there is none.
    #[read]
    fn lookup(&self, ask: &ReadRequest) -> String {
        let address = ask.param.trim().parse().map(Ipv4Addr::to_bits);
        let mac = address.ok().and_then(|address| self.entries.get(address));
        mac.map_or_else(String::new, MacAddr::to_string)
    }

    /// Adds an entry `IP/MASK… ETH`.
    #[write]
    fn add(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(self.clone().with(ResponderEntry::from_arg(text, names)?))
    }

    /// Removes the entry of a prefix.
    #[write]
    fn remove(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let mut rest = self.clone();
        let net = host_or_net(text.trim(), names).map_err(|e| e.click("expected IP/MASK"))?;
        match rest.entries.remove(net.address.to_bits(), net.mask.to_bits()) {
            Some(_) => Ok(rest),
            None => Err(ArgError::new(format!("{} not found", text.trim()))),
        }
    }
}

#[derive(Fate)]
pub enum ARPResponderExit {
    /// ARP replies.
    Reply,
    /// All other packets.
    #[optional]
    Unanswered,
}

impl PerPacket for ARPResponder {
    type On = on::Any;
    type Local = ();
    type Fate = ARPResponderExit;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> ARPResponderExit {
        let Some((mac, reply)) = self.reply_to(packet) else { return ARPResponderExit::Unanswered };
        packet.truncate(Ethernet::LEN + Arp::LEN);
        if let Some((ether, rest)) = Ethernet::from_prefix_mut(packet.bytes_mut()) {
            *ether = Ethernet::new(reply.target_mac(), mac, ether_type::ARP);
            rest.copy_from_slice(reply.bytes());
        }
        reset_annotations(packet, Arp::LEN);
        ARPResponderExit::Reply
    }
}

impl ARPResponder {
    /// The configured Ethernet address and the reply to `packet`, if it is an ARP request for an
    /// address of `entries`.
    // A call would copy the reply once more.
    #[inline(always)]
    fn reply_to(&self, packet: &Packet) -> Option<(MacAddr, Arp)> {
        let (ether, rest) = Ethernet::from_prefix(packet.bytes())?;
        let (message, _) = Arp::from_prefix(rest)?;
        let asks = ether.ether_type() == ether_type::ARP
            && message.is_ethernet_ipv4()
            && message.operation() == arp::REQUEST;
        let mac = *self.entries.get(message.target_ip().to_bits()).filter(|_| asks)?;
        Some((mac, message.reply(mac)))
    }
}
