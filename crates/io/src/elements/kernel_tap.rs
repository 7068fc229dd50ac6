//! `KernelTap`: Ethernet frames to and from the host's own stack.

use super::host::{FromTheHost, Neighbour, check_gateway, ipv4_net};
use crate::tap::{Kind, Setup as HostSetup};
use castanet_engine::prelude::*;

/// Exchanges Ethernet frames with the host's own stack, through a TAP device.
///
/// The host gets the address and network ADDR on the device, and asks by ARP
/// for whom it wants to reach there; somebody must answer. What it sends comes
/// out, and frames that come in are received by the host. The device goes away
/// with the router.
///
/// ```text
/// tap :: KernelTap(10.0.0.1/24) -> c :: Classifier(12/0806, 12/0800);
/// c[0] -> ARPResponder(10.0.0.0/24 1:1:1:1:1:1) -> tap;
/// c[1] -> Print(ip) -> Discard;
/// ```
#[derive(Element)]
#[element(args = Settings, ports = "0-1/1-2")]
pub struct KernelTap {
    settings: Settings,
}

/// What can be set.
#[derive(Args)]
pub struct Settings {
    /// The host's address, and the network that is reached this way.
    #[arg]
    addr: Net,
    /// A router on that network for all else that the host sends.
    #[arg]
    gateway: Option<Ipv4Addr>,
    /// Bytes to keep free before each packet; frames always have 128.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    headroom: u32,
    /// How many packets to read at once; 0 for the engine's burst.
    #[arg(keyword, default = 0)]
    burst: u32,
    /// The host's Ethernet address; the kernel chooses one otherwise.
    #[arg(keyword)]
    ether: Option<MacAddr>,
    /// The largest packet, without Ethernet header.
    #[arg(keyword)]
    mtu: Option<u32>,
    /// The device's name; the kernel chooses one otherwise.
    #[arg(keyword, default = String::new())]
    devname: String,
    /// For configurations that say so: overflows are counted, never printed.
    #[arg(keyword, default = true)]
    #[expect(dead_code, reason = "for configurations that say so")]
    ignore_queue_overflows: bool,
}

impl Build for KernelTap {
    type Args = Settings;

    fn build(settings: Settings, _: &Setup) -> Result<Self, ArgError> {
        check_gateway(Some(&settings.addr), settings.gateway)?;
        if settings.mtu.is_some_and(|mtu| mtu < 20) {
            let error = ArgError::new("has no room for an IP header").at("MTU");
            return Err(error.click("MTU must be greater than 20"));
        }
        Ok(KernelTap { settings })
    }
}

impl Source for KernelTap {
    type Local = Neighbour;
    type Fate = FromTheHost;

    fn begin(&self, local: &mut Neighbour, _: &mut Cx) -> Result<(), ArgError> {
        let it = &self.settings;
        let setup = HostSetup {
            ipv4: Some(ipv4_net(&it.addr)),
            gateway: it.gateway,
            ether: it.ether,
            mtu: it.mtu.map(|mtu| mtu as usize),
        };
        local.open(&it.devname, Kind::Tap, Some(&setup))
    }

    fn ask(&self, local: &mut Neighbour, n: usize, cx: &mut Cx) -> Asked {
        let burst = self.settings.burst as usize;
        local.receive(if burst > 0 { burst } else { n }, cx)
    }

    fn end(&self, local: &mut Neighbour, cx: &mut Cx) {
        local.close(FromTheHost::Full, cx);
    }
}

impl PerBatch for KernelTap {
    type On = on::Any;
    type Local = Neighbour;
    type Fate = FromTheHost;

    fn batch(&self, local: &mut Neighbour, _: usize, batch: Batch, cx: &mut Cx) {
        local.send(batch, FromTheHost::Refused, FromTheHost::Full, cx);
    }

    fn wake(&self, local: &mut Neighbour, cx: &mut Cx) {
        local.send(Batch::new(), FromTheHost::Refused, FromTheHost::Full, cx);
    }

    fn held(&self, local: &Neighbour) -> usize {
        local.held()
    }
}
