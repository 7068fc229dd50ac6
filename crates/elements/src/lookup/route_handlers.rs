//! Handlers and errors of the route lookup elements, for IPv4 and IPv6.

use castanet_element::prelude::*;
use castanet_kit::address::Address;
use castanet_kit::lpm::{Route, RouteError, Routes};
use std::fmt::Display;

/// Converts the error of a route.
pub(crate) fn route_error(error: impl Display) -> ArgError {
    ArgError::new(error.to_string())
}

/// Builds the table of the configured routes; `outputs` is the number of outputs.
pub(crate) fn build_routes<A: Address>(
    routes_arg: &[Route<A>],
    outputs: u32,
) -> Result<Routes<A>, ArgError> {
    let mut routes = Routes::new();
    match routes.configure(routes_arg, outputs) {
        Ok(_) => Ok(routes),
        Err(errors) => Err(errors.into_iter().next().map_or_else(
            || route_error(RouteError::<A>::Syntax),
            |(n, error)| route_error(error).at(format_args!("argument {}", n + 1)),
        )),
    }
}

/// Defines the route handlers of a class with the fields `routes` and `outputs`, the number of
/// outputs. `$address` is the type of addresses, and `$wanted` its name in messages.
macro_rules! route_handlers {
    ($class:ident, $address:ty, $wanted:literal) => {
        #[handlers]
        impl $class {
            /// All routes, a line each.
            #[read]
            fn table(&self) -> String {
                self.routes.listing()
            }
            /// Output and gateway for the address in the parameter; -1 if there is no route.
            #[read]
            fn lookup(&self, ask: &ReadRequest) -> String {
                match ask.param.parse::<$address>() {
                    Ok(address) => self.routes.lookup_text(address.to_bits()),
                    Err(_) => format!("expected {}", $wanted),
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
                new.routes.ctrl(text, self.outputs).map_err(super::route_handlers::route_error)?;
                Ok(new)
            }
            /// Removes all routes.
            #[write]
            fn flush(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
                Ok($class { routes: Routes::new(), outputs: self.outputs })
            }

            /// Runs one command of `ctrl`.
            fn run_command(&self, command: &str, route: &str) -> Result<Self, ArgError> {
                let line = format!("{command} {}", route.trim().replace('\n', " "));
                self.ctrl(&line, &Names::default())
            }
        }
    };
}
pub(crate) use route_handlers;
