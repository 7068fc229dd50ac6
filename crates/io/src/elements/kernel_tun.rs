//! `KernelTun`: IP packets to and from the host's own stack.

use super::host::{FromTheHost, Neighbour, check_gateway, ipv4_net};
use crate::tap::{Kind, Setup as HostSetup};
use castanet_engine::prelude::*;

/// Exchanges IP packets with the host's own stack, through a TUN device.
///
/// The host gets the address and network ADDR on the device; what it routes
/// there comes out of output 0, and packets that come in are received by the
/// host. Packets that are not IP come out of output 1, if it is connected.
/// The device goes away with the router.
///
/// ```text
/// KernelTun(10.0.0.1/24) -> IPPrint(host) -> ICMPPingResponder -> tun;
/// ```
#[derive(Element)]
#[element(args = Settings, ports = "0-1/1-2")]
pub struct KernelTun {
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
    /// Whether packets are Ethernet frames, as with `KernelTap`.
    #[arg(keyword, default = false)]
    tap: bool,
    /// Bytes to keep free before each packet; frames always have 128.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    headroom: u32,
    /// How many packets to read at once; 0 for the engine's burst.
    #[arg(keyword, default = 0)]
    burst: u32,
    /// With TAP, the host's Ethernet address.
    #[arg(keyword)]
    ether: Option<MacAddr>,
    /// The largest packet.
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

impl Build for KernelTun {
    type Args = Settings;

    fn build(settings: Settings, _: &Setup) -> Result<Self, ArgError> {
        check_gateway(Some(&settings.addr), settings.gateway)?;
        if settings.mtu.is_some_and(|mtu| mtu < 20) {
            let error = ArgError::new("has no room for an IP header").at("MTU");
            return Err(error.click("MTU must be greater than 20"));
        }
        Ok(KernelTun { settings })
    }
}

impl Source for KernelTun {
    type Local = Neighbour;
    type Fate = FromTheHost;

    fn begin(&self, local: &mut Neighbour, _: &mut Cx) -> Result<(), ArgError> {
        let it = &self.settings;
        let kind = if it.tap { Kind::Tap } else { Kind::Tun };
        let setup = HostSetup {
            ipv4: Some(ipv4_net(&it.addr)),
            gateway: it.gateway,
            ether: it.ether,
            mtu: it.mtu.map(|mtu| mtu as usize),
        };
        local.open(&it.devname, kind, Some(&setup))
    }

    fn ask(&self, local: &mut Neighbour, n: usize, cx: &mut Cx) -> Asked {
        let burst = self.settings.burst as usize;
        local.receive(if burst > 0 { burst } else { n }, cx)
    }

    fn end(&self, local: &mut Neighbour, cx: &mut Cx) {
        local.close(FromTheHost::Full, cx);
    }
}

impl PerBatch for KernelTun {
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
