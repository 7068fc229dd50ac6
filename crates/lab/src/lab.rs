//! A lab: namespaces, the links between them, and their removal.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::registry;

/// A test network; dropping it removes every namespace, link, process and file of it.
#[derive(Debug)]
pub struct Lab {
    prefix: String,
    directory: PathBuf,
    namespaces: RefCell<Vec<String>>,
}

impl Lab {
    /// Begins a network. The first one of a process also removes what dead processes left behind.
    pub fn new(name: &str) -> Result<Lab> {
        let (prefix, directory) = registry::begin(name)?;
        Ok(Lab { prefix, directory, namespaces: RefCell::default() })
    }

    /// The directory for this network's files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes a namespace with nothing but its loopback, IPv6 off so that only the test speaks.
    pub fn namespace(&self, name: &str) -> Result<Namespace> {
        let full = format!("{}-{name}", self.prefix);
        registry::add_namespace(&full)?;
        self.namespaces.borrow_mut().push(full.clone());
        let namespace = Namespace::new(full, self.directory.clone());
        namespace.sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
        namespace.sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Links two namespaces with a veth pair and sets both ends up.
    pub fn link(&self, a: Port, b: Port) -> Result<()> {
        // Made from inside one namespace into the other: the host never sees the devices.
        a.namespace.ip(&format!(
            "link add {} type veth peer name {} netns {}",
            a.described(),
            b.described(),
            b.namespace.name()
        ))?;
        // Both ends take their settings before either comes up, so that nothing is sent too early.
        a.configure()?;
        b.configure()?;
        a.come_up()?;
        b.come_up()
    }

    /// Makes a namespace that is a switch: every port linked to it is on one network.
    pub fn switch(&self, name: &str, ports: Vec<Port>) -> Result<Namespace> {
        let switch = self.namespace(name)?;
        switch.ip("link add sw type bridge stp_state 0 forward_delay 0")?;
        let mtu = ports.iter().map(|port| port.mtu).max().unwrap_or(1500);
        for (i, port) in ports.into_iter().enumerate() {
            let device = format!("p{i}");
            self.link(port, Port::new(&switch, &device).mtu(mtu))?;
            switch.ip(&format!("link set {device} master sw"))?;
        }
        switch.ip("link set sw up")?;
        Ok(switch)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        registry::end(&self.namespaces.borrow(), &self.directory);
    }
}

/// One end of a link.
#[derive(Debug, Clone)]
pub struct Port {
    namespace: Namespace,
    device: String,
    mac: Option<String>,
    addresses: Vec<String>,
    routes: Vec<String>,
    mtu: u32,
    queues: u32,
    offloads: bool,
}

impl Port {
    /// An end called `device` in a namespace: MTU 1500, one queue, offloads on, no address.
    pub fn new(namespace: &Namespace, device: &str) -> Port {
        Port {
            namespace: namespace.clone(),
            device: device.to_owned(),
            mac: None,
            addresses: Vec::new(),
            routes: Vec::new(),
            mtu: 1500,
            queues: 1,
            offloads: true,
        }
    }

    /// Sets the Ethernet address; the kernel chooses one otherwise.
    pub fn mac(mut self, mac: &str) -> Port {
        self.mac = Some(mac.to_owned());
        self
    }

    /// Adds an IP address with its prefix length, `10.0.1.2/24`.
    pub fn address(mut self, address: &str) -> Port {
        self.addresses.push(address.to_owned());
        self
    }

    /// Adds a route in the words of `ip route add`, `default via 10.0.1.1`.
    pub fn route(mut self, route: &str) -> Port {
        self.routes.push(route.to_owned());
        self
    }

    /// Sets the largest IP packet that fits.
    pub fn mtu(mut self, mtu: u32) -> Port {
        self.mtu = mtu;
        self
    }

    /// Sets the number of receive and of transmit queues.
    pub fn queues(mut self, queues: u32) -> Port {
        self.queues = queues;
        self
    }

    /// Says whether packets may stay without checksums and larger than the MTU, as the kernel likes.
    pub fn offloads(mut self, offloads: bool) -> Port {
        self.offloads = offloads;
        self
    }

    /// The end as `ip link add` wants it.
    fn described(&self) -> String {
        let mac = self.mac.as_ref().map(|mac| format!("address {mac} ")).unwrap_or_default();
        let (device, mtu, queues) = (&self.device, self.mtu, self.queues);
        format!("{device} {mac}mtu {mtu} numrxqueues {queues} numtxqueues {queues}")
    }

    fn configure(&self) -> Result<()> {
        if self.offloads {
            return Ok(());
        }
        self.namespace.offloads_off(&self.device)
    }

    fn come_up(&self) -> Result<()> {
        let device = &self.device;
        for address in &self.addresses {
            self.namespace.ip(&format!("address add {address} dev {device}"))?;
        }
        self.namespace.ip(&format!("link set {device} up"))?;
        for route in &self.routes {
            self.namespace.ip(&format!("route add {route}")).map_err(|error| match error {
                Error::Failed { command, status, printed } => {
                    Error::Failed { command: format!("{command} ({device})"), status, printed }
                }
                other => other,
            })?;
        }
        Ok(())
    }
}
