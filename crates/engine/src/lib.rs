//! What an element is, and how a graph of them runs.
#![forbid(unsafe_code)]

// The derives name this crate by its name, here too.
extern crate self as castanet_engine;

pub mod args;
pub mod board;
pub mod class;
pub mod common;
pub mod cores;
pub mod cx;
pub mod element;
pub mod example;
pub mod files;
pub mod frames;
pub mod graph;
pub mod manual;
pub mod memory;
pub mod node;
pub mod on;
pub mod output;
pub mod router;
pub mod streams;
pub mod time;
pub mod worker;

pub use castanet_packet as packet;
pub use castanet_wire as wire;

/// Everything an element's file needs: `use castanet_engine::prelude::*;`.
pub mod prelude {
    pub use crate::args::{
        AnnoAt, ArgError, Args, Bandwidth, Call, Data, FromArg, Names, Net, Net6, Words,
    };
    pub use crate::board::Link;
    pub use crate::class::{Ask, Value};
    pub use crate::common::Common;
    pub use crate::cx::Cx;
    pub use crate::element::{
        Asked, Build, Control, Describe, Desk, Facts, Fate, Info, Local, Never, PerBatch,
        PerPacket, Port, Setup, Source, Step, Store,
    };
    pub use crate::graph::devices::Share;
    pub use crate::on;
    pub use crate::output::Output;
    pub use crate::time::Time;
    pub use castanet_macros::{Args, Element, Fate, Local, handlers};
    pub use castanet_packet::{
        ArpPacket, Batch, Ether, IcmpPacket, Ipv4, Ipv6, Packet, PacketType, PinnedIpv4, TcpPacket,
        UdpPacket,
    };
    pub use castanet_wire::{MacAddr, Timestamp};
    pub use std::net::{Ipv4Addr, Ipv6Addr};
    pub use std::time::Duration;
}
