//! DPDK as safe calls, or a stub where this program was built without DPDK.

#[cfg(dpdk)]
mod burst;
#[cfg(dpdk)]
mod eal;
#[cfg(dpdk)]
mod flow;
mod flow_table;
#[cfg(dpdk)]
mod forward;
#[cfg(dpdk)]
mod offloads;
#[cfg(dpdk)]
mod pool;
#[cfg(dpdk)]
mod port;
#[cfg(dpdk)]
mod ring;
#[cfg(dpdk)]
mod setup;
#[cfg(dpdk)]
mod shim;
#[cfg(not(dpdk))]
mod stub;
mod types;

#[cfg(dpdk)]
pub(crate) use eal::{BUILT_IN, cores, is_primary, is_started, start};
#[cfg(dpdk)]
pub(crate) use flow::Flow;
pub(crate) use flow_table::{FlowTable, InstalledRule};
#[cfg(dpdk)]
pub(crate) use pool::{Mbufs, is_own_mbuf};
#[cfg(dpdk)]
pub(crate) use port::{Port, drain_interrupts, port, port_named, ports};
#[cfg(dpdk)]
pub(crate) use ring::Ring;
#[cfg(not(dpdk))]
pub(crate) use stub::{
    BUILT_IN, Flow, Mbufs, Port, Ring, cores, drain_interrupts, is_own_mbuf, is_primary,
    is_started, port, port_named, ports, start,
};
pub use types::{Checksums, Pause, Vmdq};
pub(crate) use types::{
    CopyResult, InterruptListener, LinkStatus, MOST_POOLS, OtherPackets, PortConfig, PortInfo,
    PortStats, RingConfig, RxMetadata, TsoRequest, TxCaps, TxResult,
};
