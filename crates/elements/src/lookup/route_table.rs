//! The routes of a lookup element, for IPv4 and IPv6, with their handlers.

use castanet_element::prelude::*;
use castanet_kit::address::Address;
use castanet_kit::lpm::{NextHop, Route, RouteError, Routes};
use std::fmt::Display;

/// Converts the error of a route.
pub(super) fn route_error(error: impl Display) -> ArgError {
    ArgError::new(error.to_string())
}

/// The routes of an element with so many outputs.
#[derive(Clone)]
pub(crate) struct RouteTable<A> {
    routes: Routes<A>,
    outputs: u32,
}

impl<A: Address> RouteTable<A> {
    /// Builds the table of the configured routes.
    pub(super) fn new(
        list: impl Iterator<Item = Route<A>>,
        setup: &Setup,
    ) -> Result<Self, ArgError> {
        let (mut routes, outputs) = (Routes::new(), setup.outputs as u32);
        match routes.configure(&list.collect::<Vec<_>>(), outputs) {
            Ok(_) => Ok(RouteTable { routes, outputs }),
            Err(errors) => Err(errors.into_iter().next().map_or_else(
                || route_error(RouteError::<A>::Syntax),
                |(n, error)| route_error(error).at(format_args!("argument {}", n + 1)),
            )),
        }
    }

    /// The next hop of a packet to `address`.
    #[inline]
    pub(super) fn next_hop(&self, address: A) -> Option<&NextHop<A>> {
        self.routes.table().lookup(address)
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
        new.routes.ctrl(text, self.outputs).map_err(route_error)?;
        Ok(new)
    }
    /// Removes all routes.
    #[write]
    fn flush(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(RouteTable { routes: Routes::new(), outputs: self.outputs })
    }

    /// Runs one command of `ctrl`.
    fn run_command(&self, command: &str, route: &str) -> Result<Self, ArgError> {
        let line = format!("{command} {}", route.trim().replace('\n', " "));
        self.ctrl(&line, &Names::default())
    }
}
