//! `TunnelDecap`: takes Ethernet frames out of tunnels over IPv4.

use super::tunnel_argument::TunnelArgument;
use castanet_element::prelude::*;
use castanet_kit::tunnel::{Duplicate, Tunnel, TunnelTable};

/// Takes Ethernet frames out of tunnels over IPv4: by output 0 those of the first tunnel, and so on.
/// Everything else leaves unchanged by the last output.
///
/// The packets are Ethernet frames. Each tunnel is `vxlan REMOTE VNI [PORT]` (RFC 7348), `geneve REMOTE VNI
/// [PORT]` (RFC 8926) or `gre REMOTE [KEY]` (RFC 2784, 2890). The element takes out what has come with a
/// plain outer header, as Linux and Open vSwitch send it: to ETHER and ADDRESS, from REMOTE, valid, of the length of the
/// frame, no fragment, without IP options, Geneve options, GRE checksum or
/// sequence number. For the rest, elements such as `CheckIPHeader`, `IPClassifier`, `CheckUDPHeader` and `VXLANDecap` may stand
/// behind the last output.
///
/// ```click
/// in -> d :: TunnelDecap(0:0:0:0:0:2, 2.0.0.2, vxlan 1.0.0.1 7, gre 1.0.0.1) -> out; d[1] -> gre; d[2] -> rest
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1:9 > 2.0.0.2:4789 udp nocheck data 08000000000007000102030405060708090a0b0c0d0e
/// < out hex 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 proto 47 data 000065580102030405060708090a0b0c0d0e
/// < gre hex 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1:9 > 2.0.0.2:4789 udp nocheck data 08000000000008000102030405060708090a0b0c0d0e
/// < rest eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1:9 > 2.0.0.2:4789 udp nocheck data 08000000000008000102030405060708090a0b0c0d0e
/// > in  hex 61
/// < rest hex 61
/// = d.tunnels vxlan 1.0.0.1 7\ngre 1.0.0.1
/// = d.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "tunnel", args = TunnelDecapArgs, methods, ports = "1/-")]
pub struct TunnelDecap {
    tunnels: Vec<TunnelArgument>,
    table: TunnelTable,
    /// The last output.
    rest: u8,
}

#[derive(Args)]
pub struct TunnelDecapArgs {
    /// Ethernet address of this end.
    #[arg]
    ether: MacAddr,
    /// IPv4 address of this end.
    #[arg]
    address: Ipv4Addr,
    /// One tunnel for each output but the last.
    #[arg(rest)]
    tunnels: Vec<TunnelArgument>,
}

impl Build for TunnelDecap {
    type Args = TunnelDecapArgs;

    fn build(args: TunnelDecapArgs, setup: &Setup) -> Result<Self, ArgError> {
        let TunnelDecapArgs { ether, address, tunnels } = args;
        if tunnels.len() + 1 != setup.outputs {
            let error = format!("tunnels: {}, outputs: {}", tunnels.len(), setup.outputs);
            return Err(ArgError::new(error)
                .help("each tunnel has one output, and the last output is for all other packets"));
        }
        let rest = Port::new(tunnels.len()).and_then(Port::number);
        let Some(rest) = rest.and_then(|rest| u8::try_from(rest).ok()) else {
            return Err(ArgError::new(format!("{} tunnels are too many", tunnels.len()))
                .help("put another TunnelDecap behind the last output"));
        };
        let plain: Vec<Tunnel> = tunnels.iter().map(|it| it.0).collect();
        let table = TunnelTable::new(ether.octets(), address, &plain);
        let table = table.map_err(|Duplicate(first, second)| {
            ArgError::new(format!("tunnel {second} is the same as tunnel {first}"))
        })?;
        Ok(TunnelDecap { tunnels, table, rest })
    }
}

#[handlers]
impl TunnelDecap {
    /// The tunnels, one a line, in the order of outputs.
    #[read]
    fn tunnels(&self) -> String {
        let lines: Vec<String> =
            self.tunnels.iter().map(|&it| Value::from(it).to_string()).collect();
        lines.join("\n")
    }
}

impl PerPacket for TunnelDecap {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> Port {
        let Some(inner) = self.table.find(packet.bytes()) else { return Port::known(self.rest) };
        packet.pull_front(inner.offset);
        Port::known(inner.tunnel)
    }
}
