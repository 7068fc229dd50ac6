//! `RadixIPLookup`: looks up IPv4 routes by the longest prefix.

use super::route_table::RouteTable;
use castanet_element::fate::none_taken;
use castanet_element::prelude::*;
use castanet_kit::lpm::Route;

/// Looks up the route of each packet by the longest prefix of its destination annotation.
///
/// A route is `ADDR/MASK [GATEWAY] OUTPUT`. The element sends the packet to
/// OUTPUT and sets the annotation to GATEWAY, if the route has one. One trie
/// serves all of Click's lookup classes. Routes can change while the router
/// runs; all commands of one `ctrl` write take effect at once, or none does.
///
/// ```click
/// in -> r :: RadixIPLookup(1.0.0.0/8 0, 1.2.0.0/16 9.9.9.9 1) -> a;  r[1] -> b
/// > in 8.8.8.8 > 1.0.0.1 udp
/// > in 8.8.8.8 > 1.2.0.1 udp
/// > in 8.8.8.8 > 2.0.0.2 udp
/// < a  8.8.8.8 > 1.0.0.1 udp ; dst 1.0.0.1
/// < b  8.8.8.8 > 1.2.0.1 udp ; dst 9.9.9.9
/// = r.drops.unmatched 1
/// = r.lookup(1.2.3.4) 1 9.9.9.9
/// ! r.add 2.0.0.0/8 1
/// ! r.set 1.0.0.0/8 1
/// ! r.remove 1.2.0.0/16
/// = r.table 2.0.0.0/8\t\t-\t\t1\n1.0.0.0/8\t\t-\t\t1
/// > in 8.8.8.8 > 2.0.0.2 udp
/// > in 8.8.8.8 > 1.2.0.1 udp
/// < b  8.8.8.8 > 2.0.0.2 udp
/// < b  8.8.8.8 > 1.2.0.1 udp
/// ! r.ctrl remove 1.0.0.0/8
/// = r.lookup(1.2.3.4) -1
/// ! r.flush
/// = r.table
/// ! r.table 5.0.0.0/8 - 1
/// = r.table 5.0.0.0/8\t\t-\t\t1
/// ```
#[derive(Clone, Element)]
#[element(room = "lookup", args = RadixIPLookupArgs, ports = "1/-")]
#[element(alias = "DirectIPLookup", alias = "RangeIPLookup", alias = "StaticIPLookup")]
#[element(alias = "LinearIPLookup", alias = "SortedIPLookup", alias = "IndexTreesIPLookup")]
#[element(alias = "LookupIPRoute", alias = "LookupIPRouteMP")]
pub struct RadixIPLookup {
    #[flatten]
    table: RouteTable<u32>,
}

#[derive(Args)]
pub struct RadixIPLookupArgs {
    /// Routes, `ADDR/MASK [GATEWAY] OUTPUT` each.
    #[arg(rest)]
    routes: Vec<RouteArg>,
}

/// A route as an argument; none if the argument is no route.
pub struct RouteArg(Option<Route>);

impl FromArg for RouteArg {
    const SYNTAX: &'static str = "ADDR/MASK [GATEWAY] OUTPUT";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let named = || {
            let (name, rest) = text.split_once(char::is_whitespace)?;
            let net = Net::from_arg(name, names).ok()?;
            Route::parse(&format!("{}/{} {rest}", net.address, net.mask))
        };
        // The table reports all errors of all arguments.
        Ok(RouteArg(Route::parse(text).or_else(named)))
    }
}

impl Build for RadixIPLookup {
    type Args = RadixIPLookupArgs;
    fn build(args: RadixIPLookupArgs, setup: &Setup) -> Result<Self, ArgError> {
        let routes = args.routes.into_iter().map(|route| route.0);
        Ok(RadixIPLookup { table: RouteTable::new(routes, setup)? })
    }
}

impl PerPacket for RadixIPLookup {
    type On = on::Any;
    type Local = ();
    type Fate = Port;
    const IS_LOOKUP: bool = true;
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;

    fn byte_length(&self) -> Option<usize> {
        Some(0)
    }

    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        let mut bits = 0;
        let is_known = bytes.change_destinations(&mut *fates, |destination, fate| {
            let hop = self.table.next_hop(destination);
            *fate = hop.map_or(Port::DROP, |hop| Port::known(hop.port as u8)).index();
            bits |= *fate;
            hop.map_or(0, |hop| hop.gateway)
        });
        if is_known { bits } else { none_taken(fates) }
    }

    // The lookups of a burst are not batched: they do not depend on each other,
    // so the processor overlaps their memory accesses by itself (measured: 3.6
    // ns against 4.4 ns for batched lookups in a hot table).
    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Port {
        let Some(next_hop) = self.table.next_hop(packet.dst().to_bits()) else {
            return Port::DROP;
        };
        if next_hop.gateway != 0 {
            packet.set_dst(Ipv4Addr::from_bits(next_hop.gateway));
        }
        Port::known(next_hop.port as u8)
    }
}
