//! The device of `KernelTun` and `KernelTap`, which exists while the router runs.

use super::duplex::DuplexDevice;
use super::host_state::{HostExit, HostState, host_side};
use crate::tap::{HostSide, TunTapMode};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// The arguments of `KernelTun` and `KernelTap`.
#[derive(Args)]
pub struct KernelDeviceArgs {
    /// The host's address and its network on the device.
    #[arg]
    addr: Net,
    /// A router on that network, for the host's default route.
    #[arg]
    gateway: Option<Ipv4Addr>,
    /// Whether packets are Ethernet frames; true for `KernelTap` and false for
    /// `KernelTun` if not given.
    #[arg(keyword)]
    tap: Option<bool>,
    /// Number of bytes to keep free before each packet; ignored, frames always have 128.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    headroom: u32,
    /// Number of packets to read at once; 0 for the engine's burst.
    #[arg(keyword, default = 0)]
    burst: u32,
    /// With TAP, the host's Ethernet address; the kernel chooses one if not given.
    #[arg(keyword)]
    ether: Option<MacAddr>,
    /// The longest packet in bytes, without Ethernet header.
    #[arg(keyword)]
    mtu: Option<u32>,
    /// The device's name; the kernel chooses one if not given.
    #[arg(keyword, default = String::new())]
    devname: String,
    /// As DEVNAME.
    #[arg(keyword)]
    dev_name: Option<String>,
    /// Ignored: overflows are counted, never printed.
    #[arg(keyword, default = true)]
    #[expect(dead_code, reason = "for configurations that say so")]
    ignore_queue_overflows: bool,
}

impl KernelDeviceArgs {
    fn device_name(&self) -> &str {
        self.dev_name.as_deref().unwrap_or(&self.devname)
    }
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &KernelDeviceArgs| super::host_state::resources(it.device_name()))
}

/// The configuration of the device.
pub struct KernelDevice {
    kind: TunTapMode,
    devname: String,
    burst: usize,
    host: HostSide,
}

impl KernelDevice {
    pub(super) fn new(
        settings: KernelDeviceArgs,
        default_kind: TunTapMode,
    ) -> Result<Self, ArgError> {
        let KernelDeviceArgs { gateway, ether, mtu, .. } = settings;
        let host = host_side(Some(&settings.addr), gateway, ether, mtu)?;
        if mtu.is_some_and(|mtu| mtu < 20) {
            let error = ArgError::new("has no room for an IP header").at("MTU");
            return Err(error.click("MTU must be greater than 20"));
        }
        let devname = settings.device_name().to_owned();
        let kind = settings
            .tap
            .map_or(default_kind, |tap| if tap { TunTapMode::Tap } else { TunTapMode::Tun });
        Ok(KernelDevice { kind, devname, burst: settings.burst as usize, host })
    }
}

impl DuplexDevice for KernelDevice {
    type State = HostState;
    type Exit = HostExit;
    const SHARED: bool = false;

    fn open(&self, local: &mut HostState, _: &mut Cx) -> Result<(), ArgError> {
        local.open(&self.devname, self.kind, Some(&self.host))
    }

    fn start(&self, local: &mut HostState) -> Result<(), ArgError> {
        local.start(&self.host)
    }

    fn receive(&self, local: &mut HostState, n: usize, cx: &mut Cx) -> NextRun {
        local.receive(if self.burst > 0 { self.burst } else { n }, cx)
    }

    fn send(&self, local: &mut HostState, batch: Batch, cx: &mut Cx) {
        local.send(batch, HostExit::Refused, HostExit::Full, cx);
    }

    fn held(local: &HostState) -> usize {
        local.held()
    }

    fn close(&self, local: &mut HostState, cx: &mut Cx) {
        local.close(HostExit::Full, cx);
    }
}
