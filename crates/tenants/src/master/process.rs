//! The two graphs of a tenant with a process of its own: slot channels in the place of its devices, and
//! in the place of its graph.

use super::{Builder, Ends};
use crate::sandbox::channel_name;
use crate::system::{Entry, OwnProcess, Tenant, VirtualDevice};
use crate::validity::{DeviceEnd, Direction, device_of};
use castanet_lang::{FlatGraph, Port, args};

/// Bytes of an Ethernet header with two VLAN tags.
const ETHERNET: u32 = 14 + 2 * 4;
/// The longest frames for which channels have room in any case, in bytes.
const SNAPLEN: u32 = 2048;
/// The most slots of a ring.
const MOST_SLOTS: u32 = 32768;

/// The element that stands for the process of a tenant.
pub fn process_element(tenant: &str) -> String {
    format!("{tenant}/process")
}

/// The graph of a tenant's process.
#[derive(Debug)]
pub struct ProcessGraph {
    /// Name of the tenant.
    pub tenant: String,
    /// The graph.
    pub graph: FlatGraph,
}

/// The graph of the tenant's process: the tenant's own, with slot channels in the place of devices.
pub(super) fn inner_graph(tenant: &Tenant, graph: &FlatGraph, ends: &[DeviceEnd]) -> FlatGraph {
    let mut graph = graph.clone();
    // A tenant may send by several elements, but a channel has one.
    let mut senders: Vec<Option<usize>> = tenant.devices.iter().map(|_| None).collect();
    for end in ends {
        let device = device_of(tenant, end);
        let name = args::quote_if_needed(&device.name);
        let channel = format!("{name}, CLIENT true, PASSED true");
        let it = &mut graph.elements[end.element];
        it.config_span = None;
        let span = it.span;
        if end.direction == Direction::Receive {
            (it.class, it.config) = ("FromSlots".to_owned(), channel);
            continue;
        }
        it.class = "ToVirtualDevice".to_owned();
        it.config = format!("{name}, MTU {}", device.mtu);
        let sender = *senders[end.device].get_or_insert_with(|| {
            graph.add(&format!("{}/to_slots", device.name), "ToSlots", &channel, span);
            graph.elements.len() - 1
        });
        let port = |element| Port { element, port: 0 };
        graph.connect(port(end.element), port(sender), span);
    }
    graph.connections.sort_by_key(|it| (it.to, it.from));
    graph
}

impl Builder {
    /// Adds the elements that stand in the place of a tenant's graph; returns the ends of each of its
    /// devices.
    pub(super) fn add_process(
        &mut self,
        tenant: &Tenant,
        process: &Entry<OwnProcess>,
        inner: &FlatGraph,
        found_ends: &[DeviceEnd],
    ) -> Vec<Ends> {
        self.graph.sealed.push(tenant.name.clone());
        let has = |device: usize, direction: Direction| {
            found_ends.iter().any(|end| end.device == device && end.direction == direction)
        };
        let mut ends = Vec::new();
        for (number, device) in tenant.devices.iter().enumerate() {
            let receive =
                has(number, Direction::Receive).then(|| self.add_receiver(tenant, device));
            let send = has(number, Direction::Send).then(|| self.add_sender(tenant, device));
            ends.push(Ends { receive, send: send.into_iter().collect() });
        }
        let used = tenant.devices.iter().zip(&ends);
        let used = used.filter(|(_, ends)| ends.receive.is_some() || !ends.send.is_empty());
        let channels: Vec<&str> = used.map(|(device, _)| device.name.as_str()).collect();
        let config = process_config(tenant, &process.value, &channels, inner);
        self.add(&process_element(&tenant.name), "TenantProcess", &config, process.span);
        ends
    }

    /// Adds the elements that pass frames of a device to the process; returns the first.
    fn add_receiver(&mut self, tenant: &Tenant, device: &VirtualDevice) -> usize {
        let (name, span) = (args::quote_if_needed(&device.name), device.span);
        let prefix = format!("{}/{}", tenant.name, device.name);
        let config = format!("{name}, CAPACITY {}", device.queue);
        let first = self.add(&format!("{prefix}/received"), "FromVirtualDevice", &config, span);
        let config = channel_config(tenant, device);
        self.append(first, (&format!("{prefix}/to_process"), "ToSlots", &config), span);
        first
    }

    /// Adds the elements that take frames of a device from the process; returns the last.
    fn add_sender(&mut self, tenant: &Tenant, device: &VirtualDevice) -> usize {
        let (name, span) = (args::quote_if_needed(&device.name), device.span);
        let prefix = format!("{}/{}", tenant.name, device.name);
        let config = channel_config(tenant, device);
        let first = self.add(&format!("{prefix}/from_process"), "FromSlots", &config, span);
        // The process is not trusted to have looked at lengths.
        let config = format!("{name}, MTU {}", device.mtu);
        self.append(first, (&format!("{prefix}/sent"), "ToVirtualDevice", &config), span)
    }
}

/// The arguments of this side of a device's channel.
fn channel_config(tenant: &Tenant, device: &VirtualDevice) -> String {
    let name = args::quote_if_needed(&channel_name(&tenant.name, &device.name));
    let slots = device.queue.next_power_of_two().clamp(2, MOST_SLOTS);
    let snaplen = (device.mtu + ETHERNET).max(SNAPLEN);
    format!("{name}, PASSED true, SLOTS {slots}, SNAPLEN {snaplen}")
}

/// The arguments of the element that runs the process.
fn process_config(
    tenant: &Tenant,
    process: &OwnProcess,
    channels: &[&str],
    inner: &FlatGraph,
) -> String {
    let cpu = tenant.cpu.as_ref().map(|cpu| &cpu.value);
    let words = |words: Vec<String>| (!words.is_empty()).then(|| words.join(" "));
    let channels = channels.iter().map(|it| args::quote_if_needed(it)).collect();
    let require = process.require.iter().map(ToString::to_string).collect();
    let keywords = [
        ("CHANNELS", words(channels)),
        ("MEMORY", process.memory.map(|bytes| bytes.to_string())),
        ("LIMIT", cpu.and_then(|cpu| cpu.limit.clone())),
        ("GUARANTEE", cpu.and_then(|cpu| cpu.guarantee.clone())),
        ("REQUIRE", words(require)),
        ("PATIENCE", Some(format!("{}ms", process.patience.as_millis()))),
        ("GRAPH", Some(args::quote(&castanet_lang::print::flat(inner)))),
    ];
    let given = keywords
        .into_iter()
        .filter_map(|(keyword, value)| value.map(|value| format!("{keyword} {value}")));
    args::join(std::iter::once(tenant.name.clone()).chain(given))
}
