//! Real clients and the router: what ping, traceroute, arping, curl, iperf3 and tcpdump say.
//!
//! Each check of a forwarding router runs three times: through Castanet as it comes (by AF_XDP)
//! and by packet sockets, and through Linux's own forwarding, which proves that the check fits a router and the test network is sound.
//! Needs root and the programs in `.ci/packages`, and fails without them.
#![allow(clippy::unwrap_used)] // In a test it is an assertion.

mod bed;
mod between;
mod control;
mod errors;
mod examples;
mod expiry;
mod flood;
mod fragments;
mod hot_swap;
mod idle;
mod ip6;
mod keepers;
mod life;
mod mtu;
mod nat;
mod reach;
mod replay;
mod route;
mod rules;
mod sockets;
mod straight;
mod transfer;
mod under_test;
mod workers;
mod xdp;
