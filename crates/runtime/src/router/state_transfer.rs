//! State of elements that goes to another instance, or comes from one, while the router runs.
//!
//! Both directions go by parts, between two bursts of the worker that has the state: no part keeps
//! others from the worker for longer than some hundred records take.
//!
//! Times in records count from the beginning of the transfer, which each instance knows by its own clock.

use super::Router;
use crate::worker::{
    ExportPlace, ImportChange, STATE_PART, StateChange, StatePlace, StatePosition,
};
use castanet_element::error::ArgError;
use castanet_element::portable_state::{RecordReader, RecordWriter, StateEpoch, StateRecord};
use std::sync::Arc;

/// The field of the arguments that handlers have changed.
const ARGUMENTS: &str = "arguments";

/// The state of the elements of a compound.
#[derive(Clone, Debug, Default)]
pub struct StatePlaces {
    /// The fields that go to another instance.
    pub places: Vec<StatePlace>,
    /// The elements whose state does not, each with its class.
    pub others: Vec<(String, &'static str)>,
}

impl Router {
    /// The state of the elements of a compound.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn state_places(&mut self, compound: &str) -> Result<StatePlaces, ArgError> {
        let prefix = format!("{compound}/");
        let elements: Vec<(usize, String, usize)> = self
            .config
            .graph
            .elements
            .iter()
            .enumerate()
            .filter_map(|(it, element)| {
                let name = element.name.strip_prefix(&prefix)?.to_owned();
                Some((it, name, self.config.assigned[it].home))
            })
            .collect();
        let mut found = StatePlaces::default();
        let all: Arc<[(usize, String, usize)]> = elements.into();
        // First, for records refer to what arguments say: connections to rules.
        for (it, name, _) in all.iter() {
            let class = self.config.graph.elements[*it].class;
            if !(class.factory.argument_handlers)().is_empty() {
                let (element, field) = (name.clone(), ARGUMENTS.to_owned());
                found.places.push(StatePlace { element, field, worker: 0, is_table: false });
            } else if self.config.rewritten[*it].is_some() {
                found.others.push((name.clone(), class.spec.class));
            }
        }
        let asked = all.clone();
        let answers = self.workers.ask_all(move |worker| worker.state_fields(&asked));
        for (worker, answer) in answers.into_iter().enumerate() {
            let (places, others) = answer?;
            found.places.extend(places);
            if worker == 0 {
                let named = others.into_iter().map(|it| {
                    let element = &self.config.graph.elements[it];
                    (element.name[prefix.len()..].to_owned(), element.class.spec.class)
                });
                found.others.extend(named);
            }
        }
        Ok(found)
    }

    /// Reads some records from a position on; returns the position behind them, if there are more. Without
    /// `all`, it reads tables only.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn export_state(
        &mut self,
        compound: &str,
        places: &[StatePlace],
        all: bool,
        epoch: StateEpoch,
        from: StatePosition,
    ) -> Result<(Vec<StateChange>, Option<StatePosition>), ArgError> {
        let is_wanted = |place: &StatePlace| all || place.is_table;
        let rest = places.get(from.place..).unwrap_or_default();
        let Some(skipped) = rest.iter().position(is_wanted) else { return Ok((Vec::new(), None)) };
        let first = from.place + skipped;
        let place = &places[first];
        if place.field == ARGUMENTS {
            let mut changes = Vec::new();
            let arguments = places[first..].iter().take_while(|it| it.field == ARGUMENTS);
            let mut behind = first;
            for place in arguments {
                changes.extend(self.changed_arguments(compound, place, behind));
                behind += 1;
                if changes.len() >= STATE_PART {
                    break;
                }
            }
            return Ok((changes, Some(StatePosition { place: behind, from: 0 })));
        }
        let is_next =
            |it: &&StatePlace| it.worker == place.worker && it.field != ARGUMENTS && is_wanted(it);
        let group = places[first..].iter().take_while(is_next).take(STATE_PART).enumerate();
        let group: Vec<ExportPlace> = group
            .filter_map(|(n, it)| {
                let element = self.config.graph.find(&format!("{compound}/{}", it.element))?;
                Some(ExportPlace { number: first + n, element, field: it.field.clone() })
            })
            .collect();
        let behind = group.last().map_or(first + 1, |last| last.number + 1);
        let from = if skipped == 0 { from.from } else { 0 };
        let (changes, stopped) = self
            .workers
            .ask(place.worker as usize, move |worker| worker.export_state(&group, from, epoch))?;
        let next = stopped.unwrap_or(StatePosition { place: behind, from: 0 });
        Ok((changes, Some(next)))
    }

    /// The arguments of an element that handlers have changed and can read.
    fn changed_arguments(
        &mut self,
        compound: &str,
        place: &StatePlace,
        number: usize,
    ) -> Vec<StateChange> {
        let name = format!("{compound}/{}", place.element);
        let Some(it) = self.config.graph.find(&name) else { return Vec::new() };
        if self.config.rewritten[it].is_none() {
            return Vec::new();
        }
        let element = &self.config.graph.elements[it];
        let ports = element.inputs.len().max(element.outputs.len());
        let handlers = (element.class.factory.argument_handlers)().into_iter();
        // `pattern_` stands for `pattern0`, `pattern1` and so on, one for each port.
        let names = handlers.flat_map(|it| match it.strip_suffix('_') {
            Some(base) => (0..ports).map(|n| format!("{base}{n}")).collect(),
            None => vec![it.to_owned()],
        });
        let epoch = StateEpoch(self.control.clock.peek());
        let mut records = Vec::new();
        for handler in names.collect::<Vec<_>>() {
            if let Ok(value) = self.read(&format!("{name}.{handler}")) {
                RecordWriter { epoch, records: &mut records }.write(&handler, &value);
            }
        }
        records.into_iter().map(|record| StateChange::put(number, record)).collect()
    }

    /// Puts changes of places of a compound into its elements; returns what could not be put, by element, with
    /// the reason.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn import_state(
        &mut self,
        compound: &str,
        places: &[StatePlace],
        changes: Vec<StateChange>,
        epoch: StateEpoch,
    ) -> Result<Vec<(String, ArgError)>, ArgError> {
        let workers = self.workers.len();
        let mut by_worker: Vec<Vec<ImportChange>> = (0..workers).map(|_| Vec::new()).collect();
        let mut failed = Vec::new();
        for change in changes {
            let Some(place) = places.get(change.place as usize) else { continue };
            let name = format!("{compound}/{}", place.element);
            let Some(element) = self.config.graph.find(&name) else {
                failed.push((place.element.clone(), ArgError::new("there is no such element")));
                continue;
            };
            if place.field == ARGUMENTS {
                if let Err(error) = self.import_argument(&name, &change.record) {
                    failed.push((place.element.clone(), error));
                }
                continue;
            }
            let StateChange { record, removes, .. } = change;
            let home = self.config.assigned[element].home;
            let worker = if place.is_table { home } else { place.worker as usize % workers };
            let field = place.field.clone();
            by_worker[worker].push(ImportChange { element, home, field, record, removes });
        }
        for (worker, changes) in by_worker.into_iter().enumerate() {
            let mut changes = changes.into_iter().peekable();
            while changes.peek().is_some() {
                let part: Vec<ImportChange> = changes.by_ref().take(STATE_PART).collect();
                let errors =
                    self.workers.ask(worker, move |worker| worker.import_state(&part, epoch))?;
                failed.extend(errors.into_iter().map(|(element, error)| {
                    (
                        self.config.graph.elements[element].name[compound.len() + 1..].to_owned(),
                        error,
                    )
                }));
            }
        }
        Ok(failed)
    }

    fn import_argument(&mut self, element: &str, record: &StateRecord) -> Result<(), ArgError> {
        let record = RecordReader::new(record, StateEpoch(self.control.clock.peek()));
        let (name, value): (String, String) = (record.key()?, record.value()?);
        self.write(&format!("{element}.{name}"), &value)
    }

    /// Has the elements of a compound go on with state that has come.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub fn resume_with_state(
        &mut self,
        compound: &str,
        places: &[StatePlace],
    ) -> Result<(), ArgError> {
        let mut elements: Vec<usize> = places
            .iter()
            .filter_map(|it| self.config.graph.find(&format!("{compound}/{}", it.element)))
            .collect();
        elements.sort_unstable();
        elements.dedup();
        for worker in 0..self.workers.len() {
            let home = |it: &usize| self.config.assigned[*it].home == worker;
            let mut own = elements.iter().copied().filter(home).peekable();
            while own.peek().is_some() {
                let part: Vec<usize> = own.by_ref().take(STATE_PART).collect();
                self.workers.ask(worker, move |worker| worker.resume_with_state(&part))?;
            }
        }
        Ok(())
    }
}
