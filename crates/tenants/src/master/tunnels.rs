//! Tunnels of tenants over the IPv4 network of a physical device.

use super::Builder;
use super::physical::{Attachment, hex};
use crate::system::{PhysicalDevice, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Tunnels of one `TunnelDecap`, which has an output for each, and one more.
const MOST_TUNNELS: usize = 200;

/// The IPv4 network of a physical device, which carries tunnels.
pub(super) struct Underlay<'a> {
    pub(super) on: &'a PhysicalDevice,
    /// The classifier of frames, whose outputs from `first` carry ARP requests to the device's address, ARP replies,
    /// IPv4 packets to that address, and all other ARP requests.
    pub(super) frames: usize,
    pub(super) first: usize,
    /// The `ToDevice`.
    pub(super) to: usize,
}

/// Tunnels of one kind to one end; headers inside tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Vxlan(u16),
    Geneve(u16),
    Gre,
}

impl Kind {
    fn of(transport: &Transport) -> Option<Kind> {
        match transport {
            Transport::Vxlan { port, .. } => Some(Kind::Vxlan(*port)),
            Transport::Geneve { port, .. } => Some(Kind::Geneve(*port)),
            Transport::Gre { .. } => Some(Kind::Gre),
            _ => None,
        }
    }

    /// Its name in names of elements.
    fn name(self) -> &'static str {
        match self {
            Kind::Vxlan(_) => "vxlan",
            Kind::Geneve(_) => "geneve",
            Kind::Gre => "gre",
        }
    }

    /// The pattern of `IPClassifier` for its packets.
    fn pattern(self) -> String {
        match self {
            Kind::Vxlan(port) | Kind::Geneve(port) => format!("udp dst port {port}"),
            Kind::Gre => "ip proto gre".to_owned(),
        }
    }

    /// Fewest bytes of its header.
    fn header_length(self) -> usize {
        match self {
            Kind::Vxlan(_) | Kind::Geneve(_) => 8,
            Kind::Gre => 4,
        }
    }
}

/// Time in seconds after which the end of a tunnel is asked for its Ethernet address again, by broadcast: another machine
/// may have taken over its address.
const POLL_SECONDS: u32 = 10;

/// The neighbours by which a device reaches the ends of its tunnels.
fn neighbours(on: &PhysicalDevice, attachments: &[Attachment<'_>]) -> BTreeSet<Ipv4Addr> {
    let remotes = attachments.iter().filter_map(|it| it.device.transport.remote());
    let next_hop = |remote| if on.is_on_link(remote) { Some(remote) } else { on.gateway };
    remotes.filter_map(next_hop).collect()
}

/// The tunnels of one kind to one end.
type Group<'a> = ((Kind, Ipv4Addr), Vec<&'a Attachment<'a>>);

fn groups<'a>(attachments: &'a [Attachment<'a>]) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<(Kind, Ipv4Addr), Vec<&Attachment<'_>>> = BTreeMap::new();
    for it in attachments {
        let transport = &it.device.transport;
        if let (Some(kind), Some(remote)) = (Kind::of(transport), transport.remote()) {
            groups.entry((kind, remote)).or_default().push(it);
        }
    }
    groups.into_iter().collect()
}

/// Adds ARP, the answers to pings, and all tunnels of a device.
pub(super) fn add(builder: &mut Builder, underlay: &Underlay<'_>, attachments: &[Attachment<'_>]) {
    let Underlay { on, frames, first, to } = *underlay;
    let Some((address, length)) = on.address else { return };
    let (span, mac) = (on.span, on.mac_argument());
    let name = |part: &str| format!("{}/{part}", on.name);
    let answers = builder.add(&name("answers"), "ARPResponder", &format!("{address} {mac}"), span);
    builder.connect((frames, first), (answers, 0), span);
    builder.connect((answers, 0), (to, 0), span);
    let querier =
        format!("{address}/{length}, {mac}, POLL_TIMEOUT {POLL_SECONDS}, BROADCAST_POLL true");
    let querier = builder.add(&name("querier"), "ARPQuerier", &querier, span);
    builder.connect((frames, first + 1), (querier, 1), span);
    add_announcements(builder, on, attachments, (frames, first + 3), querier);
    builder.connect((querier, 0), (to, 0), span);

    let own = builder.add(&name("own"), "HostEtherFilter", &mac, span);
    builder.connect((frames, first + 2), (own, 0), span);
    let strip = builder.append(own, (&name("strip"), "Strip", "14"), span);
    let check = builder.append(strip, (&name("check"), "CheckIPHeader", ""), span);
    let groups = groups(attachments);
    let mut patterns = vec!["ip frag".to_owned()];
    patterns.extend(
        groups
            .iter()
            .map(|((kind, remote), _)| format!("src host {remote} and {}", kind.pattern())),
    );
    patterns.extend(["icmp type echo".to_owned(), "-".to_owned()]);
    let tunnels = (&*name("tunnels"), "IPClassifier", &*patterns.join(", "));
    let tunnels = builder.append(check, tunnels, span);
    builder.drop_at((tunnels, 0), &name("fragments"), span);
    for (number, (_, group)) in groups.iter().enumerate() {
        let id = format!("{}/{}{number}", on.name, groups[number].0.0.name());
        builder.add_group((tunnels, number + 1), groups[number].0.0, group, &id);
    }
    let echo = groups.len() + 1;
    let pings = builder.add(&name("pings"), "ICMPPingResponder", "", span);
    builder.connect((tunnels, echo), (pings, 0), span);
    builder.route(pings, on, None, querier, &name("ping"));
    builder.drop_at((tunnels, echo + 1), &name("other_packets"), span);
    for it in groups.iter().flat_map(|(_, group)| group) {
        builder.encapsulate(it, on, address, querier);
    }
}

/// Adds the elements by which ARP requests of neighbours for their own addresses (RFC 5227, 3) count as replies.
fn add_announcements(
    builder: &mut Builder,
    on: &PhysicalDevice,
    attachments: &[Attachment<'_>],
    requests: (usize, usize),
    querier: usize,
) {
    let (span, name) = (on.span, |part: &str| format!("{}/{part}", on.name));
    let neighbours = neighbours(on, attachments);
    let own = neighbours.iter().map(|&it| format!("28/{0} 38/{0}", hex(it)));
    let patterns: Vec<String> = own.chain(["-".to_owned()]).collect();
    let config = patterns.join(", ");
    let announcements = builder.add(&name("announcements"), "Classifier", &config, span);
    builder.connect(requests, (announcements, 0), span);
    // The querier takes replies only.
    let reply = builder.add(&name("announced"), "StoreData", "20, \\<0002>", span);
    for output in 0..neighbours.len() {
        builder.connect((announcements, output), (reply, 0), span);
    }
    builder.connect((reply, 0), (querier, 1), span);
    builder.drop_at((announcements, neighbours.len()), &name("other_frames"), span);
}

impl Builder {
    /// Adds the elements that tell the tunnels of a group apart and remove their headers.
    fn add_group(&mut self, from: (usize, usize), kind: Kind, group: &[&Attachment<'_>], id: &str) {
        let Some(span) = group.first().map(|it| it.device.span) else { return };
        let name = |part: &str| format!("{id}/{part}");
        let mut last = match kind {
            Kind::Gre => self.add(&name("strip"), "StripIPHeader", "", span),
            Kind::Vxlan(_) | Kind::Geneve(_) => {
                self.add(&name("check"), "CheckUDPHeader", "", span)
            }
        };
        self.connect(from, (last, 0), span);
        if kind != Kind::Gre {
            last = self.append(last, (&name("strip"), "StripIPHeader", ""), span);
            last = self.append(last, (&name("udp"), "Strip", "8"), span);
        }
        let shortest = (kind.header_length() - 1).to_string();
        let length = self.append(last, (&name("length"), "CheckLength", &shortest), span);
        self.drop_at((length, 0), &name("truncated"), span);
        let mut patterns = Vec::new();
        let mut exits = Vec::new();
        for it in group {
            for pattern in header_patterns(&it.device.transport) {
                exits.push((patterns.len(), *it));
                patterns.push(pattern);
            }
        }
        let rest = patterns.len();
        patterns.push("-".to_owned());
        let networks = self.add(&name("networks"), "Classifier", &patterns.join(", "), span);
        self.connect((length, 1), (networks, 0), span);
        self.drop_at((networks, rest), &name("unknown_network"), span);
        for (exit, it) in exits {
            let decap = self.decapsulator(it);
            self.connect((networks, exit), (decap, 0), it.device.span);
        }
    }

    /// The element that removes the tunnel header of a virtual device; adds it if it is not there.
    fn decapsulator(&mut self, it: &Attachment<'_>) -> usize {
        let name = format!("{}/decap", it.prefix);
        if let Some(there) = self.graph.find(&name) {
            return there;
        }
        let span = it.device.span;
        let (class, config, frames) = match &it.device.transport {
            Transport::Vxlan { vni, .. } => ("VXLANDecap", vni.to_string(), 0),
            Transport::Geneve { vni, .. } => ("GeneveDecap", vni.to_string(), 0),
            Transport::Gre { key: Some(key), .. } => ("GREDecap", format!("KEY {key}"), 2),
            _ => ("GREDecap", String::new(), 2),
        };
        let decap = self.add(&name, class, &config, span);
        if frames == 2 {
            self.drop_at((decap, 0), &format!("{}/no_ethernet", it.prefix), span);
        }
        self.deliver((decap, frames), it);
        decap
    }

    /// Adds the elements that put the frames of a virtual device into its tunnel.
    fn encapsulate(
        &mut self,
        it: &Attachment<'_>,
        on: &PhysicalDevice,
        address: Ipv4Addr,
        querier: usize,
    ) {
        let span = it.device.span;
        let Some(remote) = it.device.transport.remote().filter(|_| !it.ends.send.is_empty()) else {
            return;
        };
        let name = |part: &str| format!("{}/{part}", it.prefix);
        let Some(tunnel) = tunnel_argument(&it.device.transport) else { return };
        let encap = self.add(&name("encap"), "TunnelEncap", &format!("{address}, {tunnel}"), span);
        it.ends.send.iter().for_each(|&from| self.connect((from, 0), (encap, 0), span));
        self.route(encap, on, Some(remote), querier, &name("next_hop"));
    }

    /// Connects packets to `remote`, or to the link if there is none, to the ARP querier, by the
    /// gateway if the link does not reach them.
    fn route(
        &mut self,
        from: usize,
        on: &PhysicalDevice,
        remote: Option<Ipv4Addr>,
        querier: usize,
        name: &str,
    ) {
        let behind = remote.is_some_and(|remote| !on.is_on_link(remote));
        let last = match on.gateway {
            Some(gateway) if remote.is_none() => {
                // Answers to pings go to the link or beyond it.
                let (address, length) = on.address.unwrap_or((gateway, 32));
                let config = format!("{address}/{length} 0, 0.0.0.0/0 {gateway} 0");
                self.append(from, (name, "StaticIPLookup", &config), on.span)
            }
            Some(gateway) if behind => {
                self.append(from, (name, "SetIPAddress", &gateway.to_string()), on.span)
            }
            _ => from,
        };
        self.connect((last, 0), (querier, 0), on.span);
    }
}

/// The tunnel of a virtual device as `TunnelEncap` and `TunnelDecap` take it.
fn tunnel_argument(transport: &Transport) -> Option<String> {
    Some(match transport {
        Transport::Vxlan { remote, vni, port, .. } => format!("vxlan {remote} {vni} {port}"),
        Transport::Geneve { remote, vni, port, .. } => format!("geneve {remote} {vni} {port}"),
        Transport::Gre { remote, key: Some(key), .. } => format!("gre {remote} {key}"),
        Transport::Gre { remote, key: None, .. } => format!("gre {remote}"),
        _ => return None,
    })
}

/// Adds the elements that take frames out of plain packets of tunnels, of all that comes by output 0 of an
/// element; returns the element and the output by which everything else leaves.
pub(super) fn add_plain(
    builder: &mut Builder,
    on: &PhysicalDevice,
    attachments: &[Attachment<'_>],
    from: usize,
) -> (usize, usize) {
    let mut rest = (from, 0);
    let Some((address, _)) = on.address else { return rest };
    let tunnels: Vec<(String, &Attachment<'_>)> = attachments
        .iter()
        .filter_map(|it| Some((tunnel_argument(&it.device.transport)?, it)))
        .collect();
    for (number, tunnels) in tunnels.chunks(MOST_TUNNELS).enumerate() {
        let arguments: Vec<&str> = tunnels.iter().map(|(tunnel, _)| &**tunnel).collect();
        let config = format!("{}, {address}, {}", on.mac_argument(), arguments.join(", "));
        let name = format!(
            "{}/plain{}",
            on.name,
            if number == 0 { String::new() } else { number.to_string() }
        );
        let plain = builder.add(&name, "TunnelDecap", &config, on.span);
        builder.connect(rest, (plain, 0), on.span);
        for (output, (_, it)) in tunnels.iter().enumerate() {
            builder.deliver((plain, output), it);
        }
        rest = (plain, tunnels.len());
    }
    rest
}

/// The patterns of `Classifier` for the tunnel header of a virtual device.
fn header_patterns(transport: &Transport) -> Vec<String> {
    match transport {
        Transport::Vxlan { vni, .. } | Transport::Geneve { vni, .. } => {
            vec![format!("4/{vni:06x}")]
        }
        // The key follows the checksum, if there is one.
        Transport::Gre { key: Some(key), .. } => {
            vec![format!("0/20%a0 2/6558 4/{key:08x}"), format!("0/a0%a0 2/6558 8/{key:08x}")]
        }
        Transport::Gre { key: None, .. } => vec!["0/00%20 2/6558".to_owned()],
        _ => Vec::new(),
    }
}
