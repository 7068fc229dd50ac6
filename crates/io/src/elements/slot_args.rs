//! The arguments of the channel of `FromSlots` and `ToSlots`.

use crate::slots::{CAPACITY, Direction, Geometry, MAX_BYTES, SLOTS, SlotDevice, SlotOptions};
use castanet_element::prelude::*;

/// The arguments by which a channel is made or found.
#[derive(Args, Clone, PartialEq)]
pub(super) struct SlotArgs {
    /// The socket file by which the two processes meet.
    #[arg]
    path: String,
    /// Whether the other process makes the channel, and this one connects to it.
    #[arg(keyword, default = false)]
    client: bool,
    /// Whether the program passes the connection, as `castanet tenants` does to a tenant's process: there
    /// is no socket file then, and PATH is a name.
    #[arg(keyword, default = false)]
    passed: bool,
    /// Number of packets that each ring holds, rounded up to a power of two, if this process makes it.
    #[arg(keyword, default = 1024, range = 2..=32768)]
    slots: u32,
    /// The longest packet in bytes, if this process makes the rings.
    #[arg(keyword, default = 2048, range = 64..=65536)]
    snaplen: u32,
}

impl SlotArgs {
    /// The channel that the arguments describe.
    pub(super) fn options(&self) -> Result<SlotOptions, ArgError> {
        let slots = self.slots.clamp(*SLOTS.start(), *SLOTS.end());
        let geometry = Geometry::new(slots, self.snaplen.clamp(*CAPACITY.start(), *CAPACITY.end()));
        if geometry.bytes() > MAX_BYTES {
            let error = ArgError::new("SLOTS packets of SNAPLEN bytes take more than 256 MiB");
            return Err(error.help("give fewer SLOTS, or a smaller SNAPLEN"));
        }
        let (path, is_client, is_passed) = (self.path.clone(), self.client, self.passed);
        Ok(SlotOptions { path, is_client, is_passed, geometry })
    }

    /// Opens one direction of the channel.
    pub(super) fn open(&self, direction: Direction) -> Result<SlotDevice, ArgError> {
        SlotDevice::open(&self.options()?, direction)
            .map_err(|error| ArgError::new(error.to_string()))
    }

    /// The resources that the channel needs.
    pub(super) fn resources(&self) -> Vec<Resource> {
        if self.passed {
            return Vec::new();
        }
        let reason = "exchanges packets with another process by a slot channel there";
        vec![Resource::new(ResourceKind::Socket, format!("UNIX {}", self.path), reason)]
    }

    /// The socket file.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}
