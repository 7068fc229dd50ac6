//! The fates of a class: its outputs and its reasons to drop, with their sentences.

use super::{Class, Role};
use crate::fate::{
    DISCARDED, DROP, FateKind, FateSpec, LOOPED, LossReason, MAX_OUTPUTS, NO_FRAME, NO_MEMORY,
    NOT_TAKEN, PANICKED,
};

impl Class {
    /// The names of all reasons to drop, with their place in the counters.
    pub fn drop_reasons(&self) -> Vec<(u8, String, &'static str)> {
        let own = self.fates.iter().filter(|f| f.kind == FateKind::Drop).enumerate();
        let mut all: Vec<_> =
            own.map(|(n, f)| (DROP - n as u8, f.name.to_owned(), f.doc)).collect();
        if self.on != "any" {
            all.push((NOT_TAKEN, format!("not_{}", self.on), not_taken_doc(self.on)));
        }
        all.push((
            NO_FRAME,
            "no_frame".into(),
            "Packets for which there was no frame, or no memory to keep them. Start with more --frames or \
             --memory, or look for an element that keeps too many.",
        ));
        all.push((
            NO_MEMORY,
            "no_memory".into(),
            "Packets that the element would keep, but its account (MemoryAccount) has reached a limit. \
             Raise the limit, or lower the capacities of queues and tables that it pays for.",
        ));
        all.push((
            LOOPED,
            "loop".into(),
            "Packets that went round the graph without end. Look for a circle of elements that no packet \
             leaves.",
        ));
        let keeps = self.role == Role::Store || self.role == Role::Source && !self.is_first();
        if keeps {
            all.push((DISCARDED, "reset".into(), "Kept packets that a handler has discarded."));
        }
        all.push((
            PANICKED,
            "panic".into(),
            "Packets of bursts in which the element panicked. This is a fault of the element: report it \
             with the message on standard error.",
        ));
        all
    }

    /// Whether it has no inputs, so that packets begin with it.
    fn is_first(&self) -> bool {
        crate::class::ports::counts(self).inputs.1 == 0
    }

    /// Reason for which packets with this fate are lost: the reason to drop of this index, or the
    /// output if nothing is connected to it.
    pub fn loss_reason(&self, fate: u8) -> LossReason {
        if usize::from(fate) < MAX_OUTPUTS {
            return self.open_output(fate);
        }
        let reason = self.drop_reasons().into_iter().find(|(index, ..)| *index == fate);
        match reason {
            Some((_, name, doc)) => LossReason { name, doc: one_line(doc) },
            None => LossReason::unknown(),
        }
    }

    /// All reasons for which packets are lost, each with the index of the fate, where the element has
    /// so many outputs.
    pub fn loss_reasons(&self, outputs: usize) -> impl Iterator<Item = (u8, LossReason)> {
        let outputs = outputs.max(self.outputs().count()).min(MAX_OUTPUTS) as u8;
        let drops = self.drop_reasons().into_iter().map(|(fate, ..)| fate);
        let fates: Vec<u8> = drops.chain(0..outputs).collect();
        fates.into_iter().map(|fate| (fate, self.loss_reason(fate)))
    }

    fn open_output(&self, output: u8) -> LossReason {
        let end = format!("Nothing is connected to output {output}, so its packets are dropped");
        let (name, doc) = match self.outputs().nth(output.into()) {
            // An output that is left open as a rule.
            Some(fate) if fate.kind == FateKind::Optional => {
                (fate.name.to_owned(), format!("{} {end}.", one_line(fate.doc)))
            }
            Some(fate) => {
                (fate.name.to_owned(), format!("{} {end}: connect it.", one_line(fate.doc)))
            }
            None => {
                (format!("output_{output}"), format!("{end}: connect it, if only to a Discard."))
            }
        };
        LossReason { name, doc }
    }

    /// Declared outputs, those that must be connected first.
    pub fn outputs(&self) -> impl Iterator<Item = &'static FateSpec> {
        self.fates.iter().filter(|f| f.kind != FateKind::Drop)
    }
}

/// The sentences about packets that an element does not take, by the name of its view.
fn not_taken_doc(on: &str) -> &'static str {
    match on {
        "ether" => {
            "Packets shorter than an Ethernet header. Check that no element before strips it."
        }
        "arp" => "Packets that are not ARP for IPv4. Sort them out with a Classifier before.",
        "ip" => {
            "Packets that are not IPv4, or whose header no element before has marked. Put a \
             CheckIPHeader or MarkIPHeader before this element."
        }
        "ip6" => {
            "Packets that are not IPv6, or whose header no element before has marked. Put a \
             CheckIP6Header or MarkIP6Header before this element."
        }
        "udp" => {
            "Packets without a marked IPv4 header, or without a whole UDP header behind it. Sort them \
             out with an IPClassifier before."
        }
        "tcp" => {
            "Packets without a marked IPv4 header, or without a whole TCP header behind it. Sort them \
             out with an IPClassifier before."
        }
        "icmp" => {
            "Packets without a marked IPv4 header, or without a whole ICMP header behind it. Sort them \
             out with an IPClassifier before."
        }
        _ => "Packets that are not of the kind that the element takes.",
    }
}

/// A doc comment without its line breaks.
fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
