//! The ends of a tenant's virtual devices, the drops around them, and the process of a tenant that has one of its own.

#[allow(missing_docs)] // the manual says it
pub mod from_virtual_device;
mod link_header;
mod source_addresses;
#[allow(missing_docs)] // the manual says it
pub mod tenant_drop;
#[allow(missing_docs)] // the manual says it
pub mod tenant_process;
#[allow(missing_docs)] // the manual says it
pub mod to_virtual_device;

use castanet_element::class::{Class, control, per_batch, store};

/// Every class of this crate.
pub static CLASSES: &[Class] = &[
    store::<from_virtual_device::FromVirtualDevice>(),
    per_batch::<tenant_drop::TenantDrop>(),
    control::<tenant_process::TenantProcess>(),
    per_batch::<to_virtual_device::ToVirtualDevice>(),
];
