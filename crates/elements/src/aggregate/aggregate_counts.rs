//! What `AggregateCounter` has counted, and its handlers.

use super::aggregate_counter::AggregateCounter;
use crate::measure::limit::Limit;
use castanet_engine::class::{DeferredWork, Piece};
use castanet_engine::files::HandlerFiles;
use castanet_engine::prelude::*;
use castanet_engine::streams::StandardOutput;
use castanet_kit::aggregates::{Aggregates, Snapshot, counts_pdf};
use std::io::Write;

/// What was counted.
#[derive(Local)]
#[local(methods)]
pub struct Counts {
    counts: Aggregates,
    /// What is still to come of the limits, by aggregates and by count.
    limits: Option<[Option<Limit>; 2]>,
    /// Whether no new aggregates are counted.
    #[read]
    freeze: bool,
    /// Whether anything is counted.
    #[read]
    active: bool,
    /// Packets, or bytes with BYTES, not counted for want of room for another aggregate.
    #[read]
    uncounted: u64,
    /// What files begin with.
    #[read]
    banner: String,
    files: HandlerFiles,
}

impl Default for Counts {
    fn default() -> Self {
        let (counts, uncounted, banner, files) = Default::default();
        Counts { counts, limits: None, freeze: false, active: true, uncounted, banner, files }
    }
}

fn limit(text: &str) -> Result<Option<Limit>, ArgError> {
    let given = !text.trim().is_empty();
    given.then(|| Limit::from_arg(text, &Names::default())).transpose()
}

#[handlers]
impl Counts {
    /// What was counted in all.
    #[read]
    fn count(&self) -> u64 {
        self.counts.total()
    }
    /// How many aggregates were counted.
    #[read]
    fn nagg(&self) -> usize {
        self.counts.len()
    }
    /// Which count how large a part of the aggregates has.
    #[read]
    fn counts_pdf(&self, ask: &Ask) -> Value {
        let from = usize::try_from(ask.from).unwrap_or(usize::MAX);
        let (text, next) = self.counts.lines(from);
        Piece { text, next: next.map(|next| next as u64), finish: counts_pdf }.into()
    }
    /// The limit to the number of aggregates.
    #[read]
    fn call_after_agg(&self) -> String {
        self.shown(0)
    }
    /// The limit to the count.
    #[read]
    fn call_after_count(&self) -> String {
        self.shown(1)
    }
    /// Sets another limit to the number of aggregates, or none.
    #[write(call_after_agg)]
    fn set_call_after_agg(&mut self, text: &str) -> Result<(), ArgError> {
        self.limits.get_or_insert_default()[0] = limit(text)?;
        Ok(())
    }
    /// Sets another limit to the count, or none.
    #[write(call_after_count)]
    fn set_call_after_count(&mut self, text: &str) -> Result<(), ArgError> {
        self.limits.get_or_insert_default()[1] = limit(text)?;
        Ok(())
    }
    /// Writes the counts to a file, `-` for standard output, eight bytes an aggregate.
    #[write]
    fn write_file(&mut self, path: &str) -> Result<DeferredWork, ArgError> {
        Ok(self.put("write_file", path, Snapshot::packed))
    }
    /// Writes the counts to a file, `-` for standard output, a line an aggregate.
    #[write]
    fn write_ascii_file(&mut self, path: &str) -> Result<DeferredWork, ArgError> {
        Ok(self.put("write_ascii_file", path, |counts, banner| counts.text(banner).into_bytes()))
    }
    /// Freezes or thaws.
    #[write(freeze)]
    fn set_freeze(&mut self, text: &str) -> Result<(), ArgError> {
        self.freeze = bool::from_arg(text.trim(), &Names::default())?;
        Ok(())
    }
    /// Begins or ceases to count.
    #[write(active)]
    fn set_active(&mut self, text: &str) -> Result<(), ArgError> {
        self.active = bool::from_arg(text.trim(), &Names::default())?;
        Ok(())
    }
    /// Changes what files begin with.
    #[write(banner)]
    fn set_banner(&mut self, text: &str) -> Result<(), ArgError> {
        self.banner = if text.trim().is_empty() { String::new() } else { format!("{text}\n") };
        Ok(())
    }
    /// Makes each count an aggregate, counted as often as it was there.
    #[write]
    fn reaggregate_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.counts.reaggregate();
        Ok(())
    }
    /// Forgets all counts.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.counts.clear();
        self.uncounted = 0;
        Ok(())
    }
    /// Ceases to count and asks the router to stop.
    #[write(stop, stops)]
    fn stop(&mut self, _: &str) -> Result<(), ArgError> {
        self.active = false;
        Ok(())
    }
}

/// The place of the limit to the number of aggregates among the limits.
const AGG: usize = 0;
/// The place of the limit to the count.
const COUNT: usize = 1;

impl Counts {
    /// Has the counts of now sorted and written while the worker goes on.
    fn put(
        &mut self,
        handler: &'static str,
        path: &str,
        bytes: fn(&Snapshot, &str) -> Vec<u8>,
    ) -> DeferredWork {
        let (counts, banner) = (self.counts.snapshot(), self.banner.clone());
        let (files, path) = (self.files.clone(), path.trim().to_owned());
        DeferredWork::new(move || {
            let bytes = bytes(&counts, &banner);
            if path != "-" {
                return files.write(handler, &path, &bytes);
            }
            let done = StandardOutput.write_all(&bytes).and_then(|()| StandardOutput.flush());
            done.map_err(|e| ArgError::of_file("-", &e))
        })
    }

    /// Takes over the limits of the configuration, unless handlers have set others.
    pub(super) fn begin(&mut self, limits: &[Option<Limit>; 2], files: &HandlerFiles) {
        self.files = files.clone();
        self.limits.get_or_insert_with(|| limits.clone());
    }

    fn shown(&self, which: usize) -> String {
        let limit = self.limits.as_ref().and_then(|limits| limits[which].as_ref());
        limit.map_or_else(String::new, Limit::to_string)
    }

    /// Counts a packet of an element; whether it was counted.
    pub(super) fn update(
        &mut self,
        aggregate: u32,
        amount: u64,
        frozen: bool,
        element: &AggregateCounter,
        cx: &mut Cx,
    ) -> bool {
        let me = &element.name;
        let new = !self.counts.contains(aggregate);
        if self.active && new && amount > 0 && !(self.freeze || frozen) {
            self.reach(AGG, self.counts.len() as u64, me, cx);
        }
        if !self.active || new && (self.freeze || frozen) {
            return false;
        }
        if new && self.counts.len() >= element.capacity {
            self.uncounted += amount;
            return false;
        }
        self.counts.add(aggregate, amount);
        self.reach(COUNT, self.counts.total(), me, cx);
        true
    }

    /// Does what is to be done when a limit is reached, once. What it does to
    /// this very element holds at once.
    fn reach(&mut self, which: usize, value: u64, me: &str, cx: &mut Cx) {
        let Some(limits) = &mut self.limits else { return };
        let Some(limit) = limits[which].take_if(|limit| value >= limit.at) else { return };
        let Call { handler, value } = &limit.call;
        match handler.strip_prefix(me) {
            Some(".freeze") => self.freeze = value.trim() != "false",
            Some(".stop") => {
                self.active = false;
                cx.stop();
            }
            _ => cx.call(handler, value),
        }
    }
}
