//! A lab: namespaces and the links between them, removed when the lab is dropped.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::registry;

/// A test network; dropping it removes its namespaces, links, processes and files.
#[derive(Debug)]
pub struct Lab {
    prefix: String,
    directory: PathBuf,
    namespaces: RefCell<Vec<String>>,
}

impl Lab {
    /// Starts a network. The first lab of a process also removes the leftovers of dead processes.
    pub fn new(name: &str) -> Result<Lab> {
        let (prefix, directory) = registry::start_lab(name)?;
        Ok(Lab { prefix, directory, namespaces: RefCell::default() })
    }

    /// The directory for this network's files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates a namespace with only its loopback interface. IPv6 is disabled, so that only the
    /// test sends packets.
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
        // One namespace creates the pair with an end in the other: the host never has the devices.
        a.namespace.ip(&format!(
            "link add {} type veth peer name {} netns {}",
            a.link_arguments(),
            b.link_arguments(),
            b.namespace.name()
        ))?;
        // Both ends are configured before either is up, so that no packet is sent too early.
        a.configure()?;
        b.configure()?;
        a.bring_up()?;
        b.bring_up()
    }

    /// Creates a namespace that is a switch: all ports linked to it are on one network.
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
        registry::remove_lab(&self.namespaces.borrow(), &self.directory);
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
    /// Makes an end named `device` in a namespace: MTU 1500, one queue, offloads on, no address.
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

    /// Adds a route in the syntax of `ip route add`, such as `default via 10.0.1.1`.
    pub fn route(mut self, route: &str) -> Port {
        self.routes.push(route.to_owned());
        self
    }

    /// Sets the MTU: the length of the largest IP packet.
    pub fn mtu(mut self, mtu: u32) -> Port {
        self.mtu = mtu;
        self
    }

    /// Sets the number of receive and of transmit queues.
    pub fn queues(mut self, queues: u32) -> Port {
        self.queues = queues;
        self
    }

    /// Sets whether packets may be without checksums and larger than the MTU, as the kernel
    /// prefers.
    pub fn offloads(mut self, offloads: bool) -> Port {
        self.offloads = offloads;
        self
    }

    /// Returns the arguments of `ip link add` for this end.
    fn link_arguments(&self) -> String {
        let mac = self.mac.as_ref().map(|mac| format!("address {mac} ")).unwrap_or_default();
        let (device, mtu, queues) = (&self.device, self.mtu, self.queues);
        format!("{device} {mac}mtu {mtu} numrxqueues {queues} numtxqueues {queues}")
    }

    fn configure(&self) -> Result<()> {
        if self.offloads {
            return Ok(());
        }
        self.namespace.disable_offloads(&self.device)
    }

    fn bring_up(&self) -> Result<()> {
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
