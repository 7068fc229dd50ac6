//! The steps of traced packets, put together by packet.

use crate::commands::ctl::packet_file::PacketFile;
use crate::observe::packet::PacketRecord;
use crate::observe::trace::{StepKind, StepRecord, StepResult};
use std::collections::BTreeMap;
use std::io::Write;

/// The steps of packets that have not come to their end.
#[derive(Default)]
pub(super) struct TracedPackets {
    open: BTreeMap<u32, Vec<StepRecord>>,
    /// Packets so far.
    count: usize,
}

impl TracedPackets {
    /// Adds a step; returns all steps of a packet that has come to its end by it.
    pub(super) fn add(&mut self, step: StepRecord) -> Option<Vec<StepRecord>> {
        let packet = step.number;
        let is_end = step.kind == StepKind::Finished;
        let steps = self.open.entry(packet).or_insert_with(|| {
            self.count += 1;
            Vec::new()
        });
        steps.push(step);
        if is_end { self.open.remove(&packet) } else { None }
    }

    /// Number of packets that have not come to their end.
    pub(super) fn unfinished(&self) -> usize {
        self.open.len()
    }

    /// The steps of packets that have not come to their end.
    pub(super) fn take_unfinished(&mut self) -> impl Iterator<Item = Vec<StepRecord>> + use<> {
        std::mem::take(&mut self.open).into_values()
    }

    /// Number of packets so far.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// Writes the packet as it was at each step. Comments have the step, and the way up to there.
pub(super) fn write<W: Write>(
    file: &mut PacketFile<W>,
    steps: &[StepRecord],
) -> std::io::Result<()> {
    let mut way: Vec<String> = Vec::new();
    for (number, step) in (1..).zip(steps) {
        if way.last() != Some(&step.element) {
            way.push(step.element.clone());
        }
        let outcome = outcome(step);
        let Some(packet) = packet_of(step) else { continue };
        let comment = format!(
            "packet {}, step {number}: {} :: {}{outcome}\nway: {}",
            step.number,
            step.element,
            step.class,
            way.join(" > ")
        );
        file.write(&step.element, &step.class, step.time, packet, &comment)?;
    }
    Ok(())
}

/// The packet that came, or that left.
fn packet_of(step: &StepRecord) -> Option<&PacketRecord> {
    match &step.kind {
        StepKind::Entered { packet, .. } | StepKind::Left { packet } => Some(packet),
        StepKind::Visited { before, .. } => Some(before),
        StepKind::Dropped { .. } | StepKind::Finished => None,
    }
}

/// All that became of a packet in a step, for a comment.
fn outcome(step: &StepRecord) -> String {
    match &step.kind {
        StepKind::Entered { output, .. } => format!(" emits it by output {output}"),
        StepKind::Left { .. } => " lets it go".to_owned(),
        StepKind::Visited { input, nanoseconds, results, .. } => {
            let results: Vec<String> = results.iter().map(result).collect();
            format!(" [{input}], {nanoseconds} ns: {}", results.join("; "))
        }
        StepKind::Dropped { reason, meaning } => format!(" dropped it: {reason}. {meaning}"),
        StepKind::Finished => String::new(),
    }
}

fn result(result: &StepResult) -> String {
    match result {
        StepResult::Sent { output, packet } => format!("output {output}: {}", packet.text),
        StepResult::Dropped { reason, meaning } => format!("dropped: {reason}. {meaning}"),
        StepResult::Consumed => "ends here".to_owned(),
        StepResult::Kept => "kept".to_owned(),
    }
}
