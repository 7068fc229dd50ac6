//! Stub of DPDK for programs built without it.

use super::flow_table::FlowTable;
use super::types::{
    CopyResult, ForwardResult, InterruptListener, LinkStatus, OtherPackets, PortConfig, PortInfo,
    PortStats, RingConfig, RxMetadata, RxResult, TsoRequest, TxCaps, TxResult,
};
use castanet_element::bypass::BytesHandler;
use castanet_kit::flow_rules::FlowRule;
use castanet_packet::{Batch, Packet, Pool};
use std::convert::Infallible;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

/// Whether this program was built with DPDK.
pub(crate) const BUILT_IN: bool = false;

/// The reason why DPDK does not start, and the remedy.
const NOT_BUILT_IN: &str =
    "DPDK was not there when this program was built; install libdpdk-dev and build again";

pub(crate) fn start(_: &[String]) -> Result<(), String> {
    Err(NOT_BUILT_IN.to_owned())
}

pub(crate) fn is_started() -> bool {
    false
}

pub(crate) fn cores() -> usize {
    0
}

pub(crate) fn port(_: u16) -> Option<Arc<Port>> {
    None
}

pub(crate) fn port_named(_: &str) -> Option<u16> {
    None
}

pub(crate) fn ports() -> Vec<(u16, String)> {
    Vec::new()
}

pub(crate) fn drain_interrupts(_: RawFd) {}

pub(crate) fn is_own_mbuf(_: &Packet) -> bool {
    false
}

/// Cannot exist without DPDK.
#[derive(Clone)]
pub(crate) struct Mbufs {
    pub(crate) name: String,
    never: Infallible,
}

impl Mbufs {
    pub(crate) fn new(_: &str, _: u32, _: u32, _: u16, _: i32) -> Result<Mbufs, String> {
        Err(NOT_BUILT_IN.to_owned())
    }
    pub(crate) fn update_low_flag(&self) {
        match self.never {}
    }
    pub(crate) fn pool(&self) -> &Pool {
        match self.never {}
    }
    pub(crate) fn available(&self) -> usize {
        match self.never {}
    }
}

/// Cannot exist without DPDK.
#[derive(Debug)]
pub(crate) struct Flow(Infallible);

/// Cannot exist without DPDK.
pub(crate) struct Port {
    pub(crate) flows: Mutex<FlowTable>,
    pub(crate) is_memif: bool,
    never: Infallible,
}

impl Port {
    pub(crate) fn revive(&self) {
        match self.never {}
    }
    pub(crate) fn number(&self) -> u16 {
        match self.never {}
    }
    pub(crate) fn info(&self) -> Result<PortInfo, String> {
        match self.never {}
    }
    pub(crate) fn start(&self, _: &PortConfig, _: &Mbufs) -> Result<(), String> {
        match self.never {}
    }
    pub(crate) fn stop(&self) -> Result<(), String> {
        match self.never {}
    }
    pub(crate) fn receive(
        &self,
        _: u16,
        _: &Mbufs,
        _: &Pool,
        _: &mut Batch,
        _: usize,
        _: RxMetadata,
    ) -> RxResult {
        match self.never {}
    }
    pub(crate) fn forward(
        &self,
        _: u16,
        _: (&Port, u16),
        _: (&Mbufs, &Pool),
        _: OtherPackets,
        _: usize,
        _: Option<BytesHandler>,
    ) -> ForwardResult {
        match self.never {}
    }
    pub(crate) fn tx_caps(&self) -> Option<TxCaps> {
        match self.never {}
    }
    pub(crate) fn transmit(&self, _: u16, _: &mut Batch, _: bool) -> TxResult {
        match self.never {}
    }
    pub(crate) fn transmit_long(&self, _: u16, _: &Mbufs, _: &[u8], _: &TsoRequest) -> CopyResult {
        match self.never {}
    }
    pub(crate) fn queues(&self) -> (u16, u16, u16) {
        match self.never {}
    }
    pub(crate) fn xstats(&self) -> Vec<(String, u64)> {
        match self.never {}
    }
    pub(crate) fn waiting(&self, _: u16) -> Option<u32> {
        match self.never {}
    }
    pub(crate) fn receive_for(&self, _: [u8; 6], _: bool) -> Result<(), String> {
        match self.never {}
    }
    pub(crate) fn spread(&self, _: u16) -> Result<(), String> {
        match self.never {}
    }
    pub(crate) fn reta(&self) -> Result<Vec<u16>, String> {
        match self.never {}
    }
    pub(crate) fn set_reta(&self, _: &[u16]) -> Result<(), String> {
        match self.never {}
    }
    pub(crate) fn starts(&self) -> u64 {
        match self.never {}
    }
    pub(crate) fn config(&self) -> Option<PortConfig> {
        match self.never {}
    }
    pub(crate) fn interrupt(&self, _: u16) -> Option<RawFd> {
        match self.never {}
    }
    pub(crate) fn listen(&self, _: u16, _: &InterruptListener) -> Result<bool, String> {
        match self.never {}
    }
    pub(crate) fn unlisten(&self, _: u16, _: &InterruptListener) {
        match self.never {}
    }
    pub(crate) fn arm(&self, _: u16, _: bool) -> Result<(), String> {
        match self.never {}
    }
    pub(crate) fn resume_flows(&self) -> Result<(), String> {
        match self.never {}
    }
    pub(crate) fn create_flow(&self, _: &FlowRule, _: u16) -> Result<Flow, String> {
        match self.never {}
    }
    pub(crate) fn destroy_flow(&self, flow: &Flow) -> Result<(), String> {
        match flow.0 {}
    }
    pub(crate) fn flow_counts(&self, flow: &Flow, _: u32) -> Result<(u64, u64), String> {
        match flow.0 {}
    }
    pub(crate) fn isolate(&self, _: bool) -> Result<(), String> {
        match self.never {}
    }
    pub(crate) fn read_clock(&self) -> Result<u64, String> {
        match self.never {}
    }
    pub(crate) fn link(&self) -> LinkStatus {
        match self.never {}
    }
    pub(crate) fn hardware_stats(&self) -> PortStats {
        match self.never {}
    }
}

pub(crate) fn is_primary() -> bool {
    false
}

/// Cannot exist without DPDK.
pub(crate) struct Ring(Infallible);

impl Ring {
    pub(crate) fn open(_: &str, _: Option<&RingConfig>) -> Result<Arc<Ring>, String> {
        Err(NOT_BUILT_IN.to_owned())
    }
    pub(crate) fn name(&self) -> &str {
        match self.0 {}
    }
    pub(crate) fn len(&self) -> usize {
        match self.0 {}
    }
    pub(crate) fn receive(&self, _: &Mbufs, _: &Pool, _: &mut Batch, _: usize) -> RxResult {
        match self.0 {}
    }
    pub(crate) fn tx_caps(&self, _: &Mbufs) -> TxCaps {
        match self.0 {}
    }
    pub(crate) fn transmit(&self, _: &mut Batch) -> TxResult {
        match self.0 {}
    }
    pub(crate) fn transmit_long(&self, _: &Mbufs, _: &[u8]) -> CopyResult {
        match self.0 {}
    }
}
