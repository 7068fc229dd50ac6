//! The arguments that all rewriters have.

use super::named::{self, Around};
use castanet_engine::prelude::*;
use castanet_kit::nat::{InputSpec, RewriterConfig, RewriterKind, Timeouts};

/// The arguments that all rewriters have.
#[derive(Args)]
pub struct OfAll {
    /// What becomes of packets without a mapping, one for each input.
    #[arg(rest)]
    inputs: Vec<Words>,
    /// How many mappings there may be, 1048576 unless said, or the rewriter with whose
    /// mappings these count.
    #[arg(keyword)]
    mapping_capacity: Option<String>,
    /// The same.
    #[arg(keyword)]
    capacity: Option<String>,
    /// Whether to set the destination annotation to where rewritten packets go.
    #[arg(keyword, default = true)]
    pub(super) dst_anno: bool,
    /// The annotation that replies get from the packet that began their flow.
    #[arg(keyword)]
    pub(super) reply_anno: Option<AnnoAt<1>>,
    /// For how long a mapping keeps its place whatever comes.
    #[arg(keyword)]
    pub(super) guarantee: Option<Duration>,
    /// How often to look for mappings that are over while no packets come; never if 0.
    #[arg(keyword, default = Duration::from_secs(900))]
    reap_interval: Duration,
    /// The same.
    #[arg(keyword)]
    reap_time: Option<Duration>,
    /// Whether later fragments are rewritten as the first of their packet, for which they wait up
    /// to 2 seconds. Rewriters of addresses rewrite them anyway.
    #[arg(keyword, default = false)]
    pub(super) fragments: bool,
    /// Of FastClick; all workers have the same mappings anyway.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    handle_migration: bool,
}

/// How long rewriters keep mappings of TCP.
#[derive(Args)]
pub struct TcpTimes {
    /// How long a TCP connection that has carried data both ways is kept without packets.
    #[arg(keyword, default = Duration::from_secs(86_400))]
    tcp_timeout: Duration,
    /// The same.
    #[arg(keyword)]
    timeout: Option<Duration>,
    /// How long one is kept that both sides have ended, or that was reset.
    #[arg(keyword, default = Duration::from_secs(240))]
    tcp_done_timeout: Duration,
    /// How long one is kept that has not carried data both ways.
    #[arg(keyword, default = Duration::from_secs(300))]
    tcp_nodata_timeout: Duration,
    /// For how long a connection's mapping keeps its place whatever comes.
    #[arg(keyword)]
    tcp_guarantee: Option<Duration>,
}

impl TcpTimes {
    /// The same as kit has it; `guarantee` comes first.
    pub(super) fn lives(&self, guarantee: Option<Duration>) -> Timeouts {
        Timeouts {
            idle: nanos(self.tcp_nodata_timeout),
            data: nanos(self.timeout.unwrap_or(self.tcp_timeout)),
            done: nanos(self.tcp_done_timeout),
            guarantee: nanos(guarantee.or(self.tcp_guarantee).unwrap_or(GUARANTEE)),
        }
    }
}

/// The arguments of rewriters of addresses.
#[derive(Args)]
pub struct OfAddresses {
    /// How long a mapping is kept without packets.
    #[arg(keyword, default = Duration::from_secs(7200))]
    timeout: Duration,
    #[arg(flatten)]
    pub(super) common: OfAll,
}

impl OfAddresses {
    /// How long mappings are kept.
    pub(super) fn lives(&self) -> [Timeouts; 2] {
        [lives(self.timeout, self.common.guarantee); 2]
    }
}

/// A time as kit counts it.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// The guarantee of who says nothing of it.
pub(super) const GUARANTEE: Duration = Duration::from_secs(5);

/// Lives of mappings that have but one.
pub(super) fn lives(timeout: Duration, guarantee: Option<Duration>) -> Timeouts {
    let guarantee = nanos(guarantee.unwrap_or(GUARANTEE));
    Timeouts { idle: nanos(timeout), data: nanos(timeout), done: nanos(timeout), guarantee }
}

impl OfAll {
    /// How often to look for mappings that are over, if at all.
    pub(super) fn reap(&self) -> Option<u64> {
        let interval = self.reap_time.unwrap_or(self.reap_interval);
        Some(nanos(interval)).filter(|&nanos| nanos > 0)
    }

    /// Who has the capacity, and how much that is.
    pub(super) fn head(&self, setup: &Setup) -> Result<(Option<u32>, String), ArgError> {
        let said = self.mapping_capacity.as_ref().or(self.capacity.as_ref());
        let said = said.map(|text| format!("CAPACITY {text}"));
        named::head(setup, setup.name, said.as_slice()).ok_or_else(|| {
            ArgError::new("MAPPING_CAPACITY is neither a number nor a rewriter")
                .click("bad MAPPING_CAPACITY")
        })
    }

    /// The arguments of elements that these name: where they change, so does what these mean.
    fn named(&self, setup: &Setup) -> Vec<String> {
        let element = |words: &Words| setup.element(words.words.first()?, None);
        self.inputs.iter().filter_map(element).flat_map(|it| it.arguments).collect()
    }

    /// What the rewriter does.
    pub(super) fn rules(
        &self,
        setup: &Setup,
        by: RewriterKind,
        lives: [Timeouts; 2],
    ) -> Result<RewriterConfig, ArgError> {
        let count = setup.inputs;
        if self.inputs.len() != count {
            let error = format!("need {count} arguments, one per input port");
            return Err(ArgError::new(error));
        }
        let parse = |(n, words): (usize, &Words)| {
            let input = InputSpec::parse(&words.text, by, setup.outputs, &Around(setup));
            input.map_err(|e| ArgError::new(e).at(format!("input spec {n}")))
        };
        let inputs = self.inputs.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        Ok(RewriterConfig { kind: by, timeouts: lives, inputs, references: self.named(setup) })
    }
}
