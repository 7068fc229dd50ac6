//! `IPFIXExporter`: meters flows, and exports them by IPFIX.

use super::ipfix_exporter_state::{IPFIXExporterState, TICK};
use crate::ipfix::CollectorAddress;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_kit::ipfix::{ExporterSettings, FlowLimits};

/// Exports the flows of the packets that pass through by IPFIX (RFC 7011).
///
/// Packets leave unchanged by output 0. A flow has addresses, ports, protocol, and VLAN in common, or
/// the type and code of ICMP in place of ports; it has one direction. Each flow has a record when no
/// packet has come for INACTIVE_TIMEOUT, when it has lasted for ACTIVE_TIMEOUT (and anew after each
/// further one), a second after a FIN or RST, when another flow needs its room, or when the router
/// stops. Later fragments, and packets with a cut transport header, count as a flow with ports 0.
/// Without a marked network header, it is looked for behind the Ethernet header and VLAN tags; the
/// VLAN is that of the first tag, or of the VLAN annotation.
///
/// Messages go to COLLECTOR by UDP, and, if output 1 is connected, leave there as payloads for
/// `UDPIPEncap`. A message that the network does not take is lost and counted; packets never wait
/// for it. Each worker has its own table, socket, and observation domain, from DOMAIN on. Templates
/// are sent again after TEMPLATE_INTERVAL or TEMPLATE_MESSAGES messages, and after a loss.
///
/// ```click
/// in -> e :: IPFIXExporter(INACTIVE_TIMEOUT 5s) -> out;  e[1] -> Discard
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp
/// > in  1::1 > 2::2 icmp6 type 128
/// > in  hex 0102
/// < out 1.0.0.1:5 > 2.0.0.2:6 udp
/// < out 1::1 > 2::2 icmp6 type 128
/// < out hex 0102
/// = e.flows 2
/// = e.ignored 1
/// + 7s
/// = e.flows 0
/// = e.exported_records 2
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp
/// < out 1.0.0.1:5 > 2.0.0.2:6 udp
/// ! e.flush
/// = e.exported_records 3
/// = e.lost_records 0
/// ```
///
/// ```text
/// FromDevice(eth0) -> IPFIXExporter(COLLECTOR 192.0.2.1:4739) -> ToDevice(eth1);
/// ```
#[derive(Element)]
#[element(args = IPFIXExporterArgs, ports = "1/1-2", processing = "a/ah")]
pub struct IPFIXExporter {
    settings: IPFIXExporterArgs,
    /// Whether output 1 is connected.
    pub(super) has_output: bool,
    /// By worker: whether its packets can reach the element.
    workers: Vec<bool>,
}

/// The arguments of `IPFIXExporter`.
#[derive(Args, PartialEq)]
pub struct IPFIXExporterArgs {
    /// The collector's address; its port is 4739 without another.
    #[arg(keyword)]
    pub(super) collector: Option<CollectorAddress>,
    /// Time without packets after which a flow ends.
    #[arg(keyword, default = Duration::from_secs(15))]
    inactive_timeout: Duration,
    /// Time after which a flow with packets is exported, and begins anew.
    #[arg(keyword, default = Duration::from_secs(60))]
    active_timeout: Duration,
    /// The most flows of each worker; beyond them, the one that would end first ends.
    #[arg(keyword, default = 262_144, range = 1..)]
    capacity: u32,
    /// One packet, chosen at random, is metered of so many; a collector is told so.
    #[arg(keyword, default = 1, range = 1..)]
    pub(super) sampling: u32,
    /// The observation domain of the first worker; that of worker N is N higher.
    #[arg(keyword, default = 1)]
    domain: u32,
    /// Index of the interface by which the packets come in (`ingressInterface`); 0 for none.
    #[arg(keyword, default = 0)]
    ingress: u32,
    /// The longest IP packet of a message, in bytes.
    #[arg(keyword, default = 1500, range = 512..=65535)]
    mtu: u32,
    /// Time after which templates are sent again.
    #[arg(keyword, default = Duration::from_secs(60))]
    template_interval: Duration,
    /// Number of messages after which templates are sent again.
    #[arg(keyword, default = 100, range = 1..)]
    template_messages: u32,
    /// Whether counts of what was sent, lost and ignored are sent with the templates. They count in
    /// sequence numbers, as they should; `nfcapd` does not know that, and reports an error for each.
    #[arg(keyword, default = false)]
    statistics: bool,
}

/// The collector that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &IPFIXExporterArgs| {
        it.collector.iter().map(CollectorAddress::resource).collect()
    })
}

/// The exits of packets, and of messages.
#[derive(Fate)]
pub enum IPFIXExporterExit {
    /// Packets, as they came.
    Packet,
    /// IPFIX messages, as payloads of UDP.
    #[optional]
    Message,
}

impl Build for IPFIXExporter {
    type Args = IPFIXExporterArgs;

    fn build(settings: IPFIXExporterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let has_output = setup.outputs > 1;
        if settings.collector.is_none() && !has_output {
            let error = ArgError::new("nobody takes the messages");
            return Err(error.help("COLLECTOR names a collector, or output 1 leads to one"));
        }
        Ok(IPFIXExporter { settings, has_output, workers: setup.workers.to_vec() })
    }
}

impl IPFIXExporter {
    pub(super) fn args(&self) -> &IPFIXExporterArgs {
        &self.settings
    }

    /// Limits of the flows, and the index of the interface.
    pub(super) fn limits(&self) -> (FlowLimits, u32) {
        let it = &self.settings;
        let limits = FlowLimits {
            inactive: nanos(it.inactive_timeout),
            active: nanos(it.active_timeout),
            flows: it.capacity as usize,
        };
        (limits, it.ingress)
    }

    /// The parameters of the exporter of worker number `worker`.
    pub(super) fn exporter_settings(&self, worker: usize) -> ExporterSettings {
        let it = &self.settings;
        ExporterSettings {
            domain: it.domain.wrapping_add(worker as u32),
            max_message: ExporterSettings::message_len(it.mtu as usize),
            template_interval: nanos(it.template_interval),
            template_messages: it.template_messages,
            sampling: it.sampling,
            has_statistics: it.statistics,
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl PerBatch for IPFIXExporter {
    type On = on::Any;
    type Local = IPFIXExporterState;
    type Fate = IPFIXExporterExit;
    const PER_WORKER: bool = true;

    fn can_take_state(&self, before: &IPFIXExporter) -> bool {
        let (now, then) = (&self.settings, &before.settings);
        (now.collector, now.domain) == (then.collector, then.domain)
            && self.workers == before.workers
    }

    fn apply_config(&self, state: &mut IPFIXExporterState) {
        state.configure(self);
    }

    fn init(&self, state: &mut IPFIXExporterState, cx: &mut Cx) -> Result<(), ArgError> {
        state.open(self, cx)?;
        cx.set_timer(cx.now() + TICK);
        Ok(())
    }

    fn batch(&self, state: &mut IPFIXExporterState, _: usize, batch: Batch, cx: &mut Cx) {
        state.meter(self, &batch, cx);
        cx.emit_batch(IPFIXExporterExit::Packet, batch);
    }

    fn run_timer(&self, state: &mut IPFIXExporterState, cx: &mut Cx) {
        let next = state.tick(self, cx);
        cx.set_timer(cx.now() + next);
    }

    fn cleanup(&self, state: &mut IPFIXExporterState, cx: &mut Cx) {
        state.end_all(self, cx);
    }
}
