//! The drop report: dropped packets of all elements by reason, each with an example.

use super::Router;
use crate::graph::Element;
use castanet_element::error::ArgError;
use castanet_element::exec::{Counters, DropExample, DropExamples};
use castanet_element::fate::{DROP, LossReason};

/// Packets that an element has dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropRecord {
    /// Index of the element.
    pub element: usize,
    /// Its name.
    pub name: String,
    /// Its class, as the configuration names it.
    pub class: String,
    /// Name of the reason, as in the handler `drops`.
    pub reason: String,
    /// Number of packets, on all workers.
    pub count: u64,
    /// The sentences about the reason.
    pub doc: String,
    /// The latest example that a worker has recorded; `None` if the element had let the packets go
    /// before they were counted.
    pub example: Option<DropExample>,
}

/// A reason to drop, or an output that nothing is connected to.
struct DropReason {
    /// Index of the fate.
    fate: u8,
    name: String,
    doc: String,
    count: u64,
}

impl Router {
    /// The packets dropped so far, by element and reason; reasons without a packet are left out. With
    /// `anew`, workers record the next packet that is dropped for each reason as its new example;
    /// until then the present one stays.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn drop_report(&mut self, anew: bool) -> Result<Vec<DropRecord>, ArgError> {
        let answers = self.workers.ask_all(move |worker| {
            let examples = worker.exec.observers.examples.clone();
            if anew {
                worker.exec.observers.examples.request();
            }
            (worker.exec.counters.clone(), examples)
        });
        let answers: Vec<(Vec<Counters>, DropExamples)> =
            answers.into_iter().collect::<Result<_, _>>()?;
        let mut records = Vec::new();
        for (element, it) in self.config.graph.elements.iter().enumerate() {
            let counters = answers.iter().map(|(counters, _)| counters[element].clone()).sum();
            let reasons = reasons(it, &counters).filter(|reason| reason.count > 0);
            records.extend(reasons.map(|DropReason { fate, name: reason, doc, count }| {
                let examples = answers.iter().filter_map(|(_, its)| its.get(element, fate));
                let example = examples.max_by_key(|example| example.time).cloned();
                let (name, class) = (it.name.clone(), it.source.class.clone());
                DropRecord { element, name, class, reason, count, doc, example }
            }));
        }
        Ok(records)
    }
}

/// All reasons of an element, in the order and by the names of the handler `drops`.
fn reasons(it: &Element, counters: &Counters) -> impl Iterator<Item = DropReason> {
    let of_drop = |(fate, _): (u8, String)| (fate, counters.drops[usize::from(DROP - fate)]);
    let dropped: Vec<_> = it.drop_reasons().map(of_drop).collect();
    // Outputs are counted by the indexes of their fates.
    let open = counters.open.iter().copied();
    let all = dropped.into_iter().chain((0..).zip(open));
    all.map(|(fate, count)| {
        let LossReason { name, doc } = it.loss_reason(fate);
        DropReason { fate, name, doc, count }
    })
}
