//! `CheckARPHeader`: checks the lengths in ARP headers.

use castanet_element::prelude::*;
use castanet_element::wire::arp::{ArpPrefix, LengthFault};

/// Checks the length of ARP packets and the lengths of the addresses in them.
///
/// Addresses of Ethernet must have 6 bytes, those of IPv4 4 and those of IPv6
/// 16; other hardware and protocols may have addresses of any length. Invalid
/// packets leave by output 1, or are dropped if it is not connected. The
/// network header of valid packets is set to the ARP header. Each worker
/// reports its first invalid packet.
///
/// ```click
/// in -> c :: CheckARPHeader(14) -> out
/// > in  eth 0:0:0:0:0:5 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.1 tell 1.0.0.5 0:0:0:0:0:5
/// > in  hex 00 00 00 00 00 01 00 00 00 00 00 02 08 06 00 01 08 00 06 04 00
/// > in  eth 0:0:0:0:0:5 > ff:ff:ff:ff:ff:ff type 0x806 hex 00 01 08 00 06 04 00 01 00
/// > in  eth 0:0:0:0:0:5 > ff:ff:ff:ff:ff:ff type 0x806 hex 00 01 08 00 00 00 00 01
/// > in  eth 0:0:0:0:0:5 > ff:ff:ff:ff:ff:ff type 0x806 hex 00 07 08 00 00 00 00 01
/// < out eth 0:0:0:0:0:5 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.1 tell 1.0.0.5 0:0:0:0:0:5 ; network 14
/// ~ ARP header check failed: tiny packet
/// = c.count 1
/// = c.drops 4
/// = c.drops.tiny_packet 1
/// = c.drops.too_small 1
/// = c.drops.bad_hardware 1
/// = c.drops.bad_protocol 1
/// ```
/// ```click
/// in -> c :: CheckARPHeader(VERBOSE true) -> out;  c[1] -> bad
/// > in  hex 00 07 86 dd 00 10 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
/// > in  hex 00 07 12 34 01 00 00 01 05 06
/// > in  hex 00 07 12 34 ff ff 00 01 05 06
/// < out hex 00 07 86 dd 00 10 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
/// < out hex 00 07 12 34 01 00 00 01 05 06
/// < bad hex 00 07 12 34 ff ff 00 01 05 06
/// ~ ARP header check failed: too small for addresses
/// = c.drop_details 0\ttiny packet\n1\ttoo small for addresses\n0\tbad hardware type/length\n0\tbad protocol type/length
/// ```
#[derive(Element)]
#[element(room = "arp", args = CheckARPHeaderArgs, processing = "a/ah")]
pub struct CheckARPHeader {
    offset: usize,
    verbose: bool,
    two_outputs: bool,
}

#[derive(Args)]
pub struct CheckARPHeaderArgs {
    /// Offset of the ARP header, in bytes.
    #[arg(default = 0)]
    offset: u32,
    /// Whether to report every invalid packet, not only the first.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether to count by fault; ignored, because the element always does.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    details: bool,
}

impl Build for CheckARPHeader {
    type Args = CheckARPHeaderArgs;
    fn build(args: CheckARPHeaderArgs, setup: &Setup) -> Result<Self, ArgError> {
        let (offset, two_outputs) = (args.offset as usize, setup.outputs > 1);
        Ok(CheckARPHeader { offset, verbose: args.verbose, two_outputs })
    }
}

#[derive(Fate)]
pub enum CheckARPHeaderExit {
    /// Packets with a valid ARP header.
    Good,
    /// All other packets, if output 1 is connected.
    #[optional]
    Bad,
    /// Packets shorter than an ARP header without its addresses (8 bytes).
    #[drop]
    TinyPacket,
    /// Packets shorter than the addresses whose lengths the ARP header gives.
    #[drop]
    TooSmall,
    /// Packets about Ethernet addresses that have not 6 bytes.
    #[drop]
    BadHardware,
    /// Packets about IPv4 addresses that have not 4 bytes, or IPv6 addresses that have not 16.
    #[drop]
    BadProtocol,
}

/// Counters of one worker, and the faults of the current burst to report.
#[derive(Default, Local)]
#[local(methods)]
pub struct CheckARPHeaderState {
    /// Number of valid packets.
    #[read]
    #[portable]
    count: u64,
    /// Number of invalid packets.
    #[read]
    #[portable]
    drops: u64,
    #[portable]
    faults: [u64; LengthFault::ALL.len()],
    reports: Vec<LengthFault>,
}

#[handlers]
impl CheckARPHeaderState {
    /// Number of invalid packets for each fault.
    #[read]
    fn drop_details(&self) -> Value {
        let texts = LengthFault::ALL.map(|fault| fault.text().into());
        Value::Counts(self.faults.into_iter().zip(texts).collect())
    }
}

impl PerPacket for CheckARPHeader {
    type On = on::Any;
    type Local = CheckARPHeaderState;
    type Fate = CheckARPHeaderExit;

    fn packet(&self, state: &mut CheckARPHeaderState, packet: &mut Packet) -> CheckARPHeaderExit {
        let bytes = packet.bytes().get(self.offset..).unwrap_or_default();
        let fault = match ArpPrefix::checked_len(bytes) {
            Ok(len) => {
                packet.set_network_header(self.offset as isize, len);
                state.count += 1;
                return CheckARPHeaderExit::Good;
            }
            Err(fault) => fault,
        };
        if self.verbose || state.drops == 0 {
            state.reports.push(fault);
        }
        state.drops += 1;
        state.faults[fault as usize] += 1;
        match fault {
            _ if self.two_outputs => CheckARPHeaderExit::Bad,
            LengthFault::Tiny => CheckARPHeaderExit::TinyPacket,
            LengthFault::Addresses => CheckARPHeaderExit::TooSmall,
            LengthFault::Hardware => CheckARPHeaderExit::BadHardware,
            LengthFault::Protocol => CheckARPHeaderExit::BadProtocol,
        }
    }

    fn end_burst(&self, state: &mut CheckARPHeaderState, cx: &mut Cx) {
        for fault in state.reports.drain(..) {
            cx.chatter(&format!("ARP header check failed: {}", fault.text()));
        }
    }
}
