//! `FromHost`: receives the Ethernet frames that the host sends on a TAP device.

use super::host_state::{HostExit, HostState, host_side};
use crate::tap::{HostSide, TunTapMode};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// Receives the Ethernet frames that the host sends on the TAP device DEVNAME.
///
/// The element makes the device if there is none, and gives the host the address
/// and network DST on it. The host sends ARP requests on that network; an element
/// such as `ARPResponder` must answer them. A `ToHost` of the same name sends frames
/// to the host.
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

/// The arguments of `FromHost`.
#[derive(Args)]
pub struct FromHostArgs {
    /// The device's name.
    #[arg]
    devname: String,
    /// The host's address and its network on the device.
    #[arg]
    dst: Option<Net>,
    /// A router on that network, for the host's default route.
    #[arg]
    gateway: Option<Ipv4Addr>,
    /// Number of bytes to keep free before each packet; ignored, frames always have 128.
    #[arg(default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    headroom: u32,
    /// The host's Ethernet address.
    #[arg(keyword)]
    ether: Option<MacAddr>,
    /// The longest packet in bytes, without Ethernet header.
    #[arg(keyword)]
    mtu: Option<u32>,
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &FromHostArgs| super::host_state::resources(&it.devname))
}

impl Build for FromHost {
    type Args = FromHostArgs;

    fn build(settings: FromHostArgs, _: &Setup) -> Result<Self, ArgError> {
        let FromHostArgs { devname, dst, gateway, ether, mtu, .. } = settings;
        let host = host_side(dst.as_ref(), gateway, ether.or(Some(DEFAULT_ETHER)), mtu)?;
        Ok(FromHost { devname, host })
    }
}

impl Source for FromHost {
    type Local = HostState;
    type Fate = HostExit;

    fn can_take_state(&self, _: &FromHost) -> bool {
        false // a new element opens its device anew
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

/// The host's Ethernet address if ETHER is not given, as in Click.
const DEFAULT_ETHER: MacAddr = MacAddr([0, 1, 2, 3, 4, 5]);
