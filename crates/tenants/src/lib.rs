//! Tenants: many data planes on one box, each a graph of its own, combined to one graph
//! ("Fast, Scalable and Programmable Packet Scheduler in Virtual Routers": the coordinator).
//!
//! A *system file* names physical devices, tenants, their virtual devices, and how each of these
//! reaches the wire ([`System`]). [`master_graph`] makes one graph of it and of the graphs of the
//! tenants: on the way in, frames are classified and taken out of their tunnels; on the way out,
//! they are put into tunnels and multiplexed. The elements of a tenant have its name and a slash
//! before theirs, and find no element of another by name.
//!
//! A tenant may have a process of its own ([`sandbox`]): slot channels stand in the place of its graph
//! then.

#![forbid(unsafe_code)]

mod backoff;
pub mod elements;
mod master;
pub mod sandbox;
mod system;
mod table;
mod validity;

pub use backoff::Backoff;
pub use elements::CLASSES;
pub use master::{
    MasterGraph, ProcessGraph, TenantGraph, account_of, master_graph, process_element,
};
pub use system::{
    ControlQuotas, Cpu, DeviceIndex, Entry, Memory, Migration, OwnProcess, PhysicalDevice, System,
    Tenant, TenantControl, Transport, VirtualDevice,
};
pub use table::{DeviceRow, SystemTable, TenantRow};
pub use validity::check_write;
