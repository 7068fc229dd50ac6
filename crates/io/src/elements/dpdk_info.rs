//! `DPDKInfo`: sets the mbufs of all DPDK ports.

use crate::dpdk::{self, MempoolConfig};
use castanet_element::prelude::*;

/// Sets the number and size of the mbufs that DPDK ports use.
///
/// The engine allocates mbufs when the first port is opened, for each NUMA node
/// that has a port, and keeps them until the process ends: a second configuration
/// in the same process uses the mbufs of the first.
///
/// ```text
/// DPDKInfo(NB_MBUF 1048576, MBUF_SIZE 4096, MBUF_CACHE_SIZE 512)
/// ```
#[derive(Element)]
#[element(args = DPDKInfoArgs, methods)]
pub struct DPDKInfo;

/// The arguments of `DPDKInfo`.
#[derive(Args)]
pub struct DPDKInfoArgs {
    /// Number of mbufs for each NUMA node that has a port.
    #[arg(default = 65536, range = 64..)]
    nb_mbuf: u32,
    /// The same as NB_MBUF, which counts if this is 0; of several, one for each NUMA node in FastClick, the
    /// last counts for all.
    #[arg(keyword, default = 0)]
    nb_socket_mbuf: u32,
    /// Number of bytes that an mbuf holds, 128 of headroom included.
    #[arg(keyword, default = 2176, range = 256..=64000)]
    mbuf_size: u16,
    /// Number of free mbufs that a thread may keep in its cache.
    #[arg(keyword, default = 256, range = 0..=512)]
    mbuf_cache_size: u32,
    /// Threshold of receive descriptors, in FastClick; ignored here, the driver chooses.
    #[arg(keyword, default = 8)]
    #[expect(dead_code, reason = "for configurations that say so")]
    rx_pthresh: u32,
    /// Ignored like RX_PTHRESH.
    #[arg(keyword, default = 8)]
    #[expect(dead_code, reason = "for configurations that say so")]
    rx_hthresh: u32,
    /// Ignored like RX_PTHRESH.
    #[arg(keyword, default = 4)]
    #[expect(dead_code, reason = "for configurations that say so")]
    rx_wthresh: u32,
    /// Threshold of transmit descriptors, in FastClick; ignored here, the driver chooses.
    #[arg(keyword, default = 36)]
    #[expect(dead_code, reason = "for configurations that say so")]
    tx_pthresh: u32,
    /// Ignored like TX_PTHRESH.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    tx_hthresh: u32,
    /// Ignored like TX_PTHRESH.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    tx_wthresh: u32,
    /// Prefix of the names of pools, in FastClick; ignored here.
    #[arg(keyword)]
    #[expect(dead_code, reason = "for configurations that say so")]
    mempool_prefix: Option<String>,
    /// Default number of descriptors of a queue, in FastClick; ignored here.
    #[arg(keyword, default = 1024)]
    #[expect(dead_code, reason = "for configurations that say so")]
    def_ring_ndesc: u32,
    /// Default number of packets to receive at once, in FastClick; ignored here.
    #[arg(keyword, default = 32)]
    #[expect(dead_code, reason = "for configurations that say so")]
    def_burst_size: u32,
    /// Size of rings between processes, in FastClick; ignored here.
    #[arg(keyword, default = 64)]
    #[expect(dead_code, reason = "for configurations that say so")]
    ring_size: u32,
    /// Size of the caches of rings between processes, in FastClick; ignored here.
    #[arg(keyword, default = 32)]
    #[expect(dead_code, reason = "for configurations that say so")]
    ring_pool_cache_size: u32,
    /// Private bytes of rings between processes, in FastClick; ignored here.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    ring_priv_data_size: u32,
}

impl Build for DPDKInfo {
    type Args = DPDKInfoArgs;

    fn build(args: DPDKInfoArgs, _: &Setup) -> Result<Self, ArgError> {
        // Elements are built before any of them opens a port.
        dpdk::configure(MempoolConfig {
            mbufs: if args.nb_socket_mbuf == 0 {
                args.nb_mbuf
            } else {
                args.nb_socket_mbuf.max(64)
            },
            mbuf_size: args.mbuf_size,
            cache: args.mbuf_cache_size,
        });
        Ok(DPDKInfo)
    }
}

#[handlers]
impl DPDKInfo {
    /// A line for each pool: a zero and the number of free mbufs.
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
