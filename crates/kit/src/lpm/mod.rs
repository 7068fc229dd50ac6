//! Longest-prefix match for IPv4 and IPv6, from a few routes to full routing tables.
//!
//! [`Lpm`] maps prefixes to numbers, [`Table`] maps them to values of any type, and [`Routes`] is
//! the route list of Click's `IPRouteTable` elements. All are cheap to clone: clones share memory,
//! which is copied on write. So a writer keeps one and hands clones to readers.

mod fib;
mod rib;
mod routes;
mod table;

pub use routes::{NextHop, Route, RouteError, Routes};
pub use table::{Lpm, NONE, Table};

#[cfg(test)]
mod tests;
