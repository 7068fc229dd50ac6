//! `AddressInfo`: names addresses.

use castanet_element::args::AddressKind;
use castanet_element::prelude::*;

/// Gives names to addresses, for use in the arguments of other elements.
///
/// A name may have an IP address, a prefix, an Ethernet address, an IPv6
/// address and an IPv6 prefix; an argument uses the one of its type, or the one
/// that a suffix (`:ip`, `:ipnet`, `:eth`, `:ip6`, `:ip6net`) selects.
/// `NAME:bcast` is the broadcast address of the prefix, `NAME:gw` its first host.
/// The name without a suffix of an address with host bits, such as 10.1.2.3/16,
/// is that host, and `NAME:ipnet` its prefix; that of an address without host
/// bits, such as 10.0.0.0/8, is the prefix. The interfaces of the machine have
/// names without declaration: `eth0:ip` and so on, and `eth0:gw` is the gateway
/// of the default route through `eth0`. In a tenant of `castanet tenants`, names
/// are those that the tenant declares, and interfaces have none.
///
/// ```click
/// AddressInfo(host 1.0.0.1 00:00:00:00:00:07 2001:db8::1, net 2.0.0.9/8, same host,
///     all net:bcast)
/// in -> SetIPAddress(net:bcast) -> out;
/// in2 -> EtherEncap(0x0800, same, same:eth) -> SetIPAddress(all) -> out2
/// > in 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; dst 2.255.255.255
/// > in2 1.0.0.1 > 2.0.0.2 udp
/// < out2 eth 0:0:0:0:0:7 > 0:0:0:0:0:7 1.0.0.1 > 2.0.0.2 udp ; dst 2.255.255.255
/// ```
/// ```click
/// AddressInfo(me 10.1.2.3/16, ten 10.0.0.0/8)
/// in -> SetIPAddress(me:gw) -> GetIPAddress(16) -> r :: RadixIPLookup(me 0, me:ipnet 1, ten 2, 0/0 3)
/// r -> host;  r[1] -> net;  r[2] -> wide;  r[3] -> rest
/// > in 1.0.0.1 > 10.1.2.3 udp
/// > in 1.0.0.1 > 10.1.0.1 udp
/// > in 1.0.0.1 > 10.2.0.1 udp
/// > in 1.0.0.1 > 11.0.0.1 udp
/// < host 1.0.0.1 > 10.1.2.3 udp
/// < net  1.0.0.1 > 10.1.0.1 udp
/// < wide 1.0.0.1 > 10.2.0.1 udp
/// < rest 1.0.0.1 > 11.0.0.1 udp
/// ```
#[derive(Element)]
#[element(room = "info")]
pub struct AddressInfo {
    /// A name, then its addresses.
    #[arg(rest)]
    names: Vec<Words>,
}

/// The addresses of a declared name, or `text` itself if it is an address; `None` otherwise.
fn addresses_of(text: &str, facts: &Facts) -> Option<Vec<String>> {
    let visible = facts.names.visible();
    let declared = Names::new(&visible, None);
    let known: Vec<String> = match text.contains(':') {
        false => visible.iter().filter(|(n, _)| n == text).map(|(_, a)| a.clone()).collect(),
        true => AddressKind::WRITTEN
            .into_iter()
            .find_map(|kind| declared.resolve(text, kind))
            .into_iter()
            .collect(),
    };
    let is_address = MacAddr::from_arg(text, &declared).is_ok()
        || Net::from_arg(text, &declared).is_ok()
        || is_ipv6(text)
        || Names::is_of_interface(text)
        || !facts.names.is_sealed() && facts.interfaces.iter().any(|it| it == text);
    match (known.is_empty(), is_address) {
        (false, _) => Some(known),
        (true, true) => Some(vec![text.to_owned()]),
        (true, false) => None,
    }
}

/// Whether a text is an IPv6 address or prefix.
fn is_ipv6(text: &str) -> bool {
    let (address, length) = text.split_once('/').unwrap_or((text, "128"));
    address.parse::<std::net::Ipv6Addr>().is_ok() && length.parse::<u8>().is_ok_and(|n| n <= 128)
}

impl Info for AddressInfo {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in &self.names {
            let Some((name, addresses)) = argument.words.split_first() else { continue };
            if addresses.is_empty() {
                return Err(ArgError::new(format!("`{name}` has no address"))
                    .click("expected 'NAME [ADDRS]'")
                    .help("a name is followed by its addresses, as in `host 1.0.0.1`"));
            }
            for text in addresses {
                let all = addresses_of(text, facts).ok_or_else(|| {
                    ArgError::new(format!("`{text}` is not an address"))
                        .click(format!("'{text}' is not a recognizable address"))
                        .help("1.0.0.1, 1.0.0.0/8, 00:01:02:03:04:05 and 2001:db8::1 are addresses")
                })?;
                all.into_iter().for_each(|address| facts.names.declare(name.clone(), address));
            }
        }
        Ok(())
    }
}
