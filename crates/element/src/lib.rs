//! The interface that authors of elements use: traits, arguments, class descriptions, the context of a
//! call, the example format.
#![forbid(unsafe_code)]

// The derives name this crate by its name, here too.
extern crate self as castanet_element;

pub mod account;
pub mod args;
pub mod bypass;
pub mod class;
pub mod control;
pub mod cx;
pub mod declaration;
pub mod device;
pub mod element;
pub mod error;
pub mod example;
pub mod exec;
pub mod fate;
pub mod files;
pub mod flow;
pub mod fragment;
pub mod frames;
pub mod handler;
pub mod headers;
pub mod manual;
pub mod memory;
pub mod node;
pub mod on;
pub mod output;
pub mod portable_state;
pub mod resource;
pub mod setup;
pub mod shared;
pub mod spec;
pub mod streams;
pub mod time;

pub use castanet_packet as packet;
pub use castanet_wire as wire;

/// Everything an element's file needs: `use castanet_element::prelude::*;`.
pub mod prelude {
    pub use crate::account::{CpuAccount, CpuPart, HeapSize, MemoryLimits};
    pub use crate::args::{AnnoAt, Args, Bandwidth, Call, Data, FromArg, Names, Net, Net6, Words};
    pub use crate::control::{ControlContext, ProgramReference, ProgramWait};
    pub use crate::cx::Cx;
    pub use crate::declaration::ElementDeclarations;
    pub use crate::device::QueueShare;
    pub use crate::element::{
        Build, BurstEffect, ByteAccess, Control, Describe, Facts, Info, Local, NextRun, PerBatch,
        PerPacket, Source, Store,
    };
    pub use crate::error::ArgError;
    pub use crate::fate::{Fate, Never, Port};
    pub use crate::handler::{Metric, ReadRequest, Value};
    pub use crate::on;
    pub use crate::output::Output;
    pub use crate::resource::{Resource, ResourceKind};
    pub use crate::setup::Setup;
    pub use crate::shared::{RwShared, Shared};
    pub use crate::time::Time;
    pub use castanet_macros::{Args, Element, Fate, Local, handlers};
    pub use castanet_packet::{
        ArpPacket, Batch, BurstBytes, BurstSummary, Ether, IcmpPacket, Ipv4, Ipv6, Packet,
        PacketTotals, PacketType, PinnedIpv4, TcpPacket, UdpPacket,
    };
    pub use castanet_wire::{MacAddr, Timestamp};
    pub use std::net::{Ipv4Addr, Ipv6Addr};
    pub use std::time::Duration;
}
