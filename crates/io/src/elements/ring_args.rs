//! The arguments of the ring between `FromDPDKRing` and `ToDPDKRing`.

use super::dpdk::to_arg_error;
use crate::dpdk::{Ring, RingOptions};
use castanet_element::prelude::*;

/// The arguments by which a ring is found or made.
#[derive(Args, Clone)]
pub(super) struct RingArgs {
    /// Number of packets that the ring holds, if this element makes it.
    #[arg(keyword, default = 1024, range = 1..=16777216)]
    ndesc: u32,
    /// The NUMA node of the ring's memory; -1 for any.
    #[arg(keyword, default = 0)]
    numa_zone: i32,
    /// Whether only one worker of all processes puts packets in at a time.
    #[arg(keyword, default = false)]
    sp_enq: bool,
    /// Whether only one worker of all processes takes packets out at a time.
    #[arg(keyword, default = false)]
    sc_deq: bool,
    /// Whether to find the ring, even in the primary process.
    #[arg(keyword, default = false)]
    force_lookup: bool,
    /// Whether to make the ring, even in a secondary process.
    #[arg(keyword, default = false)]
    force_create: bool,
}

impl RingArgs {
    /// Opens the ring of packets from the process `from` to the process `to`.
    pub(super) fn open(&self, from: &str, to: &str) -> Result<Ring, ArgError> {
        let options = RingOptions {
            descriptors: self.ndesc,
            numa_node: self.numa_zone,
            one_sender: self.sp_enq,
            one_receiver: self.sc_deq,
            create: self.create(),
        };
        Ring::open(from, to, options).map_err(|error| to_arg_error(&error))
    }

    /// Whether to make the ring, if FORCE_CREATE or FORCE_LOOKUP is given.
    fn create(&self) -> Option<bool> {
        match (self.force_create, self.force_lookup) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}
