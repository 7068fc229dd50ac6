//! The ends of a tenant's virtual devices.

#[allow(missing_docs)] // the manual says it
pub mod from_virtual_device;
#[allow(missing_docs)] // the manual says it
pub mod to_virtual_device;

use castanet_element::class::{Class, per_packet, store};

/// Every class of this crate.
pub static CLASSES: &[Class] = &[
    store::<from_virtual_device::FromVirtualDevice>(),
    per_packet::<to_virtual_device::ToVirtualDevice>(),
];
