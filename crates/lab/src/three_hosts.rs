//! The network of the demo and the system tests: a router between three hosts on three subnets.
//!
//! ```text
//! h1 10.0.1.2 ── 10.0.1.1 lan1 ┐
//! h2 10.0.2.2 ── 10.0.2.1 lan2 ├ router
//! h3 10.0.3.2 ── 10.0.3.1 lan3 ┘
//! ```

use std::path::Path;
use std::time::Duration;

use crate::error::Result;
use crate::lab::{Lab, Port};
use crate::namespace::Namespace;
use crate::process::{Command, Process};

/// MTU of an ordinary link, to which the router fragments.
const MTU: u32 = 1500;

/// Timeout for the router to open its devices.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Options of the network's links.
#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// Whether hosts offload checksums and segmentation, as Linux does by default.
    pub offloads: bool,
    /// The MTU of the first host's link.
    pub first_mtu: u32,
    /// Whether a neighbour, 10.0.1.3, shares the first host's subnet.
    pub neighbour: bool,
    /// Number of receive queues, and of transmit queues, of each interface of the router.
    pub queues: u32,
}

impl Default for NetworkOptions {
    fn default() -> NetworkOptions {
        NetworkOptions { offloads: true, first_mtu: MTU, neighbour: false, queues: 1 }
    }
}

/// One of the hosts.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its namespace; the interface is `eth0`.
    pub namespace: Namespace,
    /// Its address.
    pub address: String,
    /// The router's address on its subnet.
    pub gateway: String,
    /// The router's Ethernet address on its subnet.
    pub gateway_mac: String,
}

impl Host {
    /// Makes a command that runs on this host.
    pub fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }
}

/// The router that forwards between the subnets.
#[derive(Debug, Clone, Copy)]
pub enum Router<'a> {
    /// Linux itself, which shows that a test does not depend on a fault of the test network.
    Kernel,
    /// `castanet run` with a configuration.
    Castanet {
        /// The program.
        program: &'a Path,
        /// The configuration, with variables `dev0`, `dev1`, `dev2` for the interfaces.
        config: &'a Path,
    },
}

impl Router<'_> {
    /// The text that `castanet run` prints on standard error when it forwards.
    pub const READY: &'static str = "castanet: running";
}

/// Three hosts, each on its subnet, and the namespace of the router between them.
pub struct ThreeHosts {
    /// The hosts: 10.0.1.2, 10.0.2.2 and 10.0.3.2.
    pub hosts: [Host; 3],
    /// The host 10.0.1.3, if the options ask for it.
    pub neighbour: Option<Namespace>,
    /// The router's namespace, with the interfaces `lan1`, `lan2`, `lan3`: no address, no
    /// forwarding.
    pub router: Namespace,
    /// The last field, so that everything in the lab is dropped before it.
    lab: Lab,
}

impl ThreeHosts {
    /// Builds the network, without a router that forwards yet.
    pub fn new(name: &str, options: &NetworkOptions) -> Result<ThreeHosts> {
        let lab = Lab::new(name)?;
        let router = lab.namespace("router")?;
        let hosts = [host(&lab, 1)?, host(&lab, 2)?, host(&lab, 3)?];
        let mut neighbour = None;
        for (n, host) in (1u8..).zip(&hosts) {
            let mtu = if n == 1 { options.first_mtu } else { MTU };
            let port = |namespace: &Namespace, device: &str, mac_end: u8| {
                Port::new(namespace, device)
                    .mac(&mac(n, mac_end))
                    .mtu(mtu)
                    .offloads(options.offloads)
            };
            let host_port = |namespace: &Namespace, end: u8| {
                port(namespace, "eth0", end)
                    .address(&format!("10.0.{n}.{end}/24"))
                    .route(&format!("default via 10.0.{n}.1"))
            };
            let lan = port(&router, &format!("lan{n}"), 1).offloads(true).queues(options.queues);
            if n == 1 && options.neighbour {
                let namespace = lab.namespace("neighbour")?;
                let ports = vec![lan, host_port(&host.namespace, 2), host_port(&namespace, 3)];
                lab.switch("switch", ports)?;
                neighbour = Some(namespace);
            } else {
                lab.link(lan, host_port(&host.namespace, 2))?;
            }
        }
        Ok(ThreeHosts { hosts, neighbour, router, lab })
    }

    /// The lab that contains the network.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Starts a router and waits until it forwards; returns its process, unless it is the kernel.
    pub fn start(&self, router: Router<'_>) -> Result<Option<Process>> {
        match router {
            Router::Kernel => self.forward_by_kernel().map(|()| None),
            Router::Castanet { program, config } => {
                let mut process = self.castanet(program, config).spawn()?;
                process.wait_for(Router::READY, TIMEOUT)?;
                Ok(Some(process))
            }
        }
    }

    /// Makes the command that starts `castanet run` on the router's interfaces.
    pub fn castanet(&self, program: &Path, config: &Path) -> Command {
        let devices = (0..3).map(|i| format!("dev{i}=lan{}", i + 1));
        self.router.command(program).arg("run").arg(config).args(devices)
    }

    fn forward_by_kernel(&self) -> Result<()> {
        for n in 1..=3 {
            self.router.ip(&format!("address add 10.0.{n}.1/24 dev lan{n}"))?;
        }
        // The limit on ICMP errors would make tests wait.
        self.router.sysctl("net/ipv4/icmp_ratelimit", "0")?;
        self.router.sysctl("net/ipv4/ip_forward", "1")
    }
}

fn host(lab: &Lab, n: u8) -> Result<Host> {
    Ok(Host {
        namespace: lab.namespace(&format!("h{n}"))?,
        address: format!("10.0.{n}.2"),
        gateway: format!("10.0.{n}.1"),
        gateway_mac: mac(n, 1),
    })
}

/// The Ethernet address of 10.0.`n`.`end`; locally administered.
fn mac(n: u8, end: u8) -> String {
    format!("02:00:00:00:{n:02x}:{end:02x}")
}
