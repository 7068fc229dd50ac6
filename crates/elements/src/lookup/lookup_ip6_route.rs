//! `LookupIP6Route`: looks up IPv6 routes by the longest prefix.

use super::route_table::RouteTable;
use castanet_element::prelude::*;
use castanet_kit::lpm::Route;

/// Looks up the route of each packet by the longest prefix of its IPv6 destination annotation.
///
/// A route is `ADDR/LENGTH [GATEWAY] OUTPUT`. The element sends the packet to
/// OUTPUT and sets the annotation to GATEWAY, unless that is `::`. Routes can
/// change while the router runs; all commands of one `ctrl` write take effect
/// at once, or none does.
///
/// ```click
/// in -> r :: LookupIP6Route(1::/16 0, 1:2::/32 9::9 1, ::/0 ::0 1) -> a;  r[1] -> b
/// > in 8::8 > 1::1 udp
/// > in 8::8 > 1:2::1 udp
/// > in 8::8 > 2::2 udp
/// < a  8::8 > 1::1 udp ; dst6 1::1
/// < b  8::8 > 1:2::1 udp ; dst6 9::9
/// < b  8::8 > 2::2 udp ; dst6 2::2
/// = r.lookup(1:2::3) 1 9::9
/// ! r.remove ::/0
/// > in 8::8 > 2::2 udp
/// = r.drops.unmatched 1
/// ! r.add 2::/16 1
/// ! r.set 1::/16 1
/// ! r.remove 1:2::/32
/// = r.table 2::/16\t\t-\t\t1\n1::/16\t\t-\t\t1
/// > in 8::8 > 1:2::1 udp
/// < b  8::8 > 1:2::1 udp ; dst6 1:2::1
/// ! r.ctrl remove 1::/16
/// = r.lookup(1::1) -1
/// ! r.flush
/// = r.table
/// ! r.table 5::/16 - 1
/// = r.table 5::/16\t\t-\t\t1
/// ```
#[derive(Clone, Element)]
#[element(room = "lookup", args = LookupIP6RouteArgs, ports = "1/-")]
pub struct LookupIP6Route {
    #[flatten]
    table: RouteTable<u128>,
}

#[derive(Args)]
pub struct LookupIP6RouteArgs {
    /// Routes, `ADDR/LENGTH [GATEWAY] OUTPUT` each.
    #[arg(rest)]
    routes: Vec<RouteArg>,
}

/// A route as an argument.
pub struct RouteArg(Route<u128>);

impl FromArg for RouteArg {
    const SYNTAX: &'static str = "ADDR/LENGTH [GATEWAY] OUTPUT";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let named = || {
            let (name, rest) = text.split_once(char::is_whitespace)?;
            let net = Net6::from_arg(name, names).ok()?;
            Route::parse(&format!("{}/{} {rest}", net.address, net.length))
        };
        let route = Route::parse(text).or_else(named).map(RouteArg);
        route.ok_or_else(|| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("argument should be DADDR/MASK [GW] OUTPUT")
        })
    }
}

impl Build for LookupIP6Route {
    type Args = LookupIP6RouteArgs;
    fn build(args: LookupIP6RouteArgs, setup: &Setup) -> Result<Self, ArgError> {
        if args.routes.is_empty() {
            (setup.warn)("no routes".into());
        }
        let routes = args.routes.into_iter().map(|route| Some(route.0));
        Ok(LookupIP6Route { table: RouteTable::new(routes, setup)? })
    }
}

impl PerPacket for LookupIP6Route {
    type On = on::Any;
    type Local = ();
    type Fate = Port;
    const IS_LOOKUP: bool = true;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> Port {
        let Some(next_hop) = self.table.next_hop(packet.dst6().to_bits()) else {
            return Port::DROP;
        };
        if next_hop.gateway != 0 {
            packet.set_dst6(Ipv6Addr::from_bits(next_hop.gateway));
        }
        Port::known(next_hop.port as u8)
    }
}
