//! The arguments of `FromDPDKDevice`, and their types: the spread over queues, pools, pause frames.

use super::dpdk::Offloads;
use super::rx_placement::RxPlacementArgs;
use crate::dpdk::{MOST_POOLS, Pause, Vmdq};
use castanet_element::prelude::*;

/// The arguments of `FromDPDKDevice`.
#[derive(Args, Clone)]
pub struct FromDPDKDeviceArgs {
    /// The port to receive from.
    #[arg]
    pub(super) port: String,
    /// The first queue; -1 for the first that is free.
    #[arg(default = -1, range = -1..=65535)]
    pub(super) queue: i32,
    /// Number of queues; -1 for one a worker, or for one if QUEUE is given.
    #[arg(default = -1, range = -1..=65535)]
    pub(super) n_queues: i32,
    /// Whether to receive packets for other hosts too.
    #[arg(keyword, default = false)]
    pub(super) promisc: bool,
    /// Number of packets to receive at once; 0 for two of the engine's bursts, or one where accounts bound runs.
    #[arg(keyword, default = 0)]
    pub(super) burst: u32,
    /// Number of descriptors of each queue; 0 for 1024, or the driver's limit.
    #[arg(keyword, default = 0)]
    pub(super) ndesc: u16,
    /// Longest packet without its Ethernet header; 0 for 1500.
    #[arg(keyword, default = 0)]
    pub(super) mtu: u16,
    /// The port's Ethernet address; its own if not given.
    #[arg(keyword)]
    pub(super) mac: Option<MacAddr>,
    /// Whether the port obeys pause frames of IEEE 802.3 (rx), sends them (tx), does both (full or
    /// on) or neither (none or off); the driver's default if not given, or unset.
    #[arg(keyword)]
    pub(super) pause: Option<PauseFrames>,
    /// Whether the port may be missing: then the element emits nothing.
    #[arg(keyword, default = false)]
    pub(super) allow_nonexistent: bool,
    /// Whether to receive packets; if false the element only sets the port up.
    #[arg(keyword, default = true)]
    pub(super) active: bool,
    /// Whether the port spreads packets over its queues by a hash (rss) or not (none), or
    /// over pools of queues for virtual machines, in each to the first queue (vmdq) or by a hash
    /// (vmdq_rss); rss by default.
    #[arg(keyword)]
    pub(super) mode: Option<Mode>,
    /// Number of queues over which the hash spreads packets, the first ones; 0 for all.
    #[arg(keyword, default = 0)]
    pub(super) max_rss: u16,
    /// Whether the element stores the port's RSS hash in the AGGREGATE annotation; 0
    /// for packets without a hash.
    #[arg(keyword, default = false)]
    pub(super) rss_aggregate: bool,
    /// Whether the element paints packets with the number of their queue.
    #[arg(keyword, default = false)]
    pub(super) paint_queue: bool,
    /// Pools for virtual machines.
    #[arg(flatten)]
    pub(super) pools: Pools,
    /// File of flow rules: see above.
    #[arg(keyword)]
    pub(super) flow_rules_file: Option<String>,
    /// Whether the port receives only packets that flow rules assign to queues.
    #[arg(keyword, default = false)]
    pub(super) flow_isolate: bool,
    /// Whether packets get the time at which the port received them as their timestamp; the
    /// element converts the port's ticks to the system's time.
    #[arg(keyword, default = false)]
    pub(super) timestamp: bool,
    /// The checksums that the port verifies.
    #[arg(flatten)]
    pub(super) offloads: Offloads,
    /// Whether the worker polls all the time, even if no packets arrive.
    #[arg(keyword, default = false)]
    pub(super) busy: bool,
    /// If 0 or more, the worker sleeps until the port's interrupt when no packet has arrived for
    /// a millisecond; -1 to poll at intervals instead.
    #[arg(keyword, default = -1)]
    pub(super) rx_intr: i32,
    /// Whether to clear the annotations, in FastClick; ignored here, packets arrive without.
    #[arg(keyword, default = false)]
    #[expect(dead_code, reason = "for configurations that say so")]
    pub(super) clear: bool,
    /// The workers that receive.
    #[arg(flatten)]
    pub(super) placement: RxPlacementArgs,
}

/// The way in which a port spreads packets over its queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(non_camel_case_types, reason = "the manual shows the name as users write it")]
pub enum Mode {
    /// By a hash of the packets' addresses and ports.
    rss,
    /// By the driver's default.
    none,
    /// To pools of queues for virtual machines (VMDq).
    vmdq,
    /// To pools, and within each by a hash.
    vmdq_rss,
}

impl FromArg for Mode {
    const SYNTAX: &'static str = "rss, none, vmdq or vmdq_rss";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text.to_ascii_lowercase().as_str() {
            // FastClick's name for RSS with flow rules, which any mode may have here.
            "rss" | "flow" => Ok(Mode::rss),
            "none" => Ok(Mode::none),
            "vmdq" => Ok(Mode::vmdq),
            "vmdq_rss" => Ok(Mode::vmdq_rss),
            "vmdq_dcb" | "vmdq_dcb_rss" | "dcb" | "dcb_rss" => {
                Err(ArgError::new(format!("`{text}` is not supported; what is: {}", Self::SYNTAX)))
            }
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))),
        }
    }
}

/// The arguments of pools for virtual machines.
#[derive(Args, Clone)]
pub(super) struct Pools {
    /// Number of pools of queues for virtual machines, with MODE vmdq or vmdq_rss.
    #[arg(keyword, default = 0, range = 0..=64)]
    vf_pools: u16,
    /// The VLAN of each pool, separated by spaces; if not given, pools receive packets without a
    /// VLAN tag, by their Ethernet addresses.
    #[arg(keyword)]
    vf_vlan: Option<Vec<u16>>,
}

impl Pools {
    /// The pools, if the mode has any.
    pub(super) fn vmdq(&self, mode: Option<Mode>) -> Result<Option<Vmdq>, ArgError> {
        let error = |text: &str| Err(ArgError::new(text));
        let rss = mode == Some(Mode::vmdq_rss);
        if !rss && mode != Some(Mode::vmdq) {
            return match self.vf_pools == 0 && self.vf_vlan.is_none() {
                true => Ok(None),
                false => error("VF_POOLS and VF_VLAN need MODE vmdq or vmdq_rss"),
            };
        }
        if self.vf_pools == 0 {
            return error("MODE vmdq and vmdq_rss need VF_POOLS, the number of pools");
        }
        let given = self.vf_vlan.as_deref().unwrap_or_default();
        if self.vf_vlan.is_some() && given.len() != usize::from(self.vf_pools) {
            let (vlans, pools) = (given.len(), self.vf_pools);
            return error(&format!(
                "VF_VLAN has {vlans} VLANs, and VF_POOLS {pools} pools: one for each"
            ));
        }
        if let Some(vlan) = given.iter().find(|vlan| **vlan > 4094) {
            return error(&format!("VF_VLAN: {vlan} is no VLAN: 0 to 4094"));
        }
        let mut vlans = [0; MOST_POOLS];
        vlans[..given.len()].copy_from_slice(given);
        Ok(Some(Vmdq { pools: self.vf_pools, rss, vlans, has_vlans: self.vf_vlan.is_some() }))
    }
}

/// The use of pause frames; `None` for the driver's default.
#[derive(Clone, Copy)]
pub struct PauseFrames(pub(super) Option<Pause>);

impl FromArg for PauseFrames {
    const SYNTAX: &'static str = "full, rx, tx, none or unset";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(PauseFrames(match text.to_ascii_lowercase().as_str() {
            "full" | "on" => Some(Pause::Full),
            "rx" => Some(Pause::Obey),
            "tx" => Some(Pause::Send),
            "none" | "off" => Some(Pause::None),
            "unset" => None,
            _ => return Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))),
        }))
    }
}
