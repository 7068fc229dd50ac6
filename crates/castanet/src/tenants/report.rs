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
    /// Configurations that were installed or removed since the start.
    pub(crate) installs: u64,
    /// Of these, those that its own clients installed.
    pub(crate) own_installs: u64,
    /// Configurations of its own clients that were refused.
    pub(crate) refused: u64,
}

/// Counts of a tenant's installations since the start.
#[derive(Clone, Copy, Default)]
pub(crate) struct InstallCounts {
    pub(crate) installs: u64,
    pub(crate) own_installs: u64,
    pub(crate) refused: u64,
}

/// The tenants of a system.
pub(crate) fn tenant_reports(
    configurations: &TenantConfigurations,
    sockets: &TenantSockets,
    counts: &BTreeMap<String, InstallCounts>,
) -> Vec<TenantReport> {
    let tenants = configurations.system().tenants.iter().enumerate();
    let report = tenants.map(|(number, it)| {
        let counts = counts.get(&it.name).copied().unwrap_or_default();
        TenantReport {
            tenant: it.name.clone(),
            configuration: configurations.origin_of(number).to_owned(),
            elements: configurations.graph_of(number).elements.len(),
            isolation: if it.process.is_some() { "process" } else { "in-process" }.to_owned(),
            socket: sockets.path_of(&it.name),
            installs: counts.installs,
            own_installs: counts.own_installs,
            refused: counts.refused,
        }
    });
    report.collect()
}
