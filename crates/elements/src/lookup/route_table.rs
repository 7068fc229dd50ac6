//! The routes of a lookup element, for IPv4 and IPv6, with their handlers.

use castanet_element::prelude::*;
use castanet_kit::address::Address;
use castanet_kit::lpm::{NextHop, Route, RouteError, Routes};

/// The error number of something that exists already.
const EEXIST: i32 = 17;

/// Converts the error of a route.
pub(super) fn route_error<A: Address>(error: RouteError<A>) -> ArgError {
    let is_there = matches!(error, RouteError::Conflict(_));
    let message = ArgError::new(error.to_string());
    if is_there { message.with_status(-EEXIST) } else { message }
}

/// The error of an argument, the first of which has number 1.
fn argument_error<A: Address>(number: usize, error: RouteError<A>) -> ArgError {
    let click = match &error {
        RouteError::Syntax => "should be 'ADDR/MASK [GATEWAY] OUTPUT'".to_owned(),
        other => other.to_string(),
    };
    ArgError::new(format!("argument {number}: {error}")).click(format!("argument {number} {click}"))
}

/// Warns of so many routes for prefixes that have one already. In Click's words later routes take
/// their place, but there, too, the first counts.
fn warn_of_repeated(repeated: usize, setup: &Setup) {
    let routes = if repeated == 1 { "route" } else { "routes" };
    match (repeated, setup.as_click) {
        (0, _) => {}
        (n, true) => (setup.warn)(format!("{n} {routes} replaced by later versions")),
        (n, false) => (setup.warn)(format!("{n} {routes} of prefixes that have one already")),
    }
}

/// The routes of an element.
#[derive(Clone)]
pub(crate) struct RouteTable<A> {
    routes: Routes<A>,
}

impl<A: Address> RouteTable<A> {
    /// Builds the table of the configured routes, one for each argument that is one. All errors of all
    /// arguments are reported.
    pub(super) fn new(
        arguments: impl Iterator<Item = Option<Route<A>>>,
        setup: &Setup,
    ) -> Result<Self, ArgError> {
        let mut routes = Routes::new(setup.outputs as u32);
        let (mut list, mut numbers, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (number, route) in (1..).zip(arguments) {
            match route {
                Some(route) => {
                    list.push(route);
                    numbers.push(number);
                }
                None => errors.push((number, RouteError::Syntax)),
            }
        }
        match routes.configure(&list) {
            Ok(repeated) => warn_of_repeated(repeated, setup),
            Err(more) => errors.extend(more.into_iter().map(|(n, error)| (numbers[n], error))),
        }
        errors.sort_by_key(|&(number, _)| number);
        let errors = errors.into_iter().map(|(number, error)| Err(argument_error(number, error)));
        ArgError::all::<()>(errors)?;
        Ok(RouteTable { routes })
    }

    /// The next hop of a packet to `address`.
    #[inline]
    pub(super) fn next_hop(&self, address: A) -> Option<NextHop<A>> {
        self.routes.next_hop(address)
    }
}

#[handlers]
impl<A: Address> RouteTable<A> {
    /// All routes, a line each.
    #[read]
    fn table(&self) -> String {
        self.routes.listing()
    }
    /// Puts routes in place of all, or does nothing: a line each, as the handler shows them.
    #[write(table)]
    fn set_table(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let commands: String = lines.map(|line| format!("add {line}\n")).collect();
        self.flush("", names)?.ctrl(&commands, names)
    }
    /// Output and gateway for the address in the parameter; -1 if there is no route.
    #[read]
    fn lookup(&self, ask: &ReadRequest) -> String {
        match ask.param.parse::<A::StdAddress>() {
            Ok(address) => self.routes.lookup_text(address.into()),
            Err(_) if A::BITS == u32::BITS => "expected IP address".to_owned(),
            Err(_) => "expected IP6 address".to_owned(),
        }
    }
    /// Adds a route; fails if its prefix has one.
    #[write]
    fn add(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.run_command("add", text)
    }
    /// Adds a route, or replaces the route of its prefix.
    #[write]
    fn set(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.run_command("set", text)
    }
    /// Removes a route.
    #[write]
    fn remove(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.run_command("remove", text)
    }
    /// Adds, sets and removes routes, one command per line; all commands or none take effect.
    #[write]
    fn ctrl(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        let mut new = self.clone();
        new.routes.ctrl(text).map_err(route_error)?;
        Ok(new)
    }
    /// Removes all routes.
    #[write]
    fn flush(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(RouteTable { routes: Routes::new(self.routes.outputs()) })
    }

    /// Runs one command of `ctrl`.
    fn run_command(&self, command: &str, route: &str) -> Result<Self, ArgError> {
        let line = format!("{command} {}", route.trim().replace('\n', " "));
        self.ctrl(&line, &Names::default())
    }
}
