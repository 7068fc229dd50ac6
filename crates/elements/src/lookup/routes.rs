//! What routing tables have in common, whatever their addresses.

use castanet_engine::prelude::*;
use castanet_kit::address::Address;
use castanet_kit::lpm::{Route, RouteError, Routes};
use std::fmt::Display;

/// What is wrong with a route.
pub(crate) fn refused(error: impl Display) -> ArgError {
    ArgError::new(error.to_string())
}

/// A table of the routes that a configuration has.
pub(crate) fn configured<A: Address>(
    list: &[Route<A>],
    outputs: u32,
) -> Result<Routes<A>, ArgError> {
    let mut routes = Routes::new();
    match routes.configure(list, outputs) {
        Ok(_) => Ok(routes),
        Err(errors) => Err(errors.into_iter().next().map_or_else(
            || refused(RouteError::<A>::Syntax),
            |(n, error)| refused(error).at(format_args!("argument {}", n + 1)),
        )),
    }
}

/// The handlers of a class that has routes in a field `routes`, and in `outputs`
/// how many outputs there are; the class of addresses, and what messages call one.
macro_rules! route_handlers {
    ($class:ident, $address:ty, $wanted:literal) => {
        #[handlers]
        impl $class {
            /// All routes, a line each.
            #[read]
            fn table(&self) -> String {
                self.routes.listing()
            }
            /// Output and gateway for the address that is the parameter, -1 for none.
            #[read]
            fn lookup(&self, ask: &Ask) -> String {
                match ask.param.parse::<$address>() {
                    Ok(address) => self.routes.lookup_text(address.to_bits()),
                    Err(_) => format!("expected {}", $wanted),
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
                changed.routes.ctrl(text, self.outputs).map_err(super::routes::refused)?;
                Ok(changed)
            }
            /// Removes all routes.
            #[write]
            fn flush(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
                Ok($class { routes: Routes::new(), outputs: self.outputs })
            }

            fn line(&self, command: &str, route: &str) -> Result<Self, ArgError> {
                let line = format!("{command} {}", route.trim().replace('\n', " "));
                self.ctrl(&line, &Names::default())
            }
        }
    };
}
pub(crate) use route_handlers;
