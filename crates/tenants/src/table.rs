//! The devices and tenants of a system, as a table and for JSON.

use crate::system::System;
use serde::Serialize;

/// The devices and tenants of a system.
#[derive(Serialize, Debug)]
pub struct SystemTable {
    /// A row for each virtual device.
    pub devices: Vec<DeviceRow>,
    /// A row for each tenant.
    pub tenants: Vec<TenantRow>,
}

/// A virtual device.
#[derive(Serialize, Debug)]
pub struct DeviceRow {
    /// The tenant.
    pub tenant: String,
    /// The tenant's name of the device.
    pub device: String,
    /// How it reaches the wire.
    pub transport: String,
    /// The physical device.
    pub on: String,
    /// The network interface.
    pub interface: String,
    /// Maximum length of a packet that the tenant sends, in bytes.
    pub mtu: u32,
    /// Maximum number of packets that wait for the tenant.
    pub queue: u32,
}

/// A tenant.
#[derive(Serialize, Debug)]
pub struct TenantRow {
    /// Its name.
    pub tenant: String,
    /// Its configuration.
    pub file: String,
    /// Whether it runs nothing until it comes from another instance, or a configuration is installed.
    pub standby: bool,
    /// Number of its elements.
    pub elements: usize,
    /// Whether it has a process of its own: `process`, else `in-process`.
    pub isolation: &'static str,
    /// Bytes of memory that a process of its own may use.
    pub process_memory: Option<u64>,
    /// The part of each worker's processor that it has in any case, as the file says it.
    pub guarantee: Option<String>,
    /// The part that it never exceeds.
    pub limit: Option<String>,
    /// The longest time for which a run of another tenant keeps it waiting.
    pub delay: Option<String>,
    /// Bytes that its state takes on the heap at most, as the file says it.
    pub heap: Option<String>,
    /// Packets that its elements keep at most.
    pub packets: Option<u32>,
    /// Classes that reach beyond it and are allowed.
    pub allow: Vec<String>,
}

impl SystemTable {
    /// The table of a system whose tenants have so many elements.
    pub fn new(system: &System, elements: &[usize]) -> SystemTable {
        let devices = system.virtual_devices().map(|(tenant, it)| {
            let on = system.device_of(it);
            DeviceRow {
                tenant: tenant.name.clone(),
                device: it.name.clone(),
                transport: it.transport.to_string(),
                on: on.name.clone(),
                interface: on.interface.clone(),
                mtu: it.mtu,
                queue: it.queue,
            }
        });
        let tenants = system.tenants.iter().zip(elements).map(|(it, &elements)| {
            let cpu = it.cpu.as_ref().map(|cpu| cpu.value.clone()).unwrap_or_default();
            let memory = it.memory.as_ref().map(|it| it.value.clone()).unwrap_or_default();
            TenantRow {
                tenant: it.name.clone(),
                file: it
                    .file
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), |file| file.value.display().to_string()),
                standby: it.standby,
                elements,
                isolation: it.isolation(),
                process_memory: it.process.as_ref().and_then(|it| it.value.memory),
                guarantee: cpu.guarantee,
                limit: cpu.limit,
                delay: cpu.delay,
                heap: memory.heap,
                packets: memory.packets,
                allow: it.allow.iter().map(|it| it.value.clone()).collect(),
            }
        });
        SystemTable { devices: devices.collect(), tenants: tenants.collect() }
    }

    /// The table for people.
    pub fn text(&self) -> String {
        let mut rows = vec![
            ["tenant", "device", "reaches the wire by", "on", "mtu", "queue"].map(str::to_owned),
        ];
        rows.extend(self.devices.iter().map(|it| {
            let on = format!("{} ({})", it.on, it.interface);
            let (mtu, queue) = (it.mtu.to_string(), it.queue.to_string());
            [it.tenant.clone(), it.device.clone(), it.transport.clone(), on, mtu, queue]
        }));
        let mut text = aligned(&rows);
        text.push('\n');
        let heading = [
            "tenant",
            "configuration",
            "elements",
            "isolation",
            "guarantee",
            "limit",
            "delay",
            "heap",
            "packets",
            "process",
            "allowed",
        ];
        let mut rows = vec![heading.map(str::to_owned)];
        rows.extend(self.tenants.iter().map(|it| {
            let [guarantee, limit, delay, heap] = [&it.guarantee, &it.limit, &it.delay, &it.heap]
                .map(|value| value.clone().unwrap_or("-".to_owned()));
            let packets = it.packets.map_or("-".to_owned(), |packets| packets.to_string());
            let allowed = if it.allow.is_empty() { "-".into() } else { it.allow.join(" ") };
            let standby = if it.standby { " (standby)" } else { "" };
            let (tenant, file) = (it.tenant.clone(), format!("{}{standby}", it.file));
            let process = it.process_memory.map_or("-".into(), |bytes| format!("{}M", bytes >> 20));
            let (elements, isolation) = (it.elements.to_string(), it.isolation.to_owned());
            [
                tenant, file, elements, isolation, guarantee, limit, delay, heap, packets, process,
                allowed,
            ]
        }));
        text + &aligned(&rows)
    }
}

/// Rows with aligned columns.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}
