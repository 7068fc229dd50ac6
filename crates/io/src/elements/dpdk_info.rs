//! `DPDKInfo`: what all DPDK ports have in common.

use crate::dpdk::{self, MempoolConfig};
use castanet_element::prelude::*;

/// Sets what the DPDK ports of a configuration have in common.
///
/// Mbufs are made when the first port is opened, for each NUMA node that has
/// one, and stay until the process ends: a second configuration in the same
/// process finds those of the first.
///
/// ```text
/// DPDKInfo(NB_MBUF 1048576, MBUF_SIZE 4096, MBUF_CACHE_SIZE 512)
/// ```
#[derive(Element)]
#[element(args = DPDKInfoArgs, methods)]
pub struct DPDKInfo;

/// What can be set.
#[derive(Args)]
pub struct DPDKInfoArgs {
    /// How many mbufs.
    #[arg(default = 65536, range = 64..)]
    nb_mbuf: u32,
    /// How many bytes an mbuf holds, 128 of headroom included.
    #[arg(keyword, default = 2176, range = 256..=64000)]
    mbuf_size: u16,
    /// How many mbufs a thread keeps.
    #[arg(keyword, default = 256, range = 0..=512)]
    mbuf_cache_size: u32,
    /// Thresholds of receive descriptors; drivers know better.
    #[arg(keyword, default = 8)]
    #[expect(dead_code, reason = "for configurations that say so")]
    rx_pthresh: u32,
    /// As RX_PTHRESH.
    #[arg(keyword, default = 8)]
    #[expect(dead_code, reason = "for configurations that say so")]
    rx_hthresh: u32,
    /// As RX_PTHRESH.
    #[arg(keyword, default = 4)]
    #[expect(dead_code, reason = "for configurations that say so")]
    rx_wthresh: u32,
    /// Thresholds of transmit descriptors; drivers know better.
    #[arg(keyword, default = 36)]
    #[expect(dead_code, reason = "for configurations that say so")]
    tx_pthresh: u32,
    /// As TX_PTHRESH.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    tx_hthresh: u32,
    /// As TX_PTHRESH.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    tx_wthresh: u32,
    /// What the names of pools begin with, in FastClick.
    #[arg(keyword)]
    #[expect(dead_code, reason = "for configurations that say so")]
    mempool_prefix: Option<String>,
    /// Descriptors of a queue where elements do not say, in FastClick.
    #[arg(keyword, default = 1024)]
    #[expect(dead_code, reason = "for configurations that say so")]
    def_ring_ndesc: u32,
    /// Packets to receive at once where elements do not say, in FastClick.
    #[arg(keyword, default = 32)]
    #[expect(dead_code, reason = "for configurations that say so")]
    def_burst_size: u32,
    /// Size of rings between processes, in FastClick.
    #[arg(keyword, default = 64)]
    #[expect(dead_code, reason = "for configurations that say so")]
    ring_size: u32,
    /// Caches of rings between processes, in FastClick.
    #[arg(keyword, default = 32)]
    #[expect(dead_code, reason = "for configurations that say so")]
    ring_pool_cache_size: u32,
    /// Private bytes of rings between processes, in FastClick.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    ring_priv_data_size: u32,
}

impl Build for DPDKInfo {
    type Args = DPDKInfoArgs;

    fn build(args: DPDKInfoArgs, _: &Setup) -> Result<Self, ArgError> {
        // Before any element opens a port.
        dpdk::configure(MempoolConfig {
            mbufs: args.nb_mbuf,
            mbuf_size: args.mbuf_size,
            cache: args.mbuf_cache_size,
        });
        Ok(DPDKInfo)
    }
}

#[handlers]
impl DPDKInfo {
    /// For each pool, a zero and how many mbufs are free.
    #[read]
    fn pool_count(&self) -> String {
        dpdk::pools().iter().map(|(_, free)| format!("0 {free}\n")).collect()
    }

    /// The names of the pools.
    #[read]
    fn pools(&self) -> String {
        dpdk::pools().iter().map(|(name, _)| format!("{name}\n")).collect()
    }
}

impl Control for DPDKInfo {
    type Local = ();

    fn step(&self, _: &mut (), _: &mut dyn ControlContext) -> ProgramWait {
        ProgramWait::Ended
    }
}
