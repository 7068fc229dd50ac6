//! The arguments of `AggregateIPFlows`.

use super::aggregate_ip_flows::AggregateIPFlows;
use super::ended::Ended;
use castanet_engine::prelude::*;
use castanet_kit::ip_flows::{CAPACITY, Timeouts};

#[derive(Args)]
pub struct Wishes {
    /// How long TCP that goes on may be silent.
    #[arg(keyword, default = Duration::from_secs(86400))]
    pub(super) tcp_timeout: Duration,
    /// How long TCP that has ended may be silent.
    #[arg(keyword, default = Duration::from_secs(30))]
    pub(super) tcp_done_timeout: Duration,
    /// How long UDP may be silent.
    #[arg(keyword, default = Duration::from_secs(60))]
    pub(super) udp_timeout: Duration,
    /// How long fragments wait for the first of theirs.
    #[arg(keyword, default = Duration::from_secs(30))]
    pub(super) fragment_timeout: Duration,
    /// How often to look for flows that are over.
    #[arg(keyword, default = Duration::from_secs(1200))]
    pub(super) reap: Duration,
    /// How many flows to know; where there are more, the one that has been silent for longest
    /// is over.
    #[arg(keyword, default = CAPACITY, range = 1..)]
    pub(super) capacity: u32,
    /// Whether ICMP errors belong to the flow that they are about.
    #[arg(keyword, default = false)]
    pub(super) icmp: bool,
    /// Whether later fragments belong to a flow; unless said, where packets are pushed.
    #[arg(keyword)]
    pub(super) fragments: Option<bool>,
    /// Whether both directions are one flow.
    #[arg(keyword, default = true)]
    pub(super) symetric: bool,
    /// A file for what there is to be said of each flow.
    #[arg(keyword)]
    pub(super) traceinfo: Option<String>,
    /// The element whose file's name TRACEINFO shall have.
    #[arg(keyword)]
    pub(super) source: Option<String>,
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Wishes {
    /// How long flows live without packets.
    pub(super) fn timeouts(&self) -> Timeouts {
        Timeouts {
            tcp: nanos(self.tcp_timeout),
            tcp_done: nanos(self.tcp_done_timeout),
            udp: nanos(self.udp_timeout),
        }
    }
}

impl Build for AggregateIPFlows {
    type Args = Wishes;

    fn build(it: Wishes, setup: &Setup) -> Result<Self, ArgError> {
        let source = it.source.as_ref().map(|name| setup.file_of(name)).transpose();
        Ok(AggregateIPFlows {
            timeouts: it.timeouts(),
            fragment_timeout: it.fragment_timeout,
            reap: nanos(it.reap),
            icmp: it.icmp,
            fragments: it.fragments,
            symmetric: it.symetric,
            capacity: it.capacity,
            ended: setup.own::<Ended>(),
            trace: it.traceinfo,
            source: source.map_err(|e| e.at("SOURCE"))?.flatten(),
        })
    }
}
