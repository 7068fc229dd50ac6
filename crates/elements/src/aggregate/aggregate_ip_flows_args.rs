//! The arguments of `AggregateIPFlows`.

use super::aggregate_ip_flows::AggregateIPFlows;
use super::end_notifications::EndNotifier;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_kit::ip_flows::{CAPACITY, Timeouts};

#[derive(Args)]
pub struct AggregateIPFlowsArgs {
    /// Timeout of an open TCP connection without packets.
    #[arg(keyword, default = Duration::from_secs(86400))]
    pub(super) tcp_timeout: Duration,
    /// Timeout of a closed TCP connection without packets.
    #[arg(keyword, default = Duration::from_secs(30))]
    pub(super) tcp_done_timeout: Duration,
    /// Timeout of a UDP flow without packets.
    #[arg(keyword, default = Duration::from_secs(60))]
    pub(super) udp_timeout: Duration,
    /// The longest time that fragments wait for the first one of their packet.
    #[arg(keyword, default = Duration::from_secs(30))]
    pub(super) fragment_timeout: Duration,
    /// How often to remove flows that have timed out.
    #[arg(keyword, default = Duration::from_secs(1200))]
    pub(super) reap: Duration,
    /// The most flows to keep; beyond it the one without packets for longest ends.
    #[arg(keyword, default = CAPACITY, shown = "1048576", range = 1..)]
    pub(super) capacity: u32,
    /// Whether ICMP errors belong to the flow that they are about.
    #[arg(keyword, default = false)]
    pub(super) icmp: bool,
    /// Whether later fragments belong to a flow; by default if packets are pushed.
    #[arg(keyword)]
    pub(super) fragments: Option<bool>,
    /// Whether both directions are one flow.
    #[arg(keyword, default = true)]
    pub(super) symetric: bool,
    /// An XML file for a record of each flow, `-` for standard output.
    #[arg(keyword)]
    pub(super) traceinfo: Option<String>,
    /// The element whose file's name is written to TRACEINFO.
    #[arg(keyword)]
    pub(super) source: Option<String>,
}

/// A duration in nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl AggregateIPFlowsArgs {
    /// The timeouts of flows, in nanoseconds.
    pub(super) fn timeouts(&self) -> Timeouts {
        Timeouts {
            tcp: nanos(self.tcp_timeout),
            tcp_done: nanos(self.tcp_done_timeout),
            udp: nanos(self.udp_timeout),
        }
    }
}

/// The file that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &AggregateIPFlowsArgs| {
        Resource::output(it.traceinfo.as_deref(), "writes flows to it")
    })
}

impl Build for AggregateIPFlows {
    type Args = AggregateIPFlowsArgs;

    fn build(it: AggregateIPFlowsArgs, setup: &Setup) -> Result<Self, ArgError> {
        let source = it.source.as_ref().map(|name| setup.file_of(name)).transpose();
        Ok(AggregateIPFlows {
            timeouts: it.timeouts(),
            fragment_timeout: it.fragment_timeout,
            reap: nanos(it.reap),
            icmp: it.icmp,
            fragments: it.fragments,
            symmetric: it.symetric,
            capacity: it.capacity,
            notifier: setup.own_shared::<EndNotifier>(),
            trace: it.traceinfo,
            source: source.map_err(|e| e.at("SOURCE"))?.flatten(),
        })
    }
}
