//! `LookupIP6Route`: where an IPv6 packet goes next, by the longest prefix.

use castanet_engine::prelude::*;
use castanet_kit::lpm::{Route, RouteError, Routes};

/// Sends each packet where the longest prefix of its IPv6 destination annotation leads.
///
/// A route is `ADDR/LENGTH [GATEWAY] OUTPUT`; a gateway other than `::` takes
/// the destination's place in the annotation. Routes change while the router
/// runs, whole `ctrl` texts at once or not at all.
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
/// ```
#[derive(Clone, Element)]
#[element(args = List, methods)]
pub struct LookupIP6Route {
    routes: Routes<u128>,
    outputs: u32,
}

#[derive(Args)]
pub struct List {
    /// A route: `ADDR/LENGTH [GATEWAY] OUTPUT`.
    #[arg(rest)]
    routes: Vec<RouteArg>,
}

/// A route as a configuration has it.
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

fn refused(error: RouteError<u128>) -> ArgError {
    ArgError::new(error.to_string())
}

impl Build for LookupIP6Route {
    type Args = List;
    fn build(args: List, setup: &Setup) -> Result<Self, ArgError> {
        let mut lookup = LookupIP6Route { routes: Routes::new(), outputs: setup.outputs as u32 };
        let list: Vec<Route<u128>> = args.routes.into_iter().map(|route| route.0).collect();
        match lookup.routes.configure(&list, lookup.outputs) {
            Ok(_) => Ok(lookup),
            Err(errors) => Err(errors.into_iter().next().map_or_else(
                || refused(RouteError::Syntax),
                |(n, error)| refused(error).at(format_args!("argument {}", n + 1)),
            )),
        }
    }
}

#[handlers]
impl LookupIP6Route {
    /// All routes, a line each.
    #[read]
    fn table(&self) -> String {
        self.routes.listing()
    }
    /// Output and gateway for the address that is the parameter, -1 for none.
    #[read]
    fn lookup(&self, ask: &Ask) -> String {
        match ask.param.parse::<Ipv6Addr>() {
            Ok(address) => self.routes.lookup_text(address.to_bits()),
            Err(_) => "expected IP6 address".to_owned(),
        }
    }
    /// Adds a route for a prefix that has none.
    #[write]
    fn add(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.line("add", text)
    }
    /// Adds a route or replaces its prefix's.
    #[write]
    fn set(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.line("set", text)
    }
    /// Removes a route.
    #[write]
    fn remove(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.line("remove", text)
    }
    /// Adds, sets and removes routes, a command a line, all or nothing.
    #[write]
    fn ctrl(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        let mut changed = self.clone();
        changed.routes.ctrl(text, self.outputs).map_err(refused)?;
        Ok(changed)
    }
    /// Removes all routes.
    #[write]
    fn flush(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(LookupIP6Route { routes: Routes::new(), outputs: self.outputs })
    }

    fn line(&self, command: &str, route: &str) -> Result<Self, ArgError> {
        self.ctrl(&format!("{command} {}", route.trim().replace('\n', " ")), &Names::default())
    }
}

impl PerPacket for LookupIP6Route {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> Port {
        let Some(hop) = self.routes.table().lookup(packet.dst6().to_bits()) else {
            return Port::DROP;
        };
        if hop.gateway != 0 {
            packet.set_dst6(Ipv6Addr::from_bits(hop.gateway));
        }
        Port::known(hop.port as u8)
    }
}
