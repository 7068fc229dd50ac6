//! Metrics: values of handlers and counts of workers, for monitoring systems.

use super::Router;
use crate::graph::Element;
use crate::worker::{Worker, slot};
use castanet_element::class::Role;
use castanet_element::error::ArgError;
use castanet_element::handler::{HandlerMetric, Metric, ReadRequest, Value};
use castanet_element::node::NodeAnswer;
use std::collections::BTreeMap;

/// Handlers that one command to a worker reads, so that no long list of elements keeps it from packets.
const MOST_OF_A_COMMAND: usize = 64;

/// The value of a handler that is a metric.
#[derive(Clone, Debug)]
pub struct MetricValue {
    /// Index of the element.
    pub element: usize,
    /// The metric.
    pub metric: &'static Metric,
    /// The value, of all workers together.
    pub value: Value,
}

/// A handler to read: the element's index, and the metric.
type MetricSource = (usize, HandlerMetric);

impl Router {
    /// The values of all handlers that are metrics (`castanet bench observe` measures what that takes).
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn metrics(&mut self) -> Result<Vec<MetricValue>, ArgError> {
        let elements = self.config.graph.elements.iter().enumerate();
        let sources = elements.flat_map(|(it, element)| {
            (element.class.metrics)().into_iter().map(move |metric| (it, metric))
        });
        let (programs, nodes): (Vec<MetricSource>, Vec<MetricSource>) = sources
            .partition(|&(it, _)| self.config.graph.elements[it].class.role == Role::Control);
        let mut values: Vec<(MetricSource, Option<Value>)> = Vec::new();
        for source in programs {
            values.push((source, self.read_program(source.0, source.1.handler, "")));
        }
        let mut shared = Vec::new();
        for worker in 0..self.workers.len() {
            let at_home = |&&(it, _): &&MetricSource| self.config.assigned[it].home == worker;
            let own: Vec<MetricSource> = nodes.iter().filter(at_home).copied().collect();
            for (source, answer) in self.ask_for_metrics(worker, &own)? {
                match answer {
                    Some(NodeAnswer::Own(value)) => shared.push((source, Some(value))),
                    Some(NodeAnswer::Common(value)) => values.push((source, Some(value))),
                    Some(NodeAnswer::Config(config)) => {
                        let now = self.control.clock.peek();
                        let factory = &self.config.graph.elements[source.0].class.factory;
                        let request = ReadRequest { now, param: "", from: 0 };
                        let value = (factory.read_config)(&config, source.1.handler, &request);
                        values.push((source, value));
                    }
                    None => {}
                }
            }
        }
        self.add_other_workers(&mut shared)?;
        values.extend(shared);
        values.sort_by_key(|&((it, _), _)| it);
        let value = |((element, it), value): (MetricSource, Option<Value>)| {
            Some(MetricValue { element, metric: it.metric, value: value? })
        };
        Ok(values.into_iter().filter_map(value).collect())
    }

    /// By element: the device that it receives from or sends to, if it is such an element.
    pub fn device_names(&self) -> Vec<Option<String>> {
        let elements = self.config.graph.elements.iter();
        let name = |it: &Element| {
            let device = (it.class.factory.device?)(&it.config, self.config.names.of(&it.name))?;
            Some(device.name)
        };
        elements.map(name).collect()
    }

    /// Bursts that each worker has lost to panics in elements.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn panics(&mut self) -> Result<Vec<u64>, ArgError> {
        self.workers.ask_all(|worker| worker.exec.panics).into_iter().collect()
    }

    /// By element: the panics in it since the last call.
    pub fn take_panics(&mut self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.control.panics)
    }

    /// Merges values of the home workers with those of the other workers.
    fn add_other_workers(
        &mut self,
        values: &mut [(MetricSource, Option<Value>)],
    ) -> Result<(), ArgError> {
        for worker in 0..self.workers.len() {
            let mut others: Vec<_> = values
                .iter_mut()
                .filter(|((it, _), _)| self.config.assigned[*it].home != worker)
                .collect();
            let sources: Vec<MetricSource> = others.iter().map(|(source, _)| *source).collect();
            let answers = self.ask_for_metrics(worker, &sources)?;
            for ((_, value), (_, answer)) in others.iter_mut().zip(answers) {
                if let Some(NodeAnswer::Own(other)) = answer {
                    *value = value.take().map(|own| own.merge(other));
                }
            }
        }
        Ok(())
    }

    /// The answers of one worker's nodes, in the order of `sources`.
    fn ask_for_metrics(
        &mut self,
        worker: usize,
        sources: &[MetricSource],
    ) -> Result<Vec<(MetricSource, Option<NodeAnswer>)>, ArgError> {
        let now = self.control.clock.peek();
        let mut answers = Vec::with_capacity(sources.len());
        for some in sources.chunks(MOST_OF_A_COMMAND) {
            let some = some.to_vec();
            answers.extend(self.workers.ask(worker, move |worker: &mut Worker| {
                let answer = |source: MetricSource| {
                    let (it, HandlerMetric { handler, .. }) = source;
                    let node = slot::at(&worker.graph.slots, it);
                    let request = ReadRequest { now, param: "", from: 0 };
                    (source, node.and_then(|node| node.read(handler, &request)))
                };
                some.into_iter().map(answer).collect::<Vec<_>>()
            })?);
        }
        Ok(answers)
    }
}
