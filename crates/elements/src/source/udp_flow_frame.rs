//! The frame of all flows of a `FastUDPFlows`, whose length and addresses handlers change.

use super::fast_udp_source::{set_ports, udp_frame};
use super::flow_source::{Endpoints, Flow, FrameLength};
use castanet_element::prelude::*;

/// The template of all frames.
#[derive(Clone)]
pub(super) struct UdpFlowFrame {
    pub(super) endpoints: Endpoints,
    pub(super) bytes: Vec<u8>,
    /// Number of the layout: each other length has another one.
    pub(super) layout: u64,
    checksum: bool,
}

impl UdpFlowFrame {
    pub(super) fn new(endpoints: Endpoints, length: FrameLength, checksum: bool) -> UdpFlowFrame {
        let bytes = udp_frame(&endpoints, (0, 0), length, checksum);
        UdpFlowFrame { endpoints, bytes, layout: 0, checksum }
    }

    /// Frames of the same length and layout with other addresses.
    fn with_endpoints(&self, endpoints: Endpoints) -> UdpFlowFrame {
        let length = FrameLength(self.bytes.len());
        let layout = self.layout;
        UdpFlowFrame { layout, ..UdpFlowFrame::new(endpoints, length, self.checksum) }
    }

    /// Makes a packet one of `flow`, whose packets are all the same.
    #[inline]
    pub(super) fn set_flow(packet: &mut Packet, flow: &mut Flow) {
        if flow.sent == 1 {
            set_ports(packet, flow.ports);
        }
        if let Some(mut udp) = packet.udp() {
            if flow.sent == 1 {
                flow.checksum = udp.checksum();
            } else {
                udp.set_src_port(flow.ports.0);
                udp.set_dst_port(flow.ports.1);
                udp.set_checksum(flow.checksum);
            }
        }
    }
}

#[handlers]
impl UdpFlowFrame {
    /// Length of the frames in bytes.
    #[read]
    fn length(&self) -> usize {
        self.bytes.len()
    }
    /// Sets the length of the frames in bytes; another one starts the source anew with other flows.
    #[write(length)]
    fn set_length(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let length = FrameLength::from_arg(text, names)?;
        let frame = UdpFlowFrame::new(self.endpoints.clone(), length, self.checksum);
        let layout = self.layout + u64::from(frame.length() != self.length());
        Ok(UdpFlowFrame { layout, ..frame })
    }
    /// Sets the source Ethernet address.
    #[write]
    fn srceth(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let Endpoints { ether: (_, dst), ip } = self.endpoints;
        let ether = (MacAddr::from_arg(text, names)?, dst);
        Ok(self.with_endpoints(Endpoints { ether, ip }))
    }
    /// Sets the destination Ethernet address.
    #[write]
    fn dsteth(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let Endpoints { ether: (src, _), ip } = self.endpoints;
        let ether = (src, MacAddr::from_arg(text, names)?);
        Ok(self.with_endpoints(Endpoints { ether, ip }))
    }
}
