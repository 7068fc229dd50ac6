//! `Socket`: packets by TCP, UDP and sockets between processes.

use super::socket_element::{EndpointArgs, SocketCore, impl_socket_element};
use crate::control::endpoint::MAX_PATH;
use crate::socket::{SocketAddress, SocketConfig, Transport};
use castanet_element::prelude::*;
use std::net::SocketAddrV4;
use std::path::PathBuf;

/// Sends packets to a socket, and emits what comes from there.
///
/// `TCP, ADDR, PORT` and `UDP, ADDR, PORT`, with LOCAL_ADDR and LOCAL_PORT
/// behind them, or `UNIX, FILENAME` and `UNIX_DGRAM, FILENAME`, with
/// LOCAL_FILENAME behind. Packets do not flow through: those that come in are
/// sent, those that are received come out.
///
/// A client sends there; a server waits there, for one client after the other
/// or, without connections, for whoever sends, and answers the last one. It is
/// a client if CLIENT says so, or if a local place is given or there are no
/// outputs. A UDP client of 0.0.0.0 sends each packet to its destination
/// annotation. A stream has no packets: each read makes one, up to SNAPLEN.
///
/// ALLOW and DENY name routing tables, such as a `RadixIPLookup`: a server lets
/// in whom ALLOW has, and of all others those whom DENY has not.
///
/// ```text
/// Socket(TCP, 0.0.0.0, 80) -> Print -> Discard;
/// FromDevice(eth0) -> Socket(UDP, 10.0.0.2, 4000);
/// ```
#[derive(Element)]
#[element(args = SocketArgs, ports = "0-1/0-1", alias = "FromSocket", alias = "ToSocket")]
pub struct Socket(SocketCore);

/// What can be set.
#[derive(Args)]
pub struct SocketArgs {
    /// `TCP`, `UDP`, `UNIX` or `UNIX_DGRAM`.
    #[arg]
    r#type: String,
    /// Where: an address and a port, or a file; then where from.
    #[arg(rest)]
    places: Vec<String>,
    /// Whether to send to the place instead of waiting there.
    #[arg(keyword)]
    client: Option<bool>,
    /// The most bytes of a packet that is received.
    #[arg(keyword, default = 2048, range = 1..=1048576)]
    snaplen: u32,
    /// Room in front of packets that are received.
    #[arg(keyword, default = 28, range = ..=65535)]
    headroom: u32,
    /// Whether a TCP segment is sent at once, however short.
    #[arg(keyword, default = true)]
    nodelay: bool,
    /// Whether packets get the time when they were received.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// The most bytes that may wait to be sent.
    #[arg(keyword)]
    sndbuf: Option<u32>,
    /// The most bytes that may wait to be received.
    #[arg(keyword)]
    rcvbuf: Option<u32>,
    /// Whether to write a line about each client that comes or goes.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// A routing table with the addresses that a server lets in.
    #[arg(keyword)]
    pub(super) allow: Option<String>,
    /// A routing table with the addresses that a server does not let in, unless
    /// ALLOW has them.
    #[arg(keyword)]
    pub(super) deny: Option<String>,
    /// Accepted: it is about PlanetLab's ports.
    #[arg(keyword, default = false)]
    proper: bool,
}

impl Build for Socket {
    type Args = SocketArgs;

    fn build(settings: SocketArgs, setup: &Setup) -> Result<Self, ArgError> {
        let places = EndpointArgs::new(&settings.places, setup.names);
        let (transport, place, local, learns) = match settings.r#type.to_ascii_uppercase().as_str()
        {
            "TCP" => in_network(Transport::Stream, places)?,
            "UDP" => in_network(Transport::Datagrams, places)?,
            "UNIX" => in_files(Transport::Stream, places)?,
            "UNIX_DGRAM" => in_files(Transport::Datagrams, places)?,
            _ => {
                let error = ArgError::new(format!("unknown socket type `{}'", settings.r#type));
                return Err(error.help("TYPE is TCP, UDP, UNIX or UNIX_DGRAM"));
            }
        };
        let is_client = settings.client.unwrap_or(setup.outputs == 0 || local.is_some());
        _ = settings.proper;
        Ok(Socket(SocketCore {
            label: format!("{} :: Socket", setup.name),
            name: setup.name.to_owned(),
            verbose: settings.verbose,
            fit: |_| true,
            config: SocketConfig {
                local,
                client: is_client && !learns,
                snaplen: settings.snaplen as usize,
                headroom: settings.headroom as usize,
                send_buffer: settings.sndbuf,
                receive_buffer: settings.rcvbuf,
                nodelay: settings.nodelay,
                timestamps: settings.timestamp,
                is_gated: settings.allow.is_some() || settings.deny.is_some(),
                ..SocketConfig::new(transport, place)
            },
        }))
    }
}

/// What carries packets to where, from where, and whether that is yet to be
/// learned from who sends.
type Found = (Transport, SocketAddress, Option<SocketAddress>, bool);

fn in_network(transport: Transport, mut places: EndpointArgs<'_>) -> Result<Found, ArgError> {
    let place = SocketAddrV4::new(places.needed("ADDR")?, places.needed("PORT")?);
    let address: Option<Ipv4Addr> = places.optional("LOCAL_ADDR")?;
    let port: Option<u16> = places.optional("LOCAL_PORT")?;
    let learns: Option<bool> = places.optional("WAIT_LEARN")?;
    places.end()?;
    let local =
        address.map(|address| SocketAddress::Ip(SocketAddrV4::new(address, port.unwrap_or(0))));
    Ok((transport, SocketAddress::Ip(place), local, learns.unwrap_or(false)))
}

fn in_files(transport: Transport, mut places: EndpointArgs<'_>) -> Result<Found, ArgError> {
    let place: String = places.needed("FILENAME")?;
    let local: Option<String> = places.optional("LOCAL_FILENAME")?;
    places.end()?;
    for (side, file) in [("remote", Some(&place)), ("local", local.as_ref())] {
        if let Some(file) = file.filter(|file| file.len() >= MAX_PATH) {
            return Err(ArgError::new(format!("{side} filename '{file}' too long")));
        }
    }
    let file = |text: String| SocketAddress::File(PathBuf::from(text));
    Ok((transport, file(place), local.map(file), false))
}

impl_socket_element!(Socket);
