//! What `FromDPDKRing` and `ToDPDKRing` say about the ring between them.

use super::dpdk::told;
use crate::dpdk::{Ring, RingOptions};
use castanet_element::prelude::*;

/// How a ring is found or made.
#[derive(Args, Clone)]
pub(super) struct RingArgs {
    /// How many packets the ring has room for, if it is made here.
    #[arg(keyword, default = 1024, range = 1..=16777216)]
    ndesc: u32,
    /// The NUMA node of the ring's memory; -1 for any.
    #[arg(keyword, default = 0)]
    numa_zone: i32,
    /// Whether only one worker at a time puts packets in, of all processes.
    #[arg(keyword, default = false)]
    sp_enq: bool,
    /// Whether only one worker at a time takes packets out.
    #[arg(keyword, default = false)]
    sc_deq: bool,
    /// Whether to find the ring, whatever process this is.
    #[arg(keyword, default = false)]
    force_lookup: bool,
    /// Whether to make the ring, whatever process this is.
    #[arg(keyword, default = false)]
    force_create: bool,
}

impl RingArgs {
    /// The ring of packets from one process to another.
    pub(super) fn open(&self, from: &str, to: &str) -> Result<Ring, ArgError> {
        let options = RingOptions {
            descriptors: self.ndesc,
            numa_node: self.numa_zone,
            one_sender: self.sp_enq,
            one_receiver: self.sc_deq,
            create: self.made(),
        };
        Ring::open(from, to, options).map_err(|error| told(&error))
    }

    /// Whether the ring is to be made, if somebody said.
    fn made(&self) -> Option<bool> {
        match (self.force_create, self.force_lookup) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}
