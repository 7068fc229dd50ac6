//! Bridge protocol data units, the messages of the spanning tree (IEEE 802.1D-1998, 9), in Ethernet frames.

use crate::{Ethernet, MacAddr};

/// The group address of bridges, to which the messages are sent.
pub const BRIDGES: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);
/// Units of the times in a message in a second.
pub const TIME_UNITS: u16 = 256;
/// Flag: the topology changes.
pub const TOPOLOGY_CHANGE: u8 = 0x01;
/// Flag: acknowledges a notification that the topology changes.
pub const TOPOLOGY_CHANGE_ACK: u8 = 0x80;

/// Type of a configuration message.
const CONFIGURATION: u8 = 0;
/// Type of a notification that the topology changes.
const NOTIFICATION: u8 = 0x80;
/// Header of the logical link control (IEEE 802.2): the spanning tree, unnumbered information.
const LINK_CONTROL: [u8; 3] = [0x42, 0x42, 3];
/// Length of a notification with the header of the logical link control.
const NOTIFICATION_LEN: usize = 7;

header! {
    /// A configuration message behind an Ethernet header, with the header of the logical link control.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |     DSAP      |     SSAP      |    Control    |  Protocol     |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |               |    Version    |     Type      |     Flags     |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                                                               |
    /// +                        Root Identifier                        +
    /// |                                                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                        Root Path Cost                         |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                                                               |
    /// +                       Bridge Identifier                       +
    /// |                                                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |        Port Identifier        |          Message Age          |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |            Max Age            |          Hello Time           |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |         Forward Delay         |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    ConfigurationBpdu [38] {
        /// Protocol identifier: 0.
        protocol, set_protocol: u16 = PROTOCOL @ 3;
        /// Version of the protocol: 0, or more for successors whose messages begin alike.
        version, set_version: u8 = VERSION @ 5;
        /// Type of the message.
        kind, set_kind: u8 = KIND @ 6;
        /// [`TOPOLOGY_CHANGE`] and [`TOPOLOGY_CHANGE_ACK`].
        flags, set_flags: u8 = FLAGS @ 7;
        /// Identifier of the root: priority, then Ethernet address.
        root, set_root: u64 = ROOT @ 8;
        /// Cost of the path from the sender to the root.
        cost, set_cost: u32 = COST @ 16;
        /// Identifier of the sender.
        bridge, set_bridge: u64 = BRIDGE @ 20;
        /// The sender's port.
        port, set_port: u16 = PORT @ 28;
        /// Age of the information, in [`TIME_UNITS`], as all times.
        message_age, set_message_age: u16 = MESSAGE_AGE @ 30;
        /// Age at which the information expires.
        max_age, set_max_age: u16 = MAX_AGE @ 32;
        /// Time between two messages.
        hello_time, set_hello_time: u16 = HELLO_TIME @ 34;
        /// Time for which a port listens, and then learns, before it forwards.
        forward_delay, set_forward_delay: u16 = FORWARD_DELAY @ 36;
    }
}

impl Default for ConfigurationBpdu {
    /// A message whose fields are all zero.
    fn default() -> Self {
        let mut message = ConfigurationBpdu([0; ConfigurationBpdu::LEN]);
        message.0[..LINK_CONTROL.len()].copy_from_slice(&LINK_CONTROL);
        message
    }
}

/// A message of the spanning tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bpdu {
    /// The root, as the sender knows it.
    Configuration(ConfigurationBpdu),
    /// The topology changes.
    TopologyChange,
}

impl Bpdu {
    /// Length in bytes of the frames that [`Bpdu::frame`] makes: the shortest of Ethernet.
    pub const FRAME_LEN: usize = 60;

    /// Parses an Ethernet frame; `None` if it is no message of the spanning tree, or cut off. Messages of
    /// later versions are taken for those of version 0 that they begin with.
    pub fn parse(frame: &[u8]) -> Option<Bpdu> {
        let (ethernet, rest) = Ethernet::from_prefix(frame)?;
        let message = rest.get(..usize::from(ethernet.ether_type()))?;
        let [dsap, ssap, control, protocol @ .., _, kind] =
            message.first_chunk::<NOTIFICATION_LEN>()?;
        if [*dsap, *ssap, *control] != LINK_CONTROL || *protocol != [0, 0] {
            return None;
        }
        match *kind {
            CONFIGURATION => {
                let (message, _) = ConfigurationBpdu::from_prefix(message)?;
                Some(Bpdu::Configuration(*message))
            }
            NOTIFICATION => Some(Bpdu::TopologyChange),
            _ => None,
        }
    }

    /// Makes the frame from `src` to all bridges of the link.
    pub fn frame(&self, src: MacAddr) -> [u8; Bpdu::FRAME_LEN] {
        let mut message = ConfigurationBpdu::default();
        let len = match self {
            Bpdu::Configuration(it) => {
                message = *it;
                message.set_kind(CONFIGURATION);
                ConfigurationBpdu::LEN
            }
            Bpdu::TopologyChange => {
                message.set_kind(NOTIFICATION);
                NOTIFICATION_LEN
            }
        };
        let mut frame = [0; Bpdu::FRAME_LEN];
        let (header, rest) = frame.split_at_mut(Ethernet::LEN);
        header.copy_from_slice(Ethernet::new(BRIDGES, src, len as u16).bytes());
        rest[..len].copy_from_slice(&message.bytes()[..len]);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of the bridge of Linux 6: root 8000.02420f6d11aa behind cost 100, sent by 8000.0a58c0a80101
    /// from its port 2, with both flags.
    const FROM_LINUX: [u8; 52] = [
        0x01, 0x80, 0xc2, 0, 0, 0, 0x0a, 0x58, 0xc0, 0xa8, 1, 1, 0, 38, 0x42, 0x42, 3, 0, 0, 0, 0,
        0x81, 0x80, 0, 0x02, 0x42, 0x0f, 0x6d, 0x11, 0xaa, 0, 0, 0, 100, 0x80, 0, 0x0a, 0x58, 0xc0,
        0xa8, 1, 1, 0x80, 2, 1, 0, 20, 0, 2, 0, 15, 0,
    ];

    #[test]
    fn a_message_is_parsed_and_made() {
        let Some(Bpdu::Configuration(message)) = Bpdu::parse(&FROM_LINUX) else { panic!("parsed") };
        assert_eq!(message.root(), 0x8000_0242_0f6d_11aa);
        assert_eq!((message.cost(), message.port()), (100, 0x8002));
        assert_eq!(message.bridge(), 0x8000_0a58_c0a8_0101);
        assert_eq!(message.flags(), TOPOLOGY_CHANGE | TOPOLOGY_CHANGE_ACK);
        let times = (message.message_age(), message.max_age(), message.hello_time());
        assert_eq!(times, (TIME_UNITS, 20 * TIME_UNITS, 2 * TIME_UNITS));
        assert_eq!(message.forward_delay(), 15 * TIME_UNITS);
        let frame = Bpdu::Configuration(message).frame(MacAddr([0x0a, 0x58, 0xc0, 0xa8, 1, 1]));
        assert_eq!(frame[..52], FROM_LINUX);
        assert_eq!(frame[52..], [0; 8]);
        let frame = Bpdu::TopologyChange.frame(MacAddr([2, 0, 0, 0, 0, 1]));
        assert_eq!(frame[12..21], [0, 7, 0x42, 0x42, 3, 0, 0, 0, 0x80]);
        assert_eq!(Bpdu::parse(&frame), Some(Bpdu::TopologyChange));
    }

    #[test]
    fn other_frames_are_none() {
        for len in 0..FROM_LINUX.len() {
            assert_eq!(Bpdu::parse(&FROM_LINUX[..len]), None, "{len}");
        }
        // The length, the service access points, the protocol, the type.
        for (at, byte) in [(13, 37), (13, 6), (14, 0x43), (16, 0), (18, 1), (20, 2)] {
            let mut frame = FROM_LINUX;
            frame[at] = byte;
            assert_eq!(Bpdu::parse(&frame), None, "{at}");
        }
    }
}
