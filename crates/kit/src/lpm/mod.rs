//! Longest-prefix match for IPv4 and IPv6, from a handful of routes to full routing tables.
//!
//! [`Lpm`] maps prefixes to numbers, [`Table`] to values of any kind, and [`Routes`] is the
//! route list of Click's `IPRouteTable` elements around it. All are cheap to clone: a
//! clone shares its memory with the original, and what either changes later it copies
//! first. So a writer keeps one and hands clones to readers.

mod fib;
mod rib;
mod routes;
mod table;

pub use routes::{NextHop, Route, RouteError, Routes};
pub use table::{Lpm, NONE, Table};

#[cfg(test)]
mod tests;
