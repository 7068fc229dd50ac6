//! The tenants of a running system, as clients list them.

use super::configurations::TenantConfigurations;
use super::sockets::TenantSockets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tenant of a running system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TenantReport {
    pub(crate) tenant: String,
    /// The source of its configuration: `file`, `installed`, or `removed`.
    pub(crate) configuration: String,
    /// Number of its elements.
    pub(crate) elements: usize,
    /// `process` if it has one of its own, else `in-process`.
    pub(crate) isolation: String,
    /// Its control socket.
    pub(crate) socket: Option<String>,
    #[serde(flatten)]
    pub(crate) counts: InstallCounts,
}

/// Counts of a tenant's installations since the start.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct InstallCounts {
    /// Configurations that were installed, restored or removed.
    pub(crate) installs: u64,
    /// Of these, those of its own clients.
    pub(crate) own_installs: u64,
    /// Configurations of its own clients that were refused.
    pub(crate) refused: u64,
}

/// The tenants of a system.
pub(crate) fn tenant_reports(
    configurations: &TenantConfigurations,
    sockets: &TenantSockets,
    counts: &BTreeMap<String, InstallCounts>,
) -> Vec<TenantReport> {
    let tenants = configurations.system().tenants.iter().enumerate();
    let report = tenants.map(|(number, it)| TenantReport {
        tenant: it.name.clone(),
        configuration: configurations.origin_of(number).to_owned(),
        elements: configurations.graph_of(number).elements.len(),
        isolation: it.isolation().to_owned(),
        socket: sockets.path_of(&it.name),
        counts: counts.get(&it.name).copied().unwrap_or_default(),
    });
    report.collect()
}
