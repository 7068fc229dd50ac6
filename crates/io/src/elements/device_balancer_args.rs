//! The arguments of `DeviceBalancer`, and their types.

use castanet_element::prelude::*;

/// The arguments of `DeviceBalancer`.
#[derive(Args, Clone, PartialEq)]
pub struct DeviceBalancerArgs {
    /// How the redirection table is chosen.
    #[arg]
    pub(super) method: RssMethod,
    /// The element that receives from the device: a `FromDPDKDevice`, or a `FromDevice` with
    /// RSS_AGGREGATE.
    #[arg]
    pub(super) dev: String,
    /// Without effect: the element of the device knows the worker of each queue.
    #[arg(keyword, default = 0)]
    pub(super) core_offset: i32,
    /// Time between two steps in milliseconds, at least.
    #[arg(keyword, default = 100, range = 1..)]
    pub(super) timer: u32,
    /// The same, at most: steps are less frequent while loads are alike. TIMER if not given.
    #[arg(keyword)]
    pub(super) timer_max: Option<u32>,
    /// Most workers to use; -1 for all.
    #[arg(keyword, default = -1)]
    pub(super) cpus: i32,
    /// The values that are balanced: loads themselves (load), or their ratios to the mean (balance).
    #[arg(keyword, default = LoadTarget::Load, shown = "load")]
    pub(super) target: LoadTarget,
    /// Number of workers at the start; -1 for as many as CPUS.
    #[arg(keyword, default = -1)]
    pub(super) startcpu: i32,
    /// Without effect: METHOD `metron` has it in FastClick.
    #[arg(keyword, default = 0.25)]
    pub(super) underload: f64,
    /// Without effect: METHOD `metron` has it in FastClick.
    #[arg(keyword, default = 0.75)]
    pub(super) overload: f64,
    /// Without effect, as in FastClick; CYCLES says what a load is.
    #[arg(keyword)]
    pub(super) load: Option<String>,
    /// The measure of a worker's load.
    #[arg(keyword, default = LoadMeasure::Cycles, shown = "cycles")]
    pub(super) cycles: LoadMeasure,
    /// Whether workers are added and removed by the load.
    #[arg(keyword, default = false)]
    pub(super) autoscale: bool,
    /// Whether to act.
    #[arg(keyword, default = true)]
    pub(super) active: bool,
    /// Whether to write a line about each step that changes something (1), and about each load (2).
    #[arg(keyword, default = 1)]
    pub(super) verbose: i32,
    /// Number of entries of the redirection table; that of the device if not given, and never more.
    #[arg(keyword)]
    pub(super) reta_size: Option<usize>,
    /// Without effect: no flow rules are needed to change the table.
    #[arg(keyword, default = true)]
    pub(super) mark: bool,
    /// Without effect: no flow rules are needed to change the table.
    #[arg(keyword, default = true)]
    pub(super) group: bool,
    /// With METHOD `rsspp`, the load that a worker is to have at most, from 0 to 1.
    #[arg(keyword, default = 0.8)]
    pub(super) target_load: f64,
    /// With METHOD `rsspp`, the `AggregateCounterVector` that counts packets by their hashes.
    #[arg(keyword)]
    pub(super) rsscounter: Option<String>,
    /// With METHOD `rsspp`, the part of a difference between loads that one step makes good.
    #[arg(keyword, default = 1.0)]
    pub(super) imbalance_alpha: f64,
    /// With METHOD `rsspp`, the difference from the mean load below which a worker is left alone.
    #[arg(keyword, default = 0.02)]
    pub(super) imbalance_threshold: f64,
    /// Without effect: entries with the most packets always move first.
    #[arg(keyword, default = false)]
    pub(super) dancer: bool,
    /// Without effect: a device's queues have workers of its NUMA node.
    #[arg(keyword, default = false)]
    pub(super) numa: bool,
}

impl DeviceBalancerArgs {
    /// Checks what belongs together.
    pub(super) fn check(&self) -> Result<(), ArgError> {
        if self.method == RssMethod::RssPlusPlus && self.rsscounter.is_none() {
            return Err(ArgError::new("METHOD rsspp needs RSSCOUNTER, an AggregateCounterVector")
                .click("You must set a RSSCOUNTER element"));
        }
        let share = |name: &str, value: f64| match (0.0..=1.0).contains(&value) {
            true => Ok(()),
            false => Err(ArgError::new(format!("{value} is not from 0 to 1")).at(name)),
        };
        share("TARGET_LOAD", self.target_load)?;
        share("IMBALANCE_ALPHA", self.imbalance_alpha)?;
        share("IMBALANCE_THRESHOLD", self.imbalance_threshold)
    }
}

/// The way in which `DeviceBalancer` chooses the redirection table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RssMethod {
    /// All queues in turn.
    Rss,
    /// The same, each entry going to the next queue in each step.
    RoundRobin,
    /// By the loads of workers and the packets of entries (RSS++).
    RssPlusPlus,
}

impl FromArg for RssMethod {
    const SYNTAX: &'static str = "rss, rssrr or rsspp";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        match String::from_arg(text, names)?.as_str() {
            "rss" => Ok(RssMethod::Rss),
            "rssrr" => Ok(RssMethod::RoundRobin),
            // FastClick's older name.
            "rsspp" | "pianorss" => Ok(RssMethod::RssPlusPlus),
            "metron" => {
                let error = format!("`metron` is not supported; what is: {}", Self::SYNTAX);
                Err(ArgError::new(error).click("Unknown method metron"))
            }
            other => Err(ArgError::new(format!("`{other}` is not {}", Self::SYNTAX))
                .click(format!("Unknown method {other}"))),
        }
    }
}

/// The loads that `DeviceBalancer` balances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoadTarget {
    /// As measured.
    Load,
    /// Half their ratio to the mean.
    Balance,
}

impl FromArg for LoadTarget {
    const SYNTAX: &'static str = "load or balance";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text {
            "load" => Ok(LoadTarget::Load),
            "balance" => Ok(LoadTarget::Balance),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click(format!("Unknown target {text}"))),
        }
    }
}

/// The measure of a worker's load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoadMeasure {
    /// Share of the time in which its tasks moved packets.
    Cycles,
    /// The same, and where several are at their limit, a tenth by the packets that wait in the queue.
    CyclesQueue,
    /// Share of the time in which its thread had a processor, polls included.
    RealCpu,
    /// Packets that wait in its queue, as a share of the queue's descriptors.
    Queue,
}

impl LoadMeasure {
    /// Whether it counts the packets that wait in queues.
    pub(super) fn has_queues(self) -> bool {
        matches!(self, LoadMeasure::CyclesQueue | LoadMeasure::Queue)
    }
}

impl FromArg for LoadMeasure {
    const SYNTAX: &'static str = "cycles, cpu, cyclesqueue, realcpu or queue";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text {
            "cycles" | "cpu" => Ok(LoadMeasure::Cycles),
            "cyclesqueue" => Ok(LoadMeasure::CyclesQueue),
            "realcpu" => Ok(LoadMeasure::RealCpu),
            "queue" => Ok(LoadMeasure::Queue),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("Unknown cycle method !")),
        }
    }
}
