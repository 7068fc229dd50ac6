//! Makes the graph of all tenants and of the devices that they share.

mod physical;
mod process;
mod tunnels;

pub use process::{ProcessGraph, process_element};

use crate::system::{Cpu, Entry, System, Tenant, VirtualDevice};
use crate::validity::{Check, DeviceEnd, Direction, device_of};
use castanet_element::class::Library;
use castanet_lang::{Connection, Diagnostics, FlatGraph, Port, Span, args};
use std::sync::Arc;

/// The graph of a system.
#[derive(Debug, Default)]
pub struct MasterGraph {
    /// The graph.
    pub graph: FlatGraph,
    /// By tenant: its number of elements.
    pub elements: Vec<usize>,
    /// The graphs of tenants with a process of their own, in the order of tenants.
    pub processes: Vec<ProcessGraph>,
}

/// The name of the account of a tenant's processor time.
pub fn account_of(tenant: &str) -> String {
    format!("{tenant}_account")
}

/// A graph that grows.
pub(crate) struct Builder {
    pub(crate) graph: FlatGraph,
}

/// The ends of a virtual device in the master graph.
pub(crate) struct Ends {
    /// The element that takes the tenant's frames from the demultiplexer.
    pub(crate) receive: Option<usize>,
    /// The elements that pass the tenant's frames on to the multiplexer.
    pub(crate) send: Vec<usize>,
}

impl Builder {
    /// Adds an element; returns its index.
    pub(crate) fn add(&mut self, name: &str, class: &str, config: &str, span: Span) -> usize {
        self.graph.add(name, class, config, span);
        self.graph.elements.len() - 1
    }

    /// Connects output `output` of one element to input `input` of another.
    pub(crate) fn connect(&mut self, from: (usize, usize), to: (usize, usize), span: Span) {
        let port = |(element, port)| Port { element, port };
        let age = self.graph.connections.len();
        self.graph.connections.push(Connection { from: port(from), to: port(to), span, age });
    }

    /// Adds an element behind output 0 of another; returns its index.
    pub(crate) fn append(
        &mut self,
        from: usize,
        (name, class, config): (&str, &str, &str),
        span: Span,
    ) -> usize {
        let element = self.add(name, class, config, span);
        self.connect((from, 0), (element, 0), span);
        element
    }

    /// Connects an output to the `TenantDrop` of this name, and adds that if it is not there. The last part of the
    /// name is its reason.
    pub(crate) fn drop_at(&mut self, from: (usize, usize), name: &str, span: Span) {
        let reason = name.rsplit('/').next().unwrap_or_default();
        let there = self.graph.find(name);
        let element = there.unwrap_or_else(|| self.add(name, "TenantDrop", reason, span));
        self.connect(from, (element, 0), span);
    }
}

/// The graph of a tenant.
#[derive(Clone, Debug, Default)]
pub struct TenantGraph {
    /// The graph.
    pub graph: Arc<FlatGraph>,
    /// Whether the tenant's account is held.
    pub is_held: bool,
}

/// Makes the graph of a system whose tenants have these graphs, in the same order; all errors are
/// in `found`.
pub fn master_graph(
    system: &System,
    tenants: &[TenantGraph],
    library: &Library,
    found: &mut Diagnostics,
) -> MasterGraph {
    let mut builder = Builder { graph: FlatGraph::default() };
    let mut elements = Vec::new();
    let mut ends: Vec<Vec<Ends>> = Vec::new();
    let mut processes = Vec::new();
    for (tenant, it) in system.tenants.iter().zip(tenants) {
        let graph = &it.graph;
        let found_ends =
            Check { tenant, graph, library, promised: promised(system, tenant), found }.run();
        elements.push(graph.elements.len());
        // A process without elements would have nothing to do.
        let process = tenant.process.as_ref().filter(|_| !graph.elements.is_empty());
        let found_ends = match process {
            None => builder.add_tenant(tenant, graph, &found_ends),
            Some(it) => {
                let inner = process::inner_graph(tenant, graph, &found_ends);
                let ends = builder.add_process(tenant, it, &inner, &found_ends);
                processes.push(ProcessGraph { tenant: tenant.name.clone(), graph: inner });
                ends
            }
        };
        let limited = tenant.devices.iter().zip(found_ends);
        let limited = limited.map(|(device, ends)| {
            let on = &system.devices[device.on].name;
            builder.limit_bandwidth(device, &format!("{on}/{}/{}", tenant.name, device.name), ends)
        });
        ends.push(limited.collect());
        // Without elements there is nothing to account for.
        if !graph.elements.is_empty() {
            builder.add_cpu_account(tenant, it.is_held);
            builder.add_memory_account(tenant);
        }
    }
    for device in 0..system.devices.len() {
        physical::add(&mut builder, system, device, &ends);
    }
    let mut graph = builder.graph;
    graph.connections.sort_by_key(|it| (it.to, it.from));
    MasterGraph { graph, elements, processes }
}

/// The first other tenant that was promised a delay, with that.
fn promised<'a>(system: &'a System, tenant: &Tenant) -> Option<(&'a str, &'a str)> {
    let others = system.tenants.iter().filter(|other| other.name != tenant.name);
    let delay = |it: &'a Tenant| Some((it.name.as_str(), it.cpu.as_ref()?.value.delay.as_deref()?));
    others.filter_map(delay).next()
}

impl Builder {
    /// Adds the graph of a tenant, with ends of virtual devices in place of its device elements;
    /// returns the ends of each of its devices.
    fn add_tenant(
        &mut self,
        tenant: &Tenant,
        graph: &FlatGraph,
        found_ends: &[DeviceEnd],
    ) -> Vec<Ends> {
        let first = self.graph.elements.len();
        for it in &graph.elements {
            let mut it = it.clone();
            it.name = format!("{}/{}", tenant.name, it.name);
            self.graph.elements.push(it);
        }
        for connection in &graph.connections {
            let mut connection = *connection;
            connection.from.element += first;
            connection.to.element += first;
            self.graph.connections.push(connection);
        }
        for requirement in &graph.requirements {
            if !self.graph.requirements.contains(requirement) {
                self.graph.requirements.push(requirement.clone());
            }
        }
        self.graph.sealed.push(tenant.name.clone());
        let mut ends: Vec<Ends> =
            tenant.devices.iter().map(|_| Ends { receive: None, send: Vec::new() }).collect();
        for end in found_ends {
            let device = device_of(tenant, end);
            let name = args::quote_if_needed(&device.name);
            let it = &mut self.graph.elements[first + end.element];
            it.config_span = None;
            match end.direction {
                Direction::Receive => {
                    it.class = "FromVirtualDevice".to_owned();
                    it.config = format!("{name}, CAPACITY {}", device.queue);
                    ends[end.device].receive = Some(first + end.element);
                }
                Direction::Send => {
                    it.class = "ToVirtualDevice".to_owned();
                    it.config = format!("{name}, MTU {}", device.mtu);
                    ends[end.device].send.push(first + end.element);
                }
            }
        }
        ends
    }

    /// Adds the elements that limit the bandwidth of a virtual device, whose names begin with `prefix`;
    /// returns the ends with these before and behind.
    fn limit_bandwidth(&mut self, device: &VirtualDevice, prefix: &str, mut ends: Ends) -> Ends {
        let mut limit = |direction: &str, bandwidth: &Entry<String>| {
            let name = format!("{prefix}/bandwidth_{direction}");
            let config = format!("{}, BURST_DURATION 20ms", bandwidth.value);
            let limit = self.add(&name, "BandwidthRatedSplitter", &config, bandwidth.span);
            self.drop_at((limit, 1), &format!("{prefix}/over_{direction}"), bandwidth.span);
            limit
        };
        let before = device.bandwidth_in.as_ref().filter(|_| ends.receive.is_some());
        let before = before.map(|bandwidth| limit("in", bandwidth));
        let behind = device.bandwidth_out.as_ref().filter(|_| !ends.send.is_empty());
        let behind = behind.map(|bandwidth| limit("out", bandwidth));
        if let (Some(before), Some(receive)) = (before, ends.receive) {
            self.connect((before, 0), (receive, 0), device.span);
            ends.receive = Some(before);
        }
        if let Some(behind) = behind {
            let senders = std::mem::replace(&mut ends.send, vec![behind]);
            senders.iter().for_each(|&it| self.connect((it, 0), (behind, 0), device.span));
        }
        ends
    }

    /// Adds the account of a tenant's processor time: one without guarantee and limit if the file says
    /// nothing about it.
    fn add_cpu_account(&mut self, tenant: &Tenant, is_held: bool) {
        let none = Entry { value: Cpu::default(), span: tenant.span };
        let cpu = tenant.cpu.as_ref().unwrap_or(&none);
        let values = &cpu.value;
        let keywords =
            [("GUARANTEE", &values.guarantee), ("LIMIT", &values.limit), ("DELAY", &values.delay)];
        let given = keywords.into_iter().filter_map(|(keyword, value)| {
            value.as_ref().map(|value| format!("{keyword} {value}"))
        });
        let held = is_held.then(|| "HELD true".to_owned());
        let config = args::join(std::iter::once(tenant.name.clone()).chain(given).chain(held));
        self.add(&account_of(&tenant.name), "CPUAccount", &config, cpu.span);
    }

    /// Adds the limits of a tenant's memory.
    fn add_memory_account(&mut self, tenant: &Tenant) {
        // The memory of a process is limited as a whole.
        let Some(memory) = tenant.memory.as_ref().filter(|_| tenant.process.is_none()) else {
            return;
        };
        let heap = memory.value.heap.as_ref().map(|heap| format!("HEAP {heap}"));
        let packets = memory.value.packets.map(|packets| format!("PACKETS {packets}"));
        let config = args::join([tenant.name.clone()].into_iter().chain(heap).chain(packets));
        self.add(&format!("{}_memory", tenant.name), "MemoryAccount", &config, memory.span);
    }
}
