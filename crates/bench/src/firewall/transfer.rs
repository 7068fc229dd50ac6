//! A TCP transfer past rules: `iperf3` from one host to another.

use super::rules::Backend;
use super::{Plan, load};
use crate::io::cores;
use crate::io::veth::{pin_receiver, set_threaded};
use crate::measure::middle;
use castanet_lab::{Lab, Namespace, Port, Process};
use std::path::Path;
use std::time::Duration;

/// MAC addresses of the hosts and of the forwarder's two interfaces.
const CLIENT: &str = "02:00:00:00:0c:01";
const SERVER: &str = "02:00:00:00:0c:02";
const NEAR: &str = "02:00:00:00:0f:01";
const FAR: &str = "02:00:00:00:0f:02";

/// Time limit for start and end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Two hosts and a forwarder between them.
struct TransferNetwork {
    client: Namespace,
    forwarder: Namespace,
    server: Namespace,
    /// The forwarder's interfaces.
    devices: [String; 2],
    _lab: Lab,
}

impl TransferNetwork {
    /// Builds the network; the hosts' next hop is the forwarder if `routed`, else the other host.
    fn new(routed: bool) -> castanet_lab::Result<TransferNetwork> {
        let lab = Lab::new("line")?;
        let [client, forwarder, server] =
            ["client", "forwarder", "server"].map(|name| lab.namespace(name));
        let (client, forwarder, server) = (client?, forwarder?, server?);
        // The kernel's threads are named by the interface, in all namespaces.
        let id = std::process::id();
        let devices = [format!("ti{id}"), format!("to{id}")];
        let ends = [
            (&client, CLIENT, NEAR, "10.9.0.1", "10.9.1.1", SERVER),
            (&server, SERVER, FAR, "10.9.1.1", "10.9.0.1", CLIENT),
        ];
        for ((host, mac, gateway, own, other, peer), device) in ends.into_iter().zip(&devices) {
            // As between machines: whole packets with checksums.
            let port = Port::new(host, "eth0").mac(mac).address(&format!("{own}/24"));
            let near = Port::new(&forwarder, device).mac(gateway).offloads(false);
            lab.link(port.offloads(false), near)?;
            let next = if routed { gateway } else { peer };
            host.ip(&format!("route add {other}/32 dev eth0"))?;
            host.ip(&format!("neigh add {other} lladdr {next} dev eth0 nud permanent"))?;
            forwarder.ip(&format!("route add {own}/32 dev {device}"))?;
            forwarder.ip(&format!("neigh add {own} lladdr {mac} dev {device} nud permanent"))?;
            forwarder.sysctl(&format!("net/ipv4/conf/{device}/rp_filter"), "0")?;
        }
        forwarder.sysctl("net/ipv4/conf/all/rp_filter", "0")?;
        Ok(TransferNetwork { client, forwarder, server, devices, _lab: lab })
    }

    /// Has Linux forward, in threads on one core.
    fn forward(&self, core: usize) -> Result<(), String> {
        for device in &self.devices {
            let gro = ["-K", device, "gro", "on"];
            self.forwarder.command("ethtool").args(gro).check().map_err(|e| e.to_string())?;
            set_threaded(&self.forwarder, device, true)?;
            pin_receiver(device, core)?;
        }
        self.forwarder.sysctl("net/ipv4/ip_forward", "1").map_err(|error| error.to_string())
    }

    /// Has Castanet forward, on one core.
    fn castanet(&self, core: usize, file: &Path) -> Result<Process, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let [from, to] = &self.devices;
        let words = ["middlebox", "--in", from, "--out", to, "--method", "AF_XDP"];
        let command = self.forwarder.command(program).args(words).arg(file);
        let mut process = cores::on(core, || command.spawn())?.map_err(|e| e.to_string())?;
        process.wait_for("castanet: running", PATIENCE).map_err(|error| error.to_string())?;
        Ok(process)
    }

    /// Gigabits a second from the client to the server.
    fn transfer(&self, core: usize, seconds: u64) -> Result<f64, String> {
        let server =
            self.server.command("iperf3").args(["-s", "-1", "--forceflush", "-B", "10.9.1.1"]);
        let mut server = cores::on(core, || server.spawn())?.map_err(|e| e.to_string())?;
        server.wait_for("Server listening", PATIENCE).map_err(|error| error.to_string())?;
        let words = ["-c", "10.9.1.1", "-J", "-t", &seconds.to_string()];
        let client = self.client.command("iperf3").args(words);
        let client = client.timeout(Duration::from_secs(seconds) + PATIENCE * 2);
        let outcome = cores::on(core, || client.output())?.map_err(|e| e.to_string())?;
        let report: serde_json::Value =
            serde_json::from_str(&outcome.stdout).map_err(|_| outcome.printed())?;
        let bits = report["end"]["sum_received"]["bits_per_second"].as_f64();
        let error = || report["error"].as_str().unwrap_or("iperf3 says nothing").to_owned();
        bits.map(|bits| bits / 1e9).ok_or_else(error)
    }
}

/// The middle of all rounds, in gigabits a second.
pub(super) fn run(
    plan: &Plan,
    (forward, feed): (usize, usize),
    peer: Backend,
    file: &Path,
) -> Result<f64, String> {
    let line =
        TransferNetwork::new(peer != Backend::Castanet).map_err(|error| error.to_string())?;
    let _castanet = match peer {
        Backend::Castanet => Some(line.castanet(forward, file)?),
        _ => {
            line.forward(forward)?;
            load(plan, peer, &line.forwarder, file)?;
            None
        }
    };
    let rates = (0..plan.rounds).map(|_| line.transfer(feed, plan.seconds));
    let rates: Vec<f64> = rates.collect::<Result<_, _>>()?;
    Ok(middle(rates.into_iter().map(|rate| (rate, true))).0)
}
