//! `FromHost`: Ethernet frames that the host's own stack sends.

use super::host_state::{HostExit, HostState, host_side};
use crate::tap::{HostSide, TunTapMode};
use castanet_element::prelude::*;

/// Receives the Ethernet frames that the host sends on the TAP device DEVNAME.
///
/// The device is made if there is none, with the address and network DST for
/// the host. The host asks by ARP for whom it wants to reach there; somebody
/// must answer. A `ToHost` of the same name goes the other way.
///
/// ```text
/// FromHost(fake0, 192.0.2.1/24) -> c :: Classifier(12/0806, 12/0800);
/// c[0] -> ARPResponder(0.0.0.0/0 1:1:1:1:1:1) -> ToHost(fake0);
/// c[1] -> Print(ip) -> Discard;
/// ```
#[derive(Element)]
#[element(args = FromHostArgs, ports = "0/1")]
pub struct FromHost {
    devname: String,
    host: HostSide,
}

/// What can be set.
#[derive(Args)]
pub struct FromHostArgs {
    /// The device's name.
    #[arg]
    devname: String,
    /// The host's address, and the network that is reached this way.
    #[arg]
    dst: Option<Net>,
    /// A router on that network for all else that the host sends.
    #[arg]
    gateway: Option<Ipv4Addr>,
    /// Bytes to keep free before each packet; frames always have 128.
    #[arg(default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    headroom: u32,
    /// The host's Ethernet address.
    #[arg(keyword)]
    ether: Option<MacAddr>,
    /// The largest packet, without Ethernet header.
    #[arg(keyword)]
    mtu: Option<u32>,
}

impl Build for FromHost {
    type Args = FromHostArgs;

    fn build(settings: FromHostArgs, _: &Setup) -> Result<Self, ArgError> {
        let FromHostArgs { devname, dst, gateway, ether, mtu, .. } = settings;
        let host = host_side(dst.as_ref(), gateway, ether.or(Some(ETHER)), mtu)?;
        Ok(FromHost { devname, host })
    }
}

impl Source for FromHost {
    type Local = HostState;
    type Fate = HostExit;

    fn can_take_state(&self, _: &FromHost) -> bool {
        false // it opens what its arguments name
    }

    fn init(&self, local: &mut HostState, _: &mut Cx) -> Result<(), ArgError> {
        local.open(&self.devname, TunTapMode::Tap, Some(&self.host))
    }

    fn start(&self, local: &mut HostState, _: &mut Cx) -> Result<(), ArgError> {
        local.start(&self.host)
    }

    fn produce(&self, local: &mut HostState, n: usize, cx: &mut Cx) -> NextRun {
        local.receive(n, cx)
    }

    fn cleanup(&self, local: &mut HostState, cx: &mut Cx) {
        local.close(HostExit::Full, cx);
    }
}

/// The host's Ethernet address unless ETHER says otherwise, as in Click.
const ETHER: MacAddr = MacAddr([0, 1, 2, 3, 4, 5]);
