//! The arguments that rewriters share.

use super::name_resolution::{self, SetupResolver};
use castanet_element::prelude::*;
use castanet_kit::nat::{InputSpec, RewriterConfig, RewriterKind, Timeouts};

/// The arguments that all rewriters have.
#[derive(Args)]
pub struct RewriterArgs {
    /// The action for packets without a mapping, one argument for each input.
    #[arg(rest)]
    inputs: Vec<Words>,
    /// The most mappings that there may be, 1048576 unless given, or the name of a rewriter
    /// with which this one shares a capacity.
    #[arg(keyword)]
    mapping_capacity: Option<String>,
    /// Another name of MAPPING_CAPACITY.
    #[arg(keyword)]
    capacity: Option<String>,
    /// Whether to set the destination annotation of rewritten packets to their new destination.
    #[arg(keyword, default = true)]
    pub(super) dst_anno: bool,
    /// The annotation byte that is copied from the first packet of a flow to its replies.
    #[arg(keyword)]
    pub(super) reply_anno: Option<AnnoAt<1>>,
    /// For how long after its last packet a mapping is not evicted for others; 5 s unless given.
    #[arg(keyword)]
    pub(super) guarantee: Option<Duration>,
    /// How often to remove expired mappings while no packets come; never if 0.
    #[arg(keyword, default = Duration::from_secs(900))]
    reap_interval: Duration,
    /// Another name of REAP_INTERVAL.
    #[arg(keyword)]
    reap_time: Option<Duration>,
    /// Whether later fragments are rewritten as the first fragment of their packet, for which they
    /// wait up to 2 seconds. Rewriters of addresses rewrite them in any case.
    #[arg(keyword, default = false)]
    pub(super) fragments: bool,
    /// Whether to set the aggregate annotation of packets to their mapping's number, which counts the
    /// mappings of all rewriters from 0 on.
    #[arg(keyword, default = false)]
    pub(super) set_aggregate: bool,
    /// An argument of FastClick without effect.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    use_cache: bool,
    /// An argument of FastClick without effect.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    handle_migration: bool,
}

/// The timeouts of mappings of TCP.
#[derive(Args)]
pub struct TcpTimeoutArgs {
    /// For how long without packets a TCP connection is kept that has carried data both ways.
    #[arg(keyword, default = Duration::from_secs(86_400))]
    tcp_timeout: Duration,
    /// Another name of TCP_TIMEOUT.
    #[arg(keyword)]
    timeout: Option<Duration>,
    /// For how long without packets one is kept that both sides have closed, or that was reset.
    #[arg(keyword, default = Duration::from_secs(240))]
    tcp_done_timeout: Duration,
    /// For how long without packets one is kept that has not carried data both ways.
    #[arg(keyword, default = Duration::from_secs(300))]
    tcp_nodata_timeout: Duration,
    /// For how long after its last packet a connection's mapping is not evicted for others; 5 s
    /// unless given.
    #[arg(keyword)]
    tcp_guarantee: Option<Duration>,
}

impl TcpTimeoutArgs {
    /// The timeouts in nanoseconds; `guarantee` takes precedence over TCP_GUARANTEE.
    pub(super) fn timeouts(&self, guarantee: Option<Duration>) -> Timeouts {
        Timeouts {
            idle: nanos(self.tcp_nodata_timeout),
            data: nanos(self.timeout.unwrap_or(self.tcp_timeout)),
            done: nanos(self.tcp_done_timeout),
            guarantee: nanos(guarantee.or(self.tcp_guarantee).unwrap_or(GUARANTEE)),
        }
    }
}

/// The arguments of `IPAddrRewriter` and `IPAddrPairRewriter`.
#[derive(Args)]
pub struct AddressRewriterArgs {
    /// For how long a mapping is kept without packets.
    #[arg(keyword, default = Duration::from_secs(7200))]
    timeout: Duration,
    #[arg(flatten)]
    pub(super) common: RewriterArgs,
}

impl AddressRewriterArgs {
    /// The timeouts of mappings.
    pub(super) fn timeouts(&self) -> [Timeouts; 2] {
        [uniform_timeouts(self.timeout, self.common.guarantee); 2]
    }
}

/// A duration in nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// The guarantee of mappings unless an argument gives one.
pub(super) const GUARANTEE: Duration = Duration::from_secs(5);

/// The timeouts of mappings that have the same one in every state.
pub(super) fn uniform_timeouts(timeout: Duration, guarantee: Option<Duration>) -> Timeouts {
    let guarantee = nanos(guarantee.unwrap_or(GUARANTEE));
    Timeouts { idle: nanos(timeout), data: nanos(timeout), done: nanos(timeout), guarantee }
}

impl RewriterArgs {
    /// How often to remove expired mappings, in nanoseconds; `None` for never.
    pub(super) fn reap_interval_nanos(&self) -> Option<u64> {
        let interval = self.reap_time.unwrap_or(self.reap_interval);
        Some(nanos(interval)).filter(|&nanos| nanos > 0)
    }

    /// The capacity, if one is given, and the name of the rewriter that owns it.
    pub(super) fn capacity_owner(&self, setup: &Setup) -> Result<(Option<u32>, String), ArgError> {
        let given = self.mapping_capacity.as_ref().or(self.capacity.as_ref());
        let given = given.map(|text| format!("CAPACITY {text}"));
        name_resolution::capacity_owner(setup, setup.name, given.as_slice()).ok_or_else(|| {
            ArgError::new("MAPPING_CAPACITY is neither a number nor a rewriter")
                .click("bad MAPPING_CAPACITY")
        })
    }

    /// The arguments of the elements that the inputs name, to notice when they change.
    fn referenced_arguments(&self, setup: &Setup) -> Vec<String> {
        let element = |words: &Words| setup.element(words.words.first()?, None);
        self.inputs.iter().filter_map(element).flat_map(|it| it.arguments).collect()
    }

    /// The configuration of the rewriter, for a rewriter of this kind.
    pub(super) fn config(
        &self,
        setup: &Setup,
        kind: RewriterKind,
        timeouts: [Timeouts; 2],
    ) -> Result<RewriterConfig, ArgError> {
        let count = setup.inputs;
        if self.inputs.len() != count {
            let error = format!("need {count} arguments, one per input port");
            return Err(ArgError::new(error));
        }
        let parse = |(n, words): (usize, &Words)| {
            let input = InputSpec::parse(&words.text, kind, setup.outputs, &SetupResolver(setup));
            input.map_err(|e| ArgError::new(e).at(format!("input spec {n}")))
        };
        let inputs = ArgError::all(self.inputs.iter().enumerate().map(parse))?;
        Ok(RewriterConfig { kind, timeouts, inputs, references: self.referenced_arguments(setup) })
    }
}
