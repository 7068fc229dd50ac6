//! The part of the master graph around one physical device.

use super::tunnels::{self, Underlay};
use super::{Builder, Ends};
use crate::system::{PhysicalDevice, System, Transport, VirtualDevice};
use castanet_lang::args::quote_if_needed;
use std::net::Ipv4Addr;

/// A virtual device on the physical one, with its ends.
pub(super) struct Attachment<'a> {
    pub(super) device: &'a VirtualDevice,
    pub(super) ends: &'a Ends,
    /// First part of the names of its elements outside of the tenant.
    pub(super) prefix: String,
}

/// Adds the elements of a physical device, if a tenant uses it.
pub(super) fn add(builder: &mut Builder, system: &System, number: usize, ends: &[Vec<Ends>]) {
    let on = &system.devices[number];
    let mut attachments = Vec::new();
    for (tenant, ends) in system.tenants.iter().zip(ends) {
        for (device, ends) in tenant.devices.iter().zip(ends).filter(|(it, _)| it.on == number) {
            let prefix = format!("{}/{}/{}", on.name, tenant.name, device.name);
            attachments.push(Attachment { device, ends, prefix });
        }
    }
    if attachments.is_empty() {
        return;
    }
    let method = on.method.as_ref().map(|it| format!(", METHOD {it}")).unwrap_or_default();
    let interface = quote_if_needed(&on.interface);
    let burst = if is_divided(system, &attachments) { LONG_BURST } else { "" };
    let receives = format!("{interface}, PROMISC true{method}{burst}");
    let from = builder.add(&format!("{}/from", on.name), "FromDevice", &receives, on.span);
    let sends = format!("{interface}{method}");
    let to = builder.add(&format!("{}/to", on.name), "ToDevice", &sends, on.span);
    if let [only] = &attachments[..]
        && only.device.transport == Transport::Whole
    {
        builder.deliver((from, 0), only);
        only.ends.send.iter().for_each(|&it| builder.connect((it, 0), (to, 0), only.device.span));
    } else {
        add_shared(builder, on, &attachments, (from, to));
    }
    // The device stays open while no tenant sends.
    if builder.graph.connections.iter().all(|it| it.to.element != to) {
        let idle = builder.add(&format!("{}/no_sender", on.name), "Idle", "", on.span);
        builder.connect((idle, 0), (to, 0), on.span);
    }
}

/// The longest burst: each virtual device gets a part of it, and a part costs something beside its packets.
const LONG_BURST: &str = ", BURST 256";

/// Whether bursts of a device are divided among virtual devices, and no tenant was promised a delay, which a long
/// burst could use up.
fn is_divided(system: &System, attachments: &[Attachment<'_>]) -> bool {
    let mut tenants = system.tenants.iter();
    let has_delay = tenants.any(|it| it.cpu.as_ref().is_some_and(|cpu| cpu.value.delay.is_some()));
    attachments.len() > 1 && !has_delay
}

/// The pattern of `Classifier` for the bytes of an address.
pub(super) fn hex(address: Ipv4Addr) -> String {
    format!("{:08x}", address.to_bits())
}

/// Adds the elements between a physical device and several virtual ones.
fn add_shared(
    builder: &mut Builder,
    on: &PhysicalDevice,
    attachments: &[Attachment<'_>],
    (from, to): (usize, usize),
) {
    let mut patterns: Vec<String> = Vec::new();
    let mut exits: Vec<(usize, &Attachment<'_>)> = Vec::new();
    for it in attachments {
        match &it.device.transport {
            Transport::Vlan(id) => {
                exits.push((patterns.len(), it));
                patterns.push(format!("12/8100 14/{id:04x}%0fff"));
            }
            Transport::Addresses(all) => {
                for &address in all {
                    exits.push((patterns.len(), it));
                    patterns.push(format!("12/0806 38/{}", hex(address)));
                    exits.push((patterns.len(), it));
                    patterns.push(format!("12/0800 30/{}", hex(address)));
                }
            }
            _ => {}
        }
    }
    let has_tunnels = attachments.iter().any(|it| it.device.transport.remote().is_some());
    let first_of_underlay = patterns.len();
    if let Some((address, _)) = on.address.filter(|_| has_tunnels) {
        let own = hex(address);
        patterns.push(format!("12/0806 20/0001 38/{own}"));
        // Replies to all, too: with those a neighbour tells that its Ethernet address is another one now.
        patterns.push("12/0806 20/0002".to_owned());
        patterns.push(format!("12/0800 30/{own}"));
        patterns.push("12/0806 20/0001".to_owned());
    }
    let rest = patterns.len();
    patterns.push("-".to_owned());
    let name = |part: &str| format!("{}/{part}", on.name);
    let rest_of = tunnels::add_plain(builder, on, attachments, from);
    let frames = builder.add(&name("frames"), "Classifier", &patterns.join(", "), on.span);
    builder.connect(rest_of, (frames, 0), on.span);
    for (exit, it) in exits {
        builder.admit(frames, exit, it);
    }
    builder.drop_at((frames, rest), &name("other_frames"), on.span);
    for it in attachments {
        builder.send_untunnelled(it, to);
    }
    if has_tunnels {
        let underlay = Underlay { on, frames, first: first_of_underlay, to };
        tunnels::add(builder, &underlay, attachments);
    }
}

impl Builder {
    /// Connects an output to the tenant, or to a `TenantDrop` if the tenant does not receive.
    pub(super) fn deliver(&mut self, from: (usize, usize), it: &Attachment<'_>) {
        let (name, span) = (format!("{}/unread", it.prefix), it.device.span);
        match it.ends.receive {
            Some(to) => self.connect(from, (to, 0), span),
            None => self.drop_at(from, &name, span),
        }
    }

    /// Connects an output of the classifier of frames to a tenant.
    fn admit(&mut self, frames: usize, exit: usize, it: &Attachment<'_>) {
        let span = it.device.span;
        match it.device.transport {
            Transport::Vlan(_) => {
                let name = format!("{}/untag", it.prefix);
                let untag = self.add(&name, "VLANDecap", "false", span);
                self.connect((frames, exit), (untag, 0), span);
                self.deliver((untag, 0), it);
            }
            _ => self.deliver((frames, exit), it),
        }
    }

    /// Connects a tenant that sends without a tunnel to the physical device.
    fn send_untunnelled(&mut self, it: &Attachment<'_>, to: usize) {
        let span = it.device.span;
        if it.ends.send.is_empty() {
            return;
        }
        match &it.device.transport {
            Transport::Vlan(id) => {
                let (name, config) = (format!("{}/tag", it.prefix), format!("VLAN_ID {id}"));
                let tag = self.add(&name, "VLANEncap", &config, span);
                it.ends.send.iter().for_each(|&from| self.connect((from, 0), (tag, 0), span));
                self.connect((tag, 0), (to, 0), span);
            }
            Transport::Addresses(all) => {
                let own = all.iter().map(|&it| hex(it));
                let mut patterns: Vec<String> = own
                    .flat_map(|it| [format!("12/0806 28/{it}"), format!("12/0800 26/{it}")])
                    // A tenant that has come announces its Ethernet addresses.
                    .chain(["12/8035 20/0003 28/00000000 38/00000000".to_owned()])
                    .collect();
                let foreign = patterns.len();
                patterns.push("-".to_owned());
                let name = format!("{}/source", it.prefix);
                let source = self.add(&name, "Classifier", &patterns.join(", "), span);
                it.ends.send.iter().for_each(|&from| self.connect((from, 0), (source, 0), span));
                (0..foreign).for_each(|exit| self.connect((source, exit), (to, 0), span));
                self.drop_at((source, foreign), &format!("{}/spoofed", it.prefix), span);
            }
            _ => {}
        }
    }
}
