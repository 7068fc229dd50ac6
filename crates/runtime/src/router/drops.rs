//! The drop report: dropped packets of all elements by reason, each with an example.

use super::Router;
use castanet_element::class::Class;
use castanet_element::error::ArgError;
use castanet_element::exec::{Counters, DropExample, DropExamples};
use castanet_element::fate::{DROP, FateKind};

/// Packets that an element has dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropRecord {
    /// Index of the element.
    pub element: usize,
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: &'static str,
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
            let examples = worker.exec.examples.clone();
            if anew {
                worker.exec.examples.request();
            }
            (worker.exec.counters.clone(), examples)
        });
        let answers: Vec<(Vec<Counters>, DropExamples)> =
            answers.into_iter().collect::<Result<_, _>>()?;
        let mut records = Vec::new();
        for (element, it) in self.config.graph.elements.iter().enumerate() {
            let counters = answers.iter().map(|(counters, _)| counters[element].clone()).sum();
            let reasons = reasons(it.class, &counters).filter(|reason| reason.count > 0);
            records.extend(reasons.map(|DropReason { fate, name: reason, doc, count }| {
                let examples = answers.iter().filter_map(|(_, its)| its.get(element, fate));
                let example = examples.max_by_key(|example| example.time).cloned();
                let (name, class) = (it.name.clone(), it.class.spec.class);
                DropRecord { element, name, class, reason, count, doc, example }
            }));
        }
        Ok(records)
    }
}

/// All reasons of a class, in the order and by the names of the handler `drops`.
fn reasons(class: &Class, counters: &Counters) -> impl Iterator<Item = DropReason> {
    let of_drop = |(fate, name, doc): (u8, String, &str)| {
        let count = counters.drops[usize::from(DROP - fate)];
        DropReason { fate, name, doc: one_line(doc), count }
    };
    let dropped: Vec<_> = class.drop_reasons().into_iter().map(of_drop).collect();
    let declared: Vec<_> = class.outputs().collect();
    let open = counters.open.iter().enumerate().map(move |(port, &count)| {
        let end = format!("Nothing is connected to output {port}, so its packets are dropped");
        let (name, doc) = match declared.get(port) {
            // An output that is left open as a rule.
            Some(fate) if fate.kind == FateKind::Optional => {
                (fate.name.to_owned(), format!("{} {end}.", one_line(fate.doc)))
            }
            Some(fate) => {
                (fate.name.to_owned(), format!("{} {end}: connect it.", one_line(fate.doc)))
            }
            None => (format!("output_{port}"), format!("{end}: connect it, if only to a Discard.")),
        };
        // Outputs are counted by the indexes of their fates.
        DropReason { fate: u8::try_from(port).unwrap_or(DROP), name, doc, count }
    });
    dropped.into_iter().chain(open)
}

/// A doc comment without its line breaks.
fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
