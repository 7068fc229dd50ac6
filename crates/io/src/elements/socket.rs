//! `Socket`: sends and receives packets by TCP, UDP or a Unix socket.

use super::duplex::impl_duplex;
use super::socket_element::{EndpointArgs, SocketCore};
use crate::control::endpoint::MAX_PATH;
use crate::socket::{SocketAddress, SocketConfig, Transport};
use castanet_element::args::{TcpPort, UdpPort};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use std::net::SocketAddrV4;
use std::path::PathBuf;

/// Sends packets by a TCP, UDP or Unix socket, and emits the packets that it receives.
///
/// The arguments are `TCP, ADDR, PORT` or `UDP, ADDR, PORT`, optionally followed by
/// LOCAL_ADDR, LOCAL_PORT and WAIT_LEARN, or `UNIX, FILENAME` or `UNIX_DGRAM, FILENAME`,
/// optionally followed by LOCAL_FILENAME. Packets do not pass through the element:
/// it sends its input, and emits the packets that it receives.
///
/// A client sends to the address. A server listens at the address: with connections
/// it serves one client after the other; without, it receives from every sender and
/// sends to the last one. The element is a client if CLIENT is true, or if CLIENT is
/// not given and there is a local address or no output. A UDP client of 0.0.0.0
/// sends each packet to its destination annotation. A stream has no packet
/// boundaries: each read makes a packet, of up to SNAPLEN bytes.
///
/// ALLOW and DENY name routing tables, such as a `RadixIPLookup`: a server accepts
/// the addresses that ALLOW contains, and all others that DENY does not contain.
///
/// ```text
/// Socket(TCP, 0.0.0.0, 80) -> Print -> Discard;
/// FromDevice(eth0) -> Socket(UDP, 10.0.0.2, 4000);
/// ```
#[derive(Element)]
#[element(args = SocketArgs, ports = "0-1/0-1", alias = "FromSocket", alias = "ToSocket")]
pub struct Socket(SocketCore);

/// The reason why the element needs the address.
const REASON: &str = "sends and receives packets there";

/// The arguments of `Socket`.
#[derive(Args)]
pub struct SocketArgs {
    /// `TCP`, `UDP`, `UNIX` or `UNIX_DGRAM`.
    #[arg]
    r#type: String,
    /// The remote address and port, or the file; then the local ones, and WAIT_LEARN.
    #[arg(rest)]
    places: Vec<String>,
    /// The remote address, if it has no place.
    #[arg(keyword)]
    addr: Option<String>,
    /// The remote port, if it has no place.
    #[arg(keyword)]
    port: Option<String>,
    /// The local address, if it has no place.
    #[arg(keyword)]
    local_addr: Option<String>,
    /// The local port, if it has no place.
    #[arg(keyword)]
    local_port: Option<String>,
    /// Whether the element is a server even if it has a local address or no output: it sends to
    /// the address from which the last datagram came. For TCP and UDP.
    #[arg(keyword)]
    wait_learn: Option<String>,
    /// The file of the remote socket, if it has no place.
    #[arg(keyword)]
    filename: Option<String>,
    /// The file of the local socket, if it has no place.
    #[arg(keyword)]
    local_filename: Option<String>,
    /// Whether the element is a client, which sends to the address, or a server, which listens.
    #[arg(keyword)]
    client: Option<bool>,
    /// The longest packet to receive, in bytes.
    #[arg(keyword, default = 2048, range = 1..=1048576)]
    snaplen: u32,
    /// Number of free bytes before received packets.
    #[arg(keyword, default = 28, range = ..=65535)]
    headroom: u32,
    /// Whether TCP sends short segments at once (`TCP_NODELAY`).
    #[arg(keyword, default = true)]
    nodelay: bool,
    /// Whether packets carry the time at which they were received.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// The largest number of bytes that may wait to be sent.
    #[arg(keyword)]
    sndbuf: Option<u32>,
    /// The largest number of bytes that may wait to be received.
    #[arg(keyword)]
    rcvbuf: Option<u32>,
    /// Whether to write a line about each client that connects or disconnects.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// A routing table of the addresses that a server accepts.
    #[arg(keyword)]
    pub(super) allow: Option<String>,
    /// A routing table of the addresses that a server rejects, unless ALLOW contains
    /// them.
    #[arg(keyword)]
    pub(super) deny: Option<String>,
    /// Ignored: it concerns the ports of PlanetLab.
    #[arg(keyword, default = false)]
    proper: bool,
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &SocketArgs| {
        let kind = it.r#type.to_ascii_uppercase();
        let is_file = kind.starts_with("UNIX");
        let mut places = it.places.iter();
        let first = if is_file { &it.filename } else { &it.addr }.as_ref();
        let first = first.or_else(|| places.next()).map_or("", String::as_str);
        if is_file {
            return vec![Resource::new(ResourceKind::Socket, format!("UNIX {first}"), REASON)];
        }
        let port = it.port.as_ref().or_else(|| places.next());
        let port = port.and_then(|port| TcpPort::from_arg(port, names).ok());
        let port = port.map_or(0, |port| port.0);
        let mut all = Resource::port(&kind, first, port, REASON);
        if it.client == Some(true) {
            // A client connects to that port and binds none.
            all.truncate(1);
        }
        all
    })
}

impl Build for Socket {
    type Args = SocketArgs;

    fn build(settings: SocketArgs, setup: &Setup) -> Result<Self, ArgError> {
        let places = EndpointArgs::new(&settings.places, setup.names)
            .keyword("ADDR", settings.addr.as_ref())
            .keyword("PORT", settings.port.as_ref())
            .keyword("LOCAL_ADDR", settings.local_addr.as_ref())
            .keyword("LOCAL_PORT", settings.local_port.as_ref())
            .keyword("WAIT_LEARN", settings.wait_learn.as_ref())
            .keyword("FILENAME", settings.filename.as_ref())
            .keyword("LOCAL_FILENAME", settings.local_filename.as_ref());
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

/// The transport, the remote address, the local address, and WAIT_LEARN.
type SocketPlaces = (Transport, SocketAddress, Option<SocketAddress>, bool);

/// A port argument, which may be a name of the transport's protocol.
fn port(
    transport: &Transport,
    name: &str,
    places: &mut EndpointArgs<'_>,
) -> Result<Option<u16>, ArgError> {
    Ok(match transport {
        Transport::Datagrams => places.optional(name)?.map(|port: UdpPort| port.0),
        _ => places.optional(name)?.map(|port: TcpPort| port.0),
    })
}

fn in_network(
    transport: Transport,
    mut places: EndpointArgs<'_>,
) -> Result<SocketPlaces, ArgError> {
    let place: Ipv4Addr = places.needed("ADDR")?;
    let missing = || ArgError::new("required argument missing").at("PORT");
    let remote_port = port(&transport, "PORT", &mut places)?.ok_or_else(missing)?;
    let place = SocketAddrV4::new(place, remote_port);
    let address: Option<Ipv4Addr> = places.optional("LOCAL_ADDR")?;
    let local_port = port(&transport, "LOCAL_PORT", &mut places)?;
    let learns: Option<bool> = places.optional("WAIT_LEARN")?;
    places.end()?;
    let has_local = address.is_some() || local_port.is_some();
    let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED);
    let local = SocketAddrV4::new(address, local_port.unwrap_or(0));
    let local = has_local.then_some(SocketAddress::Ip(local));
    Ok((transport, SocketAddress::Ip(place), local, learns.unwrap_or(false)))
}

fn in_files(transport: Transport, mut places: EndpointArgs<'_>) -> Result<SocketPlaces, ArgError> {
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

impl_duplex!(Socket(SocketCore));
