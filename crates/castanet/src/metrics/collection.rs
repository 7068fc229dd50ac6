//! Collects the values of all metrics from a router, on the control thread.

use super::family::{Family, Label, Number};
use super::names::*;
use crate::observe::snapshot::ElementTotals;
use castanet_element::error::ArgError;
use castanet_element::fate::FateKind;
use castanet_element::handler::Metric;
use castanet_packet::Pool;
use castanet_runtime::router::{ElementObservation, MetricValue, Router};
use std::collections::HashMap;
use std::time::Instant;

/// How often the configuration's file was to be read again.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reloads {
    succeeded: u64,
    failed: u64,
    /// Whether the last one failed.
    has_failed: bool,
}

impl Reloads {
    /// Counts a reload.
    pub(crate) fn record(&mut self, succeeded: bool) {
        match succeeded {
            true => self.succeeded += 1,
            false => self.failed += 1,
        }
        self.has_failed = !succeeded;
    }
}

/// Values that the instance knows, and its router does not.
pub(crate) struct InstanceCounts<'a> {
    pub(crate) name: &'a str,
    pub(crate) configuration: &'a str,
    /// When the router began to run: seconds since 1970.
    pub(crate) started: f64,
    /// Seconds for which it has run.
    pub(crate) uptime: f64,
    pub(crate) reloads: Reloads,
}

/// The labels of the elements of one configuration.
pub(super) struct ElementLabels {
    /// How often the configuration was replaced before this one.
    replaced: u64,
    elements: Vec<Vec<Label>>,
    devices: Vec<Option<String>>,
}

impl ElementLabels {
    pub(super) fn of(router: &mut Router) -> ElementLabels {
        let label = |text: &str| text.to_owned().into();
        let elements =
            router.graph().elements.iter().map(|it| {
                vec![("element", label(&it.name)), ("class", it.class.spec.class.into())]
            });
        let elements = elements.collect();
        let mut devices = router.device_names();
        for (it, device) in devices.iter_mut().enumerate().filter(|(_, device)| device.is_none()) {
            let handler = format!("{}.dev_name", router.graph().elements[it].name);
            if router.has_handler(&handler, false) {
                *device = router.read(&handler).ok().filter(|name| !name.is_empty());
            }
        }
        ElementLabels { replaced: router.replaced(), elements, devices }
    }

    /// Whether they are those of the configuration that runs.
    pub(super) fn is_current(&self, router: &Router) -> bool {
        self.replaced == router.replaced()
    }

    /// The labels of a value of an element; metrics of devices have the device, too.
    fn of_value(&self, element: usize, metric: &Metric) -> Vec<Label> {
        let mut labels = self.elements[element].clone();
        if let (true, Some(device)) = (is_of_device(metric), &self.devices[element]) {
            labels.push(("device", device.clone().into()));
        }
        labels
    }
}

/// Whether the values of a metric have the label `device`.
pub(super) fn is_of_device(metric: &Metric) -> bool {
    metric.name.starts_with("device_")
}

/// The families in the order in which they are shown.
struct FamilyList {
    families: Vec<Family>,
    places: HashMap<&'static str, usize>,
}

impl FamilyList {
    fn new() -> FamilyList {
        let own = OF_INSTANCE.iter().chain(OF_ELEMENTS);
        let mut list = FamilyList { families: Vec::new(), places: HashMap::new() };
        own.for_each(|metric| _ = list.of(metric));
        list
    }

    /// The family of a metric.
    fn of(&mut self, metric: &'static Metric) -> &mut Family {
        let place = *self.places.entry(metric.name).or_insert(self.families.len());
        if place == self.families.len() {
            self.families.push(Family::new(metric));
        }
        &mut self.families[place]
    }

    /// Adds a value whose only label, if there is one, is that of the metric.
    fn add(&mut self, metric: &'static Metric, label: impl ToString, value: impl Into<Number>) {
        let labels = metric.label.map(|name| (name, label.to_string().into()));
        self.of(metric).add(labels.into_iter().collect(), value);
    }
}

/// All families with their values.
///
/// # Errors
/// A worker is gone or stuck.
pub(super) fn collect(
    router: &mut Router,
    instance: &InstanceCounts<'_>,
    (labels, processes): (&ElementLabels, &[ElementTotals]),
    collections: u64,
) -> Result<Vec<Family>, ArgError> {
    let began = Instant::now();
    let mut list = FamilyList::new();
    let observation = router.observe(None)?;
    for (worker, time) in observation.workers.iter().enumerate() {
        list.add(&WORKER_CPU, worker, time.as_secs_f64());
    }
    for (worker, bursts) in router.panics()?.into_iter().enumerate() {
        list.add(&WORKER_LOST_BURSTS, worker, bursts);
    }
    add_accounts(&mut list, router)?;
    for (it, seen) in observation.elements.iter().enumerate() {
        add_element(&mut list, router, labels, it, seen);
    }
    for MetricValue { element, metric, value } in router.metrics()? {
        list.of(metric).add_value(labels.of_value(element, metric), value);
    }
    processes.iter().for_each(|it| add_process_element(&mut list, it));
    add_instance(&mut list, router, instance);
    add_pool(&mut list, "devices", router.pool());
    add_pool(&mut list, "storage", router.storage());
    list.add(&COLLECTIONS, "", collections);
    list.add(&COLLECTION_TIME, "", began.elapsed().as_secs_f64());
    let limited: u64 = list.families.iter().map(|family| family.limited).sum();
    list.add(&SERIES_LIMITED, "", limited);
    Ok(list.families)
}

/// Adds the accounts of processor time and memory, if there are any.
fn add_accounts(list: &mut FamilyList, router: &mut Router) -> Result<(), ArgError> {
    for (plan, used) in router.accounts()? {
        let account = if plan.name.is_empty() { "-" } else { &plan.name };
        list.add(&ACCOUNT_CPU, account, used.cpu_time.as_secs_f64());
        list.add(&ACCOUNT_DEVICE_CPU, account, used.device_time.as_secs_f64());
        list.add(&ACCOUNT_LIMITED, account, used.limited_time.as_secs_f64());
        list.add(&ACCOUNT_OVERRUNS, account, used.overruns);
        list.add(&ACCOUNT_GUARANTEE, account, plan.share.guarantee);
        let Some(memory) = &plan.memory else { continue };
        list.add(&ACCOUNT_HEAP, account, memory.heap_bytes() as u64);
        list.add(&ACCOUNT_PACKETS, account, memory.packets() as u64);
        let limit = memory.heap_limit();
        limit.iter().for_each(|&it| list.add(&ACCOUNT_HEAP_LIMIT, account, it as u64));
        let limit = memory.packet_limit();
        limit.iter().for_each(|&it| list.add(&ACCOUNT_PACKET_LIMIT, account, it as u64));
    }
    Ok(())
}

/// Adds the packets, the declared reasons to drop and the queue of an element.
fn add_element(
    list: &mut FamilyList,
    router: &Router,
    labels: &ElementLabels,
    it: usize,
    seen: &ElementObservation,
) {
    let own = labels.of_value(it, &ELEMENT_PACKETS);
    list.of(&ELEMENT_PACKETS).add(own.clone(), seen.counters.input.max(seen.counters.made));
    // The element's own reasons, and outputs that nothing is connected to, have a series from the start, so that the first drop is an increase;
    // reasons that every element has get one at the first drop.
    let element = &router.graph().elements[it];
    let reasons = element.class.fates.iter().filter(|fate| fate.kind == FateKind::Drop);
    let open = element.class.outputs().skip(element.outputs.len());
    let declared = reasons.chain(open).map(|fate| (fate.name.to_owned(), 0));
    for (reason, count) in declared.chain(router.losses(it, &seen.counters)) {
        let reason = ("reason", reason.into());
        list.of(&ELEMENT_DROPS).add([&own[..], &[reason]].concat(), count);
    }
    if let Some(queue) = seen.queue {
        list.of(&QUEUE_PACKETS).add(own.clone(), queue.held);
        if let Some(capacity) = queue.capacity {
            list.of(&QUEUE_CAPACITY).add(own, capacity);
        }
    }
}

/// Adds the packets, the drops and the queue of an element in the process of a tenant.
fn add_process_element(list: &mut FamilyList, it: &ElementTotals) {
    let label = |text: &str| text.to_owned().into();
    let own = vec![("element", label(&it.name)), ("class", label(&it.class))];
    list.of(&ELEMENT_PACKETS).add(own.clone(), it.packets);
    for (reason, &count) in &it.drops {
        list.of(&ELEMENT_DROPS).add([&own[..], &[("reason", label(reason))]].concat(), count);
    }
    if let Some(queue) = it.queue {
        list.of(&QUEUE_PACKETS).add(own.clone(), queue.length);
        if let Some(capacity) = queue.capacity {
            list.of(&QUEUE_CAPACITY).add(own, capacity);
        }
    }
}

fn add_instance(list: &mut FamilyList, router: &Router, instance: &InstanceCounts<'_>) {
    list.add(&BUILD_INFO, crate::program::version(), 1_u64);
    let labels = [("name", instance.name), ("configuration", instance.configuration)];
    let labels = labels.map(|(name, value)| (name, value.to_owned().into()));
    list.of(&INSTANCE_INFO).add(labels.into(), 1_u64);
    list.add(&START_TIME, "", instance.started);
    list.add(&UPTIME, "", instance.uptime);
    list.add(&ELEMENTS, "", router.graph().elements.len());
    list.add(&HOT_SWAPS, "", router.replaced());
    list.add(&RELOADS, "succeeded", instance.reloads.succeeded);
    list.add(&RELOADS, "failed", instance.reloads.failed);
    list.add(&LAST_RELOAD, "", u64::from(!instance.reloads.has_failed));
}

fn add_pool(list: &mut FamilyList, name: &str, pool: &Pool) {
    let stats = pool.stats();
    list.add(&POOL_FRAMES, name, stats.frames);
    list.add(&POOL_USED, name, stats.in_use);
    list.add(&POOL_HIGHWATER, name, stats.high_water);
    list.add(&POOL_FAILURES, name, stats.failures);
    list.add(&POOL_OVERSIZED, name, stats.oversized);
}
