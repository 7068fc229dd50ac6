//! State of `AggregateCounter`: counts, limits and handlers.

use super::aggregate_counter::AggregateCounter;
use crate::measure::limit::Limit;
use castanet_element::files::HandlerFiles;
use castanet_element::handler::{DeferredWork, TextChunk};
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter, add_counts};
use castanet_element::prelude::*;
use castanet_element::streams::StandardOutput;
use castanet_kit::aggregates::{Aggregates, Snapshot, counts_pdf};
use std::io::Write;

/// The counts of all workers, and the limits not yet reached.
#[derive(Local)]
#[local(methods)]
#[portable(counts)]
pub struct AggregateCounterState {
    counts: Aggregates,
    /// Limits to the number of aggregates and to the count that have not been reached yet.
    limits: Option<[Option<Limit>; 2]>,
    /// Whether the counter is frozen: new aggregates are not counted.
    #[read]
    freeze: bool,
    /// Whether packets are counted.
    #[read]
    active: bool,
    /// Packets, or bytes with BYTES, not counted because CAPACITY was reached.
    #[read]
    #[portable]
    uncounted: u64,
    /// The text at the beginning of files.
    #[read]
    banner: String,
    files: HandlerFiles,
}

impl Default for AggregateCounterState {
    fn default() -> Self {
        let (counts, uncounted, banner, files) = Default::default();
        AggregateCounterState {
            counts,
            limits: None,
            freeze: false,
            active: true,
            uncounted,
            banner,
            files,
        }
    }
}

/// Parses the text of a handler that sets a limit; an empty one is no limit.
fn parse_limit(handler: &str, text: &str) -> Result<Option<Limit>, ArgError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let wrong = format!("argument to '{handler}' should be 'N HANDLER [VALUE]'");
    Ok(Some(Limit::from_arg(text, &Names::default()).map_err(|e| e.reworded(&wrong))?))
}

/// The counts by aggregate, which are added.
impl PortableState for AggregateCounterState {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        const PART: usize = 256;
        let first = usize::try_from(from).unwrap_or(usize::MAX);
        let end = first.saturating_add(PART).min(self.counts.len());
        for (aggregate, count) in (first..end).filter_map(|number| self.counts.at(number)) {
            to.write(&aggregate, &count);
        }
        (end < self.counts.len()).then_some(end as u64)
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        let (aggregate, count): (u32, u64) = (record.key()?, record.value()?);
        // The sum of all must not overflow.
        add_counts([&mut self.counts.total()], [count])?;
        self.counts.add(aggregate, count);
        Ok(())
    }
}

#[handlers]
impl AggregateCounterState {
    /// Total count.
    #[read]
    fn count(&self) -> u64 {
        self.counts.total()
    }
    /// Number of aggregates that were counted.
    #[read]
    fn nagg(&self) -> usize {
        self.counts.len()
    }
    /// Distribution of the counts: each count, and the fraction of aggregates that have it.
    #[read]
    fn counts_pdf(&self, ask: &ReadRequest) -> Value {
        let from = usize::try_from(ask.from).unwrap_or(usize::MAX);
        let (text, next) = self.counts.lines(from);
        TextChunk { text, next: next.map(|next| next as u64), finish: counts_pdf }.into()
    }
    /// The limit to the number of aggregates.
    #[read]
    fn aggregate_call(&self) -> String {
        self.limit_text(0)
    }
    /// The limit to the count.
    #[read]
    fn count_call(&self) -> String {
        self.limit_text(1)
    }
    /// Sets another limit to the number of aggregates, or none.
    #[write(aggregate_call)]
    fn set_aggregate_call(&mut self, text: &str) -> Result<(), ArgError> {
        self.limits.get_or_insert_default()[AGG] = parse_limit("aggregate_call", text)?;
        Ok(())
    }
    /// Sets another limit to the count, or none.
    #[write(count_call)]
    fn set_count_call(&mut self, text: &str) -> Result<(), ArgError> {
        self.limits.get_or_insert_default()[COUNT] = parse_limit("count_call", text)?;
        Ok(())
    }
    /// Writes the counts to a file, `-` for standard output, in binary: 8 bytes per aggregate.
    #[write]
    fn write_file(&mut self, path: &str) -> Result<DeferredWork, ArgError> {
        Ok(self.write_counts("write_file", path, Snapshot::packed))
    }
    /// Writes the counts to a file, `-` for standard output, as text: a line per aggregate.
    #[write]
    fn write_text_file(&mut self, path: &str) -> Result<DeferredWork, ArgError> {
        Ok(self.write_counts("write_text_file", path, Snapshot::text))
    }
    /// The same as `write_text_file`.
    #[write]
    fn write_ascii_file(&mut self, path: &str) -> Result<DeferredWork, ArgError> {
        Ok(self.write_counts("write_ascii_file", path, Snapshot::text))
    }
    /// Writes the counts to a file as text, with aggregates as IP addresses.
    #[write]
    fn write_ip_file(&mut self, path: &str) -> Result<DeferredWork, ArgError> {
        Ok(self.write_counts("write_ip_file", path, Snapshot::ip_text))
    }
    /// Writes the shares of the total count to a file as text: a line per aggregate.
    #[write]
    fn write_pdf_file(&mut self, path: &str) -> Result<DeferredWork, ArgError> {
        Ok(self.write_counts("write_pdf_file", path, Snapshot::shares))
    }
    /// Freezes the counter, or unfreezes it.
    #[write(freeze)]
    fn set_freeze(&mut self, text: &str) -> Result<(), ArgError> {
        self.freeze = bool::from_arg(text.trim(), &Names::default())?;
        Ok(())
    }
    /// Starts or stops counting.
    #[write(active)]
    fn set_active(&mut self, text: &str) -> Result<(), ArgError> {
        self.active = bool::from_arg(text.trim(), &Names::default())?;
        Ok(())
    }
    /// Sets the text at the beginning of files.
    #[write(banner)]
    fn set_banner(&mut self, text: &str) -> Result<(), ArgError> {
        self.banner = match text {
            "" | "\n" => String::new(),
            line if line.ends_with('\n') => line.to_owned(),
            line => format!("{line}\n"),
        };
        Ok(())
    }
    /// Makes each count an aggregate, whose count is the number of aggregates that had it.
    #[write]
    fn reaggregate_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.counts.reaggregate();
        Ok(())
    }
    /// The same as `reaggregate_counts`.
    #[write(counts_pdf)]
    fn write_counts_pdf(&mut self, _: &str) -> Result<(), ArgError> {
        self.counts.reaggregate();
        Ok(())
    }
    /// Removes all counts.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.counts.clear();
        self.uncounted = 0;
        Ok(())
    }
    /// Stops counting, and asks the router to stop.
    #[write(stop, stops)]
    fn stop(&mut self, _: &str) -> Result<(), ArgError> {
        self.active = false;
        Ok(())
    }
}

/// Index of the limit to the number of aggregates.
const AGG: usize = 0;
/// Index of the limit to the count.
const COUNT: usize = 1;

impl AggregateCounterState {
    /// Returns work for the control thread: to sort a snapshot of the counts and write it to a
    /// file, while the worker continues.
    fn write_counts(
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
            let written = StandardOutput.write_all(&bytes).and_then(|()| StandardOutput.flush());
            written.map_err(|e| ArgError::of_file("-", &e))
        })
    }

    /// Takes over limits and banner of the configuration, unless an earlier router did.
    pub(super) fn begin(&mut self, element: &AggregateCounter) {
        self.files = element.files.clone();
        if self.limits.is_none() {
            (self.limits, self.banner) = (Some(element.limits.clone()), element.banner.clone());
        }
    }

    fn limit_text(&self, index: usize) -> String {
        let limit = self.limits.as_ref().and_then(|limits| limits[index].as_ref());
        limit.map_or_else(String::new, Limit::to_string)
    }

    /// Counts a packet, and checks the limits; returns whether it was counted.
    pub(super) fn update(
        &mut self,
        aggregate: u32,
        weight: u64,
        frozen: bool,
        element: &AggregateCounter,
        cx: &mut Cx,
    ) -> bool {
        let me = &element.name;
        let new = !self.counts.contains(aggregate);
        if self.active && new && weight > 0 && !(self.freeze || frozen) {
            self.check_limit(AGG, self.counts.len() as u64, me, cx);
        }
        if !self.active || new && (self.freeze || frozen) {
            return false;
        }
        if new && self.counts.len() >= element.capacity {
            self.uncounted += weight;
            return false;
        }
        self.counts.add(aggregate, weight);
        self.check_limit(COUNT, self.counts.total(), me, cx);
        true
    }

    /// Calls the handler of a limit once it is reached, and removes the limit. Handlers of the
    /// element itself take effect immediately.
    fn check_limit(&mut self, index: usize, value: u64, me: &str, cx: &mut Cx) {
        let Some(limits) = &mut self.limits else { return };
        let Some(limit) = limits[index].take_if(|limit| value >= limit.at) else { return };
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
