//! Those who look at the packets of one worker: examples of drops, traces and captures.

use super::{DropExamples, WorkerCapture, WorkerTrace};
use crate::fate::LossReason;
use crate::time::Time;
use castanet_packet::Packet;
use std::sync::Arc;

/// An element, as traces and captures name it.
pub struct TraceElement {
    /// Its name.
    pub name: String,
    /// Its class, as the configuration names it.
    pub class: String,
    /// Reasons for which it loses packets, each with the index of the fate.
    pub reasons: Vec<(u8, Arc<LossReason>)>,
}

impl TraceElement {
    /// The reason for which packets with this fate are lost.
    pub(super) fn reason(&self, fate: u8) -> Arc<LossReason> {
        let known = self.reasons.iter().find(|(its, _)| *its == fate);
        known.map_or_else(|| Arc::new(LossReason::unknown()), |(_, reason)| reason.clone())
    }
}

/// Those who look at the packets of one worker.
pub struct Observers {
    /// Examples of dropped packets.
    pub examples: DropExamples,
    /// Traces, while a client has asked for any.
    pub trace: Option<Box<WorkerTrace>>,
    /// Captures, while a client has asked for any.
    pub capture: Option<Box<WorkerCapture>>,
}

impl Observers {
    /// Examples alone, of so many elements.
    pub(super) fn new(elements: usize) -> Observers {
        Observers { examples: DropExamples::new(elements), trace: None, capture: None }
    }

    /// Whether a trace is on and any packet has a tag.
    #[inline(always)]
    pub fn has_tagged(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.has_tagged())
    }

    /// Shows packets that element `element` drops to those who want them. Their fate is a reason to
    /// drop or an output that nothing is connected to.
    #[cold]
    #[inline(never)]
    pub fn show_drops(&mut self, element: usize, fate: u8, packets: &[Packet], now: Time) {
        if let Some(trace) = &mut self.trace {
            packets.iter().for_each(|packet| trace.note_drop(element, now, fate, packet));
        }
        if let Some(capture) = &mut self.capture {
            capture.take_dropped(element, fate, packets, now);
        }
        if let Some(packet) = packets.first() {
            self.examples.record(element, fate, now, packet);
        }
    }
}
