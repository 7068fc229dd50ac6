//! DPDK as safe calls, or what stands in for it where this program was built without.

#[cfg(not(dpdk))]
mod absent;
#[cfg(dpdk)]
mod burst;
#[cfg(dpdk)]
mod eal;
#[cfg(dpdk)]
mod pool;
#[cfg(dpdk)]
mod port;
#[cfg(dpdk)]
mod ring;
#[cfg(dpdk)]
mod shim;
#[cfg(dpdk)]
mod terms;
mod types;

#[cfg(not(dpdk))]
pub(crate) use absent::{
    BUILT_IN, Mbufs, Port, Ring, cores, heard, is_own_mbuf, is_primary, is_started, port,
    port_named, ports, start,
};
#[cfg(dpdk)]
pub(crate) use eal::{BUILT_IN, cores, is_primary, is_started, start};
#[cfg(dpdk)]
pub(crate) use pool::{Mbufs, is_own_mbuf};
#[cfg(dpdk)]
pub(crate) use port::{Port, heard, port, port_named, ports};
#[cfg(dpdk)]
pub(crate) use ring::Ring;
pub(crate) use types::{
    Copied, Counts, Cut, Ear, Handed, Info, Link, Plan, RingPlan, Terms, Wants,
};
pub use types::{Pause, Sums};
