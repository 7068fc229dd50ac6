//! Parses a system file.

use super::section::{Reader, Section, UnsupportedKey};
use super::{Cpu, Entry, Memory, PhysicalDevice, System, Tenant, Transport, VirtualDevice};
use crate::sandbox::MOST_CHANNELS;
use castanet_element::account::{CpuPart, HeapSize};
use castanet_element::args::Bandwidth;
use castanet_lang::{Diagnostic, Diagnostics, FileId, Span, nearest};
use castanet_wire::{Geneve, MacAddr, Vxlan};
use std::collections::{HashMap, HashSet};
use std::mem::discriminant;
use std::net::Ipv4Addr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const DEVICE_KEYS: &[&str] = &["interface", "method", "mac", "address", "gateway", "mtu"];
const TENANT_KEYS: &[&str] = &[
    "file",
    "variables",
    "allow",
    "cpu",
    "memory",
    "device",
    "isolation",
    "require",
    "patience",
    "control",
    "standby",
];
const CPU_KEYS: &[&str] = &["guarantee", "limit", "delay"];
const MEMORY_KEYS: &[&str] = &["heap", "packets", "process"];
/// Keys that say how a virtual device reaches the wire.
const TRANSPORT_KEYS: &[&str] = &["vxlan", "geneve", "gre", "vlan", "address", "device"];
const VIRTUAL_DEVICE_KEYS: &[&str] = &[
    "on",
    "queue",
    "mtu",
    "bandwidth_in",
    "bandwidth_out",
    "vxlan",
    "geneve",
    "gre",
    "vlan",
    "address",
    "device",
];

/// The least part of a processor, delay and heap of a tenant that are of use to it.
const LEAST_PART: CpuPart = CpuPart(0.0001);
const LEAST_DELAY: Duration = Duration::from_micros(1);
const LEAST_HEAP: u64 = 64 << 10;

/// The largest limit of kept packets.
const MAX_PACKETS: u32 = 1 << 30;

const UNSUPPORTED_TENANT_KEYS: &[UnsupportedKey] = &[
    UnsupportedKey { key: "frames", reason: "`memory = { packets = … }` limits them" },
    UnsupportedKey { key: "table_entries", reason: "`memory = { heap = … }` limits tables" },
];

/// Default MTU of a physical device.
const MTU: u32 = 1500;
/// Default length of the queue in front of a tenant.
const QUEUE: u32 = 1024;

/// Parses a system file in this folder; all errors are in `found`.
pub(super) fn parse(
    text: &str,
    (file, folder): (FileId, &Path),
    found: &mut Diagnostics,
) -> System {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { file, found };
    for error in errors {
        let span = reader.span(error.span().unwrap_or(text.len()..text.len()));
        reader.found.error(span, error.message().trim_end().to_owned());
    }
    let table = document.get_ref();
    let whole = reader.whole(table, text.len(), &["store", "migration", "device", "tenant"]);
    let store = reader.path(&whole, "store");
    let migration = reader.migration(&whole);
    let mut system = System { store, migration, ..System::default() };
    for (name, span, value) in reader.members(table, "device") {
        reader.check_name(&name, span);
        system.devices.extend(reader.device(name, value));
    }
    for (name, span, value) in reader.members(table, "tenant") {
        reader.check_name(&name, span);
        if system.devices.iter().any(|device| device.name == name) {
            let message = format!("a tenant and a device are both called `{name}`");
            reader.error(span, message, "rename one of them: their elements have these names");
        }
        system.tenants.extend(reader.tenant(name, value, &system.devices));
    }
    if system.tenants.is_empty() && !reader.found.has_errors() {
        let end = reader.span(text.len()..text.len());
        reader.error(end, "the system has no tenant", "write a table `[tenant.NAME]`");
    }
    reader.check_store(&system, folder);
    reader.check_interfaces(&system);
    reader.check_conflicts(&system);
    reader.check_tunnels(&system);
    reader.check_sockets(&system);
    system
}

impl Reader<'_> {
    /// Reports a name that cannot be that of a compound element.
    fn check_name(&mut self, name: &str, span: Span) {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !is_name || !name.chars().all(plain) {
            let message = format!("`{name}` is no name of an element");
            self.error(span, message, "use letters, digits and _, and begin with a letter");
        }
    }

    fn device(&mut self, name: String, value: &Spanned<DeValue<'_>>) -> Option<PhysicalDevice> {
        let it = self.section(format!("device `{name}`"), value, DEVICE_KEYS, &[])?;
        let interface = self.text(&it, "interface");
        let address = self.text_by(&it, "address", "an address such as \"10.0.0.1/24\"", prefix);
        let gateway = self.parsed::<Ipv4Addr>(&it, "gateway", "an address such as \"10.0.0.254\"");
        let wants = "an Ethernet address such as \"02:00:00:00:00:01\"";
        let mac = self.text_by(&it, "mac", wants, |text| {
            text.parse::<MacAddr>().ok().map(|mac| (mac, text.to_owned()))
        });
        if let Some(Entry { value: (address, text), span }) = &mac
            && (address.is_multicast() || address.is_zero())
        {
            let message = format!("`mac` of {}: {text} is the address of no device", it.title);
            let help = "write one such as \"02:00:00:00:00:01\": its first byte is even";
            self.error(*span, message, help);
        }
        let mtu = self.number(&it, "mtu", 68..=65535);
        let is_read = |key, is_there| is_there || !Reader::has(&it, key);
        let has_address = is_read("address", address.is_some());
        let device = PhysicalDevice {
            interface: interface.map_or_else(|| name.clone(), |it| it.value),
            method: self.text(&it, "method").map(|it| it.value),
            mac: mac.map(|it| it.value.1),
            is_understood: has_address
                && is_read("gateway", gateway.is_some())
                && is_read("mtu", mtu.is_some()),
            address: address.map(|it| it.value),
            gateway: gateway.as_ref().map(|it| it.value),
            mtu: mtu.map_or(MTU, |it| it.value),
            span: it.span,
            name,
        };
        if let Some(gateway) = gateway.filter(|it| has_address && !device.is_on_link(it.value)) {
            let message =
                format!("the gateway of {} is not in the network of its address", it.title);
            self.error(gateway.span, message, "give `address` with the length of its prefix");
        }
        Some(device)
    }

    fn tenant(
        &mut self,
        name: String,
        value: &Spanned<DeValue<'_>>,
        devices: &[PhysicalDevice],
    ) -> Option<Tenant> {
        let title = format!("tenant `{name}`");
        let it = self.section(title, value, TENANT_KEYS, UNSUPPORTED_TENANT_KEYS)?;
        let (cpu, memory) = (self.cpu(&it), self.memory(&it));
        let (mut virtual_devices, mut wrong_devices) = (Vec::new(), Vec::new());
        for (name, span, value) in self.members(Reader::table(&it), "device") {
            match self.virtual_device(&it.title, name.clone(), span, value, devices) {
                Some(device) => virtual_devices.push(device),
                None => wrong_devices.push(name),
            }
        }
        let process = self.process(&it, memory.as_ref());
        if process.is_some() && virtual_devices.len() > MOST_CHANNELS {
            let message = format!("{} has {} devices", it.title, virtual_devices.len());
            let help = format!("a tenant with a process of its own has at most {MOST_CHANNELS}");
            self.error(it.span, message, help);
        }
        let control = self.control(&it);
        let variables = self.variables(&it, "variables");
        let allow = self.list(&it, "allow", "names of classes, such as \"ToDump\"");
        let (file, standby) = self.configuration(&it)?;
        let allow = allow.map(|it| it.value).unwrap_or_default();
        let devices = virtual_devices;
        let span = it.span;
        Some(Tenant {
            name,
            span,
            file,
            standby,
            variables,
            allow,
            cpu,
            memory,
            devices,
            wrong_devices,
            process,
            control,
        })
    }

    /// The file of a tenant's configuration, and whether the tenant is on standby; `None` if it has neither.
    fn configuration(&mut self, it: &Section<'_>) -> Option<(Option<Entry<PathBuf>>, bool)> {
        let standby = self.flag(it, "standby").is_some_and(|it| it.value);
        let file = self.path(it, "file");
        let is_missing = file.is_none() && !standby;
        if is_missing && !Reader::has(it, "file") {
            let help = "write `file = \"NAME.click\"`";
            self.error(it.span, format!("{} has no configuration", it.title), help);
        }
        (!is_missing).then_some((file, standby))
    }

    fn cpu(&mut self, it: &Section<'_>) -> Option<Entry<Cpu>> {
        let title = format!("`cpu` of {}", it.title);
        let cpu = self.section(title, Reader::inner(it, "cpu")?, CPU_KEYS, &[])?;
        let least = LEAST_PART.0 * 100.0;
        let wants = format!("a part of a processor such as \"30%\", at least {least}%");
        let mut part = |key| self.argument::<CpuPart>(&cpu, key, &wants, |it| it >= LEAST_PART);
        let (guarantee, limit) = (part("guarantee"), part("limit"));
        let wants = "a time such as \"100us\", at least 1 us";
        let delay = self.argument::<Duration>(&cpu, "delay", wants, |it| it >= LEAST_DELAY);
        let [guarantee, limit, delay] = [guarantee, limit, delay].map(|it| it.map(|it| it.value));
        Some(Entry { value: Cpu { guarantee, limit, delay }, span: cpu.span })
    }

    fn memory(&mut self, it: &Section<'_>) -> Option<Entry<Memory>> {
        let title = format!("`memory` of {}", it.title);
        let memory = self.section(title, Reader::inner(it, "memory")?, MEMORY_KEYS, &[])?;
        let wants = format!("a size such as \"64M\", at least {}K", LEAST_HEAP >> 10);
        let heap = self.argument::<HeapSize>(&memory, "heap", &wants, |it| it.0 >= LEAST_HEAP);
        let heap = heap.map(|it| it.value);
        let packets = self.number(&memory, "packets", 1..=MAX_PACKETS).map(|it| it.value);
        let process = self.process_memory(&memory);
        Some(Entry { value: Memory { heap, packets, process }, span: memory.span })
    }

    fn virtual_device(
        &mut self,
        tenant: &str,
        name: String,
        span: Span,
        value: &Spanned<DeValue<'_>>,
        devices: &[PhysicalDevice],
    ) -> Option<VirtualDevice> {
        let title = format!("device `{name}` of {tenant}");
        let it = self.section(title, value, VIRTUAL_DEVICE_KEYS, &[])?;
        let ways: Vec<&str> =
            TRANSPORT_KEYS.iter().copied().filter(|key| Reader::has(&it, key)).collect();
        let [way] = ways[..] else {
            let help = format!("it has one of {}", TRANSPORT_KEYS.join(", "));
            let message = match ways.is_empty() {
                true => format!("{} does not say how it reaches the wire", it.title),
                false => format!("{} has {}, which exclude each other", it.title, ways.join(", ")),
            };
            self.error(span, message, help);
            return None;
        };
        let on = self.physical(&it, if way == "device" { "device" } else { "on" }, devices);
        let transport = self.transport(&it, way);
        let mtu = self.number(&it, "mtu", 68..=65535);
        let queue = self.number(&it, "queue", 1..=1 << 20).map_or(QUEUE, |it| it.value);
        let (on, transport) = (on?, transport?);
        let largest = devices[on].mtu.saturating_sub(transport.overhead());
        let is_known = devices[on].is_understood;
        if let Some(mtu) = mtu.as_ref().filter(|mtu| is_known && mtu.value > largest) {
            let message = format!("`mtu` of {} does not fit the physical device", it.title);
            let help = format!(
                "at most {largest}: the MTU of {} less {} bytes of headers",
                devices[on].name,
                transport.overhead()
            );
            self.error(mtu.span, message, help);
        }
        if is_known {
            self.check_underlay(&it, &devices[on], &transport);
        }
        let mtu = mtu.map_or(largest, |it| it.value);
        let [bandwidth_in, bandwidth_out] =
            ["bandwidth_in", "bandwidth_out"].map(|key| self.bandwidth(&it, key));
        Some(VirtualDevice { name, span, on, transport, queue, mtu, bandwidth_in, bandwidth_out })
    }

    /// A bandwidth of at least a byte a second.
    fn bandwidth(&mut self, it: &Section<'_>, key: &str) -> Option<Entry<String>> {
        let wants = "a bandwidth such as \"100Mbps\", at least 8 bits a second";
        self.argument::<Bandwidth>(it, key, wants, |it| it.0 > 0)
    }

    /// The physical device that a key names.
    fn physical(
        &mut self,
        it: &Section<'_>,
        key: &str,
        devices: &[PhysicalDevice],
    ) -> Option<usize> {
        if key == "device" && Reader::has(it, "on") {
            let message = format!("{} has `on` beside `device`", it.title);
            self.error(it.span, message, "`device` names the physical device already");
        }
        let Some(name) = self.text(it, key) else {
            if !Reader::has(it, key) {
                let help = "write `on = \"NAME\"`, the name of a physical device";
                self.error(it.span, format!("{} has no `{key}`", it.title), help);
            }
            return None;
        };
        let found = devices.iter().position(|device| device.name == name.value);
        if found.is_none() {
            let names = devices.iter().map(|device| device.name.as_str());
            let help = match nearest(&name.value, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the devices are {}", names.collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no physical device `{}`", name.value);
            self.error(name.span, message, help);
        }
        found
    }

    fn transport(&mut self, it: &Section<'_>, way: &str) -> Option<Transport> {
        match way {
            "vlan" => {
                let id = self.number(it, "vlan", 1..=4094)?.value;
                Some(Transport::Vlan(id as u16))
            }
            "address" => {
                let all = self.list::<Ipv4Addr>(it, "address", "IPv4 addresses")?;
                let addresses: Vec<_> = all.value.into_iter().map(|it| it.value).collect();
                if addresses.is_empty() {
                    let help = "write `address = \"10.0.0.5\"`";
                    self.error(all.span, format!("{} has no address", it.title), help);
                    return None;
                }
                Some(Transport::Addresses(addresses))
            }
            "device" => Some(Transport::Whole),
            _ => self.tunnel(it, way),
        }
    }

    fn tunnel(&mut self, device: &Section<'_>, way: &str) -> Option<Transport> {
        let value = Reader::inner(device, way)?;
        let title = format!("`{way}` of {}", device.title);
        let keys = if way == "gre" { &["remote", "key"][..] } else { &["vni", "remote", "port"] };
        let it = self.section(title, value, keys, &[])?;
        let needed: &[&str] = if way == "gre" { &["remote"] } else { &["vni", "remote"] };
        for key in needed.iter().filter(|key| !Reader::has(&it, key)) {
            let help = format!("write `{way} = {{ {key} = …, … }}`");
            self.error(it.span, format!("{} has no `{key}`", it.title), help);
        }
        let remote = self.parsed(&it, "remote", "an address such as \"10.0.0.2\"");
        if way == "gre" {
            let key = self.number(&it, "key", 0..=u32::MAX).map(|it| it.value);
            return Some(Transport::Gre { key, remote: remote?.value });
        }
        let vni = self.number(&it, "vni", 0..=Vxlan::MAX_VNI);
        let default = if way == "vxlan" { Vxlan::PORT } else { Geneve::PORT };
        let port = self.number(&it, "port", 1..=65535).map_or(default, |it| it.value as u16);
        let (vni, remote) = (vni?.value, remote?.value);
        Some(match way {
            "vxlan" => Transport::Vxlan { vni, remote, port },
            _ => Transport::Geneve { vni, remote, port },
        })
    }

    /// Reports a tunnel on a physical device that cannot be its end.
    fn check_underlay(&mut self, it: &Section<'_>, on: &PhysicalDevice, transport: &Transport) {
        let Some(remote) = transport.remote() else { return };
        if on.address.is_none() {
            let message =
                format!("{} is a tunnel on `{}`, which has no address", it.title, on.name);
            let help = format!("write `address = \"10.0.0.1/24\"` in `[device.{}]`", on.name);
            self.error(it.span, message, help);
        } else if on.address.is_some_and(|(own, _)| own == remote) {
            let message = format!("{} is a tunnel from `{}` to its own address", it.title, on.name);
            self.error(it.span, message, "`remote` is the address of the other end");
        } else if !on.is_on_link(remote) && on.gateway.is_none() {
            let message = format!("{remote} is not in the network of `{}`", on.name);
            let help = format!("write `gateway = …` in `[device.{}]`", on.name);
            self.error(it.span, message, help);
        }
    }

    /// Reports tunnels whose packets cannot be told from those of another protocol, or of a virtual device.
    fn check_tunnels(&mut self, system: &System) {
        let mut protocols = HashMap::new();
        let ends: HashSet<usize> = system
            .virtual_devices()
            .filter(|(_, it)| it.transport.remote().is_some())
            .map(|(_, it)| it.on)
            .collect();
        for (tenant, device) in system.virtual_devices() {
            let on = &system.devices[device.on];
            let (message, help) = match &device.transport {
                Transport::Vxlan { remote, port, .. } | Transport::Geneve { remote, port, .. } => {
                    let protocol = discriminant(&device.transport);
                    let known = protocols.entry((device.on, *remote, *port)).or_insert(protocol);
                    if *known == protocol {
                        continue;
                    }
                    let message =
                        format!("UDP port {port} from {remote} is that of VXLAN and of Geneve");
                    (message, "give each protocol a `port` of its own")
                }
                Transport::Addresses(all) if ends.contains(&device.on) => {
                    let own = on.address.map(|(address, _)| address);
                    let Some(own) = own.filter(|own| all.contains(own)) else { continue };
                    let message = format!("{own} is the address of the tunnels on `{}`", on.name);
                    (message, "give the tenant another address")
                }
                _ => continue,
            };
            let message =
                format!("device `{}` of tenant `{}`: {message}", device.name, tenant.name);
            self.error(device.span, message, help);
        }
    }

    /// Reports a store in which an installed configuration would take the place of a file that the system names.
    fn check_store(&mut self, system: &System, folder: &Path) {
        let Some(store) = &system.store else { return };
        let place = |name: &str| plain(&folder.join(&store.value).join(format!("{name}.click")));
        let places: Vec<_> = system.tenants.iter().map(|it| (place(&it.name), &it.name)).collect();
        for file in system.tenants.iter().filter_map(|it| it.file.as_ref()) {
            let here = plain(&folder.join(&file.value));
            if let Some((_, name)) = places.iter().find(|(place, _)| *place == here) {
                let message = format!(
                    "`{}` is the place of installed configurations of tenant `{name}`, too",
                    file.value.display(),
                );
                let help = "give `store` a folder of its own";
                self.error(file.span, message, help);
            }
        }
    }

    /// Reports interfaces of several devices, one of which would get all frames.
    fn check_interfaces(&mut self, system: &System) {
        let mut owners: HashMap<&str, &PhysicalDevice> = HashMap::new();
        let mut devices: Vec<&PhysicalDevice> = system.devices.iter().collect();
        devices.sort_by_key(|it| it.span.start);
        for device in devices {
            let owner = *owners.entry(&device.interface).or_insert(device);
            if !std::ptr::eq(owner, device) {
                let message =
                    format!("`{}` is the interface of another device, too", device.interface);
                let diagnostic = Diagnostic::error(device.span, message);
                let note = format!("device `{}` is here", owner.name);
                self.found.push(diagnostic.with_note(owner.span, note));
            }
        }
    }

    /// Reports virtual devices that cannot be told apart on the wire.
    fn check_conflicts(&mut self, system: &System) {
        let mut users: HashMap<(usize, String), (&Tenant, &VirtualDevice)> = HashMap::new();
        let mut whole: HashMap<usize, (&Tenant, &VirtualDevice)> = HashMap::new();
        let all: Vec<_> = system.virtual_devices().collect();
        for &(tenant, device) in all.iter().filter(|(_, it)| it.transport == Transport::Whole) {
            whole.entry(device.on).or_insert((tenant, device));
        }
        for (tenant, device) in all {
            let ways = match &device.transport {
                Transport::Addresses(all) => all.iter().map(|it| format!("address {it}")).collect(),
                other => vec![other.to_string()],
            };
            let owner = whole.get(&device.on).filter(|(_, it)| !std::ptr::eq(*it, device));
            let mut others = owner.copied();
            for way in ways {
                let user = *users.entry((device.on, way)).or_insert((tenant, device));
                if !std::ptr::eq(user.1, device) {
                    others = others.or(Some(user));
                }
            }
            if let Some((other, it)) = others {
                let on = &system.devices[device.on].name;
                let message = format!(
                    "device `{}` of tenant `{}` cannot be told from device `{}` of tenant `{}` on `{on}`",
                    device.name, tenant.name, it.name, other.name
                );
                let diagnostic = Diagnostic::error(device.span, message);
                let note = format!("`{}` of tenant `{}` is here", it.name, other.name);
                self.found.push(diagnostic.with_note(it.span, note));
            }
        }
    }
}

/// The absolute path of a file, without `.`, `..` and, if its folder is there, links on the way to that.
fn plain(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        && let Ok(folder) = folder.canonicalize()
    {
        return folder.join(name);
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

/// An address and the length of its prefix.
fn prefix(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, length) = text.split_once('/')?;
    let length = length.parse().ok().filter(|length| *length <= 32)?;
    Some((address.parse().ok()?, length))
}
