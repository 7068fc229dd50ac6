//! Traces: the steps of single packets, as clients get them.

use super::packet::{FilterText, PacketRecord};
use castanet_element::error::ArgError;
use castanet_element::exec::{TraceResult, TraceStep, TraceStepKind};
use castanet_runtime::router::{Router, TraceProgress, TraceRequest};
use serde::{Deserialize, Serialize};

/// A request for a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TraceQuery {
    #[serde(flatten)]
    pub(crate) filter: FilterText,
    /// The source whose packets it is about; all if not given.
    #[serde(default)]
    pub(crate) from: Option<String>,
    /// Number of packets.
    pub(crate) packets: u32,
    /// Bytes of each packet that are copied.
    pub(crate) snap_len: usize,
}

/// The steps of a trace since it was read last.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct TraceAnswer {
    pub(crate) steps: Vec<StepRecord>,
    /// Packets chosen so far.
    pub(crate) begun: u32,
    /// Packets that are yet to be chosen.
    pub(crate) remaining: u32,
    /// Packets that passed when there was no time to look at them.
    pub(crate) missed: u64,
    /// Steps that were lost because too many waited.
    pub(crate) lost_steps: u64,
}

/// A step of a packet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct StepRecord {
    /// Number of the packet, from 1 on.
    pub(crate) number: u32,
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    pub(crate) worker: usize,
    pub(crate) element: String,
    pub(crate) class: String,
    #[serde(flatten)]
    pub(crate) kind: StepKind,
}

/// Kind of a step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "lowercase")]
pub(crate) enum StepKind {
    /// The packet entered the graph by an output of a source.
    Entered { output: u8, packet: PacketRecord },
    /// It came to an element.
    Visited { input: usize, before: PacketRecord, nanoseconds: u64, results: Vec<StepResult> },
    /// It left an element that had kept it.
    Left { packet: PacketRecord },
    /// An element dropped it that had kept it.
    Dropped { reason: String, meaning: String },
    /// It has ended, with all its clones.
    Finished,
}

/// Result of a visit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub(crate) enum StepResult {
    /// A packet left by an output.
    Sent { output: u8, packet: PacketRecord },
    /// The packet was dropped.
    Dropped { reason: String, meaning: String },
    /// It ended here as it should: sent, written, used.
    Consumed,
    /// The element keeps it.
    Kept,
}

/// Starts, reads or stops a trace: `start QUERY`, `next NUMBER`, `stop NUMBER`. The value is JSON.
///
/// # Errors
/// The words are wrong, there is no such trace, or the router refuses it.
pub(crate) fn command(router: &mut Router, text: &str) -> Result<String, ArgError> {
    super::session_command("trace", text, |verb, rest| match verb {
        "start" => start(router, rest),
        "next" => super::to_json(&answer(&router.read_trace(super::session(rest)?)?)),
        "stop" => super::to_json(&answer(&router.end_trace(super::session(rest)?)?)),
        _ => Err(super::unknown_verb("trace")),
    })
}

fn start(router: &mut Router, text: &str) -> Result<String, ArgError> {
    let query: TraceQuery = super::query(text)?;
    let TraceQuery { from: source, packets, .. } = query;
    let (filter, snap_len) = (query.filter.filter()?, query.snap_len.min(super::MAX_SNAP_LEN));
    let number = router.start_trace(TraceRequest { filter, source, packets, snap_len })?;
    super::to_json(&super::SessionNumber { session: number })
}

fn answer(progress: &TraceProgress) -> TraceAnswer {
    TraceAnswer {
        steps: progress.steps.iter().map(record).collect(),
        begun: progress.begun,
        remaining: progress.remaining,
        missed: progress.missed,
        lost_steps: progress.lost_steps,
    }
}

fn record(step: &TraceStep) -> StepRecord {
    let kind = match &step.kind {
        TraceStepKind::Entered { output, packet } => {
            StepKind::Entered { output: *output, packet: PacketRecord::of(packet) }
        }
        TraceStepKind::Visited { input, before, nanoseconds, results } => StepKind::Visited {
            input: *input,
            before: PacketRecord::of(before),
            nanoseconds: *nanoseconds,
            results: results.iter().map(result).collect(),
        },
        TraceStepKind::Taken { packet } => StepKind::Left { packet: PacketRecord::of(packet) },
        TraceStepKind::Dropped { reason } => {
            StepKind::Dropped { reason: reason.name.clone(), meaning: reason.doc.clone() }
        }
        TraceStepKind::Finished => StepKind::Finished,
    };
    StepRecord {
        number: step.packet,
        time: step.time.0,
        worker: step.worker,
        element: step.element.clone(),
        class: step.class.clone(),
        kind,
    }
}

fn result(result: &TraceResult) -> StepResult {
    match result {
        TraceResult::Sent { output, packet } => {
            StepResult::Sent { output: *output, packet: PacketRecord::of(packet) }
        }
        TraceResult::Dropped { reason } => {
            StepResult::Dropped { reason: reason.name.clone(), meaning: reason.doc.clone() }
        }
        TraceResult::Consumed => StepResult::Consumed,
        TraceResult::Kept => StepResult::Kept,
    }
}
