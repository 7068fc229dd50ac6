//! Real clients and the router: results of ping, traceroute, arping, curl, iperf3 and tcpdump.
//!
//! Each check of a forwarding router runs three times: through Castanet as it comes (by AF_XDP)
//! and by packet sockets, and through Linux's own forwarding, which proves that the check fits a
//! router and the test network is sound.
//! Checks of `conf/nat.click`, `conf/router6.click`, a middlebox that routes and a configuration of 2000
//! elements run twice: with `castanet`, and with the program that `castanet build` makes of it.
//!
//! Needs root and the programs in `.ci/packages`, and fails without them.
#![allow(clippy::unwrap_used)] // In a test it is an assertion.

mod attach;
mod build_failures;
#[path = "../built/builds.rs"]
mod builds;
mod clients;
mod control;
mod debugging;
mod device_arguments;
mod device_balancer;
mod direct_forwarding;
mod errors;
mod examples;
mod expiry;
mod flood;
mod fragments;
mod frame_exhaustion;
mod hot_swap;
mod idle;
mod ip6;
mod ipfix;
#[path = "../built/large.rs"]
mod large;
mod lifecycle;
mod links;
mod middlebox_network;
mod mtu;
mod nat;
mod nat_swap;
mod nftables;
mod open_vswitch;
mod program;
mod reachability;
mod replay;
mod route;
mod rules;
mod service;
mod slots;
mod sockets;
mod spanning_tree;
mod splitbox;
mod splitbox_network;
mod tenants;
mod tenants_example;
mod tenants_handlers;
mod tenants_live;
mod tenants_move;
mod tenants_open_vswitch;
mod tenants_processes;
mod testbed;
mod three_networks;
mod transfer;
mod tunnels;
mod tutorial;
mod workers;
mod xdp;
