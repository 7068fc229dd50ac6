//! The system file: physical devices, tenants, and their virtual devices.

mod control;
mod migration;
mod parse;
mod process;
mod section;

use crate::sandbox::Protection;
use castanet_lang::{Diagnostics, FileId, SourceMap, Span};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A value of the system file, and its place there.
#[derive(Clone, Debug)]
pub struct Entry<T> {
    /// The value.
    pub value: T,
    /// Its text.
    pub span: Span,
}

/// A system file.
#[derive(Debug, Default)]
pub struct System {
    /// The physical devices, by name.
    pub devices: Vec<PhysicalDevice>,
    /// The tenants, by name.
    pub tenants: Vec<Tenant>,
    /// The folder in which configurations that are installed outlive the process, if there is one; relative
    /// to the folder of the system file.
    pub store: Option<Entry<PathBuf>>,
    /// How tenants move to other instances and come from them, if they may.
    pub migration: Option<Migration>,
}

/// How tenants move to other instances and come from them.
#[derive(Clone, Debug)]
pub struct Migration {
    /// The address at which other instances hand tenants over, if they may come.
    pub listen: Option<Entry<SocketAddr>>,
    /// The file of the key that all these instances have; relative to the folder of the system file.
    pub key: Entry<PathBuf>,
}

/// Index of a physical device in a system.
pub type DeviceIndex = usize;

/// A physical device, a table `device.NAME`.
#[derive(Debug)]
pub struct PhysicalDevice {
    /// Its name in the system file.
    pub name: String,
    /// Its table.
    pub span: Span,
    /// The network interface; the name, if the file gives none.
    pub interface: String,
    /// `METHOD` of `FromDevice` and `ToDevice`, if the file gives one.
    pub method: Option<String>,
    /// Its Ethernet address; that of the interface, if the file gives none.
    pub mac: Option<String>,
    /// The address of this end of tunnels, with the length of its prefix.
    pub address: Option<(Ipv4Addr, u8)>,
    /// The router to ends of tunnels that are not in the network of `address`.
    pub gateway: Option<Ipv4Addr>,
    /// Maximum length of a packet on the wire, in bytes.
    pub mtu: u32,
    /// Whether its address, gateway and MTU are those of the file, or defaults, and not in the place of wrong values.
    pub is_understood: bool,
}

impl PhysicalDevice {
    /// Whether an address is in the network of the device.
    pub fn is_on_link(&self, address: Ipv4Addr) -> bool {
        let Some((own, length)) = self.address else { return false };
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        (own.to_bits() ^ address.to_bits()) & mask == 0
    }

    /// Its Ethernet address, as arguments of elements name it.
    pub fn mac_argument(&self) -> String {
        self.mac.clone().unwrap_or_else(|| format!("{}:eth", self.interface))
    }
}

/// A tenant, a table `tenant.NAME`.
#[derive(Debug)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its table.
    pub span: Span,
    /// Its configuration; only a tenant on standby may have none.
    pub file: Option<Entry<PathBuf>>,
    /// Whether it runs nothing until it comes from another instance, or a configuration is installed.
    pub standby: bool,
    /// Values of variables of its configuration.
    pub variables: Vec<(String, Entry<String>)>,
    /// Classes of elements that reach beyond the tenant and are allowed all the same.
    pub allow: Vec<Entry<String>>,
    /// Its part of the processor, if the file says something about it.
    pub cpu: Option<Entry<Cpu>>,
    /// The limits of its memory, if the file says something about it.
    pub memory: Option<Entry<Memory>>,
    /// Its virtual devices.
    pub devices: Vec<VirtualDevice>,
    /// The names of others, whose tables are wrong.
    pub wrong_devices: Vec<String>,
    /// Its process, if it has one of its own.
    pub process: Option<Entry<OwnProcess>>,
    /// Its control socket, if it has one.
    pub control: Option<Entry<TenantControl>>,
}

impl Tenant {
    /// Its `isolation`, as the system file writes it.
    pub fn isolation(&self) -> &'static str {
        if self.process.is_some() { "process" } else { "in-process" }
    }
}

/// A tenant's control socket, and the quotas of its clients.
#[derive(Clone, Debug)]
pub struct TenantControl {
    /// The socket; relative to the folder of the system file.
    pub socket: Entry<PathBuf>,
    /// The group whose members may connect, beside the coordinator's user: a name or a number.
    pub group: Option<Entry<String>>,
    /// The quotas of its clients.
    pub quotas: ControlQuotas,
}

/// The quotas of the clients of a tenant's control socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlQuotas {
    /// Configurations that may be installed in a minute.
    pub installs_per_minute: u32,
    /// Elements that a configuration may have, without those of the virtual devices.
    pub elements: u32,
    /// Bytes that the text of a configuration may have.
    pub text: u64,
    /// Commands that are executed in a second.
    pub commands_per_second: u32,
}

/// A tenant's process of its own.
#[derive(Clone, Debug)]
pub struct OwnProcess {
    /// Bytes of memory that it may use.
    pub memory: Option<u64>,
    /// Protections without which it must not run.
    pub require: Vec<Protection>,
    /// The longest time without progress.
    pub patience: Duration,
}

/// A tenant's part of the processor, in the words of `CPUAccount`.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// The share that the tenant has in any case.
    pub guarantee: Option<String>,
    /// The share that it never exceeds.
    pub limit: Option<String>,
    /// The longest delay that others may cause.
    pub delay: Option<String>,
}

/// The limits of a tenant's memory; the first two in the words of `MemoryAccount`.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Bytes that its state takes on the heap at most.
    pub heap: Option<String>,
    /// Packets that its elements keep at most.
    pub packets: Option<u32>,
    /// Bytes that a process of its own uses at most.
    pub process: Option<Entry<u64>>,
}

/// A virtual device, a table `tenant.NAME.device.NAME`.
#[derive(Debug)]
pub struct VirtualDevice {
    /// The tenant's name of it.
    pub name: String,
    /// Its table.
    pub span: Span,
    /// The physical device by which it reaches the wire.
    pub on: DeviceIndex,
    /// How it does so.
    pub transport: Transport,
    /// Maximum number of packets that wait for the tenant.
    pub queue: u32,
    /// Maximum length of a packet that the tenant sends, in bytes.
    pub mtu: u32,
    /// The bandwidth of what comes to the tenant, if it is limited.
    pub bandwidth_in: Option<Entry<String>>,
    /// The bandwidth of what the tenant sends, if it is limited.
    pub bandwidth_out: Option<Entry<String>>,
}

/// How a virtual device reaches the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// By VXLAN (RFC 7348), to the end `remote` and its UDP port.
    Vxlan {
        /// Network identifier.
        vni: u32,
        /// The other end.
        remote: Ipv4Addr,
        /// UDP port of both ends.
        port: u16,
    },
    /// By Geneve (RFC 8926), to the end `remote` and its UDP port.
    Geneve {
        /// Network identifier.
        vni: u32,
        /// The other end.
        remote: Ipv4Addr,
        /// UDP port of both ends.
        port: u16,
    },
    /// By GRE (RFC 2784) with Ethernet frames inside.
    Gre {
        /// Key (RFC 2890), if there is one.
        key: Option<u32>,
        /// The other end.
        remote: Ipv4Addr,
    },
    /// By a VLAN tag.
    Vlan(u16),
    /// Untagged, by the IPv4 addresses that are the tenant's on the wire.
    Addresses(Vec<Ipv4Addr>),
    /// All frames of the physical device.
    Whole,
}

impl Transport {
    /// Length of the headers before the tenant's packets that the physical device's MTU counts, in
    /// bytes.
    fn overhead(&self) -> u32 {
        const IP: u32 = 20;
        const UDP: u32 = 8;
        const ETHERNET: u32 = 14;
        match self {
            Transport::Vxlan { .. } | Transport::Geneve { .. } => IP + UDP + 8 + ETHERNET,
            Transport::Gre { key, .. } => IP + if key.is_some() { 8 } else { 4 } + ETHERNET,
            Transport::Vlan(_) | Transport::Addresses(_) | Transport::Whole => 0,
        }
    }

    /// The other end of a tunnel.
    pub fn remote(&self) -> Option<Ipv4Addr> {
        match self {
            Transport::Vxlan { remote, .. }
            | Transport::Geneve { remote, .. }
            | Transport::Gre { remote, .. } => Some(*remote),
            _ => None,
        }
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Transport::Vxlan { vni, remote, port } => write!(f, "vxlan {vni} {remote}:{port}"),
            Transport::Geneve { vni, remote, port } => write!(f, "geneve {vni} {remote}:{port}"),
            Transport::Gre { key: Some(key), remote } => write!(f, "gre {key} {remote}"),
            Transport::Gre { key: None, remote } => write!(f, "gre {remote}"),
            Transport::Vlan(id) => write!(f, "vlan {id}"),
            Transport::Addresses(all) => {
                let all: Vec<String> = all.iter().map(Ipv4Addr::to_string).collect();
                write!(f, "address {}", all.join(" "))
            }
            Transport::Whole => f.write_str("device"),
        }
    }
}

impl System {
    /// Parses the system file with this text among the sources; all errors are in `found`.
    pub fn parse(sources: &SourceMap, file: FileId, found: &mut Diagnostics) -> System {
        let folder = Path::new(sources.name(file)).parent().unwrap_or(Path::new(""));
        parse::parse(&sources.text(file), (file, folder), found)
    }

    /// The physical device of a virtual one.
    pub fn device_of(&self, device: &VirtualDevice) -> &PhysicalDevice {
        &self.devices[device.on]
    }

    /// All virtual devices, each behind its tenant.
    pub fn virtual_devices(&self) -> impl Iterator<Item = (&Tenant, &VirtualDevice)> {
        self.tenants.iter().flat_map(|it| it.devices.iter().map(move |device| (it, device)))
    }
}
