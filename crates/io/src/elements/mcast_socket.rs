//! `McastSocket`: sends packets to a multicast group, and receives from it.

use super::duplex::impl_duplex;
use super::socket_element::SocketCore;
use crate::socket::{SocketAddress, SocketConfig, Transport};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use std::net::SocketAddrV4;

/// Sends packets to a multicast group by UDP, and emits the packets that its members send.
///
/// Packets do not pass through the element: it sends its input to all members of
/// the group MCASTIP at port MCASTPORT, and emits the packets that they send.
/// SOURCEIP, an address of this machine, selects the interface; the element then
/// does not emit the packets that it has sent itself. Without SOURCEIP the host's
/// routes select the interface, and `LOOP false` keeps the host from receiving its
/// own packets.
///
/// ```text
/// link :: McastSocket(239.0.0.1, 1234, 10.0.0.1) -> Print -> Discard;
/// FromDevice(eth0) -> link;
/// ```
#[derive(Element)]
#[element(args = McastSocketArgs, ports = "0-1/0-1")]
pub struct McastSocket(SocketCore);

/// The arguments of `McastSocket`.
#[derive(Args)]
pub struct McastSocketArgs {
    /// The group's address.
    #[arg]
    mcastip: Ipv4Addr,
    /// The group's port.
    #[arg(range = 1..)]
    mcastport: u16,
    /// An address of this machine, which selects the interface.
    #[arg]
    sourceip: Option<Ipv4Addr>,
    /// The port to send packets from; 0 for any free one.
    #[arg(default = 0)]
    sourceport: u16,
    /// Whether processes on this machine receive the packets.
    #[arg(keyword, default = true)]
    r#loop: bool,
    /// The longest packet to receive, in bytes.
    #[arg(keyword, default = 2048, range = 1..=1048576)]
    snaplen: u32,
    /// Number of free bytes before received packets.
    #[arg(keyword, default = 28, range = ..=65535)]
    headroom: u32,
    /// Whether packets carry the time at which they were received.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// The largest number of bytes that may wait to be sent.
    #[arg(keyword)]
    sndbuf: Option<u32>,
    /// The largest number of bytes that may wait to be received.
    #[arg(keyword)]
    rcvbuf: Option<u32>,
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &McastSocketArgs| {
        Resource::port("UDP", &it.mcastip.to_string(), it.mcastport, "joins this group")
    })
}

impl Build for McastSocket {
    type Args = McastSocketArgs;

    fn build(settings: McastSocketArgs, setup: &Setup) -> Result<Self, ArgError> {
        if !settings.mcastip.is_multicast() {
            let error = ArgError::new(format!("{} is no multicast address", settings.mcastip));
            return Err(error.at("MCASTIP").help("one from 224.0.0.0 to 239.255.255.255"));
        }
        let source = settings.sourceip.map(|ip| SocketAddrV4::new(ip, settings.sourceport));
        let transport = Transport::Group { source, loopback: settings.r#loop };
        let place = SocketAddrV4::new(settings.mcastip, settings.mcastport);
        Ok(McastSocket(SocketCore {
            label: format!("{} :: McastSocket", setup.name),
            name: setup.name.to_owned(),
            verbose: false,
            fit: |_| true,
            config: SocketConfig {
                snaplen: settings.snaplen as usize,
                headroom: settings.headroom as usize,
                send_buffer: settings.sndbuf,
                receive_buffer: settings.rcvbuf,
                timestamps: settings.timestamp,
                ..SocketConfig::new(transport, SocketAddress::Ip(place))
            },
        }))
    }
}

impl_duplex!(McastSocket(SocketCore));
