//! `TenantDrop`: drops frames that reach no tenant or no wire, and counts them by their reason.

use castanet_element::prelude::*;

/// Drops frames between physical and virtual devices, and counts them by their reason.
///
/// `castanet tenants` puts this element where frames are for no tenant, and where frames of a tenant may not go on.
///
/// ```click
/// a -> other :: TenantDrop(other_frames);
/// b -> in :: TenantDrop(over_in);
/// c -> out :: TenantDrop(over_out);
/// d -> foreign :: TenantDrop(spoofed);
/// e -> closed :: TenantDrop(unread);
/// f -> parts :: TenantDrop(fragments);
/// g -> packets :: TenantDrop(other_packets);
/// h -> short :: TenantDrop(truncated);
/// i -> network :: TenantDrop(unknown_network);
/// j -> inner :: TenantDrop(no_ethernet);
/// > a hex 61
/// > b hex 61
/// > c hex 61
/// > d hex 61
/// > e hex 61
/// > f hex 61
/// > g hex 61
/// > h hex 61
/// > i hex 61
/// > j hex 61
/// > j hex 62
/// = other.drops.other_frames 1
/// = in.drops.over_in 1
/// = out.drops.over_out 1
/// = foreign.drops.spoofed 1
/// = closed.drops.unread 1
/// = parts.drops.fragments 1
/// = packets.drops.other_packets 1
/// = short.drops.truncated 1
/// = network.drops.unknown_network 1
/// = inner.drops.no_ethernet 2
/// = inner.count 2
/// ! inner.reset_counts
/// = inner.count 0
/// ```
#[derive(Clone, Element)]
#[element(ports = "1/0", processing = "h/h")]
pub struct TenantDrop {
    /// The reason by which frames are counted: the name of one of the drops.
    #[arg]
    reason: TenantDropExit,
}

#[derive(Fate)]
pub enum TenantDropExit {
    /// Frames of a physical device that are of no VLAN, address or protocol of a tenant.
    #[drop]
    OtherFrames,
    /// Frames to a tenant beyond `bandwidth_in` of its device.
    #[drop]
    OverIn,
    /// Frames of a tenant beyond `bandwidth_out` of its device.
    #[drop]
    OverOut,
    /// Frames of a tenant whose source address is not one of its `address`.
    #[drop]
    Spoofed,
    /// Frames to a device from which its tenant does not receive. A tenant whose configuration was removed receives
    /// from none.
    #[drop]
    Unread,
    /// Fragments of packets that may have a tunnel. Lower the MTU inside the tunnel at its other end.
    #[drop]
    Fragments,
    /// IPv4 packets from an address that is no `remote` of a tunnel, or of another protocol than the tunnels from there.
    #[drop]
    OtherPackets,
    /// Packets that are shorter than the header of their tunnel.
    #[drop]
    Truncated,
    /// Packets of a tunnel whose network or key is that of no tenant.
    #[drop]
    UnknownNetwork,
    /// Packets in a GRE tunnel that are no Ethernet frames.
    #[drop]
    NoEthernet,
}

/// All of them.
const REASONS: [TenantDropExit; 10] = [
    TenantDropExit::OtherFrames,
    TenantDropExit::OverIn,
    TenantDropExit::OverOut,
    TenantDropExit::Spoofed,
    TenantDropExit::Unread,
    TenantDropExit::Fragments,
    TenantDropExit::OtherPackets,
    TenantDropExit::Truncated,
    TenantDropExit::UnknownNetwork,
    TenantDropExit::NoEthernet,
];

impl FromArg for TenantDropExit {
    const SYNTAX: &'static str = "the name of a reason to drop, such as other_frames";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let mut named = TenantDropExit::FATES.iter().zip(REASONS);
        let found = named.find(|(fate, _)| fate.name == text.trim());
        let wrong = || ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
        found.map(|(_, reason)| reason).ok_or_else(wrong)
    }
}

/// Counter of the frames that one worker has dropped.
#[derive(Default, Local)]
#[write(reset_counts)]
pub struct TenantDropState {
    /// Frames dropped, since the last reset if there was one.
    #[read]
    count: u64,
}

impl PerBatch for TenantDrop {
    type On = on::Any;
    type Local = TenantDropState;
    type Fate = TenantDropExit;

    fn batch(&self, state: &mut TenantDropState, _: usize, batch: Batch, cx: &mut Cx) {
        state.count += batch.len() as u64;
        cx.emit_batch(self.reason, batch);
    }
}
